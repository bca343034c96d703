"""Reasons of decisions, checked against plain decisions on held-out rows."""

from dataclasses import replace

import numpy as np
import pytest

from largesse.allocation import decide_at_price
from largesse.evaluation import make_study
from largesse.evaluation.plan_explanation import PRICE_CHANGES, explain_decisions
from largesse.records import DecisionReasons, Log, Study
from largesse.response import Linear
from largesse.worlds import simulate


@pytest.fixture(scope="module")
def log() -> Log:
    return simulate("averaged", n=600, seed=1).log


@pytest.fixture(scope="module")
def study(log: Log) -> Study:
    return make_study(log, Linear(), 1.5)


def test_examples_get_their_level_at_their_price_and_another_beyond_it(log: Log, study: Study) -> None:
    found = study.why
    labels = list(log.levels.titles)
    assert sum(row.share for row in found.examples) == pytest.approx(1)
    assert len(found.examples) > 1
    for row in found.examples:
        curve, costs = np.array([row.curve]), np.array([row.costs])
        assert labels[decide_at_price(curve, costs, row.price)[0]] == row.level
        assert row.dearer or row.cheaper
        for there, limit, step in (("dearer", "below", 1 - 1e-6), ("cheaper", "above", 1 + 1e-6)):
            if getattr(row, there) is not None:
                assert labels[decide_at_price(curve, costs, getattr(row, limit) * step)[0]] == getattr(row, there)


def test_moves_are_counted_fold_by_fold(log: Log, study: Study) -> None:
    scores, plan = study.scores, study.plan
    moved = dict.fromkeys(PRICE_CHANGES, 0)
    for place, fold in enumerate(np.unique(scores.fold)):
        rows = scores.fold == fold
        costs = scores.expected_costs[rows] * (1.0 if plan.scales is None else plan.scales[place])
        now = decide_at_price(scores.curves[rows], costs, plan.prices[place])
        for change in PRICE_CHANGES:
            moved[change] += (
                decide_at_price(scores.curves[rows], costs, plan.prices[place] * (1 + change)) != now
            ).sum()
    found = study.why.moves
    assert [row.share for row in found] == pytest.approx(
        [moved[change] / len(scores.level) for change in PRICE_CHANGES]
    )
    assert any(moved.values())


def test_folds_that_no_budget_is_enough_for_are_left_out(log: Log, study: Study) -> None:
    none = replace(study.plan, prices=np.full(len(study.plan.prices), np.inf))
    assert explain_decisions(log, study.scores, none) == DecisionReasons()
