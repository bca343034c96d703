import pytest

from largesse_lab.bench.request import Request
from largesse_lab.experiments import power_sizes
from largesse_lab.experiments.power_sizes import measure, tabulate


def test_tests_of_the_stated_size_are_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power_sizes, "ROWS", 800)
    monkeypatch.setattr(power_sizes, "FRESH", 3000)
    monkeypatch.setattr(power_sizes, "TESTS", 100)
    found = measure(Request(seeds=(1, 2)))
    for record in found:
        assert record["shown"] is None or 0.3 < record["shown"] <= 1
    assert "Stated power: 80 %" in tabulate(found)
