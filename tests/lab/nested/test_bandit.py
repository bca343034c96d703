from itertools import product
from typing import Any

import numpy as np
import pytest

from largesse.errors import BudgetError, InputError
from largesse.records import Array
from largesse_lab.nested.bandit import make_bandit, project_features


def labelled(n: int = 300, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 6)), rng.integers(0, 5, n)


# -- the log ------------------------------------------------------------------------------------------------------------


def test_an_insect_is_right_under_every_label_an_animal_under_one_and_others_under_none() -> None:
    X, depth = labelled()
    made = make_bandit(X, depth)
    judged = depth[made.rows[len(made.log) :]]
    expected = {0: [0, 0, 0, 0], 1: [0, 0, 0, 1], 2: [0, 0, 1, 1], 3: [0, 1, 1, 1], 4: [1, 1, 1, 1]}
    for truth, d in zip(made.truth, judged, strict=True):
        assert truth.tolist() == expected[int(d)]


def test_the_finest_label_is_the_cheapest_level() -> None:
    made = make_bandit(*labelled())
    assert made.log.levels.labels == ("insect", "arthropod", "invertebrate", "animal")
    assert made.costs.tolist() == [0, 1, 2, 3]


def test_the_log_shows_whether_the_label_given_was_right() -> None:
    X, depth = labelled()
    made = make_bandit(X, depth)
    logged = made.rows[: len(made.log)]
    assert made.log.response.tolist() == (made.log.level >= 4 - depth[logged]).astype(float).tolist()
    np.testing.assert_allclose(made.log.features.column(0).to_numpy(), X[logged, 0].astype(np.float32))


def test_rows_are_split_three_fifths_one_fifth_one_fifth_and_used_once() -> None:
    made = make_bandit(*labelled(500))
    assert (len(made.log), int(made.validation.sum()), len(made), len(made.train)) == (400, 100, 100, 300)
    assert sorted(made.rows.tolist()) == list(range(500))


def test_a_seed_draws_the_split_and_the_labels_but_not_the_policy() -> None:
    X, depth = labelled()
    one, same, other = (make_bandit(X, depth, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.rows, same.rows)
    assert np.array_equal(one.log.level, same.log.level)
    assert not np.array_equal(one.rows, other.rows)
    by_row = [dict(zip(made.rows.tolist(), made.propensities.tolist(), strict=False)) for made in (one, other)]
    shared = by_row[0].keys() & by_row[1].keys()
    assert len(shared) > 100
    assert all(by_row[0][row] == by_row[1][row] for row in shared)


@pytest.mark.parametrize("projection", ["pca", "random"])
def test_levels_are_given_in_proportion_to_projections_that_fill_zero_to_ten(projection: str) -> None:
    X, depth = labelled(20_000)
    scores = project_features(X, 4, projection)
    assert scores.min() > 0
    np.testing.assert_allclose(scores.max(axis=0), 10)
    made = make_bandit(X, depth, projection=projection)
    expected = scores[made.rows[: len(made.log)]] / scores[made.rows[: len(made.log)]].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(made.propensities, expected, rtol=1e-5)
    np.testing.assert_array_equal(made.log.propensity, made.propensities[np.arange(len(made.log)), made.log.level])
    shares = np.bincount(made.log.level, minlength=4) / len(made.log)
    np.testing.assert_allclose(shares, made.propensities.mean(axis=0), atol=0.01)


def test_directions_of_ones_own_are_followed_and_a_mix_keeps_every_level_possible() -> None:
    X, depth = labelled()
    made = make_bandit(X, depth, projection=np.eye(6)[:, :4], mix=0.2)
    assert made.propensities.min() >= 0.05
    x = X[made.rows[: len(made.log)], 0]
    assert np.corrcoef(x, made.propensities[:, 0])[0, 1] > 0.5


def test_a_level_that_all_rows_share_leaves_constant_features_harmless() -> None:
    X, depth = labelled()
    X[:, :] = 1.0
    assert make_bandit(X, depth).propensities == pytest.approx(0.25)


# -- what plans are worth ----------------------------------------------------------------------------------------------


def test_the_oracle_is_the_best_of_all_plans_where_costs_rise_unevenly() -> None:
    X, depth = labelled(30, seed=2)
    made = make_bandit(X, depth, costs=(0, 1, 4, 5), split=(0.6, 0.2, 0.2))
    best = {0.5: 0.0, 1.5: 0.0, 3.0: 0.0}
    for plan in product(range(4), repeat=len(made)):
        spend, value = made.costs[list(plan)].mean(), made.value(np.array(plan))
        best = {budget: max(b, value) if spend <= budget else b for budget, b in best.items()}
    for budget, value in best.items():
        # One customer of six may be split between two levels.
        assert value - 1e-12 <= made.oracle_value(budget) <= value + 1 / 6
        assert made.uniform_value(budget) <= made.oracle_value(budget)


def test_skill_is_one_for_the_truth_and_zero_for_uniform() -> None:
    X, depth = labelled(1000)
    made = make_bandit(X, depth)
    best = np.argmax(made.truth - 1e-6 * made.costs, axis=1)
    budget = float(made.costs[best].mean())
    assert made.skill(best, budget) == pytest.approx(1)
    assert made.skill(np.full(len(made), 2), 2.0) == pytest.approx(0, abs=0.02)
    assert made.skill_of(made.uniform_value(1.0), 1.0) == 0


def test_a_budget_below_the_cheapest_level_is_refused() -> None:
    made = make_bandit(*labelled(), costs=(1, 2, 3, 4))
    with pytest.raises(BudgetError, match="cheapest plan, which costs 1"):
        made.oracle_value(0.5)


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nested_level": np.zeros(3, int)}, "give one depth per row"),
        ({"nested_level": np.full(300, 5)}, r"holds \[5\], which are not 0..4"),
        ({"nested_level": np.full(300, -1)}, r"holds \[-1\]"),
        ({"nested_level": np.full(300, 1.5)}, r"holds \[1.5\]"),
        ({"nested_level": np.full(300, "insect")}, "which are not 0..4"),
        ({"features": np.zeros((0, 3)), "nested_level": np.zeros(0, int)}, "at least one row"),
        ({"features": np.full((300, 2), np.nan)}, "300 of 300 rows hold values that are not finite"),
        ({"features": np.full((300, 2), "text")}, "embed images or text first"),
        ({"costs": (3, 2, 1, 0)}, "do not rise"),
        ({"labels": ("insect",)}, "1 labels for 4 costs"),
        ({"split": (0.5, 0.2, 0.2)}, "sum to one"),
        ({"projection": "pcs"}, "did you mean 'pca'"),
        ({"projection": np.zeros((2, 2))}, r"of shape \(6, 4\)"),
        ({"mix": 2.0}, "between 0 and 1"),
        ({"seed": -1}, "zero or more"),
    ],
)
def test_what_is_wrong_is_named_with_what_to_do(change: dict[str, Any], said: str) -> None:
    X, depth = labelled()
    arguments: dict[str, Any] = {"features": X, "nested_level": depth, **change}
    with pytest.raises(InputError, match=said):
        make_bandit(arguments.pop("features"), arguments.pop("nested_level"), **arguments)


def test_everything_wrong_is_named_together() -> None:
    with pytest.raises(InputError, match="2 things are wrong"):
        make_bandit(np.full((4, 2), np.inf), np.array([9, 0, 0, 0]))
