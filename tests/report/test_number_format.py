import math

import pytest

from largesse.report.number_format import (
    NumberStyle,
    Units,
    add_interval_label,
    choose_style,
    measure_half_width,
    write_count,
    write_percent,
)

EURO, NAN = Units("binary", "€"), math.nan
GAIN = {"estimate": 3.104, "low": -0.2, "high": 6.4}
WIDE, NARROW = ({"estimate": 0.12345, "low": 0.12345 - half, "high": 0.12345 + half} for half in (0.05, 0.0005))
WITHOUT_INTERVAL = {"estimate": 3.2, "low": NAN, "high": NAN}


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (write_percent(0.00012), "0.012\u202f%"),
        (write_percent(NAN), "–"),
        (write_count(1_200_000), "1,200,000"),
        (choose_style([-0.001], 1.0).text(-0.001), "0.0"),
        (Units("amount", "€").write_cost(-0.5), "−€0.50"),
        (Units("amount", "USD").write_cost(1.2e9), "1.20\u202fbillion\u202fUSD"),
        (EURO.write_cost(0.00314), "€0.0031"),
        (EURO.one_more_unit_text, "€1 more"),
        (Units("binary", "").one_more_unit_text, "one more unit of budget"),
        (Units("binary", "").title_axis("budget"), "budget"),
        # amounts of the response carry their unit; a unit of costs alone says nothing about the response
        (Units("amount", "€", "€").write_gain(GAIN), "+€3.10 (−€0.20 to +€6.40)"),
        (Units("amount", "", "USD").value_style(GAIN).with_interval(GAIN), "3.10\u202fUSD (−0.20 to 6.40\u202fUSD)"),
        (Units("amount", "€", "visits").value_style(GAIN).text(3.104), "3.1\u202fvisits"),
        (Units("amount", "€").value_style(GAIN).text(3.104), "3.1"),
        (EURO.profit.value_style(GAIN).text(3.104), "€3.10"),
        # as many digits as the interval deserves
        (EURO.value_style(WIDE).with_interval(WIDE), "12.3\u202f% (7.3 to 17.3\u202f%)"),
        (EURO.value_style(NARROW).with_interval(NARROW), "12.345\u202f% (12.295 to 12.395\u202f%)"),
        (EURO.write_gain(WIDE), "+12.3\u202fpp (+7.3 to +17.3\u202fpp)"),
        (EURO.value_style({}).with_interval({"estimate": None}), "–"),
        (NumberStyle(decimals=1).with_interval(WITHOUT_INTERVAL), "3.2 (no interval: too few responses)"),
        (NumberStyle().interval({"estimate": NAN, "low": NAN, "high": NAN}), "–"),
        (add_interval_label(NumberStyle().interval(WITHOUT_INTERVAL)), "no interval: too few responses"),
        (add_interval_label("1 to 2"), "95\u00a0% interval 1 to 2"),
    ],
)
def test_numbers_are_written_for_people(written: str, text: str) -> None:
    assert written == text


@pytest.mark.parametrize("half", [0.0, 3e-16, 1e-9, 0.003, 0.4])
def test_money_is_written_to_the_cent_however_precise_it_is(half: float) -> None:
    spend = {"estimate": 0.998230088, "low": 0.998230088 - half, "high": 0.998230088 + half}
    assert Units("binary", "USD").spend_style(spend).text(spend["estimate"]) == "1.00\u202fUSD"


def test_a_width_that_is_a_rounding_error_does_not_count() -> None:
    assert measure_half_width({"low": 0.4, "high": 0.4 + 1e-16}) is None
    assert measure_half_width({"low": 1.0, "high": 1.5}) == 0.25
