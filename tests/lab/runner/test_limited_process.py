"""A limited process returns the record of its work, or the reason for which there is none."""

from typing import Any

import numpy as np

from largesse_lab.runner.limited_process import run_in_limited_process


def make_record(number: float) -> dict[str, Any]:
    return {"number": number}


def fail_at_work() -> dict[str, Any]:
    raise ValueError("two levels only")


def work_forever() -> dict[str, Any]:
    while True:
        pass


def take_memory() -> dict[str, Any]:
    return {"sum": float(np.ones(2**28).sum())}  # 2 GB


def test_the_record_comes_back_with_the_peak_memory() -> None:
    record = run_in_limited_process(make_record, 2.5)
    assert record["number"] == 2.5
    assert 10 < record["megabytes"] < 10_000


def test_a_failure_is_a_record_with_its_reason() -> None:
    assert run_in_limited_process(fail_at_work)["failed"] == "ValueError: two levels only"


def test_work_beyond_a_limit_is_stopped_with_the_limit_as_reason() -> None:
    assert run_in_limited_process(work_forever, seconds=1) == {"failed": "more than 1 s of one core"}
    assert run_in_limited_process(take_memory, gigabytes=1)["failed"] == "more than 1 GB of memory"
