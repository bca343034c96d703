"""The judge of plans under constraints knows a bad plan, a broken rule and a false refusal when it sees one."""

from typing import Any

import constraints_oracle as oracle
import numpy as np
import pytest

import largesse as lg
from largesse.errors import below_cheapest
from largesse.records import Plan

CASE = oracle.Case(
    np.array([[0.0, 1.0, 3.0], [0.0, 2.0, 2.5], [0.0, 1.0, 1.5]]),
    np.array([0.0, 1.0, 2.0]),
    4.0,
    {"caps": {2: 1}, "eligible": np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0]], dtype=bool)},
)


@pytest.mark.parametrize(
    ("levels", "kind", "said"),
    [
        ((2, 1, 1), None, ""),
        ((0, 0, 0), "false proof", "6.0 short"),
        ((2, 2, 0), "wrong", "breaks the caps"),
        ((1, 1, 2), "wrong", "breaks the eligible"),
        ((2, 2, 1), "over budget", "breaks the budget"),
    ],
)
def test_a_plan_that_is_not_the_best_or_breaks_a_rule_is_noticed(
    monkeypatch: pytest.MonkeyPatch, levels: tuple[int, ...], kind: str | None, said: str
) -> None:
    value = sum(CASE.curves[i, k] for i, k in enumerate(levels)) / 3
    plan = Plan(np.array(levels), value, 0.0, 0.0, value, 4 / 3)
    monkeypatch.setattr(lg, "allocate", lambda *_, **__: plan)
    found = oracle.check(CASE, exact=True)
    assert (found.kind if found else None) == kind
    assert said in (found.detail if found else "")


def test_a_refusal_is_wrong_where_there_is_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise below_cheapest("allocate", 1, 2)

    monkeypatch.setattr(lg, "allocate", refuse)
    found = oracle.check(CASE, exact=False)
    assert found is not None
    assert found.kind == "wrong"


def test_instances_have_every_rule_and_some_have_no_plan() -> None:
    cases = [oracle.make_case(seed) for seed in range(120)]
    assert {name for case in cases for name in case.rules} == {
        "eligible", "caps", "shares", "segment", "segment_budgets", "least_return",
    }  # fmt: skip
    possible = [any(not judge.broken(plan) for plan in judge.plans()) for judge in map(oracle.Judge, cases)]
    assert 20 < sum(possible) < 110
