import pytest

from largesse_lab.bench.request import Request
from largesse_lab.experiments import overspend
from largesse_lab.experiments.overspend import WAYS, WORLDS, measure, tabulate


def test_every_way_is_measured_for_own_and_new_customers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overspend, "ROWS", 300)
    monkeypatch.setattr(overspend, "FRESH", 400)
    found = measure(Request(problems=[WORLDS], rows=["linear"], repeats=1))
    assert [record["problem"] for record in found] == [WORLDS]
    for record in found:
        for who in ("own", "new"):
            assert record[f"{who} sure"] < record[f"{who} after"]
            assert all(-1 <= record[f"{who} {way}"] < 5 for way in WAYS)
    table = tabulate(found)
    assert table.count(f"| {WORLDS} |") == 2
    assert "| of the log | 1 |" in table


@pytest.mark.slow
def test_plans_come_closer_to_their_budget_and_keep_it_where_they_must() -> None:
    """A short version of `largesse experiment overspend --repeats 20`."""
    found = measure(Request(problems=["averaged", "unit"], rows=["boosting"], repeats=4))
    before, after, sure = (sum(record[f"own {way}"] for record in found) / len(found) for way in WAYS)
    assert abs(after) < before
    assert sure < 0
