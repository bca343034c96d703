"""Who may not get what, and whose level is fixed."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse.campaign.file import Campaign, campaign_from, read_campaign
from largesse.campaign.rules import find_eligible
from largesse.errors import InputError
from largesse.levels import Levels
from largesse.records import Customers

LEVELS = Levels(costs=[0, 5, 20], names=["none", "five", "twenty"])
TABLE = pa.table({"city": ["Oslo", "Rome", "Oslo"], "vip": [1, 0, 1], "may": [True, True, False]})
PEOPLE = Customers(TABLE, pa.array(["a", "b", "c"]))


def campaign(**plan: Any) -> Campaign:
    given = {"log": "log.parquet", "columns": {"level": "coupon", "response": "bought"}}
    levels = {"costs": [0, 5, 20], "names": ["none", "five", "twenty"]}
    return campaign_from({**given, "levels": levels, "plan": {"budget": 1, **plan}})


def test_rules_about_persons_are_read_and_written_back_as_they_were(tmp_path: Path) -> None:
    made = campaign(fixed={"c 1": "twenty", '"': "none"}, barred={"the city": {"Oslo": ["twenty", "five"], "ü": []}})
    assert made.planning.fixed == {"c 1": 2, '"': 0}
    assert made.planning.barred == {"the city": {"Oslo": (2, 1), "ü": ()}}
    assert made.planning.constrained
    (tmp_path / "campaign.toml").write_text(made.text, encoding="utf-8")
    assert read_campaign(tmp_path).planning == made.planning


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"fixed": {"a": "ten"}}, "plan.fixed names the level 'ten'"),
        ({"fixed": ["a"]}, "plan.fixed is"),
        ({"fixed": {"a": 1.5}}, "plan.fixed is"),
        ({"barred": {"city": ["Oslo"]}}, "plan.barred is"),
        ({"barred": {"city": {"Oslo": "five"}}}, "plan.barred is"),
        ({"barred": {"city": {"Oslo": ["ten"]}}}, "plan.barred names the level 'ten'"),
        ({"fixed": {"a": "five"}, "explore": 0.1}, "plan.explore gives any level at random, also against fixed"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(plan: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        campaign(**plan)


def test_all_rules_together_say_what_each_customer_may_get() -> None:
    found = find_eligible(PEOPLE, LEVELS, ["may", "may", "vip"], {"city": {"Rome": (1,)}}, {"a": 2})
    assert found is not None
    np.testing.assert_array_equal(found, [[False, False, True], [True, False, False], [False, False, True]])


def test_numbers_are_matched_as_they_are_written_and_rows_count_where_there_are_no_ids() -> None:
    found = find_eligible(Customers(TABLE), LEVELS, (), {"vip": {"1": (1, 2)}}, {"1": 1})
    assert found is not None
    np.testing.assert_array_equal(found, [[True, False, False], [False, True, False], [True, False, False]])


def test_without_rules_there_is_no_table() -> None:
    assert find_eligible(PEOPLE, LEVELS, (), {}, {}) is None


@pytest.mark.parametrize(
    ("barred", "fixed", "message"),
    [
        ({}, {"d": 1}, "not planned for: d"),
        ({"city": {"Osl": (1,)}}, {}, "did you mean 'Oslo'"),
        ({"city": {"Oslo": (2,)}}, {"a": 2}, "the customer a is fixed to 'twenty', which other rules forbid"),
        ({"city": {"Oslo": (0, 1, 2)}}, {}, "2 customers may get no level at all, such as a, c"),
    ],
)
def test_rules_that_cannot_be_kept_are_named(barred: Any, fixed: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_eligible(PEOPLE, LEVELS, (), barred, fixed)
