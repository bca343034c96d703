import numpy as np
import pytest

from largesse.data.log import log_from_arrays
from largesse.evaluation.overlap import answer_level, measure_overlap
from largesse.propensity.estimate import encode_for_levels
from largesse.records import Array, Log, Overlap
from largesse.worlds.paper import simulate


def measured(log: Log, propensity: Array) -> Overlap:
    return measure_overlap(log, propensity, encode_for_levels(log))


@pytest.mark.parametrize(
    ("rows", "effective", "smallest", "answer"),
    [
        (29, 29, 0.5, "no"),
        (500, 29, 0.5, "no"),
        (30, 30, 0.5, "careful"),
        (500, 99, 0.5, "careful"),
        (500, 400, 0.009, "careful"),
        (500, 100, 0.01, "fine"),
    ],
)
def test_whether_the_effect_of_a_level_can_be_estimated(
    rows: int, effective: float, smallest: float, answer: str
) -> None:
    assert answer_level(rows, effective, smallest) == answer


def test_rows_effective_rows_and_smallest_propensities_follow_their_formulas() -> None:
    rng = np.random.default_rng(0)
    level, given, weight = rng.integers(0, 3, 200), rng.uniform(0.05, 1, 200), rng.uniform(0.5, 2, 200)
    log = log_from_arrays(rng.normal(size=(200, 2)), level, rng.integers(0, 2, 200), weight=weight)
    seen = measured(log, given)
    for k in range(3):
        inverse = (weight / given)[level == k]
        assert seen.rows[k] == (level == k).sum()
        assert seen.effective[k] == pytest.approx(inverse.sum() ** 2 / (inverse**2).sum())
        assert seen.smallest[k] == given[level == k].min()
    assert (seen.effective <= seen.rows).all()
    assert seen.counts.sum() == 200
    assert seen.counts.shape == (3, len(seen.edges) - 1)


def test_equal_propensities_lose_no_rows() -> None:
    log = log_from_arrays(np.random.default_rng(1).normal(size=(90, 1)), np.arange(90) % 3, np.arange(90) % 2)
    np.testing.assert_allclose(measured(log, np.full(90, 1 / 3)).effective, 30)


def test_balance_is_the_largest_standardised_difference() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 2)) * [1, 50]
    level = (x[:, 0] + rng.normal(size=300) > 0).astype(int)
    log = log_from_arrays(x, level, rng.integers(0, 2, 300))
    seen = measured(log, np.full(300, 0.5))
    assert seen.features[0] == "x0"
    means = [x[level == k, 0].mean() for k in (0, 1)]
    expected = max(abs(mean - x[:, 0].mean()) for mean in means) / x[:, 0].std()
    assert seen.before[0] == pytest.approx(expected, rel=1e-4)
    assert seen.after == pytest.approx(seen.before)  # constant weights change nothing


def test_true_propensities_restore_the_balance() -> None:
    sim = simulate("instrument", n=20_000, seed=1, mix=0.3)
    seen = measured(sim.log, sim.propensity)
    assert len(seen.features) == 12
    assert seen.before.max() > 0.2
    assert seen.after.max() < 0.1


def test_a_text_feature_counts_once_by_its_worst_word() -> None:
    import pyarrow as pa

    city = np.array(["Oslo", "Rome", "Bonn"])[np.arange(300) % 3]
    level = (city == "Rome").astype(int)
    table = pa.table({"city": city, "age": np.arange(300.0)})
    seen = measured(log_from_arrays(table, level, np.arange(300) % 2), np.full(300, 0.5))
    assert seen.features == ("city", "age")
    assert seen.before[0] == pytest.approx(np.sqrt(0.5))  # a third of all at one level is none at the other


def test_constant_features_leave_an_empty_table() -> None:
    log = log_from_arrays(np.ones((20, 1)), np.arange(20) % 2, np.arange(20) // 2 % 2)
    seen = measured(log, np.full(20, 0.5))
    assert (seen.features, len(seen.before), len(seen.after)) == ((), 0, 0)
