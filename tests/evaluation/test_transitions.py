"""From what was done to a plan: the changes of all levels add up, and are right where the truth is known."""

import numpy as np
import pytest

from largesse.evaluation import crossfit_scores, estimate_policy_value_and_spend
from largesse.evaluation.plan_explanation import measure_changes_from_logged_levels
from largesse.records import Array, Scores
from largesse.response import Linear
from largesse.worlds import simulate

SIM = simulate("averaged", n=4000, seed=2)


@pytest.fixture(scope="module")
def scores() -> Scores:
    return crossfit_scores(SIM.log, Linear())


@pytest.fixture(scope="module")
def levels() -> Array:
    first = SIM.features[:, 0]
    return (first > np.median(first)).astype(np.int64) * 2 + 1


def test_the_changes_of_all_levels_add_up_to_the_plan(scores: Scores, levels: Array) -> None:
    found = measure_changes_from_logged_levels(scores, levels)
    value, spend = estimate_policy_value_and_spend(scores, levels)
    for part, plan in (("value", value), ("spend", spend)):
        steps = [getattr(one, part).estimate for one in found.levels]
        assert getattr(found.before, part).estimate + sum(steps) == pytest.approx(plan.estimate)
        assert getattr(found.after, part) == plan
    assert found.before.value.estimate == pytest.approx(SIM.log.response.mean())
    assert [one.level for one in found.levels] == [1, 3]
    assert [one.share for one in found.levels] == pytest.approx([np.mean(levels == 1), np.mean(levels == 3)])


def test_the_change_of_a_level_is_right_where_the_truth_is_known(scores: Scores, levels: Array) -> None:
    rows = np.arange(len(levels))
    gain = SIM.truth[rows, levels] - SIM.truth[rows, SIM.log.level]
    for one in measure_changes_from_logged_levels(scores, levels).levels:
        truth = float((gain * (levels == one.level)).mean())
        assert abs(one.value.estimate - truth) < 4 * one.value.se
        assert one.value.low < one.value.estimate < one.value.high


def test_moves_are_counted_and_priced_as_the_model_has_it(scores: Scores, levels: Array) -> None:
    moves = measure_changes_from_logged_levels(scores, levels).moves
    assert sum(move.rows for move in moves) == len(levels)
    assert sum(move.share for move in moves) == pytest.approx(1.0)
    for move in moves:
        mine = (SIM.log.level == move.before) & (levels == move.after)
        assert move.rows == mine.sum()
        curves, costs = scores.curves[mine], scores.expected_costs[mine]
        assert move.value == pytest.approx((curves[:, move.after] - curves[:, move.before]).mean())
        assert move.spend == pytest.approx((costs[:, move.after] - costs[:, move.before]).mean())
        assert (move.value, move.spend) == (0.0, 0.0) or move.before != move.after


def test_what_was_done_changes_nothing_by_moving(scores: Scores) -> None:
    moves = measure_changes_from_logged_levels(scores, SIM.log.level).moves
    assert all(move.before == move.after for move in moves)
