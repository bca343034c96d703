from typing import Any

from pages import visible

from largesse.report import render_report
from largesse.report.numbers import Units
from largesse.report.sections.answer import view_answer

Numbers = dict[str, Any]


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
    top, rest = visible(render_report(ugly)).split('id="frontier"')
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
