"""The harness notices every way in which an input can do harm."""

import os
import signal
import time

import harness
import pytest
from harness import BAD, FINE, Attack, Bench, Outcome, Tally, Teller, judge_message, run_apart, run_one, tabulate

from largesse.errors import Problem, fail


def misbehave(seed: int) -> Outcome:
    """Each seed does something else."""
    if seed == 1:
        fail("log", Problem("it is empty"))
    if seed == 2:
        raise KeyError("a bug")
    if seed == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    if seed == 4:
        time.sleep(60)
    if seed == 5:
        bytearray(1 << 40)
    if seed == 7:
        while True:
            pass
    if seed == 6:
        return judge_message("a column named \x1b[2J")  # errors of the product escape it
    return FINE


@pytest.mark.slow
def test_every_outcome_is_told_apart_and_a_lost_worker_is_replaced() -> None:
    attack = Attack("misbehave", "test_harness:misbehave", 1, seconds=10)
    kinds = [outcome.kind for _, outcome in run_apart(attack, range(9))]
    assert kinds == ["fine", "refused", "traceback", "crash", "hang", "memory", "injected", "hang", "fine"]


def test_an_error_names_its_place_in_the_product() -> None:
    found = run_one(Attack("misbehave", "test_harness:misbehave", 1), 2)
    assert found.kind == "traceback"
    assert "KeyError" in found.detail


@pytest.mark.parametrize("kind", BAD)
def test_the_table_counts_failures_and_keeps_their_seeds(kind: str) -> None:
    tally = Tally("tables")
    for seed in range(5):
        tally.add(seed, FINE)
    tally.add(77, Outcome(kind, "what happened"))
    shown = tabulate([tally])
    assert f"1 {kind}" in shown
    assert f"tables, seed 77: {kind}: what happened" in shown


def test_a_failure_is_said_at_once_and_the_rest_is_counted() -> None:
    said: list[str] = []
    teller = Teller(3, said.append, every=1e9)
    teller.add("tables", 1, FINE)
    assert said == []
    teller.add("tables", 2, Outcome("crash", "the worker ended"))
    assert said == ["FAILED: tables, seed 2: crash: the worker ended"]
    teller.every = 0.0
    teller.add("tables", 3, FINE)
    assert said[1].endswith("3 of 3 inputs, 1 failures")


class Idle:
    """A worker without a process."""

    def __init__(self) -> None:
        self.asked, self.stopped = 0, False

    def stop(self) -> None:
        self.stopped = True


def test_a_worker_goes_on_with_its_attack_until_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "Worker", Idle)
    one, other, bench = Attack("one", "", 1), Attack("other", "", 1), Bench()
    first = bench.take(one)
    bench.give_back(one, first)
    assert bench.take(one) is first
    bench.give_back(one, first)
    assert bench.take(other) is not first
    assert first.stopped
    old = bench.take(one)
    old.asked = harness.LIFE
    bench.give_back(one, old)
    assert bench.take(one) is not old
    assert old.stopped
