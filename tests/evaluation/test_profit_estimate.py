from dataclasses import replace

import numpy as np
import pytest

from largesse.data import log_from_arrays
from largesse.errors import InputError
from largesse.evaluation.crossfitted_scores import crossfit_scores
from largesse.evaluation.estimators import ESTIMATORS
from largesse.evaluation.policy_estimates import (
    bootstrap_value_and_spend,
    estimate_policy_difference,
    estimate_policy_value_and_spend,
    measure_level_influence,
    measure_policy_influence,
)
from largesse.evaluation.policy_evaluation import evaluate
from largesse.evaluation.profit_estimate import estimate_profit, mark_possible_best_points
from largesse.evaluation.study_estimation import make_study
from largesse.levels import Levels
from largesse.records import Array, Log, Profit, Scores
from largesse.response import Linear
from largesse.stats import t_estimate

MODEL = Linear(penalty=0.03)
WORTH = 2.5


def find_profit(scores: Scores, policy: Array, worth: float = WORTH, estimator: str = "dr") -> Profit:
    return estimate_profit(
        scores,
        measure_policy_influence(scores, policy, estimator),
        measure_level_influence(scores, 0, estimator),
        worth,
    )


def draw_log(*, redeemed: bool = False, n: int = 600) -> Log:
    """Return a randomised log of purchases that rise with the level, paid always or on redemption."""
    rng = np.random.default_rng(4)
    x, level = rng.standard_normal((n, 3)), rng.integers(0, 3, n)
    response = np.maximum(4 + x[:, 0] + (1 + x[:, 1]) * level + rng.normal(0, 1, n), 0.5)
    costs = [0, 0.2, 0.4] if redeemed else [0, 1, 2]
    return log_from_arrays(
        x, level, response, levels=Levels(costs=costs, on_redemption="per unit" if redeemed else False)
    )


@pytest.fixture(scope="module", params=[False, True], ids=["always paid", "on redemption"])
def log(request: pytest.FixtureRequest) -> Log:
    return replace(draw_log(redeemed=request.param), response_value=WORTH)


@pytest.fixture(scope="module")
def scores(log: Log) -> Scores:
    return crossfit_scores(log, MODEL)


@pytest.fixture(scope="module")
def policy(log: Log) -> Array:
    return (np.arange(len(log)) % 3).astype(np.int64)


def test_the_interval_is_that_of_the_difference_row_by_row(scores: Scores, policy: Array) -> None:
    rows = np.arange(len(policy))
    slow = t_estimate(WORTH * scores.gamma[rows, policy] - scores.costs[rows, policy])
    found = find_profit(scores, policy)
    assert found.own.estimate == pytest.approx(slow.estimate)
    assert found.own.se == pytest.approx(slow.se)
    value, spend = estimate_policy_value_and_spend(scores, policy)
    assert found.own.estimate == pytest.approx(WORTH * value.estimate - spend.estimate)


def test_who_buys_also_redeems_so_profit_is_surer_than_value_and_spend_apart() -> None:
    log = draw_log(redeemed=True)
    scores, policy = crossfit_scores(log, MODEL), np.full(len(log), 2)
    value, spend = estimate_policy_value_and_spend(scores, policy)
    own = find_profit(scores, policy, 1.0).own
    assert own.high - own.low < 0.7 * (value.high - value.low + spend.high - spend.low)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_and_the_bootstrap_agree_on_what_profit_is(
    scores: Scores, policy: Array, estimator: str
) -> None:
    value, spend = estimate_policy_value_and_spend(scores, policy, estimator)
    found = find_profit(scores, policy, WORTH, estimator)
    assert found.own.estimate == pytest.approx(WORTH * value.estimate - spend.estimate)
    if estimator in ("dr", "sndr"):
        drawn = bootstrap_value_and_spend(scores, policy, estimator, WORTH)[2]
        assert drawn.estimate == pytest.approx(found.own.estimate)
        assert drawn.se == pytest.approx(found.own.se, rel=0.15)


def test_gains_are_paired_and_agree_with_differences(log: Log, scores: Scores, policy: Array) -> None:
    found = evaluate(log, policy)
    assert found.profit is not None
    cheapest, before, same = found.uniform[0], found.references[1], found.references[0]
    assert found.profit.gain == cheapest.profit_difference
    value, spend = estimate_policy_difference(crossfit_scores(log), policy, np.zeros_like(policy))
    assert found.profit.gain.estimate == pytest.approx(WORTH * value.estimate - spend.estimate)
    assert found.profit.returned.estimate == pytest.approx(WORTH * value.estimate / spend.estimate)
    paid = scores.paid.mean()
    assert before.profit is not None
    assert before.profit_difference is not None
    assert before.profit.estimate == pytest.approx(WORTH * log.response.mean() - paid)
    assert before.profit_difference.estimate == pytest.approx(found.profit.own.estimate - before.profit.estimate)
    # At the same spend, profits differ as values do.
    assert same.profit_difference is not None
    assert same.profit_difference.estimate == pytest.approx(WORTH * same.difference.estimate)
    assert same.profit_difference.se == pytest.approx(WORTH * same.difference.se)


def test_without_a_value_there_is_no_profit(log: Log, policy: Array) -> None:
    found = evaluate(replace(log, response_value=None), policy)
    assert found.profit is None
    assert all(row.profit is None and row.profit_difference is None for row in (*found.references, *found.uniform))
    assert "profit" not in found.to_arrow().column_names


def test_tables_and_cards_show_profits(log: Log, policy: Array) -> None:
    found = evaluate(log, policy)
    table = found.to_arrow()
    assert found.profit is not None
    assert table.column("profit").to_pylist()[0] == found.profit.own.estimate
    assert table.column("profit_gain").to_pylist()[0] is None
    assert None not in table.column("profit_gain").to_pylist()[1:]
    assert any("Profit after costs" in line for line in found.card().lines)


def test_a_study_compares_budgets_by_profit_and_adds_the_one_where_a_unit_brings_what_it_costs(log: Log) -> None:
    plain = make_study(replace(log, response_value=None), MODEL, 0.7)
    study = make_study(log, MODEL, 0.7)
    assert study.best is not None
    assert plain.best is None
    assert len(study.frontier) - len(plain.frontier) in (0, 1)
    profits = {}
    for point, plan in zip(study.frontier, study.plans, strict=True):
        assert point.profit is not None
        profits[point.budget] = point.profit.estimate
        assert point.profit == measure_policy_influence(study.scores, plan.levels).measure_profit_influence(
            WORTH
        ).estimate(study.scores.weight, study.scores.cluster)
    assert profits[study.best.budget] == max(profits.values()) == study.best.profit.estimate
    assert study.best.low <= study.best.budget <= study.best.high
    point = next(point for point in study.frontier if point.budget == study.best.budget)
    assert point.profit is not None
    assert study.best.profit.low <= point.profit.low <= point.profit.high <= study.best.profit.high
    here = next(point.budget for point in study.frontier if point.budget == 0.7)
    assert study.best.may_be_this == (study.best.low <= here <= study.best.high)


def test_the_truly_best_is_kept_as_often_as_promised_and_clearly_worse_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    n, truth = 400, np.array([0.0, 0.3, 0.3, 0.2, -3.0])
    mixing = rng.standard_normal((5, 5)) / 2 + np.eye(5)
    kept = np.zeros(5)
    for seed in range(150):
        rows = truth + rng.standard_normal((n, 5)) @ mixing * 2
        means = rows.mean(axis=0)
        spread = rows.std(axis=0, ddof=1) / np.sqrt(n)
        kept += mark_possible_best_points(means, rows - means, spread, seed)
    assert (kept[1:3] >= 0.9 * 150).all()
    assert kept[4] == 0


def test_equal_plans_are_kept_together_and_certain_losses_are_not() -> None:
    parts = np.random.default_rng(1).standard_normal((50, 1)) @ np.ones((1, 3))
    same = mark_possible_best_points(np.array([1.0, 1.0, 0.5]), parts - parts.mean(axis=0), np.full(3, 0.1))
    assert same.tolist() == [True, True, False]  # a fixed difference is no matter of chance
    assert mark_possible_best_points(np.zeros(2), np.zeros((50, 2)), np.zeros(2)).tolist() == [True, True]


def test_profit_without_cost_is_value() -> None:
    log = draw_log()
    free = replace(log, levels=Levels(costs=[0, 0, 0]), response_value=1.0)
    found = evaluate(free, np.full(len(log), 1), budget=None)
    assert found.profit is not None
    assert found.profit.own.interval == pytest.approx(found.value_interval)
    assert np.isnan(found.profit.returned.estimate)


@pytest.mark.parametrize("worth", [0, -1, float("nan"), float("inf"), "two", True])
def test_a_response_is_worth_a_number_above_zero(worth: object) -> None:
    from largesse.data import read_log

    table = {"x": [1, 2, 3, 4], "level": [0, 1, 0, 1], "sales": [0, 1, 2, 3]}
    with pytest.raises(InputError, match="response_value"):
        read_log(table, level="level", response="sales", levels=Levels([0, 1]), response_value=worth)  # type: ignore[arg-type]
    assert read_log(table, level="level", response="sales", levels=Levels([0, 1]), response_value=3).response_value == 3
