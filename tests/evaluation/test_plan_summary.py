"""Who gets what: features that the plan goes with, and sums over groups and levels."""

import math
import operator
from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest

from largesse.allocation import allocate
from largesse.evaluation import PlanCounts, choose_explaining_features, count_planned_levels, index_feature_groups
from largesse.records import Array, Plan, PlanSummary
from support.plans import summarise

LABELS = ("none", "small", "big")


def make_summary(n: int, levels: Array | None = None) -> PlanSummary:
    """A plan that follows one feature, and does not follow another."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 3, n)
    features = pa.table({"follows": drawn.astype(float), "noise": rng.normal(size=n)})
    plan = Plan(drawn if levels is None else levels, 0.1, 1.0, 0.1, 0.1, 1.0)
    return summarise(plan, features, np.zeros((n, 3)), np.tile([0.0, 5.0, 10.0], (n, 1)), LABELS)


def test_features_that_explain_the_plan_come_first_and_others_are_left_out() -> None:
    (feature,) = make_summary(3000).who.features
    assert feature.feature == "follows"
    assert feature.explains == pytest.approx(1.0)
    assert [group.average_cost for group in feature.groups] == [0.0, 5.0, 10.0]
    assert [list(group.shares) for group in feature.groups] == np.eye(3).tolist()


def test_a_plan_that_is_the_same_for_everyone_is_explained_by_nothing() -> None:
    assert make_summary(100, np.ones(100, dtype=np.int64)).who.features == ()


def mixed_plan(n: int) -> tuple[pa.Table, Array, Array, Array]:
    rng = np.random.default_rng(1)
    age, city = rng.uniform(20, 70, n), rng.integers(0, 9, n)
    levels = np.clip((age // 20).astype(int) - 1 + (city == 3), 0, 2)
    features = pa.table({"age": pa.array(age, mask=rng.random(n) < 0.1), "city": [f"c{c}" for c in city]})
    return features, levels, rng.random((n, 3)), rng.random((n, 3)).cumsum(axis=1)


def test_counts_of_batches_add_up() -> None:
    features, levels, curves, costs = mixed_plan(2000)
    shown = choose_explaining_features(features, levels)
    assert [one.feature for one in shown] == ["age", "city"]

    def count(here: slice) -> PlanCounts:
        part, batch = (
            features.slice(here.start, here.stop - here.start),
            (np.arange(2000)[here], curves[here], costs[here]),
        )
        return count_planned_levels(shown, index_feature_groups(shown, part), levels[here], batch)

    whole, parts = count(slice(0, 2000)), [count(slice(at, min(at + 333, 2000))) for at in range(0, 2000, 333)]
    total = reduce(operator.add, parts)
    assert whole.n == total.n == 2000
    for word in ("counts", "spend", "totals"):
        assert getattr(total, word) == pytest.approx(getattr(whole, word), rel=1e-12)


def test_common_costs_are_counted_like_each_customers_own() -> None:
    features, levels, curves, _ = mixed_plan(2000)
    shown, common = choose_explaining_features(features, levels), np.array([[0.1, 0.7, 1.3]])
    groups = index_feature_groups(shown, features)
    each = np.tile(common, (2000, 1))
    one, same = (
        count_planned_levels(shown, groups, levels, (np.arange(2000), curves, costs)) for costs in (common, each)
    )
    for word in ("counts", "spend", "totals"):
        assert np.array_equal(getattr(one, word), getattr(same, word))


def test_groups_found_on_a_sample_count_all_customers() -> None:
    features, levels, curves, costs = mixed_plan(2000)
    plan = Plan(levels, 0.1, 1.0, 0.1, 0.1, 1.0)
    found = summarise(plan, features, curves, costs, LABELS, slice(0, 50)).who.features
    assert found
    assert all(sum(group.customers for group in feature.groups) == 2000 for feature in found)


def test_levels_add_up_to_the_plan() -> None:
    features, _, curves, costs = mixed_plan(500)
    plan = allocate(curves, costs, 0.8)
    rows = summarise(plan, features, curves, costs, LABELS).money.levels
    assert sum(row.customers for row in rows) == 500
    assert sum(row.share for row in rows) == pytest.approx(1)
    assert sum(row.spend for row in rows) == pytest.approx(plan.spend * 500)
    assert sum(row.spend_share for row in rows) == pytest.approx(1)
    assert sum(row.extra for row in rows) == pytest.approx(plan.value * 500 - curves[:, 0].sum())
    assert (rows[0].extra, rows[0].cost_per_extra) == (0.0, None)


def test_an_unlimited_budget_is_missing_and_shadow_prices_are_kept() -> None:
    features, _, curves, costs = mixed_plan(100)
    plan = replace(allocate(curves, costs, 0.8), budget=math.inf, shadow={"at most 3 at 'big'": 0.5})
    found = summarise(plan, features, curves, costs, LABELS)
    assert (found.budget.average, found.budget.total) == (None, None)
    assert found.shadow == {"at most 3 at 'big'": 0.5}
