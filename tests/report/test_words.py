from typing import Any

import pytest

from largesse.report.formats import Units
from largesse.report.words import (
    select_notes,
    select_urgent,
    warn_of_spending,
    write_bound,
    write_headline,
    write_verdict,
)

EURO = Units("binary", "€")


def make_safety(plan: float | None, rule: float | None = None) -> dict[str, Any]:
    """Return a plan, and a simple rule, with what they gain at least."""
    found = [
        {"name": name, "detail": "by 'age'", "gain": {"estimate": 0.03, "low": least, "high": 0.05}, "at_least": least}
        for name, least in (("this plan", plan), ("a simple rule", rule))
    ]
    best = max(found, key=lambda row: -9 if row["at_least"] is None else row["at_least"])
    return {"options": found, "recommended": best["name"]}


def make_numbers(gain: tuple[float, float, float] = (0.0, 0.0, 0.0), budget: float = 1.05) -> dict[str, Any]:
    difference = dict(zip(("estimate", "low", "high"), gain, strict=True))
    same = {"detail": "all get '5'", "value": {"estimate": 0.3}, "spend": {"estimate": 1.0}, "difference": difference}
    before = {"detail": "", "value": {"estimate": 0.2}, "spend": {"estimate": 0.5}, "difference": difference}
    return {
        "response": {"name": "bought", "kind": "binary"},
        "customers": 1000,
        "value": {"estimate": 0.31, "low": 0.29, "high": 0.33},
        "spend": {"estimate": 1.0, "low": 0.9, "high": 1.1},
        "versus": [same, before],
        "safety": make_safety(gain[1]),
        "budget": {"average": budget},
        "planned": {"spend": 1.05 if budget > 1 else budget},
    }


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        ((0.02, 0.01, 0.03), "Choosing who gets what pays"),
        ((-0.02, -0.03, -0.01), "Give everyone the same"),
        ((0.01, -0.01, 0.03), "which may be nothing"),
        ((0.0, 0.0, 0.0), "nothing to choose"),
    ],
)
def test_the_verdict_follows_the_interval(gain: tuple[float, float, float], said: str) -> None:
    assert said in write_verdict(EURO, make_numbers(gain))


def test_a_gain_is_said_with_what_it_is_at_least() -> None:
    text = write_verdict(EURO, make_numbers((0.02, 0.01, 0.03)))
    assert text.endswith("At least +1.0\u202fpp, with 95 % confidence.")


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        ((0.02, 0.01, 0.03), "Choosing who gets what pays"),
        ((-0.02, -0.03, -0.01), "This plan loses"),
        ((0.01, -0.01, 0.03), "does not show that this plan beats"),
        ((0.0, 0.0, 0.0), "nothing to choose"),
    ],
)
def test_a_simple_rule_that_is_safer_is_named_and_nothing_else_is_advised(
    gain: tuple[float, float, float], said: str
) -> None:
    numbers = make_numbers(gain) | {"safety": make_safety(gain[1], 0.015)}
    text = write_verdict(EURO, numbers)
    assert said in text
    assert text.endswith("A simple rule gains at least +1.5\u202fpp, with 95 % confidence (by 'age').")
    assert "everyone the same." not in text
    assert "as good a choice" not in text


@pytest.mark.parametrize(
    ("plan", "rule", "said"),
    [
        (0.01, 0.005, "With this plan: at least +1.0\u202fpp over giving everyone the same mix, with 95 % confidence."),
        (-0.01, 0.005, "With a simple rule: at least +0.5\u202fpp over"),
        (-0.01, -0.02, "It could be no gain: with 95 % confidence, neither this plan nor a simple rule is shown"),
        (None, None, "There is no bound on the gain"),
    ],
)
def test_the_bound_is_that_of_the_safest_option(plan: float | None, rule: float | None, said: str) -> None:
    assert write_bound(EURO, make_safety(plan, rule)).startswith(said)


def test_a_bound_just_above_zero_is_not_written_as_zero() -> None:
    assert "at least +0.002\u202fpp" in write_bound(EURO, make_safety(0.00002))


def test_the_headline_names_spend_value_and_what_was_before() -> None:
    text = write_headline(EURO, make_numbers())
    assert text.startswith("For €1 per customer, 31.0\u202f% of 1,000 customers are expected to respond (bought)")
    assert text.endswith("before, 20.0\u202f% did for €0.50.")
    plain = write_headline(Units("amount", "€"), make_numbers())
    assert "0.310 bought from each of 1,000 customers are expected" in plain


@pytest.mark.parametrize(
    ("budget", "answer", "said"),
    [(0.5, "careful", "more than the budget"), (5.0, "note", "the model expects nothing from spending more")],
)
def test_a_spend_surely_above_the_budget_and_an_unused_budget_are_said(budget: float, answer: str, said: str) -> None:
    (warning,) = warn_of_spending(EURO, make_numbers(budget=budget))
    assert warning["answer"] == answer
    assert said in warning["text"]


def test_a_spend_that_may_be_within_the_budget_needs_no_warning() -> None:
    assert warn_of_spending(EURO, make_numbers()) == []


@pytest.mark.parametrize(("spend", "said"), [(1.05, ["note"]), (0.7, ["note"])])
def test_a_plan_whose_cost_is_not_certain_says_how_sure_its_budget_is(spend: float, said: list[str]) -> None:
    numbers = make_numbers() | {"planned": {"spend": spend, "price": 0.2, "confidence": 0.95}}
    found = warn_of_spending(EURO, numbers)
    assert [one["answer"] for one in found] == said
    assert "within the budget with a probability of 95%" in found[-1]["text"]
    high = {"spend": {"estimate": 1.3, "low": 1.2, "high": 1.4}}
    assert [one["answer"] for one in warn_of_spending(EURO, numbers | high)] == ["careful", "note"]


def test_urgent_warnings_come_first_and_notes_are_apart() -> None:
    warnings = [{"answer": answer} for answer in ("note", "careful", "no")]
    assert [w["answer"] for w in select_urgent(warnings)] == ["no", "careful"]
    assert [w["answer"] for w in select_notes(warnings)] == ["note"]
