import pytest

from largesse_lab.bench.request import Request
from largesse_lab.experiments import check_campaigns
from largesse_lab.experiments.check_campaigns import measure, tabulate


def test_what_is_planted_is_found_by_its_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_campaigns, "ROWS", 500)
    monkeypatch.setattr(check_campaigns, "NEXT", 600)
    cases = ["nothing wrong", "a column shifts by 0.5 sd", "10 % of levels not as planned"]
    found = measure(Request(problems=cases, seeds=(5, 5)))
    assert [record["case"] for record in found] == cases
    by = {record["case"]: record for record in found}
    assert by[cases[0]]["loud"] == {}
    assert by[cases[1]]["found"]
    assert by[cases[2]]["found"]
    assert "| nothing wrong |  | 1 | 0 % | – |" in tabulate(found)
    assert measure(Request(problems=cases[2:], seeds=(5, 5))) == found[2:]  # whatever else is measured
