"""Views of the sections: each shows its numbers, says what they mean, and is left out without any."""

import json
import re
from typing import Any

import numpy as np
import pytest

from largesse.evaluation import ESTIMATORS
from largesse.report import render_report
from largesse.report.figure_rows import describe_cost, view_legend
from largesse.report.number_format import DASH, Units
from largesse.report.sections.budget_frontier import NOTHING_PAYS, describe_promises, view_frontier, view_slider
from largesse.report.sections.decision_explanations import _write_change, view_why
from largesse.report.sections.gain_bounds import view_safety
from largesse.report.sections.key_figures import view_answer, write_answer
from largesse.report.sections.level_responses import view_curve, view_groups
from largesse.report.sections.level_transitions import view_changes, view_fall, view_matrix, write_moved
from largesse.report.sections.log_checks import view_support
from largesse.report.sections.method import view_method
from largesse.report.sections.next_steps import view_next_steps, write_settled
from largesse.report.sections.profit_by_budget import view_profit
from largesse.report.sections.qini_curve import view_targeting
from largesse.report.sections.spend_by_level import view_money
from largesse.report.sentences import judge_profit, write_best, write_loss, write_profit, write_returned
from largesse.response import describe_model, list_models
from support.pages import Page, figures, visible

Numbers = dict[str, Any]
EURO = Units("binary", "€")
MOVES = [
    {"before": 0, "after": 1, "rows": 30, "share": 0.3, "value": 0.1, "spend": 2.0},
    {"before": 1, "after": 1, "rows": 50, "share": 0.5, "value": 0.0, "spend": 0.0},
    {"before": 2, "after": 1, "rows": 20, "share": 0.2, "value": -0.05, "spend": -1.0},
]


def test_a_rate_is_a_percentage_and_its_difference_percentage_points(binary: Numbers) -> None:
    binary["value"] = {"estimate": 0.7642, "low": 0.7361, "high": 0.7923}
    binary["versus"][0]["difference"] = {"estimate": 0.0092, "low": -0.0079, "high": 0.0263}
    page = visible(render_report(binary))
    assert "76.4\u202f%" in page
    assert "+0.9\u202fpp" in page
    assert "−0.8 to +2.6\u202fpp" in page


def test_an_amount_is_plain_and_money_carries_its_sign(amount: Numbers) -> None:
    amount |= {"unit": "€", "customers": 1_200_000, "budget": {"average": 1.7, "total": 2_040_000.0}}
    amount["spend"] = {"estimate": 1.69, "low": 1.67, "high": 1.71}
    page = visible(render_report(amount))
    assert "€1.69" in page
    assert "\u202fpp" not in page
    assert "€2.04\u202fmillion" in page


def test_urgent_warnings_come_first_and_say_so_in_words(ugly: Numbers) -> None:
    top, rest = visible(render_report(ugly)).split('id="budget_frontier"')
    assert top.count("Do not rely on this") == 2
    assert top.count("Careful:") == 3
    assert top.index("Do not rely on this") < top.index("Careful:")
    assert rest.count("Note:") == 2


def test_warnings_stand_above_the_cards_one_sentence_each_and_lose_nothing(binary: Numbers) -> None:
    binary["answer"]["warnings"] = [
        {"answer": "careful", "text": "Levels are not randomised (p < 0.002). Nothing else is corrected for."},
        {"answer": "no", "text": "The levels may be in the wrong order. Put the cheapest first."},
    ]
    page = render_report(binary)
    top = page.index('class="warnings"')
    assert page.index("<h1>") < top < page.index('class="cards"')
    assert page.index("wrong order.", top) < page.index("not randomised", top) < page.index('class="cards"')
    shown = visible(page)
    for rest in ("Put the cheapest first.", "Nothing else is corrected for."):
        assert shown.count(rest) == 1
        assert f"<summary>more</summary>{rest}" in page


def test_the_price_says_what_one_more_response_costs(binary: Numbers) -> None:
    units = Units("binary", "€")
    for price, rate, spent in ((0.05, "€20.00", ""), (0.0, "–", "yes"), (None, "–", "")):
        binary["planned"]["price"] = price
        shown = view_answer(binary, units)["price"]
        assert (shown["rate"], shown["spent"]) == (rate, spent)


def test_the_band_for_all_budgets_holds_the_interval(binary: Numbers) -> None:
    for point in binary["frontier"]["points"]:
        low, high = point["band"]
        assert low <= point["value"]["low"] <= point["value"]["high"] <= high


def test_the_figure_is_drawn_for_a_desk_and_for_a_phone_with_its_band(binary: Numbers) -> None:
    view = view_frontier(binary, EURO)
    assert view["banded"]
    for size in ("desk", "phone"):
        assert view[size].count("band outer") == 1
    assert len(view["table"]) == len(binary["frontier"]["points"])


def test_long_names_become_numbers_with_a_key(binary: Numbers, ugly: Numbers) -> None:
    assert view_frontier(ugly, EURO)["key"][3] == ("4", "n")
    ugly["uniform"] = [{**row, "name": f"level {k}"} for k, row in enumerate(ugly["uniform"][:3])]
    assert view_frontier(ugly, EURO)["key"] == []


def test_the_readout_says_what_the_plan_costs_and_brings(binary: Numbers) -> None:
    binary |= {"value": {"estimate": 0.31, "low": 0.29, "high": 0.33}, "spend": {"estimate": 1.0}}
    binary["budget"]["average"], binary["planned"]["price"] = 1.05, 0.02
    words = view_frontier(binary, EURO)["readout"]
    assert figures(words) == [1.05, 1.0, 31.0, 29.0, 33.0, 1.0, 0.02]


def test_the_promise_is_described_as_measured(binary: Numbers) -> None:
    points = binary["frontier"]["points"]
    for k, row in enumerate(points):
        row["promise"] = row["value"]["estimate"] + (0.01 if k < 3 else -0.01)
    points[-1]["promise"] = None
    assert figures(describe_promises(points)) == [3, len(points) - 1]
    assert describe_promises([]) == ""


def around(middle: float) -> Numbers:
    return {"estimate": middle, "low": middle - 0.05, "high": middle + 0.05, "se": None}


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
    binary["frontier"]["estimates"] = [
        {"value": around(e), "gain": around(0.02), "profit": None, "judged": e == 0.3}
        for e in (0.3, 0.35, 0.4, 0.5, 0.6)
    ]
    return binary


def test_the_slider_begins_at_the_plan_and_every_stop_has_its_words(slid: Numbers) -> None:
    view = view_slider(slid, EURO)
    stops = json.loads(view["stops"])
    assert (view["start"], view["last"]) == (3, 4)  # the plan's budget is 2.5
    assert figures(stops[3]["budget"]) == [2.4, 576]
    assert figures(stops[3]["spend"]) == [2.16]
    assert stops[1]["levels"] == ["88\u202f%", "6.2\u202f%", "6.2\u202f%"]


def test_the_page_carries_the_stops_and_loads_nothing(slid: Numbers) -> None:
    slid["levels"][0]["name"] = '"><script>alert(1)</script>'
    found = Page(render_report(slid))
    assert found.sound
    assert found.scripts == 1
    assert "budget" in found.ids


@pytest.mark.parametrize("count", [0, 1])
def test_without_stops_there_is_no_slider(slid: Numbers, count: int) -> None:
    for key in ("stops", "estimates"):
        slid["frontier"][key] = slid["frontier"][key][:count]
    assert 'class="whatif' not in render_report(slid)


def test_three_budgets_are_told_in_plain_words_with_honest_values(slid: Numbers) -> None:
    slid["value"] = {"estimate": 0.55, "low": 0.5, "high": 0.6}
    scenarios = view_slider(slid, EURO)["scenarios"]
    assert [figures(one["title"]) for one in scenarios] == [[2.5], [1.0], [4.0]]  # half: the stop nearest to 1.25
    assert [figures(one["text"]) for one in scenarios] == [[55.0, 50.0, 60.0], [40.0, 35.0, 45.0], [60.0, 55.0, 65.0]]
    slid["budget"]["average"] = None
    assert view_slider(slid, EURO)["scenarios"] == []


def test_where_a_response_has_a_value_the_third_budget_is_the_one_up_to_which_money_comes_back(
    slid: Numbers, amount: Numbers
) -> None:
    slid["profit"] = amount["profit"]
    for stop, found in zip(slid["frontier"]["stops"], slid["frontier"]["estimates"], strict=True):
        found["profit"] = around(1.0 - stop["budget"])
    slid["frontier"]["stops"][2]["pays"] = True
    this, half, pays = view_slider(slid, EURO)["scenarios"]
    assert figures(pays["title"]) == [1.0, 1.0]  # €1 more, at a budget of €1.00
    assert figures(pays["text"])[-3:] == [0.0, -0.05, 0.05]
    assert len(figures(this["text"])) == len(figures(half["text"])) == 6  # value and profit, each with its interval
    assert figures(json.loads(view_slider(slid, EURO)["stops"])[2]["left"]) == [0.0, -0.05, 0.05]
    slid["frontier"]["stops"][2]["pays"], slid["frontier"]["stops"][0]["pays"] = False, True
    assert view_slider(slid, EURO)["scenarios"][2]["text"].endswith(NOTHING_PAYS)


def test_the_plan_itself_begins_with_what_was_judged(slid: Numbers) -> None:
    for key, more in (("stops", {"budget": 2.5, "own": True}), ("estimates", {})):
        slid["frontier"][key].insert(4, {**slid["frontier"][key][3], **more})
    view = view_slider(slid, EURO)
    assert view["start"] == 4
    style = EURO.value_style(slid["value"])
    assert view["now"]["value"] == style.both(slid["value"])
    gain = slid["versus"][0]["difference"]
    assert view["now"]["gain"] == EURO.gain_style(gain).both(gain, signed=True)
    assert figures(view["now"]["say"])[0] == 2.5
    assert [stop["how"] for stop in json.loads(view["stops"])[:2]] == [
        "judged at this budget",
        "read between two judged budgets",
    ]


def test_without_a_slider_the_page_says_why_and_what_to_do(binary: Numbers) -> None:
    binary["frontier"] |= {"stops": [], "estimates": [], "excuse": "There are too many customers."}
    page = render_report(binary)
    assert "There are too many customers." in page
    assert "largesse plan RUN --budget" in page


def test_what_was_not_judged_is_named_beside_the_slider(slid: Numbers) -> None:
    slid["warnings"] = [{"topic": "constraints", "answer": "careful", "text": "."}]
    unlike = view_frontier(slid, EURO)["unlike"]
    assert "your constraints" in unlike
    assert unlike in render_report(slid)


def set_gain(numbers: Numbers, low: float, high: float, back: float | None = 0.19) -> Numbers:
    numbers["profit"]["gain"] = {"estimate": (low + high) / 2, "low": low, "high": high, "se": 0.1}
    numbers["profit"]["returned"] = {"estimate": back, "low": None, "high": None, "se": None}
    return numbers


def test_a_campaign_that_loses_money_says_so_first_and_how_much_comes_back(amount: Numbers) -> None:
    set_gain(amount, -0.9, -0.7)
    answer = write_answer(amount)
    assert figures(answer["headline"]) == [1, 0.19]
    own = [amount["profit"]["own"][end] for end in ("estimate", "low", "high")]
    assert figures(answer["verdict"])[:6] == pytest.approx([*own, -0.8, -0.9, -0.7], abs=0.01)
    assert amount["versus"][0]["name"] in answer["verdict"]


@pytest.mark.parametrize("back", [None, -0.2, 1.4])
def test_a_loss_without_a_share_that_comes_back_is_told_as_an_amount(amount: Numbers, back: float | None) -> None:
    headline = write_loss(Units.of(amount), set_gain(amount, -0.9, -0.7, back))
    assert figures(headline) == [0.8]


@pytest.mark.parametrize(
    ("low", "high", "judged", "shown"),
    [(0.1, 0.5, "pays", [0.3, 0.1, 0.5]), (-0.1, 0.5, "open", [0.2, -0.1, 0.5]), (0.0, 0.0, "equal", [])],
)
def test_what_is_left_follows_the_interval(
    amount: Numbers, low: float, high: float, judged: str, shown: list[float]
) -> None:
    set_gain(amount, low, high)
    units = Units.of(amount)
    assert judge_profit(amount) == judged
    assert write_loss(units, amount) == ""
    text = write_profit(units, amount)
    assert figures(text)[3:] == shown  # after what the plan leaves, with its interval
    assert text in write_answer(amount)["verdict"]


@pytest.mark.parametrize(
    ("best", "shown", "less"),
    [
        ((5.0, 2.0, 6.0, True), [5, 95, 2, 6], False),
        ((0.5, 0.2, 0.6, False), [0.5, 95, 0.2, 0.6], True),
        ((5.0, 5.0, 5.0, True), [5], False),
        ((0.0, 0.0, 0.0, False), [], True),
        ((5.0, 0.0, 20.0, True), [5, 0, 20], False),  # the log cannot tell: no confidence is claimed
    ],
)
def test_the_best_budget_comes_with_how_sure_it_is(
    amount: Numbers, best: tuple[float, float, float, bool], shown: list[float], less: bool
) -> None:
    amount["best_budget"] |= dict(zip(("budget", "low", "high", "may_be_this"), best, strict=True))
    text = write_best(Units.of(amount), amount)
    assert figures(text) == shown
    assert ("clearly less" in text) == less


def test_a_budget_between_those_that_may_be_best_is_told_as_such(amount: Numbers) -> None:
    """The budgets that may be best are a set, not always a range."""
    own = amount["spend"]["estimate"]
    amount["best_budget"] |= {"budget": own / 2, "low": own / 2, "high": own * 1.5, "may_be_this": False}
    assert "between them" in write_best(Units.of(amount), amount)


def test_what_comes_back_is_never_rounded_up_to_the_whole() -> None:
    euro = Units("binary", "€")
    assert [write_returned(euro, back) for back in (0.994, 0.998, 1.0, 1.2)] == ["€0.99", "€0.998", "€1.00", "€1.20"]


def test_the_card_the_curve_and_the_table_show_the_same_profit(amount: Numbers) -> None:
    units = Units.of(amount)
    view, left = view_profit(amount, units), view_answer(amount, units)["left"]
    assert view is not None
    assert left["big"] == view["rows"][0]["profit"]
    names = [row["name"] for row in view["rows"]]
    assert names[:1] == ["this plan"]
    assert [name for name in names if name.startswith("everyone gets")] == [
        "everyone gets none",
        "everyone gets small",
        "everyone gets big",
    ]
    assert view["desk"].count("<title>") >= len(amount["frontier"]["points"])
    page = Page(render_report(amount))
    assert page.sound
    assert "profit_by_budget" in page.ids


def test_comparisons_at_the_top_are_of_profits(amount: Numbers) -> None:
    units = Units.of(amount)
    rows = view_answer(amount, units)["gains"].rows
    assert [row.label for row in rows] == [*(row["name"] for row in amount["versus"]), "everyone gets none"]
    for row, reference in zip(rows, amount["versus"], strict=False):
        assert row.number == units.profit.gain_style(reference["profit_difference"]).text(
            reference["profit_difference"]["estimate"], signed=True
        )


def test_a_yes_with_a_value_has_profits_in_the_unit_of_costs(amount: Numbers) -> None:
    amount["response"]["kind"], amount["response_unit"] = "binary", ""
    amount["profit"]["response_value"] = 12
    view = view_profit(amount, Units.of(amount))
    assert view is not None
    assert view["worth"] == "the response (each yes is worth 12.00\u202fUSD)"
    assert view["rows"][0]["profit"].endswith("USD")
    assert view["rows"][0]["value"].endswith("%")


def test_no_line_ends_between_a_sign_and_its_currency(amount: Numbers) -> None:
    amount |= {"unit": "$", "response_unit": "$"}
    page = render_report(amount)
    shown = page.split("<script>")[0].split("</style>")[-1]
    assert "+\u2060$" in shown
    assert "+$" not in shown


@pytest.mark.parametrize("unit", ["<img src=x onerror=alert(1)>", '"><script>alert(1)</script>', "'", "&"])
def test_hostile_units_are_shown_as_text(amount: Numbers, unit: str) -> None:
    amount |= {"unit": unit, "response_unit": unit}
    amount["answer"] = write_answer(amount)
    page = Page(render_report(amount))
    assert page.sound
    assert page.scripts == 1


@pytest.mark.parametrize(
    ("gain", "may", "step"), [(-0.5, True, "Spend less."), (0.5, False, "Think about another"), (0.5, True, "")]
)
def test_what_to_do_next_is_about_the_budget_where_another_leaves_clearly_more(
    amount: Numbers, gain: float, may: bool, step: str
) -> None:
    set_gain(amount, gain - 0.1, gain + 0.1)
    amount["best_budget"]["may_be_this"] = may
    amount["answer"] = write_answer(amount)
    page = render_report(amount)
    for words in ("Spend less.", "Think about another"):
        assert (words in page) == (words == step)


@pytest.mark.parametrize(
    ("ends", "word"),
    [
        ((0.01, 0.03), " gains +2.0\u202fpp (+1.0 to +3.0"),
        ((-0.03, -0.01), " loses: −2.0\u202fpp (−3.0 to −1.0"),
        ((-0.01, 0.01), " not show "),
        ((None, None), " not show "),
    ],
)
def test_the_area_follows_its_interval(binary: Numbers, ends: tuple[Any, Any], word: str) -> None:
    middle = None if ends[0] is None else sum(ends) / 2
    binary["targeting"]["area"] = {"estimate": middle, "low": ends[0], "high": ends[1]}
    view = view_targeting(binary, Units("binary", "€"))
    assert view is not None
    assert word in view["area"]


def test_the_cost_curve_starts_at_no_gain_and_every_level_is_compared(binary: Numbers) -> None:
    assert binary["targeting"]["points"][0]["gain"]["estimate"] == 0
    view = view_targeting(binary, Units("binary", "€"))
    assert view is not None
    assert [row.label for row in view["gains"].rows] == ["none", "small", "big"]


def test_the_plan_stands_beside_a_simple_rule_and_everyone_the_same(binary: Numbers) -> None:
    rows = view_safety(binary, EURO)["rows"]
    assert [row["name"] for row in rows] == ["this plan", "a simple rule", "a random mix"]
    assert rows[-1]["gain"] == rows[-1]["least"] == DASH
    assert "(" in rows[0]["gain"]


def test_bound_verdict_and_table_agree(binary: Numbers) -> None:
    plan = binary["safety"]["options"][0]
    assert plan["gain"] == binary["versus"][0]["difference"]
    assert (plan["at_least"] > 0) == (plan["gain"]["low"] > 0)


@pytest.mark.parametrize(
    ("guaranteed", "excuse", "shown"),
    [(0.5, "", [50.0, 50.0, 95, 0, 1]), (None, "There is no guaranteed value: why.", [])],
)
def test_the_guarantee_is_said_or_why_there_is_none(
    binary: Numbers, guaranteed: Any, excuse: str, shown: list[float]
) -> None:
    binary["safety"]["excuse"] = excuse
    for row in binary["safety"]["options"]:
        row["guaranteed"] = guaranteed
    text = view_safety(binary, EURO)["guarantee"]
    assert excuse in text
    assert figures(text) == shown


def test_raw_means_are_those_of_the_log(binary_run: Any) -> None:
    log = binary_run.log
    raw = [row["raw"]["estimate"] for row in binary_run.numbers["curve"]["levels"]]
    np.testing.assert_allclose(raw, [log.response[log.level == k].mean() for k in range(3)])


def test_each_level_shows_its_cost_and_all_three_means(binary: Numbers) -> None:
    rows = view_curve(binary, Units("binary", "€"))["figure"].rows
    assert [row.detail for row in rows] == ["costs €0.00", "costs €5.00", "costs €10.00"]
    for row in rows:
        assert row.figure.count('class="marker') == 2
        assert row.figure.count('class="dot honest"') == 1
        assert "interval" in row.figure


def test_intervals_of_levels_that_few_rows_had_are_dashed_and_the_legend_says_so(binary: dict[str, Any]) -> None:
    assert 'class="whisker honest few"' not in render_report(binary)
    binary["support"]["overlap"][1] |= {"rows": 200, "effective": 12.0}
    page = render_report(binary)
    assert 'class="whisker honest few"' in page
    assert "fewer than 30 rows" in page


def test_curves_of_groups_are_dashed_where_few_rows_had_the_level(binary: dict[str, Any]) -> None:
    (feature, *_) = binary["curve"]["features"]
    for group in feature["groups"]:
        for k, point in enumerate(group["levels"]):
            point |= {"effective": 40.0, "rows": 7 if k == 2 else 90}
    view = view_groups(feature, ["none", "small", "big"], EURO)
    assert view["few"]
    for shown in view["groups"]:
        assert shown["figure"].count('class="curve few"') == 1
        assert shown["figure"].count('class="curve"') == 1
        assert shown["figure"].count('class="dot honest"') == 2
        assert shown["cells"][2].startswith("model ")
        assert shown["cells"][2].endswith(", 7 rows")


@pytest.mark.parametrize(
    ("dearer", "cheaper", "shown"),
    [("big {}", None, [20]), (None, "none", [50]), ("big", "none", [20, 50]), (None, None, [])],
)
def test_words_say_what_would_change_the_level(dearer: str | None, cheaper: str | None, shown: list[float]) -> None:
    row = {"price": 1.0, "dearer": dearer, "below": 0.8, "cheaper": cheaper, "above": 1.5}
    text = _write_change(row)
    assert figures(text) == shown
    assert all(name in text for name in (dearer, cheaper) if name)


def test_the_section_is_left_out_where_a_run_folder_does_not_know(binary: Numbers) -> None:
    view = view_why(binary, Units("binary", "€"))
    assert view is not None
    assert view["labels"] == ["none", "small", "big"]
    assert all(len(row["curve"]) == 3 for row in view["rows"])
    assert len(view["moves"]) == 4
    many = {**binary, "levels": [{"name": str(k)} for k in range(9)]}
    wide = view_why(many, Units("binary", "€"))
    assert wide is not None
    assert wide["labels"] == wide["rows"][0]["curve"] == []
    binary["why"]["examples"] = []
    assert view_why(binary, Units("binary", "€")) is None


def test_features_that_move_decisions_are_shown_with_what_is_lost_without_them(binary: Numbers) -> None:
    binary["why"]["movers"] = [
        {"feature": "age", "moved": 0.4, "loss": {"estimate": 0.03, "low": 0.01, "high": 0.05}},
        *({"feature": f"f{k}", "moved": 0.1, "loss": {"estimate": 0.0, "low": -0.01, "high": 0.01}} for k in range(9)),
    ]
    view = view_why(binary, Units("binary", "€"))
    assert view is not None
    first, second, *_ = view["movers"].rows
    assert (first.label, first.number, first.sub) == ("age", "40\u202f%", "loses 3.0\u202fpp")
    assert first.mark == "1.0 to 5.0\u202fpp: looking at it pays"
    assert second.mark.endswith("could be nothing")
    assert len(view["movers"].rows) == 8
    assert figures(view["rest"]) == [2]


def test_large_sums_are_written_each_in_their_own_style(binary: dict[str, Any]) -> None:
    for row, spend in zip(binary["money"]["levels"], (0.0, 1_470_000.0, 560_000.0), strict=True):
        row["spend"] = spend
    table = view_money(binary, Units("binary", "€"))["table"]
    assert [row["spend"] for row in table] == ["€0", "€1.47\u202fmillion", "€560,000"]


def test_what_was_done_before_stands_above_what_the_plan_does(binary: dict[str, Any]) -> None:
    for row, rows in zip(binary["support"]["overlap"], (60, 30, 10), strict=True):
        row["rows"] = rows
    labels = [row.label for row in view_money(binary, Units("binary", "€"))["figure"].rows]
    assert labels == ["Before", "Customers", "Spend"]
    assert (
        "none 60\u202f%, small 30\u202f%, big 10\u202f%"
        in view_money(binary, Units("binary", "€"))["figure"].rows[0].figure
    )
    binary["support"]["overlap"] = []
    assert [row.label for row in view_money(binary, Units("binary", "€"))["figure"].rows] == ["Customers", "Spend"]


def test_the_waterfall_goes_from_what_was_done_to_the_plan(binary: Numbers) -> None:
    found = binary["changes"]
    total = found["before"]["value"]["estimate"] + sum(row["value"]["estimate"] for row in found["levels"])
    assert total == pytest.approx(binary["value"]["estimate"])
    rows = view_fall(found, "value", ["none", "small", "big"], (EURO.value_style, EURO.gain_style), EURO.response).rows
    assert [rows[0].label, rows[-1].label] == ["What was done", "This plan"]
    assert len(rows) == 2 + len(found["levels"])
    assert all(row.number[0] in "+−" for row in rows[1:-1])
    assert rows[-1].number == EURO.value_style(binary["value"]).text(binary["value"]["estimate"])


def test_moves_are_told_by_level_and_only_levels_that_anyone_gets_have_a_column(binary: Numbers) -> None:
    matrix = view_matrix(MOVES, ["none", "small", "big"])
    assert matrix["names"] == ["small"]
    assert [row["name"] for row in matrix["rows"]] == ["none", "small", "big"]
    assert [row["cells"][0]["text"] for row in matrix["rows"]] == ["30\u202f%", "50\u202f%", "20\u202f%"]
    assert [row["cells"][0]["same"] for row in matrix["rows"]] == [False, True, False]
    assert figures(write_moved(MOVES))[0] == 50
    binary["changes"]["moves"] = MOVES
    view = view_changes(binary, EURO)
    assert view is not None
    assert [row["name"] for row in view["moves"]] == ["none → small", "big → small"]
    assert [row["each"] for row in view["moves"]] == ["€20.00", "–"]
    assert [row["spend"] for row in view["moves"]] == ["+€2.00", "−€1.00"]


def test_without_moves_there_is_no_such_section(binary: Numbers) -> None:
    binary["changes"]["moves"] = []
    assert 'id="level_transitions"' not in render_report(binary)


@pytest.mark.parametrize(
    ("needed", "estimate", "shown"),
    [
        ({"times": 7.84, "rows": 7840.0}, 0.02, [2.0, 7800, 7.8]),
        ({"times": 7.84, "rows": 7840.0}, -0.02, [2.0, 7800, 7.8]),
        ({"times": 1e6, "rows": None}, 0.02, [2.0]),
        (None, 0.02, []),
    ],
)
def test_the_needed_rows_are_told_in_round_numbers(needed: Any, estimate: float, shown: list[float]) -> None:
    gain = {"estimate": estimate, "low": estimate - 0.04, "high": estimate + 0.04, "se": 0.02}
    assert figures(write_settled(needed, gain, EURO)) == shown


@pytest.mark.parametrize(
    ("ends", "judged", "settled"),
    [((0.01, 0.03), "pays", False), ((-0.03, -0.01), "loses", False), ((-0.01, 0.05), "open", True)],
)
def test_more_rows_are_asked_for_only_where_the_log_leaves_it_open(
    binary: Numbers, ends: tuple[float, float], judged: str, settled: bool
) -> None:
    low, high = ends
    binary["versus"][0]["difference"] = {
        "estimate": (low + high) / 2,
        "low": low,
        "high": high,
        "se": (high - low) / 3.92,
    }
    found = view_next_steps(binary, EURO)
    assert found is not None
    assert found["judged"] == judged
    assert bool(found["settled"]) == settled


def test_every_check_has_an_answer_and_stands_on_the_page(binary: Numbers) -> None:
    page = visible(render_report(binary))
    checks = binary["support"]["checks"]
    assert checks
    for check in checks:
        assert check["answer"] in ("fine", "note", "careful", "no")
        assert check["topic"] in page


def test_a_difference_above_a_tenth_is_marked(binary: Numbers) -> None:
    row = binary["support"]["balance"][0]
    row |= {"before": 0.3, "after": 0.2, "levels_before": [0.3, 0.0, -0.3], "levels_after": [0.05, 0.0, -0.2]}
    view = view_support(binary, EURO)
    assert view["balance"].rows[0].mark == "above 0.1"
    assert [cell["off"] for cell in view["by_level"][0]["cells"]] == [False, False, True]
    row["after"] = 0.05
    assert view_support(binary, EURO)["balance"].rows[0].mark == ""


def test_propensities_of_every_level_are_drawn_and_counted(binary: Numbers) -> None:
    rows = view_support(binary, EURO)["propensities"].rows
    assert [row.label for row in rows] == ["none", "small", "big"]
    for row, seen in zip(rows, binary["support"]["overlap"], strict=True):
        assert row.number == f"{seen['rows']} rows"


def test_without_overlap_there_is_nothing_to_show(empty: Numbers) -> None:
    empty["support"]["overlap"] = []
    view = view_support(empty, EURO)
    assert not view["propensities"].rows
    assert not view["balance"].rows
    page = render_report(empty)
    assert "There is nothing to show." in page[page.index('id="log_checks"') : page.index('id="method"')]


def test_every_estimator_is_shown_with_its_words_and_the_one_used_is_marked(binary: Numbers) -> None:
    rows = view_method(binary, EURO)["estimates"]
    assert [row["name"] for row in rows] == list(ESTIMATORS)
    assert [row["name"] for row in rows if "(used above)" in row["words"]] == ["dr"]


def test_the_estimate_used_is_the_value_of_the_plan(binary: Numbers) -> None:
    used = next(row for row in binary["method"]["estimates"] if row["name"] == "dr")
    assert (used["estimate"], used["se"]) == pytest.approx((binary["value"]["estimate"], binary["value"]["se"]))


def test_candidates_stand_together_with_losses_written_alike(binary: Numbers) -> None:
    groups = view_method(binary, EURO)["groups"]
    assert [group["title"] for group in groups] == ["Which model?", "Choice of the strength"]
    first = groups[0]["rows"]
    assert [(row["loss"], row["difference"], row["chosen"]) for row in first] == [
        ("0.190", "0.000", True),
        ("0.192", "+0.002", False),
    ]
    assert "whisker" not in first[0]["strip"]  # the best is no worse than itself
    assert "whisker" in first[1]["strip"]


def test_every_model_is_described_in_plain_words_and_every_choice_asks_a_question(binary: Numbers) -> None:
    for entry in list_models().values():
        way = describe_model(entry.kind.__name__)
        assert way.endswith(".")
        assert not re.search(r"stack|bend|shrink|penalt|kernel|HSIC|increment", way)
    binary["method"]["tried"] = [{**row, "of": "increments of the stack"} for row in binary["method"]["tried"]]
    assert [group["title"] for group in view_method(binary, EURO)["groups"]] == [
        "Does a level add the same for everybody?"
    ]


def test_the_price_of_the_last_step_is_told_where_money_still_buys(binary: Numbers) -> None:
    assert view_method(binary, EURO)["price"].endswith("responses")
    binary["planned"] |= {"price": 0.0}
    assert view_method(binary, EURO)["price"] == ""


def test_percentage_points_are_explained_only_where_they_are_used(
    binary: dict[str, Any], amount: dict[str, Any]
) -> None:
    assert "Percentage point (pp)" in render_report(binary)
    assert "Percentage point (pp)" not in render_report(amount)


def test_a_level_that_is_called_by_its_cost_does_not_say_it_twice(binary: Numbers) -> None:
    euro = Units("binary", "€")
    assert [describe_cost(binary, euro, k) for k in range(3)] == ["costs €0.00", "costs €5.00", "costs €10.00"]
    binary["levels"][1]["name"] = "€5"
    assert [level["cost"] for level in view_legend(binary, euro)] == ["costs €0.00", "", "costs €10.00"]
    binary["levels"][1]["name"] = "5 USD"
    assert describe_cost(binary, Units("binary", "USD"), 1) == ""
    binary["levels"][1]["cost"] = None
    assert describe_cost(binary, euro, 1) == ""
