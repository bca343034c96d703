"""Options of the command line: made from the list of roles, read back into a campaign."""

import inspect
from typing import Any

import pytest

from largesse.campaign.options import campaign_from_options, column_options, level_options, with_options
from largesse.errors import InputError
from largesse.records import ROLES

NAMED = {"level": "coupon", "response": "bought"}


def test_required_options_follow_the_argument_and_the_others_take_the_parameters_place() -> None:
    got: dict[str, Any] = {}

    @with_options("columns", column_options("level", "response"))
    @with_options("levels", level_options())
    def command(log: str, levels: dict[str, Any], columns: dict[str, Any], seed: int = 0) -> None:
        got.update(log=log, levels=levels, columns=columns, seed=seed)

    names = list(inspect.signature(command).parameters)
    optional = [role for role in ROLES if role not in NAMED]
    assert names == [
        "log",
        "level",
        "response",
        "costs",
        "names",
        "doses",
        "propensities",
        "on_redemption",
        "unit",
        "response_unit",
        "response_value",
        *optional,
        "seed",
    ]
    given = dict.fromkeys(names) | {"log": "l.csv", "costs": "0,5", "on_redemption": False, "seed": 3} | NAMED
    command(**given)
    assert got == {"log": "l.csv", "levels": {"costs": "0,5", "on_redemption": False}, "columns": NAMED, "seed": 3}


def test_options_describe_a_campaign() -> None:
    levels = {"costs": "0, 5", "doses": "0,5", "on_redemption": True}
    found = campaign_from_options("a/l.csv", {**NAMED, "features": "age, city,"}, levels, model={"name": "linear"})
    assert found.roles == {**NAMED, "features": ["age", "city"]}
    assert (found.levels.costs, found.levels.doses, found.levels.on_redemption) == ((0.0, 5.0), (0.0, 5.0), True)
    assert (found.title, found.model) == ("l.csv", "linear")


def test_options_say_what_money_is_counted_in() -> None:
    levels = {"costs": "0,5", "unit": "€", "response_unit": "€"}
    assert campaign_from_options("l.csv", NAMED, levels).response_value == 1.0
    found = campaign_from_options("l.csv", NAMED, {"costs": "0,5", "unit": "€", "response_value": 12.0})
    assert (found.unit, found.response_unit, found.response_value) == ("€", "", 12.0)


def test_costs_may_be_columns_or_left_to_the_order_of_the_names() -> None:
    assert campaign_from_options("l.csv", NAMED, {"costs": "c0,c1"}).levels.cost_columns == ("c0", "c1")
    assert campaign_from_options("l.csv", NAMED, {"names": "none,small,big"}).levels.costs == (0.0, 1.0, 2.0)
    with pytest.raises(InputError, match="the levels are not given"):
        campaign_from_options("l.csv", NAMED, {})
