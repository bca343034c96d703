"""The order of named levels: from what the names say, or not at all."""

import itertools

import pytest

from largesse.data.level_name_order import means_no_incentive, order_levels

STATED = {
    "amounts": ["0 EUR", "5 EUR", "10 EUR", "20 EUR"],
    "a currency in front": ["kein Gutschein", "€ 5", "€ 10"],
    "shares": ["control", "5%", "10%"],
    "decimal commas": ["0,50 €", "1,50 €", "10 €"],
    "words around": ["keiner", "Coupon 5", "Coupon 10"],
    "sizes": ["small", "medium", "large"],
    "German sizes": ["ohne", "klein", "mittel", "groß"],
    "letters": ["S", "M", "L", "XL"],
    "one thing or nothing": ["holdout", "coupon"],
    "yes or no": ["no", "yes"],
    "thousands": ["1 000 €", "2 500 €", "10 000 €"],
}
UNSTATED = {
    "words": ["mail", "call"],
    "a control and two words": ["No E-Mail", "Mens E-Mail", "Womens E-Mail"],
    "numbered arms": ["arm 1", "arm 2"],
    "two units": ["5 EUR", "10%"],
    "cents and euros": ["50 cents", "1 euro"],
    "a mark that may be either": ["1.000 €", "500 €"],
    "the same amount twice": ["5", "5.0"],
    "two controls": ["none", "no coupon", "coupon"],
    "ranges": ["1–10 €", "2–3 €"],
    "an open end": ["$5", "$10", "$20+"],
    "other words beside the amount": ["5 EUR by mail", "10 EUR by phone"],
}


@pytest.mark.parametrize("name", STATED)
def test_names_that_state_their_order_are_put_in_it_however_they_come(name: str) -> None:
    for given in itertools.islice(itertools.permutations(STATED[name]), 24):
        found = order_levels(given)
        assert found is not None
        assert list(found.names) == STATED[name]


@pytest.mark.parametrize("name", UNSTATED)
def test_names_that_do_not_state_their_order_get_none(name: str) -> None:
    assert order_levels(UNSTATED[name]) is None
    assert order_levels(UNSTATED[name][::-1]) is None


def test_amounts_of_money_can_be_costs_and_shares_cannot() -> None:
    amounts = {name: found.amounts for name, names in STATED.items() if (found := order_levels(names)) is not None}
    assert amounts["amounts"] == (0, 5, 10, 20)
    assert amounts["decimal commas"] == (0.5, 1.5, 10)
    for name in ("shares", "sizes"):
        assert amounts[name] is None


@pytest.mark.parametrize(
    ("name", "nothing"),
    [("0%", True), ("KEINE", True), ("no limit", False), ("nobody", False), ("10", False), ("", False)],
)
def test_words_for_nothing_are_known(name: str, nothing: bool) -> None:
    assert means_no_incentive(name) == nothing
