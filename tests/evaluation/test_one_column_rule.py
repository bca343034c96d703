from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import linprog

from largesse.data import log_from_arrays
from largesse.evaluation.crossfitted_scores import compute_scores
from largesse.evaluation.one_column_rule import OneColumnRule, allocate_to_groups, learn_one_column_rules
from largesse.levels import Levels
from largesse.records import Array, HeldOutPredictions, Log, Propensities, Scores

N = 400
LEVELS = Levels(costs=[0, 1, 3], names=["none", "small", "big"])


@pytest.fixture(scope="module")
def made() -> tuple[Log, Scores, Array]:
    """A log whose curves rise with `city` alone, its scores, and a plan for its rows."""
    rng = np.random.default_rng(0)
    city = rng.integers(0, 3, N)
    table = pa.table({"age": rng.normal(40, 10, N), "city": np.array(["Oslo", "Rome", "Wien"])[city]})
    level, response = rng.integers(0, 3, N), rng.integers(0, 2, N).astype(float)
    log = log_from_arrays(table, level, response, levels=LEVELS, propensity=np.full(N, 1 / 3))
    curves = 0.2 + np.array([0.0, 0.05, 0.2])[city][:, None] * np.array([0.0, 1.0, 2.0])
    scores = compute_scores(log, HeldOutPredictions(curves, np.arange(N) % 5), Propensities(np.full(N, 1 / 3), "given"))
    return log, scores, rng.integers(0, 3, N)


@pytest.mark.parametrize("seed", range(5))
def test_groups_share_a_budget_as_well_as_a_linear_programme(seed: int) -> None:
    rng = np.random.default_rng(seed)
    value, cost = rng.random((4, 5)), np.sort(rng.random((4, 5)), axis=1)
    mass, budget = rng.dirichlet(np.ones(4)), rng.uniform(0.2, 0.8)
    shares = allocate_to_groups(value, cost, mass, budget)
    best = linprog(
        -(mass[:, None] * value).ravel(),
        A_ub=(mass[:, None] * cost).reshape(1, -1),
        b_ub=[max(budget, float(mass @ cost[:, 0]))],
        A_eq=np.kron(np.eye(4), np.ones(5)),
        b_eq=np.ones(4),
    )
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert float(mass @ (shares * value).sum(axis=1)) == pytest.approx(-best.fun)


def test_the_rule_is_by_the_column_that_matters(made: tuple[Log, Scores, Array]) -> None:
    log, scores, plan = made
    rules = learn_one_column_rules(log, scores, plan)
    assert rules is not None
    assert {rule.column for rule in (rules.whole, *rules.folds)} == {"city"}
    assert rules.whole.groups == ("Oslo", "Rome", "Wien")
    assert len(rules.folds) == 5
    assert rules.whole.describe(LEVELS).startswith("by 'city': Oslo: all get 'none'; Rome:")


def test_it_is_expected_to_cost_no_more_than_the_plan(made: tuple[Log, Scores, Array]) -> None:
    log, scores, plan = made
    rules = learn_one_column_rules(log, scores, plan)
    assert rules is not None
    np.testing.assert_allclose(rules.policy.sum(axis=1), 1)
    for f in range(5):
        mine = scores.fold == f
        spent = (rules.policy[mine] @ np.array([0.0, 1.0, 3.0])).mean()
        assert spent == pytest.approx(np.array([0, 1, 3])[plan[mine]].mean())


def test_responses_of_a_fold_do_not_move_its_rule(made: tuple[Log, Scores, Array]) -> None:
    log, scores, plan = made
    other = replace(scores, response=1 - scores.response, gamma=1 - scores.gamma)
    one, two = learn_one_column_rules(log, scores, plan), learn_one_column_rules(log, other, plan)
    assert one is not None
    assert two is not None
    assert np.array_equal(one.policy, two.policy)


def test_probabilities_are_a_policy_like_levels(made: tuple[Log, Scores, Array]) -> None:
    log, scores, plan = made
    one, two = learn_one_column_rules(log, scores, plan), learn_one_column_rules(log, scores, np.eye(3)[plan])
    assert one is not None
    assert two is not None
    np.testing.assert_allclose(one.policy, two.policy)


def test_many_rows_choose_the_column_by_a_sample(
    made: tuple[Log, Scores, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, scores, plan = made
    monkeypatch.setattr("largesse.evaluation.one_column_rule.MAX_RULE_ROWS", 150)
    rules = learn_one_column_rules(log, scores, plan)
    assert rules is not None
    assert rules.whole.column == "city"
    assert rules.policy.shape == (N, 3)


def test_without_a_column_of_two_groups_there_is_no_rule(made: tuple[Log, Scores, Array]) -> None:
    log, scores, plan = made
    assert learn_one_column_rules(replace(log, features=pa.table({"one": np.ones(N)})), scores, plan) is None


def test_groups_that_get_the_same_are_named_together() -> None:
    rule = OneColumnRule("age", ("young", "middle", "old"), np.array([[1, 0, 0], [0, 0.4, 0.6], [1, 0, 0]]))
    assert rule.describe(LEVELS) == "by 'age': young, old: all get 'none'; middle: 40 % get 'small', 60 % get 'big'"
    assert replace(rule, shares=np.tile([1.0, 0, 0], (3, 1))).describe(LEVELS) == "all get 'none'"


def test_a_fold_without_weight_has_a_rule_all_the_same(made: tuple[Log, Scores, Array]) -> None:
    log, scores, plan = made
    for f in np.unique(scores.fold):
        weight = np.where(scores.fold == f, 1.0, 0.0)
        rules = learn_one_column_rules(log, replace(scores, weight=weight), plan)
        assert rules is not None
