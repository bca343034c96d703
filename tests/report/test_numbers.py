import math

import pytest

from largesse.report.number_format import (
    Style,
    Units,
    choose_style,
    half_width,
    label_interval,
    write_count,
    write_percent,
)


def test_numbers_are_written_for_people() -> None:
    assert write_percent(0.00012) == "0.012\u202f%"
    assert write_percent(math.nan) == "–"
    assert write_count(1_200_000) == "1,200,000"
    assert choose_style([-0.001], 1.0).text(-0.001) == "0.0"


def test_money_carries_its_sign_or_its_name() -> None:
    assert Units("amount", "€").cost(-0.5) == "−€0.50"
    assert Units("amount", "USD").cost(1.2e9) == "1.20\u202fbillion\u202fUSD"
    assert Units("binary", "€").one_more == "€1 more"
    assert Units("binary", "").one_more == "one more unit of budget"
    assert Units("binary", "").title_axis("budget") == "budget"


def test_amounts_of_the_response_carry_their_unit_where_people_write_it() -> None:
    gain = {"estimate": 3.104, "low": -0.2, "high": 6.4}
    assert Units("amount", "€", "€").gain_style(gain).both(gain, signed=True) == "+€3.10 (−€0.20 to +€6.40)"
    assert Units("amount", "", "USD").value_style(gain).both(gain) == "3.10\u202fUSD (−0.20 to 6.40\u202fUSD)"
    assert Units("amount", "€", "visits").value_style(gain).text(3.104) == "3.1\u202fvisits"
    assert Units("amount", "€").value_style(gain).text(3.104) == "3.1"  # a unit of costs alone says nothing of it
    assert Units("binary", "€").profit.value_style(gain).text(3.104) == "€3.10"


@pytest.mark.parametrize("half", [0.0, 3e-16, 1e-9, 0.003, 0.4])
def test_money_is_written_to_the_cent_however_well_it_is_known(half: float) -> None:
    spend = {"estimate": 0.998230088, "low": 0.998230088 - half, "high": 0.998230088 + half}
    assert Units("binary", "USD").spend_style(spend).text(spend["estimate"]) == "1.00\u202fUSD"


def test_tiny_amounts_of_money_keep_their_digits() -> None:
    assert Units("binary", "€").cost(0.00314) == "€0.0031"


def test_an_estimate_has_the_digits_its_interval_deserves() -> None:
    units = Units("binary", "€")
    wide, narrow = ({"estimate": 0.12345, "low": 0.12345 - half, "high": 0.12345 + half} for half in (0.05, 0.0005))
    assert units.value_style(wide).both(wide) == "12.3\u202f% (7.3 to 17.3\u202f%)"
    assert units.value_style(narrow).both(narrow) == "12.345\u202f% (12.295 to 12.395\u202f%)"
    assert units.gain_style(wide).both(wide, signed=True) == "+12.3\u202fpp (+7.3 to +17.3\u202fpp)"
    missing = {"estimate": None, "low": None, "high": None}
    assert units.value_style(missing).both(missing) == "–"


def test_an_estimate_without_an_interval_says_so_in_words() -> None:
    alone = {"estimate": 3.2, "low": float("nan"), "high": float("nan")}
    style = Style(decimals=1)
    assert style.interval(alone) == "no interval: too few responses"
    assert style.both(alone) == "3.2 (no interval: too few responses)"
    assert style.interval({"estimate": float("nan"), "low": float("nan"), "high": float("nan")}) == "–"
    assert label_interval(style.interval(alone)) == "no interval: too few responses"
    assert label_interval("1 to 2") == "95\u00a0% interval 1 to 2"


def test_a_width_that_only_rounding_left_is_none() -> None:
    units = Units("binary", "USD")
    assert units.spend_style({"estimate": 0.4, "low": 0.4, "high": 0.4 + 1e-16}).text(0.4) == "0.40\u202fUSD"
    assert half_width({"low": 1.0, "high": 1.5}) == 0.25
