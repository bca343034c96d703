"""Whatever goes wrong at whatever step of a command, its files are wholly old or wholly new."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.examples import examples
from support.faults import COMMANDS, FAULTS, run_program

MAX_STEPS = 1000


@pytest.fixture(scope="module")
def ask() -> Iterator[Callable[..., Any]]:
    with run_program() as asking:
        yield asking


@examples(10)
@given(st.sampled_from(list(COMMANDS)), st.sampled_from(FAULTS), st.integers(0, MAX_STEPS))
def test_a_fault_at_some_step_leaves_the_old_or_the_new(
    ask: Callable[..., Any], command: str, fault: str, step: int
) -> None:
    assert ask(command, fault, 1 + step % ask(command, fault)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_fault_at_every_step_leaves_the_old_or_the_new(ask: Callable[..., Any], command: str, fault: str) -> None:
    steps = ask(command, fault)
    assert 0 < steps < MAX_STEPS
    assert {at: problem for at in range(1, steps + 1, 3) if (problem := ask(command, fault, at))} == {}
