import pytest

from largesse.errors import InputError
from largesse.records import Estimate
from largesse_lab.bench.request import Request
from largesse_lab.experiments import profit
from largesse_lab.experiments.profit import CASES, KINDS, contains, measure, tabulate

NAN = float("nan")


def test_logs_are_judged_with_costs_of_both_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profit, "ROWS", 300)
    monkeypatch.setattr(profit, "FRESH", 500)
    records = measure(Request(repeats=5, part=(0, 3))) + measure(Request(repeats=4, part=(0, 3)))[1:]
    assert [record["log"] for record in records] == [0, 3, 3]
    assert [record["paid"] for record in records] == ["always", "on redemption", "on redemption"]
    assert records[1] == records[2]  # a seed decides everything
    for record in records:
        assert {record[case][kind] for case in CASES for kind in KINDS} <= {True, False, None}
        assert 0 < record["width"] <= 1
        assert 0 <= record["lost"] <= 1
    text = tabulate(records)
    assert text.startswith("3 logs of 300 rows")
    assert "| paid on redemption | 2 |" in text


@pytest.mark.parametrize(
    ("low", "high", "held"), [(0.0, 1.0, True), (0.6, 1.0, False), (0.5, 0.5, True), (NAN, NAN, None)]
)
def test_an_interval_without_ends_counts_neither_way(low: float, high: float, held: bool | None) -> None:
    assert contains(Estimate(0.5, 0.1, low, high), 0.5) is held


def test_other_worlds_are_refused() -> None:
    with pytest.raises(InputError, match="draws its own worlds"):
        measure(Request(problems=["averaged"]))
