from pathlib import Path
from typing import Any

import pytest

from largesse.campaign.file import Campaign, campaign_from, read_campaign
from largesse.errors import InputError

LEVELS = {"costs": [0, 5, 20], "names": ["none", "five", "twenty"]}


def campaign(levels: dict[str, Any] | None = None, **plan: Any) -> Campaign:
    given = {
        "log": "log.parquet",
        "columns": {"level": "coupon", "response": "bought"},
        "levels": LEVELS | (levels or {}),
    }
    return campaign_from({**given, "plan": {"budget": 1, **plan}})


def test_rules_are_read_and_written_back_as_they_were(tmp_path: Path) -> None:
    made = campaign(
        {"contact_cost": 0.5},
        least_return=0.1,
        segment="city",
        eligible=["a", "b", "c"],
        caps={"twenty": 10_000},
        shares={"five": 0.1},
        segment_budgets={"Oslo": 200.5, 'a "quoted" one': 3},
    )
    assert made.planning.constraints["caps"] == {2: 10_000}
    assert made.planning.constraints["shares"] == {1: 0.1}
    assert made.planning.constrained
    assert made.levels.contact_cost == 0.5
    (tmp_path / "campaign.toml").write_text(made.text, encoding="utf-8")
    again = read_campaign(tmp_path)
    assert (again.planning, again.levels) == (made.planning, made.levels)


def test_without_rules_nothing_is_ruled(tmp_path: Path) -> None:
    made = campaign(exact=True)
    assert made.planning.exact
    assert not made.planning.constrained
    (tmp_path / "campaign.toml").write_text(made.text, encoding="utf-8")
    assert read_campaign(tmp_path).planning == made.planning


def test_levels_without_names_go_by_number_or_by_cost() -> None:
    plain = {"names": None}
    assert campaign(plain, caps={"20": 7, "1": 8}).planning.constraints["caps"] == {2: 7, 1: 8}
    with pytest.raises(InputError, match="is ambiguous: a level's number or its cost"):
        campaign({"names": None, "costs": [1, 2, 3]}, caps={"1": 7})


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"exact": "yes"}, "plan.exact is 'yes'"),
        ({"explore": 2}, "plan.explore is 2"),
        ({"explore_for": "evaluate"}, "plan.explore_for is 'evaluate'"),
        ({"explore_for": "learning", "exact": True, "least_return": 0.1}, "plan.explore and least_return, exact"),
        ({"least_return": -1}, "plan.least_return is -1"),
        ({"segment": 3}, "plan.segment is 3"),
        ({"eligible": ["a"]}, "plan.eligible is"),
        ({"caps": {"twnty": 1}}, "names the level 'twnty'\n.*did you mean 'twenty'"),
        ({"caps": {"twenty": "many"}}, "plan.caps.twenty is 'many'"),
        ({"caps": 5}, "plan.caps is 5"),
        ({"shares": {"five": 1.5}}, "plan.shares.five is 1.5"),
        ({"segment_budgets": {"Oslo": 1}}, "without plan.segment"),
        ({"explore": 0.1, "caps": {"five": 1}}, "plan.explore and caps"),
        ({"cap": {}}, "'plan.cap' is not a setting"),
    ],
)
def test_what_makes_no_sense_is_named(plan: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        campaign(**plan)
