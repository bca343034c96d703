"""Settings that are left blank are asked for by name."""

from pathlib import Path

import pytest

from largesse.campaign.file import campaign_from, read_campaign
from largesse.errors import InputError

FILE = """
log = "log.csv"
[columns]
level = ""  # fill in: the "#1" column
response = "y"
[levels]
names = []
costs = []    # fill in: 3 numbers; suggestion: costs = [0, 1, 2]
[plan]
budget = ""
"""


def test_every_blank_is_named_together_with_its_comment(tmp_path: Path) -> None:
    (tmp_path / "campaign.toml").write_text(FILE, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_campaign(tmp_path)
    assert {problem.what.split()[0]: problem.hint for problem in refused.value.problems} == {
        "columns.level": 'fill in: the "#1" column',
        "levels.names": "fill in: the levels as the log writes them, the cheapest first",
        "levels.costs": "fill in: 3 numbers; suggestion: costs = [0, 1, 2]",
        "plan.budget": "fill in: what may be spent per customer on average, like budget = 1.7; or remove the line",
    }


def test_a_blank_budget_is_none_where_it_is_given_otherwise_and_alone() -> None:
    given = {"log": "l.csv", "columns": {"level": "a", "response": "b"}, "levels": {"costs": [0, 1]}}
    blank = {**given, "plan": {"budget": ""}}
    assert campaign_from(blank, blank_budget=True).spending(budget=2).planning.budget == 2
    with pytest.raises(InputError, match=r"plan\.budget is left blank"):
        campaign_from(blank)
    with pytest.raises(InputError, match="2 things are wrong"):
        campaign_from({**blank, "levels": {"costs": []}}, blank_budget=True)


def test_blank_names_beside_doses_are_asked_for() -> None:
    given = {"log": "l.csv", "columns": {"level": "a", "response": "b"}}
    with pytest.raises(InputError, match=r"levels\.names is left blank"):
        campaign_from({**given, "levels": {"costs": [0, 1], "doses": [0, 1], "names": []}})
