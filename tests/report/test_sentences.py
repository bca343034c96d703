"""Sentences of the verdict and of warnings, which never contradict each other."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.io import to_json
from largesse.records import Estimate, Option, Safety
from largesse.report.html_pages import write_answer
from largesse.report.number_format import Units
from largesse.report.sections.next_steps import view_next_steps
from largesse.report.sentences import (
    describe_bound,
    judge_gain,
    judge_profit,
    select_notes,
    select_urgent,
    warn_of_spending,
    write_bound,
    write_headline,
    write_verdict,
)
from support.pages import figures

EURO = Units("binary", "€")
PLAN, RULE = "this plan", "a simple rule"
NAN = float("nan")


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


GAINS = {
    "pays": (0.02, 0.01, 0.03),
    "loses": (-0.02, -0.03, -0.01),
    "open": (0.01, -0.01, 0.03),
    "equal": (0.0, 0.0, 0.0),
}


@pytest.mark.parametrize(
    ("judged", "headline", "verdict"),
    [
        ("pays", [2.0, 1.0, 3.0], [1.0]),  # the headline has the gain; the verdict begins with the least
        ("loses", [-2.0, -3.0, -1.0], [-2.0, -3.0, -1.0]),
        ("open", [], [1.0, -1.0, 3.0]),
        ("equal", [], []),
    ],
)
def test_headline_and_verdict_follow_the_interval(judged: str, headline: list[float], verdict: list[float]) -> None:
    numbers = make_numbers(GAINS[judged])
    assert judge_gain(numbers["versus"][0]["difference"]) == judged
    assert figures(write_headline(EURO, numbers)) == headline
    text = write_verdict(EURO, numbers)
    assert "all get '5'" in text
    assert figures(text.replace("all get '5'", ""))[: len(verdict)] == verdict


@pytest.mark.parametrize("judged", ["pays", "loses", "open"])
def test_a_mix_of_levels_is_never_called_the_same_for_everyone(judged: str) -> None:
    numbers = make_numbers(GAINS[judged])
    numbers["versus"][0] |= {"name": "a random mix", "detail": "40 % get '5', 60 % get '10'"}
    text = write_headline(EURO, numbers) + write_verdict(EURO, numbers)
    assert "random" in text
    assert "the same:" not in text
    assert "everyone the same" not in text


@pytest.mark.parametrize("judged", GAINS)
def test_a_simple_rule_that_is_safer_is_named_and_nothing_else_is_advised(judged: str) -> None:
    gain = GAINS[judged]
    numbers = make_numbers(gain) | {"safety": make_safety(gain[1], 0.015)}
    headline, verdict = write_headline(EURO, numbers), write_verdict(EURO, numbers)
    assert 1.5 in figures(headline + verdict)
    assert ("simple rule" in headline) == (judged in ("loses", "open"))
    assert numbers["safety"]["options"][1]["detail"] in verdict
    assert "as good a choice" not in verdict


@pytest.mark.parametrize(
    ("plan", "rule", "shown", "named"),
    [
        (0.01, 0.005, [1.0, 95], [PLAN]),
        (-0.01, 0.005, [0.5, 95], [RULE]),
        (-0.01, -0.02, [95], [PLAN, RULE]),  # neither is shown to gain
        (None, None, [], []),
    ],
)
def test_the_bound_is_that_of_the_safest_option(
    plan: float | None, rule: float | None, shown: list[float], named: list[str]
) -> None:
    text = describe_bound(EURO, make_safety(plan, rule))
    assert figures(text) == shown
    assert [name for name in (PLAN, RULE) if name in text.lower()] == named


def test_a_bound_just_above_zero_is_not_written_as_zero() -> None:
    assert 0.002 in figures(describe_bound(EURO, make_safety(0.00002)))


@pytest.mark.parametrize(("budget", "answer", "shown"), [(0.5, "careful", [1.0, 0.9, 0.5]), (5.0, "note", [1.05, 5.0])])
def test_a_spend_surely_above_the_budget_and_an_unused_budget_are_said(
    budget: float, answer: str, shown: list[float]
) -> None:
    (warning,) = warn_of_spending(EURO, make_numbers(budget=budget))
    assert warning["answer"] == answer
    assert figures(warning["text"]) == shown


def test_a_spend_that_may_be_within_the_budget_needs_no_warning() -> None:
    assert warn_of_spending(EURO, make_numbers()) == []


@pytest.mark.parametrize("spend", [1.05, 0.7])
def test_a_plan_whose_cost_is_not_certain_says_how_sure_its_budget_is(spend: float) -> None:
    numbers = make_numbers() | {"planned": {"spend": spend, "price": 0.2, "confidence": 0.95}}
    found = warn_of_spending(EURO, numbers)
    assert [one["answer"] for one in found] == ["note"]
    assert figures(found[-1]["text"]) == [spend, 1.05, 95]
    high = {"spend": {"estimate": 1.3, "low": 1.2, "high": 1.4}}
    assert [one["answer"] for one in warn_of_spending(EURO, numbers | high)] == ["careful", "note"]


def test_urgent_warnings_come_first_and_notes_are_apart() -> None:
    warnings = [{"answer": answer, "text": "."} for answer in ("note", "careful", "no")]
    assert [w["answer"] for w in select_urgent(warnings)] == ["no", "careful"]
    assert [w["answer"] for w in select_notes(warnings)] == ["note"]


@st.composite
def gains(draw: st.DrawFn) -> Estimate:
    """Return a gain that is clear, open, known to be zero, or without an interval."""
    kind = draw(st.sampled_from(["usual", "usual", "usual", "nothing", "no interval"]))
    if kind == "nothing":
        return Estimate(0.0, 0.0, 0.0, 0.0)
    middle, wide = draw(st.floats(-0.3, 0.3)), draw(st.floats(1e-4, 0.3))
    low, high = (NAN, NAN) if kind == "no interval" else (middle - wide, middle + wide)
    return Estimate(middle, wide / 2, low, high)


@st.composite
def studies(draw: st.DrawFn) -> dict[str, Any]:
    """Return what is different from one study to the next."""
    found = [draw(gains()) for _ in range(draw(st.integers(1, 2)))]
    some = Estimate(0.5, 0.01, 0.48, 0.52)
    options = tuple(
        Option(name, "by 'age'", some, some, gain, None if gain.low != gain.low else gain.low, None)
        for name, gain in zip((PLAN, RULE), found, strict=False)
    )
    alike = draw(st.sampled_from(["everyone the same", "a random mix"]))
    # As `weigh_options` recommends: the largest bound above zero, of equal ones the simpler, or else the mix.
    sure = [option for option in reversed(options) if option.at_least is not None and option.at_least > 0]
    best = max(sure, key=lambda option: option.at_least or 0.0, default=None)
    profit = draw(st.none() | gains())
    back = draw(st.floats(-1, 3) | st.just(NAN))
    return {"safety": Safety(options, alike if best is None else best.name, 1.9), "alike": alike} | (
        {} if profit is None else {"profit": profit, "back": back}
    )


def join(numbers: dict[str, Any], study: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a page with what this study found."""
    joined, safety = copy.deepcopy(numbers), study["safety"]
    joined["safety"] |= {
        "options": to_json(safety.options),
        "recommended": safety.recommended,
    }
    joined["versus"][0] |= {"name": study["alike"], "difference": to_json(safety.options[0].gain)}
    if "profit" in study:
        joined["profit"]["gain"] = to_json(study["profit"])
        joined["profit"]["returned"] |= {"estimate": study["back"]}
    else:
        joined["profit"] = None
    joined["answer"] = write_answer(joined)
    return joined


def test_nothing_on_a_page_contradicts_anything_else(amount_run: Any) -> None:
    @settings(max_examples=400, deadline=None, derandomize=True, database=None)
    @given(study=studies())
    def check(study: dict[str, Any]) -> None:
        check_agreement(join(amount_run.numbers, study), study)

    check()


def check_agreement(numbers: dict[str, Any], study: dict[str, Any]) -> None:
    units, safety = Units.of(numbers), numbers["safety"]
    headline, verdict = numbers["answer"]["headline"], numbers["answer"]["verdict"]
    bound, steps = describe_bound(units, safety), view_next_steps(numbers, units)
    assert steps is not None
    plan = safety["options"][0]
    loses, advised = judge_profit(numbers) == "loses", safety["recommended"]
    # Money first: a campaign that loses it is never sold.
    assert headline.startswith("This plan loses money") == loses == steps["loses"]
    assert ("After costs" in verdict) == ("profit" in study)
    if loses:
        assert "pays" not in headline
        assert "brings back" not in headline or study["back"] < 1
    # What is recommended is what all sentences say.
    said = headline + verdict
    if advised == PLAN:
        assert plan["at_least"] > 0
        assert f"{PLAN.capitalize()} gains at least {write_bound(units, plan)}" in bound
        assert steps["simpler"] == steps["rule"] == ""
        assert loses or headline.startswith("Choosing who gets what pays")
    elif advised == RULE:
        rule = safety["options"][1]
        assert rule["at_least"] > 0
        assert "simple rule" in said
        assert write_bound(units, rule) in said
        assert f"{RULE.capitalize()} gains at least {write_bound(units, rule)}" in bound
        assert steps["rule"] == rule["detail"]
        assert steps["simpler"] == ""
    else:
        assert advised == numbers["versus"][0]["name"]
        assert "may be no gain" in bound or "no bound" in bound
        assert " pays:" not in said
        assert "gains at least" not in said
        assert steps["rule"] == ""
        assert (steps["simpler"] == "") == (steps["judged"] == "equal")
    # Numbers are the same wherever they stand.
    if "Choosing who gets what pays" in headline or "choosing who gets what loses" in headline:
        assert units.write_gain(plan["gain"]) in headline
    assert steps["judged"] != "pays" or steps["simpler"] == ""


@pytest.mark.parametrize("alike", ["everyone the same", "a random mix"])
def test_a_mix_is_never_called_the_same_for_everyone(amount_run: Any, alike: str) -> None:
    losing = Estimate(-0.2, 0.01, -0.22, -0.18)
    option = Option(PLAN, "", losing, losing, losing, losing.low, None)
    numbers = join(amount_run.numbers, {"safety": Safety((option,), alike, 1.9), "alike": alike})
    assert ("Give everyone the same" in numbers["answer"]["headline"]) == (alike == "everyone the same")
