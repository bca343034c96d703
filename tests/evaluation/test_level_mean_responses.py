"""Curves of groups: right means, and a level that few rows of a group had is known to be so."""

import numpy as np
import pytest

from largesse.evaluation import crossfit_scores, estimate_each_level
from largesse.evaluation.level_mean_responses import estimate_group_curves
from largesse.records import Scores
from largesse.response import Linear
from largesse.worlds import simulate

SIM = simulate("averaged", n=2000, seed=2)


@pytest.fixture(scope="module")
def scores() -> Scores:
    return crossfit_scores(SIM.log, Linear())


def test_one_group_of_all_rows_has_the_curve_of_everyone(scores: Scores) -> None:
    rows = np.arange(2000)
    (found,) = estimate_group_curves(scores, rows, np.zeros(2000, dtype=int), 1)
    for k, (point, (value, _)) in enumerate(zip(found, estimate_each_level(scores), strict=True)):
        assert point.value == value
        assert point.model == pytest.approx(scores.curves[:, k].mean())
        assert point.rows == (SIM.level == k).sum()
        inverse = 1 / scores.propensity[SIM.level == k]
        assert point.effective == pytest.approx(inverse.sum() ** 2 / (inverse**2).sum())


def test_groups_are_judged_by_their_own_rows_and_few_are_named(scores: Scores) -> None:
    groups = (np.arange(2000) >= 60).astype(int)
    small, large, none = estimate_group_curves(scores, np.arange(2000), groups, 3)
    assert none == []
    assert [point.rows for point in small] == np.bincount(SIM.level[:60], minlength=5).tolist()
    assert all(point.few for point in small)
    assert not any(point.few for point in large)
    assert small[2].value.estimate == pytest.approx(scores.gamma[:60, 2].mean())
    assert small[2].value.se > large[2].value.se


def test_only_the_rows_that_are_asked_for_count(scores: Scores) -> None:
    some = np.arange(0, 2000, 3)
    (found,) = estimate_group_curves(scores, some, np.zeros(len(some), dtype=int), 1)
    assert found[1].value.estimate == pytest.approx(scores.gamma[some, 1].mean())
