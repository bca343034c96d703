"""Sentences of the verdict and of warnings, which never contradict each other."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.io import to_json
from largesse.records import Estimate, PolicyOption
from largesse.report.number_format import Units
from largesse.report.page_rendering import write_answer
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

Numbers = dict[str, Any]
EURO, NAN = Units("binary", "€"), float("nan")
PLAN, RULE, SAME, MIX = "this plan", "a simple rule", "everyone the same", "a random mix"
VALUE = Estimate(0.5, 0.01, 0.48, 0.52)


def recommend(gains: list[Estimate], reference: str) -> Numbers:
    """Return a plan, and maybe a simple rule, with these gains; the best bound above zero is recommended."""
    bounds = [None if gain.low != gain.low else gain.low for gain in gains]
    options = [
        PolicyOption(name, "by 'age'", VALUE, VALUE, gain, bound, None)
        for name, gain, bound in zip((PLAN, RULE), gains, bounds, strict=False)
    ]
    # of equal bounds, the simpler option's
    certain = [option for option in reversed(options) if option.at_least is not None and option.at_least > 0]
    best = max(certain, key=lambda option: option.at_least or 0.0, default=None)
    return {"options": to_json(options), "recommended": reference if best is None else best.name, "excuse": ""}


def judge(numbers: Numbers, gains: list[Estimate], reference: str = SAME, **more: Any) -> Numbers:
    """Return the numbers of a page with these gains over a reference."""
    same = numbers["versus"][0] | {"name": reference, "detail": "all get '5'", "difference": to_json(gains[0])}
    versus, safety = [same, *numbers["versus"][1:]], recommend(gains, reference)
    judged = {**numbers, "versus": versus, "safety": safety, **more}
    return judged | {"answer": write_answer(judged)}


def make_gain(estimate: float, half: float) -> Estimate:
    return Estimate(estimate, half / 2, estimate - half, estimate + half)


@pytest.mark.parametrize(
    ("gain", "judged", "headline", "verdict"),
    [
        # the headline has the gain; the verdict begins with its lower bound
        (make_gain(0.02, 0.01), "pays", [2.0, 1.0, 3.0], [1.0, 95.0]),
        (make_gain(-0.02, 0.01), "loses", [-2.0, -3.0, -1.0], [-2.0, -3.0, -1.0]),
        (make_gain(0.01, 0.02), "open", [], [1.0, -1.0, 3.0]),
        (Estimate(0.0, 0.0, 0.0, 0.0), "equal", [], []),
    ],
)
def test_headline_and_verdict_follow_the_interval(
    binary: Numbers, gain: Estimate, judged: str, headline: list[float], verdict: list[float]
) -> None:
    numbers = judge(binary, [gain])
    assert judge_gain(numbers["versus"][0]["difference"]) == judged
    assert figures(write_headline(EURO, numbers)) == headline
    text = write_verdict(EURO, numbers)
    assert "all get '5'" in text
    assert figures(text.replace("all get '5'", "")) == verdict
    mixed = judge(binary, [gain], MIX)
    text = write_headline(EURO, mixed) + write_verdict(EURO, mixed)
    assert judged == "equal" or "random" in text  # a random mix is not called the same for everyone
    assert judged == "equal" or not any(words in text for words in ("the same:", "everyone the same"))


@pytest.mark.parametrize(
    ("gains", "shown", "named"),
    [
        ([make_gain(0.03, 0.02), make_gain(0.03, 0.025)], [1.0, 95], [PLAN]),
        ([make_gain(0.03, 0.04), make_gain(0.03, 0.025)], [0.5, 95], [RULE]),
        ([make_gain(0.03, 0.04), make_gain(0.03, 0.05)], [95], [PLAN, RULE]),  # neither is shown to gain
        ([Estimate(0.03, NAN, NAN, NAN)] * 2, [], []),
    ],
)
def test_the_bound_is_that_of_the_recommended_option(
    gains: list[Estimate], shown: list[float], named: list[str]
) -> None:
    text = describe_bound(EURO, recommend(gains, SAME))
    assert figures(text) == shown
    assert [name for name in (PLAN, RULE) if name in text.lower()] == named


def test_a_bound_just_above_zero_is_not_written_as_zero() -> None:
    assert 0.002 in figures(describe_bound(EURO, recommend([make_gain(0.03, 0.02998)], SAME)))


@pytest.mark.parametrize(
    ("budget", "planned", "confidence", "spend", "shown"),
    [
        (1.05, 1.05, None, (1.0, 0.9, 1.1), {}),  # the spend may be within the budget
        (0.5, 0.5, None, (1.0, 0.9, 1.1), {"careful": [1.0, 0.9, 0.5]}),
        (5.0, 1.05, None, (1.0, 0.9, 1.1), {"note": [1.05, 5.0]}),
        (1.05, 0.7, 0.95, (1.0, 0.9, 1.1), {"note": [0.7, 1.05, 95]}),
        (1.05, 1.05, 0.95, (1.3, 1.2, 1.4), {"careful": [1.3, 1.2, 1.05], "note": [1.05, 1.05, 95]}),
    ],
)
def test_spending_other_than_the_budget_and_its_probability_are_warned_of(
    budget: float, planned: float, confidence: float | None, spend: tuple[float, ...], shown: dict[str, list[float]]
) -> None:
    numbers = {
        "budget": {"average": budget},
        "planned": {"spend": planned, "price": 0.2, "confidence": confidence},
        "spend": dict(zip(("estimate", "low", "high"), spend, strict=True)),
    }
    warnings = warn_of_spending(EURO, numbers)
    assert {warning["answer"]: figures(warning["text"]) for warning in warnings} == shown


def test_urgent_warnings_come_first_and_notes_are_separate() -> None:
    warnings = [{"answer": answer, "text": "."} for answer in ("note", "careful", "no")]
    assert [w["answer"] for w in select_urgent(warnings)] == ["no", "careful"]
    assert [w["answer"] for w in select_notes(warnings)] == ["note"]


@st.composite
def gains(draw: st.DrawFn) -> Estimate:
    """Return a gain that is clear, open, known to be zero, or without an interval."""
    kind = draw(st.sampled_from(["usual", "usual", "usual", "nothing", "no interval"]))
    if kind == "nothing":
        return Estimate(0.0, 0.0, 0.0, 0.0)
    middle, half = draw(st.floats(-0.3, 0.3)), draw(st.floats(1e-4, 0.3))
    return Estimate(middle, NAN, NAN, NAN) if kind == "no interval" else make_gain(middle, half)


def test_nothing_on_a_page_contradicts_anything_else(amount_run: Any) -> None:
    numbers = amount_run.numbers

    @settings(max_examples=400, deadline=None, derandomize=True, database=None)
    @given(
        found=st.lists(gains(), min_size=1, max_size=2),
        reference=st.sampled_from([SAME, MIX]),
        profit=st.none() | gains(),
        returned=st.floats(-1, 3) | st.just(NAN),
    )
    def check(found: list[Estimate], reference: str, profit: Estimate | None, returned: float) -> None:
        shown = None
        if profit is not None:
            shown = {**numbers["profit"], "gain": to_json(profit), "returned": {"estimate": returned}}
        check_agreement(judge(numbers, found, reference, profit=shown))

    check()


def check_agreement(numbers: Numbers) -> None:
    units, safety, profit = Units.of(numbers), numbers["safety"], numbers["profit"]
    headline, verdict = numbers["answer"]["headline"], numbers["answer"]["verdict"]
    bound, steps = describe_bound(units, safety), view_next_steps(numbers, units)
    assert steps is not None
    plan, advised = safety["options"][0], safety["recommended"]
    # Money first: a campaign that loses it is never recommended.
    loses = judge_profit(numbers) == "loses"
    assert headline.startswith("This plan loses money") == loses == steps["loses"]
    assert ("After costs" in verdict) == (profit is not None)
    if loses:
        assert "pays" not in headline
        assert "brings back" not in headline or profit["returned"]["estimate"] < 1
    elif numbers["versus"][0]["name"] == MIX:
        assert "Give everyone the same" not in headline
    # All sentences recommend the same.
    text = headline + verdict
    if advised == PLAN:
        assert plan["at_least"] > 0
        assert f"{PLAN.capitalize()} gains at least {write_bound(units, plan)}" in bound
        assert steps["simpler"] == steps["rule"] == ""
        assert loses or headline.startswith("Choosing who gets what pays")
    elif advised == RULE:
        rule = safety["options"][1]
        assert rule["at_least"] > 0
        assert "simple rule" in text
        assert write_bound(units, rule) in text
        assert f"{RULE.capitalize()} gains at least {write_bound(units, rule)}" in bound
        assert (steps["rule"], steps["simpler"]) == (rule["detail"], "")
        assert "as good a choice" not in verdict
    else:
        assert advised == numbers["versus"][0]["name"]
        assert "may be no gain" in bound or "no bound" in bound
        assert " pays:" not in text
        assert "gains at least" not in text
        assert steps["rule"] == ""
        assert (steps["simpler"] == "") == (steps["judged"] == "equal")
    # The same number everywhere.
    if "Choosing who gets what pays" in headline or "choosing who gets what loses" in headline:
        assert units.write_gain(plan["gain"]) in headline
    assert steps["judged"] != "pays" or steps["simpler"] == ""
