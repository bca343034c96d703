from typing import Any

import pytest

from largesse.report.numbers import Units
from largesse.report.sentences import (
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
    same = {"name": "everyone the same", "detail": "all get '5'", "value": {"estimate": 0.3}}
    same |= {"spend": {"estimate": 1.0}, "difference": difference}
    before = {
        "name": "what was done before",
        "detail": "",
        "value": {"estimate": 0.2},
        "spend": {"estimate": 0.5},
        "difference": difference,
    }
    return {
        "response": {"name": "bought", "kind": "binary"},
        "customers": 1000,
        "value": {"estimate": 0.31, "low": 0.29, "high": 0.33},
        "spend": {"estimate": 1.0, "low": 0.9, "high": 1.1},
        "versus": [same, before],
        "safety": make_safety(gain[1]),
        "budget": {"average": budget},
        "planned": {"spend": 1.05 if budget > 1 else budget, "confidence": None},
        "profit": None,
    }


@pytest.mark.parametrize(
    ("gain", "headline", "said"),
    [
        (
            (0.02, 0.01, 0.03),
            "Choosing who gets what pays: +2.0\u202fpp (+1.0 to +3.0\u202fpp) over",
            "at least +1.0\u202fpp",
        ),
        ((-0.02, -0.03, -0.01), "Give everyone the same: choosing who gets what loses", "brings −2.0\u202fpp"),
        ((0.01, -0.01, 0.03), "The log does not show that choosing who gets what pays.", "may be nothing. The simpler"),
        ((0.0, 0.0, 0.0), "There is nothing to choose", "all get '5'"),
    ],
)
def test_headline_and_verdict_follow_the_interval(gain: tuple[float, float, float], headline: str, said: str) -> None:
    numbers = make_numbers(gain)
    assert write_headline(EURO, numbers).startswith(headline)
    assert said in write_verdict(EURO, numbers)


@pytest.mark.parametrize("gain", [(0.02, 0.01, 0.03), (-0.02, -0.03, -0.01), (0.01, -0.01, 0.03)])
def test_a_mix_of_levels_is_never_called_the_same_for_everyone(gain: tuple[float, float, float]) -> None:
    numbers = make_numbers(gain)
    numbers["versus"][0] |= {"name": "a random mix", "detail": "40 % get '5', 60 % get '10'"}
    text = write_headline(EURO, numbers) + write_verdict(EURO, numbers)
    assert "random" in text
    assert "the same:" not in text
    assert "everyone the same" not in text


@pytest.mark.parametrize(
    ("gain", "headline", "said"),
    [
        ((0.02, 0.01, 0.03), "Choosing who gets what pays", "A simple rule gains at least +1.5\u202fpp"),
        ((-0.02, -0.03, -0.01), "A simple rule pays: at least +1.5\u202fpp", "this plan brings −2.0"),
        ((0.01, -0.01, 0.03), "A simple rule pays: at least +1.5\u202fpp", "this plan brings +1.0"),
        ((0.0, 0.0, 0.0), "There is nothing to choose", "A simple rule gains at least +1.5\u202fpp"),
    ],
)
def test_a_simple_rule_that_is_safer_is_named_and_nothing_else_is_advised(
    gain: tuple[float, float, float], headline: str, said: str
) -> None:
    numbers = make_numbers(gain) | {"safety": make_safety(gain[1], 0.015)}
    assert write_headline(EURO, numbers).startswith(headline)
    text = write_verdict(EURO, numbers)
    assert said in text
    assert text.endswith("The rule: by 'age'.")
    assert "as good a choice" not in text


@pytest.mark.parametrize(
    ("plan", "rule", "said"),
    [
        (
            0.01,
            0.005,
            "With this plan: at least +1.0\u202fpp over treating everyone alike at the same cost, with 95 % confidence.",
        ),
        (-0.01, 0.005, "With a simple rule: at least +0.5\u202fpp over"),
        (-0.01, -0.02, "It could be no gain: with 95 % confidence, neither this plan nor a simple rule is shown"),
        (None, None, "There is no bound on the gain"),
    ],
)
def test_the_bound_is_that_of_the_safest_option(plan: float | None, rule: float | None, said: str) -> None:
    assert write_bound(EURO, make_safety(plan, rule)).startswith(said)


def test_a_bound_just_above_zero_is_not_written_as_zero() -> None:
    assert "at least +0.002\u202fpp" in write_bound(EURO, make_safety(0.00002))


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
    assert "within the budget with a probability of 95\u202f%" in found[-1]["text"]
    high = {"spend": {"estimate": 1.3, "low": 1.2, "high": 1.4}}
    assert [one["answer"] for one in warn_of_spending(EURO, numbers | high)] == ["careful", "note"]


def test_urgent_warnings_come_first_and_notes_are_apart() -> None:
    warnings = [{"answer": answer} for answer in ("note", "careful", "no")]
    assert [w["answer"] for w in select_urgent(warnings)] == ["no", "careful"]
    assert [w["answer"] for w in select_notes(warnings)] == ["note"]
