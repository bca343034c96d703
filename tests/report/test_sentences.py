"""Sentences of the verdict and of warnings, which never contradict each other."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.io import to_json
from largesse.records import GRADES, Estimate, GainEvidence, PolicyOption, Verdict
from largesse.report.number_format import Units
from largesse.report.page_rendering import write_verdict_and_warnings
from largesse.report.sections.gain_bounds import view_gain_bounds
from largesse.report.sections.next_steps import list_next_steps
from largesse.report.sentences import (
    classify_profit,
    counts_revenue_as_profit,
    list_risks,
    list_spending_warnings,
    select_note_warnings,
    select_urgent_warnings,
    write_gain_bounds,
    write_group_sentences,
    write_probability,
)
from support.pages import figures

Numbers = dict[str, Any]
EURO, NAN = Units("binary", "€"), float("nan")
OPTIONS = ("plan", "rule", "before")
PLAN, RULE, SAME, MIX = "this plan", "a simple rule", "everyone the same", "a random mix"
VALUE = Estimate(0.5, 0.01, 0.48, 0.52)


def bound(gains: list[Estimate]) -> Numbers:
    """Return lower bounds of a plan, and maybe a simple rule, with these gains."""
    bounds = [None if gain.low != gain.low else gain.low for gain in gains]
    options = [
        PolicyOption(name, "by 'age'", VALUE, VALUE, gain, bound, None)
        for name, gain, bound in zip((PLAN, RULE), gains, bounds, strict=False)
    ]
    return {"options": to_json(options), "excuse": ""}


def decide(gains: list[Estimate], recommended: str | None, grade: str, **more: Any) -> Numbers:
    """Return a verdict on a plan, and maybe a simple rule, with these gains."""
    options = [
        GainEvidence(name, gain, 0.5 + gain.estimate, gain, gain) for name, gain in zip(OPTIONS, gains, strict=False)
    ]
    options = [] if recommended is None else options
    verdict: Numbers = to_json(Verdict(recommended, grade, tuple(options), needed_rows=7840.0, **more))
    return verdict


def judge(numbers: Numbers, gains: list[Estimate], verdict: Numbers, reference: str = SAME, **more: Any) -> Numbers:
    """Return the numbers of a page with these gains over a reference, and a verdict."""
    same = numbers["versus"][0] | {"name": reference, "detail": "all get '5'", "difference": to_json(gains[0])}
    judged = {**numbers, "versus": [same, *numbers["versus"][1:]], "safety": bound(gains), "verdict": verdict, **more}
    return judged | {"answer": write_verdict_and_warnings(judged)}


def make_gain(estimate: float, half: float) -> Estimate:
    return Estimate(estimate, half / 2, estimate - half, estimate + half)


NEXT_LOG = {"rate": 0.05, "customers": 12_345.0, "given_up": 0.001, "money": 0.02}
GAIN = make_gain(0.02, 0.03)  # written as +2.0 (−1.0 to +5.0)
SHOWN = [2.0, -1.0, 5.0]


@pytest.mark.parametrize(
    ("recommended", "grade", "headline", "evidence"),
    [
        ("plan", "proved", SHOWN, [*SHOWN, -1.0, 95]),  # the bound is that of the log alone
        ("plan", "best bet", [52], [*SHOWN, *SHOWN, 5, 12_000]),
        ("plan", "slightly better", [52], [*SHOWN, *SHOWN, 5, 12_000]),
        ("rule", "best bet", [52], [*SHOWN, *SHOWN, 7800]),
        ("before", "best bet", [52], [*SHOWN, *SHOWN]),
        ("mix", "no difference", [], [*SHOWN, 5, 5.0]),
        ("mix", "rather not", [52], [*SHOWN, 5, 5.0]),
        (None, "cannot say", [], [3]),
    ],
)
def test_every_grade_has_a_sentence_with_its_numbers(
    binary: Numbers, recommended: str | None, grade: str, headline: list[float], evidence: list[float]
) -> None:
    verdict = decide([GAIN] * 3, recommended, grade, reason="" if recommended else "Only 3 rows.")
    numbers = judge(binary, [GAIN] * 2, verdict, next_log=NEXT_LOG)
    assert figures(numbers["answer"]["headline"]) == headline
    assert figures(numbers["answer"]["verdict"]) == evidence
    headlines = {
        judge(binary, [GAIN] * 2, decide([GAIN] * 3, name, other))["answer"]["headline"]
        for name, other in (("plan", "proved"), ("plan", "best bet"), ("plan", "slightly better"), ("rule", "best bet"))
    }
    assert len(headlines) == 4
    mixed = judge(binary, [GAIN] * 2, verdict, MIX)["answer"]["headline"]
    assert ("random" in mixed) == (recommended != "before")  # a random mix is not called the same for everyone
    assert "the same level" not in mixed


def test_without_a_next_log_the_rows_of_a_log_like_this_one_are_named_if_one_would_do(binary: Numbers) -> None:
    for needed, shown in ((7840.0, [7800]), (None, [])):
        verdict = {**decide([GAIN], "plan", "best bet"), "needed_rows": needed}
        text = judge(binary, [GAIN], verdict, next_log=None)["answer"]["verdict"]
        assert figures(text) == [*SHOWN, *SHOWN, *shown]


def test_a_plan_that_treats_everyone_the_same_has_nothing_to_compare(binary: Numbers) -> None:
    nothing = Estimate(0.0, 0.0, 0.0, 0.0)
    numbers = judge(binary, [nothing], decide([nothing], "mix", "no difference"))
    commands = list_commands(numbers)
    assert not any("mix" in command or "power" in command for command in commands)
    assert figures(numbers["answer"]["headline"] + numbers["answer"]["verdict"]) == [5]


def test_a_contradiction_is_named_and_the_log_believed(binary: Numbers) -> None:
    verdict = decide([GAIN], "plan", "best bet", reason="They differ by 7.")
    verdict["options"][0]["contradiction"] = True
    text = judge(binary, [GAIN], verdict)["answer"]["verdict"]
    assert "model and log together" not in text
    assert figures(text)[-1] == 7


def list_commands(numbers: Numbers) -> list[str]:
    return [" ".join(step["command"]) for step in list_next_steps(numbers, Units.from_numbers(numbers))]


@pytest.mark.parametrize(
    ("conditions", "shown"),
    [
        ([("age", "number", True, 30.0, None)], "age below 30"),
        ([("age", "number", False, 30.0, None)], "age 30 or more"),
        ([("age", "number", False, 30.0, None), ("age", "number", True, 60.5, None)], "age 30 to 60.5"),
        ([("ill", "flag", False, 1.0, None)], "ill: yes"),
        ([("ill", "flag", True, 1.0, None)], "ill: no"),
        ([("city", "text", False, None, "Rome")], "city: not Rome"),
        ([("city", "text", True, None, None)], "city: missing"),
        ([("day", "date", False, 86400.0, None)], "day from 1970-01-02 on"),
        ([("city", "text", True, None, "Rome"), ("age", "number", True, 30.0, None)], "city: Rome and age below 30"),
    ],
)
def test_a_group_is_described_by_its_conditions_and_its_level(
    binary: Numbers, conditions: list[tuple[Any, ...]], shown: str
) -> None:
    keys = ("feature", "kind", "holds", "limit", "word")
    rows = [{**dict(zip(keys, row, strict=True)), "or_missing": False} for row in conditions]
    binary["groups"] = [{"conditions": rows, "share": 0.4, "level": 1, "agreement": 0.9}]
    (text,) = write_group_sentences(binary)
    assert text == f"{shown[0].upper()}{shown[1:]} (40\u202f% of customers): small for 90\u202f%."
    binary["groups"][0] |= {"conditions": [], "agreement": 1.0}
    assert write_group_sentences(binary) == ["small for all."]


def test_risks_are_short_the_most_serious_first_and_lose_nothing(binary: Numbers) -> None:
    texts = [("weights", "careful", "Row 7 carries much."), ("", "no", "It is wrong. Mend it.")]
    texts += [("support", "careful", f"Cell {k} is empty.") for k in range(2)]
    binary["answer"]["warnings"] = [dict(zip(("topic", "answer", "text"), row, strict=True)) for row in texts]
    risks = list_risks(binary, EURO)
    assert [risk["answer"] for risk in risks] == ["no", "careful", "careful"]
    assert risks[0]["text"] == "It is wrong."
    whole = " ".join(f"{risk['text']} {risk['rest']}" for risk in risks)
    assert all(text in whole for _, _, text in texts)
    binary["answer"]["warnings"] = []
    assert len(list_risks(binary, EURO)) >= 2


@pytest.mark.parametrize(("probability", "shown"), [(0.0, 1), (0.999, 99), (1.0, 99), (0.804, 80)])
def test_a_probability_is_never_certain(probability: float, shown: int) -> None:
    assert figures(write_probability(probability)) == [shown]


@pytest.mark.parametrize(
    ("gains", "shown", "named"),
    [
        ([make_gain(0.03, 0.02), make_gain(0.03, 0.025)], [95, 1.0, 0.5], [PLAN, RULE]),
        ([make_gain(0.03, 0.04)], [95, -1.0], [PLAN]),
        ([Estimate(0.03, NAN, NAN, NAN)] * 2, [], []),
    ],
)
def test_the_bounds_are_those_of_the_log_alone(gains: list[Estimate], shown: list[float], named: list[str]) -> None:
    text = write_gain_bounds(EURO, bound(gains))
    assert figures(text) == shown
    assert [name for name in (PLAN, RULE) if name in text.lower()] == named


def test_a_bound_just_above_zero_is_not_written_as_zero() -> None:
    assert 0.002 in figures(write_gain_bounds(EURO, bound([make_gain(0.03, 0.02998)])))


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
    warnings = list_spending_warnings(EURO, numbers)
    assert {warning["answer"]: figures(warning["text"]) for warning in warnings} == shown


def test_urgent_warnings_come_first_and_notes_are_separate() -> None:
    warnings = [{"answer": answer, "text": "."} for answer in ("note", "careful", "no")]
    assert [w["answer"] for w in select_urgent_warnings(warnings)] == ["no", "careful"]
    assert [w["answer"] for w in select_note_warnings(warnings)] == ["note"]


@st.composite
def gains(draw: st.DrawFn) -> Estimate:
    """Return a gain that is clear, open or known to be zero."""
    if draw(st.sampled_from([False, False, False, True])):
        return Estimate(0.0, 0.0, 0.0, 0.0)
    return make_gain(draw(st.floats(-0.3, 0.3)), draw(st.floats(1e-4, 0.3)))


def test_nothing_on_a_page_contradicts_anything_else(amount_run: Any) -> None:
    numbers = amount_run.numbers

    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(
        found=st.lists(gains(), min_size=3, max_size=3),
        recommended=st.sampled_from([*OPTIONS, "mix", None]),
        grade=st.sampled_from(GRADES),
        reference=st.sampled_from([SAME, MIX]),
        profit=st.none() | gains(),
        returned=st.floats(-1, 3) | st.just(NAN),
        next_log=st.none() | st.just(NEXT_LOG),
    )
    def check(
        found: list[Estimate],
        recommended: str | None,
        grade: str,
        reference: str,
        profit: Estimate | None,
        returned: float,
        next_log: Numbers | None,
    ) -> None:
        shown = None
        if profit is not None:
            shown = {**numbers["profit"], "gain": to_json(profit), "returned": {"estimate": returned}}
        verdict = decide(found, recommended, grade)
        check_agreement(judge(numbers, found[:2], verdict, reference, profit=shown, next_log=next_log))

    check()


def check_agreement(numbers: Numbers) -> None:
    units, profit, advised = Units.from_numbers(numbers), numbers["profit"], numbers["verdict"]["recommended"]
    headline, below = numbers["answer"]["headline"], numbers["answer"]["verdict"]
    view, commands = view_gain_bounds(numbers, units), list_commands(numbers)
    # Money first: a campaign that loses it is never recommended.
    loses = classify_profit(numbers) == "loses"
    assert headline.startswith("This plan loses money") == loses
    assert ("After costs" in below) == (profit is not None)
    if loses:
        assert not any("--explore" in command or "--as plan" in command for command in commands)
        assert "brings back" not in headline or profit["returned"]["estimate"] < 1
    # Headline, picture and steps are about the same option.
    same = {"plan": PLAN, "rule": RULE, "before": "what was done before"}
    if advised in same:
        assert view["option"] == same[advised]
        assert loses or same[advised] in headline
        assert [row.number for row in view["evidence"].rows] == [view["evidence"].rows[-1].number] * 3
    assert (view["evidence"].rows == ()) == (advised is None)
    assert any("--as rule" in command for command in commands) == (advised == "rule")
    assert advised == "mix" or not any("--as mix" in command for command in commands)


@pytest.mark.parametrize(
    ("units", "worth", "counted"),
    [
        (Units("amount", "€", "€"), 1.0, True),
        (Units("amount", "€", "€"), 0.35, False),  # a margin
        (Units("amount", "€", ""), 1.0, False),
        (Units("binary", "€"), 1.0, False),
    ],
)
def test_revenue_counts_as_profit_where_no_margin_is_given(units: Units, worth: float, counted: bool) -> None:
    assert counts_revenue_as_profit(units, {"response_value": worth}) is counted
