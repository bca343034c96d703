import numpy as np
import pytest

from largesse_lab.bench.request import Request
from largesse_lab.experiments.false_alarms import CASES, measure, tabulate


def test_planted_problems_are_found() -> None:
    found = measure(Request(repeats=1))
    assert [record["case"] for record in found] == list(CASES)
    told = tabulate(found)
    assert "| a planted leak | names the leak first | 100.0% |" in told
    assert "| confounded | not randomised | 100.0% |" in told


@pytest.mark.slow
def test_randomised_logs_raise_few_alarms() -> None:
    """A short version of `largesse experiment false_alarms --repeats 200`."""
    false = [not record["randomised"] for record in measure(Request(repeats=60)) if record["case"] == "randomised"]
    assert np.mean(false) <= 0.06
