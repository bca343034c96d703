"""The section [plan]: constraints and rules for single customers, read, written back, and turned into eligible levels."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse.campaign import Campaign, PlanSettings, find_eligible_levels, parse_campaign, read_campaign
from largesse.errors import InputError
from largesse.levels import Levels
from largesse.records import Customers

NAMED = {"costs": [0, 5, 20], "names": ["none", "five", "twenty"]}
TABLE = pa.table({"city": ["Oslo", "Rome", "Oslo"], "vip": [1, 0, 1], "may": [True, True, False]})
CUSTOMERS = Customers(TABLE, pa.array(["a", "b", "c"]))


def campaign(levels: dict[str, Any] = NAMED, **plan: Any) -> Campaign:
    columns = {"level": "coupon", "response": "bought"}
    return parse_campaign({"log": "log.parquet", "columns": columns, "levels": levels, "plan": {"budget": 1, **plan}})


CONSTRAINTS = {
    "least_return": 0.1,
    "segment": "city",
    "eligible": ["a", "b", "c"],
    "caps": {"twenty": 10_000},
    "shares": {"five": 0.1},
    "segment_budgets": {"Oslo": 200.5, 'a "quoted" one': 3},
    "segment_minimums": {"Oslo": 100.0},
}
PERSONAL = {
    "fixed": {"c 1": "twenty", '"': "none"},
    "barred": {"the city": {"Oslo": ["twenty", "five"], "ü": []}},
}


@pytest.mark.parametrize(("plan", "constrained"), [(CONSTRAINTS, True), (PERSONAL, True), ({"exact": True}, False)])
def test_settings_are_written_and_read_back(tmp_path: Path, plan: dict[str, Any], constrained: bool) -> None:
    made = campaign(NAMED | {"contact_cost": 0.5}, **plan)
    assert made.planning.constrained == constrained
    (tmp_path / "campaign.toml").write_text(made.text, encoding="utf-8")
    again = read_campaign(tmp_path)
    assert (again.planning, again.levels) == (made.planning, made.levels)


def test_levels_are_numbered() -> None:
    made = campaign(**CONSTRAINTS, **PERSONAL).planning
    assert (made.constraints["caps"], made.constraints["shares"]) == ({2: 10_000}, {1: 0.1})
    assert made.fixed == {"c 1": 2, '"': 0}
    assert made.barred == {"the city": {"Oslo": (2, 1), "ü": ()}}
    unnamed = campaign({"costs": [0, 5, 20]}, caps={"20": 7, "1": 8})
    assert unnamed.planning.constraints["caps"] == {2: 7, 1: 8}
    with pytest.raises(InputError, match="ambiguous"):
        campaign({"costs": [1, 2, 3]}, caps={"1": 7})


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"exact": "yes"}, "plan.exact is 'yes'"),
        ({"explore": 2}, "plan.explore is 2"),
        ({"explore_for": "evaluate"}, "plan.explore_for is 'evaluate'"),
        ({"explore_for": "learning", "exact": True, "least_return": 0.1}, "plan.explore and least_return, exact"),
        ({"explore": 0.1, "caps": {"five": 1}}, "plan.explore and caps"),
        ({"explore": 0.1, "fixed": {"a": "five"}}, "plan.explore .* fixed"),
        ({"least_return": -1}, "plan.least_return is -1"),
        ({"segment": 3}, "plan.segment is 3"),
        ({"eligible": ["a"]}, "plan.eligible is"),
        ({"caps": {"twnty": 1}}, "names the level 'twnty'\n.*did you mean 'twenty'"),
        ({"caps": {"twenty": "many"}}, "plan.caps.twenty is 'many'"),
        ({"caps": 5}, "plan.caps is 5"),
        ({"shares": {"five": 1.5}}, "plan.shares.five is 1.5"),
        ({"segment_budgets": {"Oslo": 1}}, "without plan.segment"),
        ({"cap": {}}, "'plan.cap' is not a setting"),
        ({"fixed": {"a": "ten"}}, "plan.fixed names the level 'ten'"),
        ({"fixed": ["a"]}, "plan.fixed is"),
        ({"fixed": {"a": 1.5}}, "plan.fixed is"),
        ({"barred": {"city": ["Oslo"]}}, "plan.barred is"),
        ({"barred": {"city": {"Oslo": "five"}}}, "plan.barred is"),
        ({"barred": {"city": {"Oslo": ["ten"]}}}, "plan.barred names the level 'ten'"),
    ],
)
def test_invalid_settings_are_named(plan: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        campaign(**plan)


def eligible(customers: Customers, barred: Any, fixed: dict[str, int], columns: tuple[str, ...] = ()) -> Any:
    constraints = {"eligible": columns} if columns else {}
    return find_eligible_levels(
        customers, Levels(**NAMED), PlanSettings(constraints=constraints, barred=barred, fixed=fixed)
    )


def test_all_rules_together_give_the_levels_of_each_customer() -> None:
    allowed = eligible(CUSTOMERS, {"city": {"Rome": (1,)}}, {"a": 2}, ("may", "may", "vip"))
    np.testing.assert_array_equal(allowed, [[False, False, True], [True, False, False], [False, False, True]])
    # Numbers are matched as they are written, and customers without ids by their rows.
    allowed = eligible(Customers(TABLE), {"vip": {"1": (1, 2)}}, {"1": 1})
    np.testing.assert_array_equal(allowed, [[True, False, False], [False, True, False], [True, False, False]])
    assert eligible(CUSTOMERS, {}, {}) is None


@pytest.mark.parametrize(
    ("barred", "fixed", "message"),
    [
        ({}, {"d": 1}, "not planned for: d"),
        ({"city": {"Osl": (1,)}}, {}, "did you mean 'Oslo'"),
        ({"city": {"Oslo": (2,)}}, {"a": 2}, "the customer a is fixed to 'twenty'"),
        ({"city": {"Oslo": (0, 1, 2)}}, {}, "2 customers may get no level at all, such as a, c"),
    ],
)
def test_rules_that_cannot_be_kept_are_named(barred: Any, fixed: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        eligible(CUSTOMERS, barred, fixed)
