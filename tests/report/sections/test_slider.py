import json
from typing import Any

import pytest
from pages import Page

from largesse.report import render_report
from largesse.report.numbers import Units
from largesse.report.sections.frontier import interpolate, judge_budget, judge_own, value_best_mix, view_slider

Numbers = dict[str, Any]
EURO = Units("binary", "€")


@pytest.fixture
def slid(binary: Numbers) -> Numbers:
    binary["frontier"]["stops"] = [
        {
            "budget": b,
            "spend": 0.9 * b,
            "value": 0.3 + 0.1 * b,
            "price": 0.2 / (1 + b),
            "shares": [1 - b / 4, b / 8, b / 8],
            "own": False,
            "pays": False,
        }
        for b in (0.0, 0.5, 1.0, 2.4, 4.0)
    ]
    return binary


def test_the_slider_begins_at_the_plan_and_every_stop_has_its_words(slid: Numbers) -> None:
    view = view_slider(slid, EURO)
    stops = json.loads(view["stops"])
    assert (view["start"], view["last"]) == (3, 4)  # the plan's budget is 2.5
    assert stops[3]["budget"].startswith("€2.40 per customer, €576 in all")
    assert stops[3]["spend"] == "€2.16 per customer"
    assert stops[1]["levels"] == ["88\u202f%", "6.2\u202f%", "6.2\u202f%"]


def test_the_page_carries_the_stops_and_loads_nothing(slid: Numbers) -> None:
    slid["levels"][0]["name"] = '"><script>alert(1)</script>'
    found = Page(render_report(slid))
    assert found.sound
    assert found.scripts == 1
    assert "budget" in found.ids


@pytest.mark.parametrize("stops", [None, [], [{"budget": 1.0}]])
def test_without_stops_there_is_no_slider(binary: Numbers, stops: Any) -> None:
    if stops is not None:
        binary["frontier"]["stops"] = stops
    assert 'class="whatif' not in render_report(binary)


def test_the_honest_value_lies_on_the_line_between_two_budgets() -> None:
    points = [
        {"budget": 0.0, "value": {"estimate": 0.1, "low": 0.0, "high": 0.2}},
        {"budget": 2.0, "value": {"estimate": 0.3, "low": 0.2, "high": 0.6}},
    ]
    assert interpolate(points, 0.5) == pytest.approx({"estimate": 0.15, "low": 0.05, "high": 0.3})
    assert interpolate(points, 2.1) is None


def test_three_budgets_are_told_in_plain_words_with_honest_values(slid: Numbers) -> None:
    slid["value"] = {"estimate": 0.55, "low": 0.5, "high": 0.6}
    slid["frontier"]["points"] = [
        {**slid["frontier"]["points"][0], "budget": b, "value": {"estimate": e, "low": e - 0.05, "high": e + 0.05}}
        for b, e in ((0.0, 0.3), (2.0, 0.5), (4.0, 0.6))
    ]
    this, half, most = view_slider(slid, EURO)["scenarios"]
    assert this["title"] == "This budget, €2.50 per customer"
    assert this["text"] == "55.0\u202f% (50.0 to 60.0\u202f%) of customers respond."
    assert half["title"] == "About half of it, €1.00"  # the stop that is nearest to 1.25
    assert half["text"].startswith("40.0\u202f% (35.0 to")
    assert most["title"] == "All that the model has a use for, €4.00"
    assert most["text"].startswith("60.0\u202f%")
    slid["budget"]["average"] = None
    assert view_slider(slid, EURO)["scenarios"] == []


def test_where_a_response_has_a_value_the_third_budget_is_the_one_up_to_which_money_comes_back(
    slid: Numbers, amount: Numbers
) -> None:
    slid["profit"] = amount["profit"]
    slid["frontier"]["points"] = [
        {**row, "profit": {"estimate": 1.0 - row["budget"], "low": 0.5 - row["budget"], "high": 1.5 - row["budget"]}}
        for row in slid["frontier"]["points"]
    ]
    slid["frontier"]["stops"][2]["pays"] = True
    this, half, pays = view_slider(slid, EURO)["scenarios"]
    assert pays["title"] == "Until €1 more brings back less than it costs, €1.00"
    assert pays["text"].endswith("€0.00 (−€0.50 to €0.50) left after costs.")
    assert "left after costs" in this["text"]
    assert "left after costs" in half["text"]
    assert json.loads(view_slider(slid, EURO)["stops"])[2]["left"] == "€0.00 (−€0.50 to €0.50)"
    slid["frontier"]["stops"][2]["pays"], slid["frontier"]["stops"][0]["pays"] = False, True
    assert view_slider(slid, EURO)["scenarios"][2]["text"].endswith("The model expects that no step up pays.")


def test_the_plan_itself_begins_with_what_was_judged(slid: Numbers) -> None:
    slid["frontier"]["stops"].insert(4, {**slid["frontier"]["stops"][3], "budget": 2.5, "own": True})
    view = view_slider(slid, EURO)
    assert view["start"] == 4
    assert view["now"]["how"] == "this plan, as judged"
    style = EURO.value_style(slid["value"])
    assert view["now"]["value"] == style.both(slid["value"])
    gain = slid["versus"][0]["difference"]
    assert view["now"]["gain"] == EURO.gain_style(gain).both(gain, signed=True)
    assert view["now"]["say"].startswith("This plan. Budget €2.50 per customer")
    assert json.loads(view["stops"])[2]["how"] == "read between two judged budgets"


@pytest.mark.parametrize("kind", ["binary", "amount"])
def test_the_gain_at_judged_budgets_is_the_judged_one(kind: str, request: pytest.FixtureRequest) -> None:
    numbers = request.getfixturevalue(kind)
    for point in numbers["targeting"]["points"][1:]:
        found = judge_budget(numbers, point["budget"])
        assert not found.between
        assert found.gain == pytest.approx({end: point["difference"][end] for end in ("estimate", "low", "high")})
    own, near = judge_own(numbers), judge_budget(numbers, numbers["budget"]["average"])
    assert near.value is not None
    assert near.gain is not None
    assert own.value is not None
    assert own.gain is not None
    assert near.value["estimate"] == pytest.approx(own.value["estimate"])
    assert near.gain["estimate"] == pytest.approx(own.gain["estimate"])


def test_the_best_mix_uses_two_levels_at_most() -> None:
    levels = [{"spend": {"estimate": s}, "value": {"estimate": v}} for s, v in ((0, 1.0), (1, 1.2), (2, 4.0), (3, 2.0))]
    assert value_best_mix(levels, 1.0) == pytest.approx(2.5)  # half get the first, half the third
    assert value_best_mix(levels, 5.0) == 4.0
    assert value_best_mix([], 1.0) is None


def test_without_a_slider_the_page_says_why_and_what_to_do(binary: Numbers) -> None:
    binary["frontier"] |= {"stops": [], "excuse": "There are too many customers."}
    page = render_report(binary)
    assert "There are too many customers. To see another budget, run <code>largesse plan RUN --budget B</code>." in page


def test_what_was_not_judged_is_named_beside_the_slider(slid: Numbers) -> None:
    slid["warnings"] = [{"topic": "constraints", "answer": "careful", "text": "."}]
    assert "Value and gain are those of plans without your constraints." in render_report(slid)
