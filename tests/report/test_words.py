from typing import Any

import pytest

from largesse.report.formats import Units
from largesse.report.words import select_notes, select_urgent, warn_of_spending, write_headline, write_verdict

EURO = Units("binary", "€")


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


def test_urgent_warnings_come_first_and_notes_are_apart() -> None:
    warnings = [{"answer": answer} for answer in ("note", "careful", "no")]
    assert [w["answer"] for w in select_urgent(warnings)] == ["no", "careful"]
    assert [w["answer"] for w in select_notes(warnings)] == ["note"]
