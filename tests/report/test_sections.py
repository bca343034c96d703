"""Views of the sections: each shows its numbers, explains them, and is left out without any."""

import json
import re
from html import unescape
from typing import Any

import numpy as np
import pytest

from largesse.evaluation import ESTIMATORS
from largesse.evaluation.log_checks import check_log
from largesse.io import to_json
from largesse.report import make_log_checkup_numbers, render_report
from largesse.report.comparison_rows import describe_level_cost, view_level_legend
from largesse.report.number_format import MISSING_DASH, Units
from largesse.report.page_rendering import write_verdict_and_warnings
from largesse.report.sections.budget_frontier import (
    NOTHING_PAYS,
    describe_overpredicted_budgets,
    view_budget_slider,
    view_frontier,
)
from largesse.report.sections.decision_explanations import view_explanations, write_level_changing_prices
from largesse.report.sections.gain_bounds import view_gain_bounds, view_gain_evidence
from largesse.report.sections.level_changes import (
    view_level_changes,
    view_transition_matrix,
    view_waterfall,
    write_moved_share,
)
from largesse.report.sections.level_responses import view_group_curves, view_level_responses
from largesse.report.sections.method_details import view_method_details
from largesse.report.sections.next_steps import view_exploration_step, write_needed_rows
from largesse.report.sections.overlap_balance import view_overlap_and_balance
from largesse.report.sections.profit_by_budget import view_profit_by_budget
from largesse.report.sections.protected_groups import view_protected_groups
from largesse.report.sections.qini_curve import view_qini_curve
from largesse.report.sections.segments import view_segments
from largesse.report.sections.summary import CANNOT_SAY, SummaryCard, view_summary
from largesse.report.sentences import (
    classify_profit,
    write_best_budget,
    write_loss_headline,
    write_profit,
    write_return_per_unit,
)
from largesse.response import describe_model, list_models
from support.pages import Page, figures, visible

Numbers = dict[str, Any]
EURO, NAMES = Units("binary", "€"), ["none", "small", "big"]
MOVES = [
    {"before": 0, "after": 1, "rows": 30, "share": 0.3, "value": 0.1, "spend": 2.0},
    {"before": 1, "after": 1, "rows": 50, "share": 0.5, "value": 0.0, "spend": 0.0},
    {"before": 2, "after": 1, "rows": 20, "share": 0.2, "value": -0.05, "spend": -1.0},
]


def estimate(low: float, high: float) -> Numbers:
    return {"estimate": (low + high) / 2, "low": low, "high": high, "se": (high - low) / 3.92}


# -- key figures -------------------------------------------------------------------------------------------------------


def test_rates_are_percentages_and_amounts_carry_their_unit(binary: Numbers, amount: Numbers) -> None:
    binary["value"] = {"estimate": 0.7642, "low": 0.7361, "high": 0.7923}
    binary["versus"][1]["difference"] = {"estimate": 0.0092, "low": -0.0079, "high": 0.0263}
    page = render_report(binary)
    shown = ("76.4\u202f%", "+0.9\u202fpp", "−0.8 to +2.6\u202fpp", "Percentage point (pp)")
    assert [words for words in shown if words not in page] == []
    amount |= {"unit": "€", "customers": 1_200_000, "budget": {"average": 1.7, "total": 2_040_000.0}}
    amount["spend"] = {"estimate": 1.69, "low": 1.67, "high": 1.71}
    page = visible(render_report(amount))
    assert "€1.69" in page
    assert "€2.04\u202fmillion" in page
    assert not re.search(r"\bpp\b", page)


def test_urgent_warnings_come_first_and_lose_nothing(ugly: Numbers, binary: Numbers) -> None:
    top, rest = visible(render_report(ugly)).split('id="budget_frontier"')
    assert (top.count("Do not rely on this"), rest.count("Note:")) == (2, 2)
    binary["answer"]["warnings"] = [
        {"answer": "careful", "text": "Levels are not randomised (p < 0.002). Nothing else is corrected for."},
        {"answer": "no", "text": "The levels may be in the wrong order. Put the cheapest first."},
    ]
    page = render_report(binary)
    top = page[page.index("<h1>") : page.index('id="segments"')]
    assert top.index("wrong order.") < top.index("not randomised")
    for rest in ("Put the cheapest first.", "Nothing else is corrected for."):
        assert page.count(rest) == top.count(f"<summary>more</summary>{rest}") == 1


def find_cards(numbers: Numbers) -> list[SummaryCard]:
    cards: list[SummaryCard] = view_summary(numbers, Units.from_numbers(numbers))["cards"]
    return cards


def test_the_extra_responses_and_their_cost_are_those_against_the_cheapest_level(binary: Numbers) -> None:
    cheapest, n = binary["uniform"][0], binary["customers"]
    extra, cost, spend = find_cards(binary)
    assert figures(extra.number) == [round(cheapest["difference"]["estimate"] * n)]
    assert figures(extra.interval)[1:] == [round(cheapest["difference"][end] * n) for end in ("low", "high")]
    ratio = cheapest["spend_difference"]["estimate"] / cheapest["difference"]["estimate"]
    assert cheapest["cost_per_extra"]["estimate"] == pytest.approx(ratio)
    assert figures(cost.number) == pytest.approx([ratio], abs=0.5)
    assert figures(cost.interval)[1:] == pytest.approx(
        [cheapest["cost_per_extra"][end] for end in ("low", "high")], abs=0.5
    )
    assert figures(spend.number) == [round(binary["spend"]["estimate"] * n)]


@pytest.mark.parametrize(
    ("difference", "cost", "number", "shown"),
    [
        ((-0.01, 0.05), {"estimate": 80.0, "low": 30.0, "high": None}, CANNOT_SAY, [30.0]),  # it may bring nothing
        ((-0.05, 0.01), None, CANNOT_SAY, []),
        ((0.01, 0.05), None, "€0.00", []),  # it costs no more
        ((0.01, 0.05), {"estimate": 80.0, "low": None, "high": None}, "€80.00", []),  # too few clusters
        ((0.01, 0.05), {"estimate": 15_618.0, "low": 9_000.0, "high": 31_000.0}, "€15,618", [95, 9000, 31000]),
    ],
)
def test_the_cost_of_an_extra_response_says_when_it_cannot_be_known(
    binary: Numbers, difference: tuple[float, float], cost: Numbers | None, number: str, shown: list[float]
) -> None:
    binary["uniform"][0] |= {"difference": estimate(*difference), "cost_per_extra": cost}
    card = find_cards(binary)[1]
    assert card.number == number
    assert figures(card.interval) == shown


def test_money_that_responses_bring_is_set_against_its_cost(amount: Numbers) -> None:
    amount["unit"] = amount["response_unit"]
    amount["profit"]["returned"] = {"estimate": 1.5, "low": 1.2, "high": 1.9}
    extra, returned, _, profit = find_cards(amount)
    assert figures(returned.number) == [1.5]
    assert figures(returned.interval)[1:] == [1.2, 1.9]
    assert "USD" in extra.number
    assert figures(profit.number) == pytest.approx([amount["profit"]["own"]["estimate"] * amount["customers"]], abs=1)


@pytest.mark.parametrize(("price", "rate"), [(0.05, "€20.00"), (0.000064, "€15,600"), (0.0, "nothing"), (None, "–")])
def test_the_price_is_the_cost_of_one_more_response(binary: Numbers, price: float | None, rate: str) -> None:
    binary["planned"]["price"] = price
    assert EURO.write_price_number(price).startswith(rate)
    assert (rate in view_method_details(binary, EURO)["price"]) == bool(price)


def test_before_and_after_have_shares_and_differences(binary: Numbers) -> None:
    for row, rows in zip(binary["support"]["overlap"], (60, 30, 10), strict=True):
        row["rows"] = rows
    view = view_summary(binary, EURO)
    assert [row.label for row in view["bars"].rows] == ["Before", "This plan"]
    assert "none 60\u202f%, small 30\u202f%, big 10\u202f%" in view["bars"].rows[0].figure
    before = binary["versus"][1]
    assert [row["change"] for row in view["before"]] == [
        EURO.write_gain(before["difference"]),
        EURO.spend_style(before["spend"], binary["spend"]["estimate"]).with_interval(
            before["spend_difference"], signed=True
        ),
    ]
    binary["support"]["overlap"] = []
    assert [row.label for row in view_summary(binary, EURO)["bars"].rows] == ["This plan"]


def test_no_rate_lies_below_zero_or_above_one(binary: Numbers) -> None:
    wide = {"estimate": 0.02, "low": -0.2, "high": 1.3, "se": 0.3}
    binary["value"] = binary["uniform"][1]["value"] = wide
    assert EURO.value_style(wide).with_interval(wide) == "2\u202f% (0 to 100\u202f%)"
    for point in binary["curve"]["features"][0]["groups"][0]["levels"]:
        point |= {"value": wide, "rows": 100, "effective": 100.0}
    page = visible(render_report(binary))
    ticks = [figures(text) for text in re.findall(r"<text[^>]*>(−[^<]*%)</text>", page)]
    assert ticks == []


def test_a_level_named_by_its_cost_does_not_repeat_it(binary: Numbers) -> None:
    assert [describe_level_cost(binary, EURO, k) for k in range(3)] == ["costs €0.00", "costs €5.00", "costs €10.00"]
    binary["levels"][1]["name"] = "€5"
    assert [level["cost"] for level in view_level_legend(binary, EURO)] == ["costs €0.00", "", "costs €10.00"]
    binary["levels"][1]["name"] = "5 USD"
    assert describe_level_cost(binary, Units("binary", "USD"), 1) == ""
    binary["levels"][1]["cost"] = None
    assert describe_level_cost(binary, EURO, 1) == ""


# -- frontier and slider -----------------------------------------------------------------------------------------------


def test_the_frontier_has_its_band_its_table_and_a_key_of_long_names(binary_run: Any, ugly: Numbers) -> None:
    binary = binary_run.numbers
    for point in binary["frontier"]["points"]:
        low, high = point["band"]
        assert low <= point["value"]["low"] <= point["value"]["high"] <= high
    view = view_frontier(binary, EURO)
    assert view["banded"]
    assert [view[size].count("band outer") for size in ("desk", "phone")] == [1, 1]
    assert len(view["table"]) == len(binary["frontier"]["points"])
    assert view_frontier(ugly, EURO)["key"][3] == ("4", "n")
    ugly["uniform"] = [{**row, "name": f"level {k}"} for k, row in enumerate(ugly["uniform"][:3])]
    assert view_frontier(ugly, EURO)["key"] == []


def test_the_readout_has_cost_value_and_price_and_promises_are_counted(binary: Numbers) -> None:
    binary |= {"value": {"estimate": 0.31, "low": 0.29, "high": 0.33}, "spend": {"estimate": 1.0}}
    binary["budget"]["average"], binary["planned"]["price"] = 1.05, 0.02
    assert figures(view_frontier(binary, EURO)["readout"]) == [1.05, 1.0, 31.0, 29.0, 33.0, 50.0]
    points = binary["frontier"]["points"]
    for k, row in enumerate(points):
        row["promise"] = row["value"]["estimate"] + (0.01 if k < 3 else -0.01)
    points[-1]["promise"] = None
    assert figures(describe_overpredicted_budgets(points)) == [3, len(points) - 1]
    assert describe_overpredicted_budgets([]) == ""


def around(middle: float) -> Numbers:
    return estimate(middle - 0.05, middle + 0.05)


@pytest.fixture
def slid(binary: Numbers) -> Numbers:
    """Numbers with five stops of the slider."""
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


def test_the_slider_begins_at_the_plan_and_the_page_carries_every_stop(slid: Numbers) -> None:
    view = view_budget_slider(slid, EURO)
    stops = json.loads(view["stops"])
    assert (view["start"], view["last"]) == (3, 4)  # the plan's budget is 2.5
    assert figures(stops[3]["budget"]) == [2.4, 576]
    assert figures(stops[3]["spend"]) == [2.16]
    assert stops[1]["levels"] == ["88\u202f%", "6.2\u202f%", "6.2\u202f%"]
    assert stops[0]["how"] != stops[1]["how"]  # judged, or interpolated
    slid["levels"][0]["name"] = '"><script>alert(1)</script>'
    slid["warnings"] = [{"topic": "constraints", "answer": "careful", "text": "."}]
    page = render_report(slid)
    assert Page(page).sound
    assert Page(page).scripts == 1
    assert "budget" in Page(page).ids
    unjudged = view_frontier(slid, EURO)["unjudged"]
    assert "your constraints" in unjudged
    assert unjudged in page


@pytest.mark.parametrize("count", [0, 1])
def test_without_stops_the_page_has_no_slider_but_the_reason_and_the_command(slid: Numbers, count: int) -> None:
    for key in ("stops", "estimates"):
        slid["frontier"][key] = slid["frontier"][key][:count]
    slid["frontier"]["excuse"] = "There are too many customers."
    page = render_report(slid)
    assert 'class="whatif' not in page
    assert "There are too many customers." in page
    assert "largesse plan RUN --budget" in page


def test_the_stop_of_the_plan_has_the_numbers_of_the_evaluation(slid: Numbers) -> None:
    for key, more in (("stops", {"budget": 2.5, "own": True}), ("estimates", {})):
        slid["frontier"][key].insert(4, {**slid["frontier"][key][3], **more})
    view, gain = view_budget_slider(slid, EURO), slid["versus"][0]["difference"]
    assert view["start"] == 4
    assert view["now"]["value"] == EURO.value_style(slid["value"]).with_interval(slid["value"])
    assert view["now"]["gain"] == EURO.write_gain(gain)
    assert figures(view["now"]["say"])[0] == 2.5


def test_three_budgets_have_honest_values(slid: Numbers) -> None:
    slid["value"] = {"estimate": 0.55, "low": 0.5, "high": 0.6}
    scenarios = view_budget_slider(slid, EURO)["scenarios"]
    assert [figures(row["title"]) for row in scenarios] == [[2.5], [1.0], [4.0]]  # half: the stop nearest to 1.25
    assert [figures(row["text"]) for row in scenarios] == [[55.0, 50.0, 60.0], [40.0, 35.0, 45.0], [60.0, 55.0, 65.0]]
    slid["budget"]["average"] = None
    assert view_budget_slider(slid, EURO)["scenarios"] == []


def test_with_a_value_of_responses_the_third_budget_is_the_largest_that_pays(slid: Numbers, amount: Numbers) -> None:
    slid["profit"], stops = amount["profit"], slid["frontier"]["stops"]
    for stop, found in zip(stops, slid["frontier"]["estimates"], strict=True):
        found["profit"] = around(1.0 - stop["budget"])
    stops[2]["pays"] = True
    view = view_budget_slider(slid, EURO)
    this, half, pays = view["scenarios"]
    assert figures(pays["title"]) == [1.0, 1.0]  # €1 more, at a budget of €1.00
    assert figures(pays["text"])[-3:] == [0.0, -0.05, 0.05]
    assert len(figures(this["text"])) == len(figures(half["text"])) == 6  # value and profit, each with its interval
    assert figures(json.loads(view["stops"])[2]["left"]) == [0.0, -0.05, 0.05]
    stops[2]["pays"], stops[0]["pays"] = False, True
    assert view_budget_slider(slid, EURO)["scenarios"][2]["text"].endswith(NOTHING_PAYS)


# -- profit ------------------------------------------------------------------------------------------------------------


def set_gain(numbers: Numbers, low: float, high: float, returned: float | None = 0.19) -> Numbers:
    numbers["profit"]["gain"] = estimate(low, high)
    numbers["profit"]["returned"] = {"estimate": returned, "low": None, "high": None, "se": None}
    return numbers


def test_a_campaign_that_loses_money_says_so_first_with_its_return(amount: Numbers) -> None:
    answer = write_verdict_and_warnings(set_gain(amount, -0.9, -0.7))
    assert figures(answer["headline"]) == [1, 0.19]
    own = [amount["profit"]["own"][end] for end in ("estimate", "low", "high")]
    assert figures(answer["verdict"])[:6] == pytest.approx([*own, -0.8, -0.9, -0.7], abs=0.01)
    assert amount["versus"][0]["name"] in answer["verdict"]
    for returned in (None, -0.2, 1.4):  # no share comes back: the loss is an amount
        assert figures(write_loss_headline(Units.from_numbers(amount), set_gain(amount, -0.9, -0.7, returned))) == [0.8]


@pytest.mark.parametrize(
    ("low", "high", "judged", "shown"),
    [(0.1, 0.5, "pays", [0.3, 0.1, 0.5]), (-0.1, 0.5, "open", [0.2, -0.1, 0.5]), (0.0, 0.0, "equal", [])],
)
def test_the_profit_follows_its_interval(
    amount: Numbers, low: float, high: float, judged: str, shown: list[float]
) -> None:
    units = Units.from_numbers(set_gain(amount, low, high))
    assert classify_profit(amount) == judged
    assert write_loss_headline(units, amount) == ""
    text = write_profit(units, amount)
    assert figures(text)[3:] == shown  # after the plan's profit with its interval
    assert text in write_verdict_and_warnings(amount)["verdict"]


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
def test_the_best_budget_comes_with_its_confidence_set(
    amount: Numbers, best: tuple[float, float, float, bool], shown: list[float], less: bool
) -> None:
    amount["best_budget"] |= dict(zip(("budget", "low", "high", "may_be_this"), best, strict=True))
    text = write_best_budget(Units.from_numbers(amount), amount)
    assert figures(text) == shown
    assert ("clearly less" in text) == less


def test_a_worse_budget_inside_the_confidence_set_is_marked(amount: Numbers) -> None:
    own = amount["spend"]["estimate"]  # the set may have gaps
    amount["best_budget"] |= {"budget": own / 2, "low": own / 2, "high": own * 1.5, "may_be_this": False}
    assert "between them" in write_best_budget(Units.from_numbers(amount), amount)


def test_a_loss_is_never_rounded_up_to_the_whole() -> None:
    texts = [write_return_per_unit(EURO, returned) for returned in (0.994, 0.998, 1.0, 1.2)]
    assert texts == ["€0.99", "€0.998", "€1.00", "€1.20"]


def test_the_table_of_profits_has_the_plan_and_every_alternative(amount: Numbers) -> None:
    view = view_profit_by_budget(amount, Units.from_numbers(amount))
    assert view is not None
    names = [row["name"] for row in view["rows"]]
    assert names[0] == "this plan"
    assert [name for name in names if name.startswith("everyone gets")] == [f"everyone gets {name}" for name in NAMES]
    assert view["desk"].count("<title>") >= len(amount["frontier"]["points"])


def test_a_yes_with_a_value_has_profits_in_the_unit_of_costs(amount: Numbers) -> None:
    amount["response"]["kind"], amount["response_unit"] = "binary", ""
    amount["profit"]["response_value"] = 12
    view = view_profit_by_budget(amount, Units.from_numbers(amount))
    assert view is not None
    assert view["definition"] == "the response (each yes is worth 12.00\u202fUSD)"
    assert view["rows"][0]["profit"].endswith("USD")
    assert view["rows"][0]["value"].endswith("%")


def test_no_line_ends_between_a_sign_and_its_currency(amount: Numbers) -> None:
    amount |= {"unit": "$", "response_unit": "$"}
    amount["answer"] = write_verdict_and_warnings(amount)
    shown = visible(render_report(amount))
    assert "+\u2060$" in shown
    assert "+$" not in shown


# -- does choosing pay -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((0.01, 0.03), " gains +2.0\u202fpp (+1.0 to +3.0"),
        ((-0.03, -0.01), " loses: −2.0\u202fpp (−3.0 to −1.0"),
        ((-0.01, 0.01), " not show "),
        ((None, None), " not show "),
    ],
)
def test_the_area_follows_its_interval_and_every_level_is_compared(binary: Numbers, ends: Any, words: str) -> None:
    assert binary["targeting"]["points"][0]["gain"]["estimate"] == 0
    binary["targeting"]["area"] = {"estimate": None} | dict(zip(("low", "high"), ends, strict=True))
    if ends[0] is not None:
        binary["targeting"]["area"] = estimate(*ends)
    view = view_qini_curve(binary, EURO)
    assert view is not None
    assert words in view["area"]
    assert [row.label for row in view["gains"].rows] == NAMES


def test_bounds_agree_with_the_comparison(binary: Numbers) -> None:
    rows, plan = view_gain_bounds(binary, EURO)["rows"], binary["safety"]["options"][0]
    assert [row["name"] for row in rows] == ["this plan", "a simple rule", "a random mix"]
    assert rows[-1]["gain"] == rows[-1]["bound"] == MISSING_DASH
    assert "(" in rows[0]["gain"]
    assert plan["gain"] == binary["versus"][0]["difference"]
    assert (plan["at_least"] > 0) == (plan["gain"]["low"] > 0)


@pytest.mark.parametrize(
    ("guaranteed", "excuse", "shown"),
    [(0.5, "", [50.0, 50.0, 95, 0, 1]), (None, "There is no guaranteed value: why.", [])],
)
def test_the_guarantee_is_shown_or_the_reason_why_there_is_none(
    binary: Numbers, guaranteed: Any, excuse: str, shown: list[float]
) -> None:
    binary["safety"]["excuse"] = excuse
    for row in binary["safety"]["options"]:
        row["guaranteed"] = guaranteed
    text = view_gain_bounds(binary, EURO)["guarantee"]
    assert excuse in text
    assert figures(text) == shown


# -- levels and groups -------------------------------------------------------------------------------------------------


def test_each_level_shows_its_cost_and_all_three_means_dashed_with_few_rows(binary_run: Any, binary: Numbers) -> None:
    log, levels = binary_run.log, binary["curve"]["levels"]
    means = [log.response[log.level == k].mean() for k in range(3)]
    np.testing.assert_allclose([row["raw"]["estimate"] for row in levels], means)
    rows = view_level_responses(binary, EURO)["figure"].rows
    assert [row.detail for row in rows] == ["costs €0.00", "costs €5.00", "costs €10.00"]
    for row in rows:
        assert row.figure.count('class="marker') == 2
        assert row.figure.count('class="dot honest"') == 1
        assert "interval" in row.figure
        assert "honest few" not in row.figure
    binary["support"]["overlap"][1] |= {"rows": 200, "effective": 12.0}
    page = render_report(binary)
    assert 'class="whisker honest few"' in page
    assert "fewer than 30 rows" in page


def test_means_by_level_are_those_of_the_checkup(binary_run: Any, binary: Numbers) -> None:
    checkup = check_log(binary_run.log, binary_run.study.checkup.propensity)
    shown = to_json(make_log_checkup_numbers(checkup, binary_run.log, title="log"))["curve"]["levels"]
    for row, other in zip(binary["curve"]["levels"], shown, strict=True):
        assert (row["name"], row["value"], row["raw"]) == (other["name"], other["value"], other["raw"])


def test_curves_of_groups_are_dashed_where_few_rows_had_the_level(binary: Numbers) -> None:
    (feature, *_) = binary["curve"]["features"]
    for group in feature["groups"]:
        for k, point in enumerate(group["levels"]):
            point |= {"effective": 40.0, "rows": 7 if k == 2 else 90}
    view = view_group_curves(feature, NAMES, EURO)
    assert view["few"]
    for group in view["groups"]:
        kinds = ('class="curve few"', 'class="curve"', 'class="dot honest"')
        assert [group["figure"].count(kind) for kind in kinds] == [1, 1, 2]
        assert group["cells"][2].startswith("model ")
        assert group["cells"][2].endswith(", 7 rows")


def test_large_sums_of_levels_have_their_own_style(binary: Numbers) -> None:
    for row, spend in zip(binary["money"]["levels"], (0.0, 1_470_000.0, 560_000.0), strict=True):
        row["spend"] = spend
    rows = view_segments(binary, EURO)["spends"]
    assert [row["spend"] for row in rows] == ["€0", "€1.47\u202fmillion", "€560,000"]


# -- explanations and transitions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dearer", "cheaper", "shown"),
    [("big {}", None, [20]), (None, "none", [50]), ("big", "none", [20, 50]), (None, None, [])],
)
def test_the_price_changes_that_change_a_level_are_named(
    dearer: str | None, cheaper: str | None, shown: list[float]
) -> None:
    text = write_level_changing_prices({"price": 1.0, "dearer": dearer, "below": 0.8, "cheaper": cheaper, "above": 1.5})
    assert figures(text) == shown
    assert all(name in text for name in (dearer, cheaper) if name)


def test_decisions_are_explained_by_examples_and_feature_importance(binary: Numbers) -> None:
    binary["why"]["movers"] = [
        {"feature": "age", "moved": 0.4, "loss": {"estimate": 0.03, "low": 0.01, "high": 0.05}},
        *({"feature": f"f{k}", "moved": 0.1, "loss": {"estimate": 0.0, "low": -0.01, "high": 0.01}} for k in range(9)),
    ]
    view = view_explanations(binary, EURO)
    assert view is not None
    assert view["labels"] == NAMES
    assert all(len(row["curve"]) == 3 for row in view["rows"])
    assert len(view["moves"]) == 4
    first, second, *_ = rows = view["importance"].rows
    assert (first.label, first.number, first.sub) == ("age", "40\u202f%", "loses 3.0\u202fpp")
    assert first.mark.startswith("1.0 to 5.0\u202fpp")
    assert first.mark.rpartition(":")[2] != second.mark.rpartition(":")[2]  # using it pays, or may be worth nothing
    assert len(rows) == 8
    assert figures(view["rest"]) == [2]
    wide = view_explanations({**binary, "levels": [{"name": str(k)} for k in range(9)]}, EURO)
    assert wide is not None
    assert wide["labels"] == wide["rows"][0]["curve"] == []
    binary["why"]["examples"] = []
    assert view_explanations(binary, EURO) is None


def test_the_waterfall_goes_from_the_past_to_the_plan(binary: Numbers) -> None:
    changes = binary["changes"]
    total = changes["before"]["value"]["estimate"] + sum(row["value"]["estimate"] for row in changes["levels"])
    assert total == pytest.approx(binary["value"]["estimate"])
    rows = view_waterfall(changes, "value", NAMES, (EURO.value_style, EURO.gain_style), EURO.response).rows
    assert [rows[0].label, rows[-1].label] == ["What was done", "This plan"]
    assert len(rows) == 2 + len(changes["levels"])
    assert all(row.number[0] in "+−" for row in rows[1:-1])
    assert rows[-1].number == EURO.value_style(binary["value"]).text(binary["value"]["estimate"])


def test_moves_are_shown_by_level_with_columns_only_for_levels_that_someone_gets(binary: Numbers) -> None:
    matrix = view_transition_matrix(MOVES, NAMES)
    assert matrix["names"] == ["small"]
    assert [row["name"] for row in matrix["rows"]] == NAMES
    cells = [row["cells"][0] for row in matrix["rows"]]
    assert [cell["text"] for cell in cells] == ["30\u202f%", "50\u202f%", "20\u202f%"]
    assert [cell["same"] for cell in cells] == [False, True, False]
    assert figures(write_moved_share(MOVES))[0] == 50
    binary["changes"]["moves"] = MOVES
    view = view_level_changes(binary, EURO)
    assert view is not None
    assert [row["name"] for row in view["moves"]] == ["none → small", "big → small"]
    assert [row["cost_per_extra"] for row in view["moves"]] == ["€20.00", "–"]
    assert [row["spend"] for row in view["moves"]] == ["+€2.00", "−€1.00"]
    binary["changes"]["moves"] = []
    assert view_level_changes(binary, EURO) is None
    assert 'id="level_changes"' not in render_report(binary)


# -- next steps, checks and method -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gain", "may", "step"), [(-0.5, True, "Spend less"), (0.5, False, "Consider another budget"), (0.5, True, "")]
)
def test_the_next_step_is_about_the_budget_if_another_leaves_clearly_more(
    amount: Numbers, gain: float, may: bool, step: str
) -> None:
    set_gain(amount, gain - 0.1, gain + 0.1)
    amount["best_budget"]["may_be_this"] = may
    amount["answer"] = write_verdict_and_warnings(amount)
    page = render_report(amount)
    for words in ("Spend less", "Consider another budget"):
        assert (words in page) == (words == step)


@pytest.mark.parametrize(
    ("needed", "grade", "shown"),
    [
        (7840.0, "best bet", [7800, 32.7]),  # of a log of 240 rows
        (None, "best bet", []),
        (7840.0, "proved", []),
    ],
)
def test_the_needed_rows_are_round_numbers_and_only_of_what_is_open(
    binary: Numbers, needed: float | None, grade: str, shown: list[float]
) -> None:
    binary["verdict"] |= {"needed_rows": needed, "grade": grade}
    for row in binary["verdict"]["options"]:
        row["gain"] = estimate(-0.01, 0.05)
    text = write_needed_rows(binary)
    assert figures(text) == shown
    assert bool(text) == (grade != "proved")
    for row in binary["verdict"]["options"]:
        row["gain"] = estimate(-0.05, 0.01)
    assert write_needed_rows(binary) == ""


def test_the_exploration_that_settles_the_verdict_has_its_command_customers_and_cost(
    binary: Numbers, amount: Numbers
) -> None:
    next_log = {"rate": 0.05, "customers": 20_000.0, "given_up": 0.004, "money": 0.1}
    view = view_exploration_step(binary | {"next_log": next_log}, EURO)
    assert "--explore 0.05 --explore-for evaluation" in view["command"]
    assert figures(view["customers"]) == [20_000]
    assert figures(view["cost"]) == [80, 2000]  # responses, euros
    view = view_exploration_step(amount | {"next_log": next_log | {"money": None}}, Units.from_numbers(amount))
    assert figures(view["cost"]) == [80]
    assert view_exploration_step(binary | {"next_log": None}, EURO) == {}


def test_the_evidence_is_the_model_the_log_and_both_together(binary: Numbers) -> None:
    options = [option for option in binary["verdict"]["options"] if option["name"] == "plan"]
    assert options
    evidence = options[0] | {"model": estimate(0.01, 0.03), "log": estimate(-0.02, 0.06), "gain": estimate(0.0, 0.04)}
    rows = view_gain_evidence(evidence, EURO).rows
    assert [figures(f"{row.number} {row.sub}") for row in rows] == [[2, 1, 3], [2, -2, 6], [2, 0, 4]]
    for row in rows:
        assert 'class="zero"' in row.figure
        assert row.figure.count("<circle") == 1
    assert len(view_gain_evidence(evidence | {"model": None}, EURO).rows) == 2
    assert view_gain_evidence(None, EURO).rows == ()


def test_checks_overlap_and_balance_are_shown(binary: Numbers) -> None:
    page, support = visible(render_report(binary)), binary["support"]
    assert {check["answer"] for check in support["checks"]} <= {"fine", "note", "careful", "no"}
    assert all(check["topic"] in page for check in support["checks"])
    row = support["balance"][0]
    row |= {"before": 0.3, "after": 0.2, "levels_before": [0.3, 0.0, -0.3], "levels_after": [0.05, 0.0, -0.2]}
    view = view_overlap_and_balance(binary, EURO)
    assert view["balance"].rows[0].mark == "above 0.1"
    assert [cell["off"] for cell in view["by_level"][0]["cells"]] == [False, False, True]
    rows = view["propensities"].rows
    assert [row.label for row in rows] == NAMES
    assert [row.number for row in rows] == [f"{seen['rows']} rows" for seen in support["overlap"]]
    row["after"] = 0.05
    assert view_overlap_and_balance(binary, EURO)["balance"].rows[0].mark == ""
    support |= {"overlap": [], "balance": [], "checks": [], "propensities": {"edges": [], "counts": []}}
    page = render_report(binary)
    assert "There is nothing to show." in page[page.index('id="overlap_balance"') : page.index('id="method_details"')]


def test_every_estimator_is_shown_and_the_one_used_gives_the_value(binary: Numbers) -> None:
    rows = view_method_details(binary, EURO)["estimates"]
    assert [row["name"] for row in rows] == list(ESTIMATORS)
    assert [row["name"] for row in rows if "(used above)" in row["words"]] == ["dr"]
    used = next(row for row in binary["method"]["estimates"] if row["name"] == "dr")
    assert (used["estimate"], used["se"]) == pytest.approx((binary["value"]["estimate"], binary["value"]["se"]))


def test_candidates_stand_together_with_losses_in_one_style(binary: Numbers) -> None:
    groups = view_method_details(binary, EURO)["groups"]
    assert [group["title"] for group in groups] == ["Which model?", "Choice of the strength"]
    first = groups[0]["rows"]
    assert [(row["loss"], row["difference"], row["chosen"]) for row in first] == [
        ("0.190", "0", True),
        ("0.192", "+0.002", False),
    ]
    assert "whisker" not in first[0]["strip"]  # the best is no worse than itself
    assert "whisker" in first[1]["strip"]


def test_models_are_described_without_technical_words(binary: Numbers) -> None:
    for entry in list_models().values():
        text = describe_model(entry.kind.__name__)
        assert text.endswith(".")
        assert not re.search(r"stack|bend|shrink|penalt|kernel|HSIC|increment", text)


def test_groups_do_not_follow_the_slider_without_counts_at_every_stop(slid: Numbers) -> None:
    for feature in slid["who"]["features"]:
        for group in feature["groups"]:
            group |= {"stop_counts": [[1, 2, 3]] * 5, "stop_costs": [1.0] * 5}
    assert view_segments(slid, EURO)["live"]
    slid["who"]["features"][0]["groups"][0]["stop_counts"] = []
    view = view_segments(slid, EURO)
    assert not view["live"]
    assert 'id="budget-again"' not in render_report(slid)


def test_groups_of_protected_attributes_are_shown_and_unequal_spends_named(binary: Numbers) -> None:
    assert view_protected_groups(binary, EURO) is None
    groups = [
        {
            "label": label,
            "rows": 120,
            "share": 0.5,
            "spend": spend,
            "extra": estimate(0.0, 0.1),
            "gain": estimate(-0.1, 0.1),
        }
        for label, spend in (("f", estimate(1.0, 1.5)), ("m", estimate(2.0, 2.5)))
    ]
    binary["protected"] = [{"column": "sex", "groups": groups}]
    view = view_protected_groups(binary, EURO)
    assert view is not None
    (attribute,) = view["attributes"]
    assert [figures(row["spend"]) for row in attribute["rows"]] == [[1.25, 1.0, 1.5], [2.25, 2.0, 2.5]]
    assert figures(attribute["apart"]) == [1.25, 2.25]
    assert unescape(visible(render_report(binary))).count(attribute["apart"]) == 2  # also among what could go wrong
    groups[1]["spend"] = estimate(1.4, 2.5)
    shown = view_protected_groups(binary, EURO)
    assert shown is not None
    assert shown["attributes"][0]["apart"] == ""
