"""Bad input of the allocation is refused; arrays of any layout give the same plan and are never changed."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from largesse.allocation import Constraints, allocate, frontier
from largesse.errors import InputError
from largesse.levels import Levels

CURVES = np.array([[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]])
COSTS = [0.0, 1.0, 2.0]
PAID = Levels(costs=[0, 1, 2], on_redemption=True)


@pytest.mark.parametrize(
    "budget",
    ["1", [1], np.array([1.0, 2.0]), True, np.True_, 10**320, 1 + 2j, float("nan"), -1, Decimal("1.5")],
    ids=repr,
)
@pytest.mark.parametrize("name", ["budget", "total"])
def test_a_budget_is_a_number_zero_or_more(budget: Any, name: str) -> None:
    with pytest.raises(InputError, match="the budget is"):
        allocate(CURVES, COSTS, **{name: budget})


@pytest.mark.parametrize("wish", [{}, {"budget": 1, "total": 2}])
def test_either_an_average_or_a_total_is_given(wish: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="either budget"):
        allocate(CURVES, COSTS, **wish)


@pytest.mark.parametrize(
    ("curves", "costs", "words"),
    [
        ([[1, 2], [3]], COSTS, "curves are not a table"),
        ([[1, 2], [3]], PAID, "curves are not a table"),
        (CURVES, [[0, 1], [1]], "costs are not a table"),
        (None, COSTS, "curves hold objects, not numbers"),
        (CURVES.astype(object), COSTS, "curves hold objects, not numbers"),
        ([["a", "b", "c"]], COSTS, "curves hold text, not numbers"),
        ([["a", "b", "c"]], PAID, "curves hold text, not numbers"),
        (CURVES > 0.3, COSTS, "curves hold true and false, not numbers"),
        (CURVES + 1j, COSTS, "curves hold complex numbers, not numbers"),
        (CURVES.astype("m8[s]"), COSTS, "curves hold times, not numbers"),
        (CURVES, ["a", "b", "c"], "costs hold text, not numbers"),
        (CURVES, [0, 1, 10**400], "costs hold objects, not numbers"),
        (CURVES * np.nan, COSTS, "curves hold missing or infinite"),
        (CURVES * np.inf, COSTS, "curves hold missing or infinite"),
        (np.ma.array(CURVES, mask=CURVES > 0.8), COSTS, "curves hold missing or infinite"),
        (CURVES.astype(np.longdouble) * np.longdouble("1e4000"), COSTS, "curves hold missing or infinite"),
        (CURVES, [0, np.nan, 2], "costs hold missing or infinite"),
        (CURVES, [0, np.inf, 2], "costs hold missing or infinite"),
        (CURVES, [0, -1, 2], "costs hold negative"),
        (CURVES, [0, 1e308, 1.5e308], r"costs hold numbers beyond 1e\+150"),
        (CURVES, Levels(costs=[0, 1, 2], contact_cost=1e308), r"costs hold numbers beyond 1e\+150"),
        (CURVES * 1e308, COSTS, r"curves hold numbers beyond 1e\+150"),
        (CURVES, [0, 5e-324, 1], "costs hold numbers below 1e-130"),
        ([1, 2, 3], COSTS, r"curves have shape \(3,\)"),
        (3.0, COSTS, r"curves have shape \(\)"),
        (np.zeros((2, 3, 4)), COSTS, "curves have shape"),
        (np.zeros((0, 3)), COSTS, "curves have shape"),
        (np.zeros((3, 0)), [], "curves have shape"),
        (CURVES, [0, 1], "costs have shape"),
        (CURVES, 1, "costs have shape"),
        (CURVES, [COSTS], r"costs have shape \(1, 3\)"),
        (CURVES, Levels(costs=[0, 1], on_redemption=True), "there are 2 levels"),
    ],
)
def test_curves_and_costs_are_tables_of_moderate_numbers(curves: Any, costs: Any, words: str) -> None:
    for work in (lambda: allocate(curves, costs, 1), lambda: frontier(curves, costs)):
        with pytest.raises(InputError, match=words):
            work()


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"exact": "no"}, "exact is 'no'"),
        ({"constraints": {"caps": {1: 1}}}, "constraints are a dict"),
    ],
)
def test_wishes_are_of_their_kind(wish: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        allocate(CURVES, COSTS, 1, **wish)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"caps": {1: "x"}}, r"caps\[1\] is 'x'"),
        ({"caps": {1: None}}, r"caps\[1\] is None"),
        ({"caps": {1: 10**320}}, r"caps\[1\] is 1000"),
        ({"caps": {1: np.array([1, 2])}}, r"caps\[1\] is array"),
        ({"caps": {"a": 1}}, "caps names level 'a'"),
        ({"caps": {True: 1}}, "caps names level True"),
        ({"caps": [1]}, r"caps is \[1\]"),
        ({"shares": {1: "x"}}, r"shares\[1\] is 'x'"),
        ({"shares": None}, "shares is None"),
        ({"segment": ["a", None], "segment_budgets": {"a": 1}}, "segment holds missing entries"),
        ({"segment": [1.0, np.nan], "segment_budgets": {1.0: 1}}, "segment holds missing entries"),
        ({"segment": [[1], [1, 2]], "segment_budgets": {1: 1}}, "segment is not a table"),
        ({"segment": [{}, {}], "segment_budgets": {1: 1}}, "segment is not a table"),
        ({"segment": 5, "segment_budgets": {1: 1}}, "segment has shape"),
        ({"segment": ["a", "b"], "segment_budgets": {"a": "x"}}, "the budget of segment 'a' is 'x'"),
        ({"segment": ["a", "b"], "segment_budgets": {"a": 10**320}}, "the budget of segment 'a' is 1000"),
        ({"segment": ["a", "b"], "segment_budgets": [1, 2]}, "segment_budgets is"),
        ({"eligible": "x"}, "eligible has shape"),
        ({"eligible": [[1], [1, 2]]}, "eligible is not a table"),
        ({"eligible": [[1, np.nan, 1], [1, 1, 1]]}, "eligible holds missing"),
        ({"eligible": [["yes", "no", "no"]] * 2}, "neither true nor false"),
        ({"least_return": "x"}, "least_return is 'x'"),
        ({"least_return": 1e308}, "least_return is 1e"),
        ({"further": [1]}, "further is"),
        ({"further": None}, "further is"),
        ({"eligible": np.ones((3, 3))}, r"eligible has shape \(3, 3\)"),
        ({"caps": {7: 1}}, "caps names level 7"),
        ({"caps": {1: -1}}, r"caps\[1\] is -1"),
        ({"shares": {1: 1.5}}, r"shares\[1\] is 1.5"),
        ({"segment_budgets": {"a": 1}}, "without segment"),
        ({"segment": ["a"]}, r"segment has shape \(1,\)"),
        ({"segment": ["a", "b"], "segment_budgets": {"c": 1}}, "which no customer is in"),
        ({"segment": ["a", "b"], "segment_budgets": {"a": -1}}, "budget of segment 'a' is -1"),
        ({"least_return": -1}, "least_return is -1"),
    ],
)
@pytest.mark.parametrize("exact", [False, True])
def test_constraints_are_of_their_kind(rules: dict[str, Any], words: str, exact: bool) -> None:
    with pytest.raises(InputError, match=words):
        allocate(CURVES, COSTS, 1, constraints=Constraints(**rules), exact=exact)


def test_everything_wrong_is_named_together() -> None:
    with pytest.raises(InputError) as caught:
        allocate([["a"]], [-1.0], 1)
    assert len(caught.value.problems) == 2


def test_segments_of_several_types_are_told_apart() -> None:
    rules = Constraints(segment=np.array(["1", 1], dtype=object), segment_budgets={1: 0.0})
    assert allocate(CURVES, COSTS, 2, constraints=rules).levels.tolist() == [2, 0]


def variants(table: Any) -> list[Any]:
    wide = np.repeat(table, 2, axis=1)
    kept = table.copy()
    kept.flags.writeable = False
    return [
        np.asfortranarray(table),
        wide[:, ::2],
        table[::-1][::-1],
        table.astype(">f8"),
        kept,
        np.ma.array(table),
        table.tolist(),
    ]


@pytest.mark.parametrize("exact", [False, True])
def test_arrays_of_any_layout_give_the_same_plan_and_stay_as_they_are(exact: bool) -> None:
    rng = np.random.default_rng(0)
    curves, costs = rng.random((40, 4)), rng.random((40, 4))
    best = allocate(curves, costs, 0.3, exact=exact)
    for f, c in zip(variants(curves), variants(costs), strict=True):
        plan = allocate(f, c, 0.3, exact=exact)
        assert (plan.levels == best.levels).all()
        assert (np.asarray(f) == curves).all()
        assert (np.asarray(c) == costs).all()


@pytest.mark.parametrize("kind", [np.float16, np.int8, np.uint8, np.int64, np.uint64, np.longdouble])
def test_numbers_of_any_width_are_read(kind: Any) -> None:
    curves, costs = np.array([[1, 4, 5], [2, 3, 9]]), np.array([0, 1, 2])
    plan = allocate(curves.astype(kind), costs.astype(kind), 1.5, exact=True)
    assert (plan.levels.tolist(), plan.value, plan.gap) == ([1, 2], 6.5, 0.0)


def test_one_level_is_what_everybody_gets() -> None:
    for wish in ({}, {"exact": True}):
        assert allocate(np.ones((3, 1)), [2.0], 2, **wish).levels.tolist() == [0, 0, 0]  # type: ignore[arg-type]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("size", [2.0**-400, 2.0**400])
@pytest.mark.parametrize("worth", [2.0**-400, 2.0**400])
def test_the_unit_of_money_and_response_does_not_matter(size: float, worth: float, exact: bool) -> None:
    plan = allocate(CURVES * worth, np.array(COSTS) * size, 1.5 * size, exact=exact)
    assert plan.levels.tolist() == [1, 2]
    assert plan.gap <= 1e-12 * plan.value
