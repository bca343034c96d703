import numpy as np
import pytest

from largesse.stats.lower_confidence_bound import STEP_POWERS, bound_mean_from_below


def ratio(terms: np.ndarray, mean: float, coverage: float, parts: int) -> float:
    """Return the averaged ratio of products, as the definition has it."""
    steps = np.sqrt(2 * parts * np.log(1 / (1 - coverage)) / len(terms)) * 2**STEP_POWERS
    return float(np.mean([np.prod(((1 + s * terms) / (1 + s * mean)) ** (1 / parts)) for s in steps]))


@pytest.mark.parametrize("parts", [1, 5])
def test_the_bound_makes_the_ratio_as_large_as_chance_allows(parts: int) -> None:
    terms = np.random.default_rng(0).exponential(size=200)
    found = bound_mean_from_below(terms, coverage=0.9, parts=parts)
    assert ratio(terms, found, 0.9, parts) == pytest.approx(10)
    assert 0 < found < terms.mean()


def test_the_truth_is_seldom_below_even_for_few_rows_and_long_tails() -> None:
    rng = np.random.default_rng(1)
    draws = {
        "rare": lambda: 20.0 * (rng.random(40) < 0.05),  # mean 1
        "tail": lambda: rng.lognormal(-2.0, 2.0, 40),  # mean 1
        "even": lambda: rng.uniform(0.0, 2.0, 40),
    }
    for draw in draws.values():
        missed = np.mean([bound_mean_from_below(draw()) > 1 for _ in range(1000)])
        assert missed <= 0.05


def test_more_rows_and_fewer_parts_make_it_tighter() -> None:
    terms = np.random.default_rng(2).exponential(size=4000)
    few, folds, all_rows = (
        bound_mean_from_below(terms[:400]),
        bound_mean_from_below(terms, parts=5),
        bound_mean_from_below(terms),
    )
    assert few < folds < all_rows < 1
    assert all_rows > 0.93


def test_clusters_count_as_one_and_weights_as_copies() -> None:
    terms = np.random.default_rng(3).exponential(size=100)
    twice, cluster = np.repeat(terms, 2), np.repeat(np.arange(100), 2)
    assert bound_mean_from_below(twice, cluster=cluster) == pytest.approx(bound_mean_from_below(terms))
    weight = np.where(np.arange(100) < 50, 2.0, 0.0)
    assert bound_mean_from_below(terms, weight) < bound_mean_from_below(terms[:50]) + 1e-9
