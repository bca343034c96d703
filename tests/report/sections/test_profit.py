"""What is left after costs: in words, as a card, a curve and a table."""

from typing import Any

import pytest
from pages import Page

from largesse.report.numbers import Units
from largesse.report.page import render_report
from largesse.report.sections.answer import view_answer, write_answer
from largesse.report.sections.profit import view_profit
from largesse.report.sentences import judge_profit, write_best, write_loss, write_profit, write_returned

Numbers = dict[str, Any]


def set_gain(numbers: Numbers, low: float, high: float, back: float | None = 0.19) -> Numbers:
    numbers["profit"]["gain"] = {"estimate": (low + high) / 2, "low": low, "high": high, "se": 0.1}
    numbers["profit"]["returned"] = {"estimate": back, "low": None, "high": None, "se": None}
    return numbers


def test_a_campaign_that_loses_money_says_so_first_and_how_much_comes_back(amount: Numbers) -> None:
    set_gain(amount, -0.9, -0.7)
    answer = write_answer(amount)
    assert answer["headline"] == "This plan loses money: every 1\u202fUSD spent brings back 0.19\u202fUSD."
    assert "After costs, this plan leaves" in answer["verdict"]
    assert "−0.80\u202fUSD (−0.90 to −0.70\u202fUSD) against giving everyone 'none'" in answer["verdict"]
    assert "At the same cost, choosing who gets what" in answer["verdict"]


@pytest.mark.parametrize("back", [None, -0.2, 1.4])
def test_a_loss_without_a_share_that_comes_back_is_told_as_an_amount(amount: Numbers, back: float | None) -> None:
    headline = write_loss(Units.of(amount), set_gain(amount, -0.9, -0.7, back))
    assert headline == "This plan loses money: it leaves 0.80\u202fUSD less per customer than giving everyone 'none'."


@pytest.mark.parametrize(
    ("low", "high", "judged", "said"),
    [
        (0.1, 0.5, "pays", ": +0.30\u202fUSD (+0.10 to +0.50\u202fUSD) against giving everyone 'none'."),
        (-0.1, 0.5, "open", "The log does not show that this is more than giving everyone 'none' leaves"),
        (0.0, 0.0, "equal", "as giving everyone 'none' does."),
    ],
)
def test_what_is_left_follows_the_interval(amount: Numbers, low: float, high: float, judged: str, said: str) -> None:
    set_gain(amount, low, high)
    units = Units.of(amount)
    assert judge_profit(amount) == judged
    assert write_loss(units, amount) == ""
    assert said in write_profit(units, amount)
    assert said in write_answer(amount)["verdict"]


@pytest.mark.parametrize(
    ("best", "said"),
    [
        ((5.0, 2.0, 6.0, True), "best budget lies between 2.00\u202fUSD and 6.00\u202fUSD."),
        ((0.5, 0.2, 0.6, False), "0.60\u202fUSD. This budget leaves clearly less."),
        ((5.0, 5.0, 5.0, True), "A budget of 5.00\u202fUSD per customer leaves most after costs."),
        ((0.0, 0.0, 0.0, False), "Giving everyone 'none' leaves most after costs. This budget leaves clearly less."),
        ((5.0, 0.0, 20.0, True), "but the log cannot tell which budget is best: any from 0.00\u202fUSD to"),
    ],
)
def test_the_best_budget_comes_with_how_sure_it_is(
    amount: Numbers, best: tuple[float, float, float, bool], said: str
) -> None:
    amount["best_budget"] |= dict(zip(("budget", "low", "high", "may_be_this"), best, strict=True))
    assert said in write_best(Units.of(amount), amount)


def test_a_budget_between_those_that_may_be_best_is_told_as_such(amount: Numbers) -> None:
    """The budgets that may be best are a set, not always a range."""
    own = amount["spend"]["estimate"]
    amount["best_budget"] |= {"budget": own / 2, "low": own / 2, "high": own * 1.5, "may_be_this": False}
    assert write_best(Units.of(amount), amount).endswith("This budget, though between them, leaves clearly less.")


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
    assert "profit" in page.ids


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
