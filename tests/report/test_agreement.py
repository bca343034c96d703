"""Headline, verdict, safety, next steps and terminal never contradict each other, whatever a study found."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.io import to_json
from largesse.records import Estimate, Option, Safety
from largesse.report.numbers import Units
from largesse.report.sections.answer import write_answer
from largesse.report.sections.next_steps import view_next_steps
from largesse.report.sentences import judge_profit, write_bound, write_gain, write_least

PLAN, RULE = "this plan", "a simple rule"
NAN = float("nan")


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
    bound, steps = write_bound(units, safety), view_next_steps(numbers, units)
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
        assert f"With {PLAN}: at least {write_least(units, plan)}" in bound
        assert steps["simpler"] == steps["rule"] == ""
        assert loses or headline.startswith("Choosing who gets what pays")
    elif advised == RULE:
        rule = safety["options"][1]
        assert rule["at_least"] > 0
        assert "simple rule" in said
        assert write_least(units, rule) in said
        assert f"With {RULE}: at least {write_least(units, rule)}" in bound
        assert steps["rule"] == rule["detail"]
        assert steps["simpler"] == ""
    else:
        assert advised == numbers["versus"][0]["name"]
        assert "could be no gain" in bound or "no bound" in bound
        assert " pays:" not in said
        assert "gains at least" not in said
        assert steps["rule"] == ""
        assert (steps["simpler"] == "") == (steps["judged"] == "equal")
    # Numbers are the same wherever they stand.
    if "Choosing who gets what pays" in headline or "choosing who gets what loses" in headline:
        assert write_gain(units, plan["gain"]) in headline
    assert steps["judged"] != "pays" or steps["simpler"] == ""


@pytest.mark.parametrize("alike", ["everyone the same", "a random mix"])
def test_a_mix_is_never_called_the_same_for_everyone(amount_run: Any, alike: str) -> None:
    losing = Estimate(-0.2, 0.01, -0.22, -0.18)
    option = Option(PLAN, "", losing, losing, losing, losing.low, None)
    numbers = join(amount_run.numbers, {"safety": Safety((option,), alike, 1.9), "alike": alike})
    assert ("Give everyone the same" in numbers["answer"]["headline"]) == (alike == "everyone the same")
