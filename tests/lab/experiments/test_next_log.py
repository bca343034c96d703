import pytest

from largesse_lab.bench.request import Request
from largesse_lab.experiments import next_log
from largesse_lab.experiments.next_log import WAYS, measure, tabulate


def test_all_ways_keep_one_budget_and_are_judged_by_the_new_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_log, "ROWS", 400)
    found = measure(Request(seeds=(3, 3), sizes=[500]))
    (record,) = found
    assert set(record["ways"]) == set(WAYS)
    for way in record["ways"].values():
        assert way["spend"] <= record["budget"] * (1 + 1e-9)
        assert way["plan"]["width"] > 0
        assert way["gain"]["se"] > 0
    from largesse.records import Estimate

    assert next_log._describe(Estimate(0.0, 0.0, 0.0, 0.0), 1e-14)["inside"] is None  # a plan that is the mix itself
    table = tabulate(found)
    assert table.count("| gain over the mix |") in (0, 3)
    assert "Truly given up" in table
