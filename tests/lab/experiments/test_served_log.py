import pytest

from largesse_lab.bench.request import Request
from largesse_lab.experiments import served_log
from largesse_lab.experiments.served_log import WAYS, measure, tabulate


def test_all_ways_are_judged_on_customers_who_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_log, "ROWS", 500)
    found = measure(Request(seeds=(3, 3)))
    (record,) = found
    assert set(record["ways"]) == set(WAYS)
    for name, way in record["ways"].items():
        assert way["width"] > 0
        assert 0.8 < way["spend"] < (1.2 if name == "served" else 1 + 1e-9)
    table = tabulate(found)
    assert "| a plan for these customers | 1 | 1.00 ± 0.00 | 1.00 |" in table
    assert "0 of 1 worlds left out" in table
