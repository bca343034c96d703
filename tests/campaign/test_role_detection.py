"""Roles of columns, from their names and values."""

import numpy as np
import pyarrow as pa
import pytest

from largesse.campaign.role_detection import (
    AFTER_RESPONSE,
    DraftColumn,
    RoleGuesses,
    find_columns_after_response,
    guess_roles,
)
from largesse.records import Array

N = 60
ONES, ONCE, TWICE = np.arange(N) % 2 * 1.0, np.arange(N) * 1.0, np.arange(N) // 2 * 1.0


def guess(name: str, values: Array = ONES) -> RoleGuesses:
    return guess_roles([number(name, values)], N)


def number(name: str, values: Array = ONES) -> DraftColumn:
    return DraftColumn(name, "number", len(np.unique(values)), values)


@pytest.mark.parametrize(
    ("role", "values", "names"),
    [
        ("response", ONES, "voted kauf umsatz converted Purchase revenue out_gavedum tookUp eingelöst conversion_flag"),
        ("cluster", TWICE, "hh_id Haushalt village"),
        ("customer", ONCE, "customer_id"),
        ("customer", TWICE, "customer_id Kunden-Nr. id"),
        ("weight", np.linspace(0.5, 2, N), "gewicht weight sample_weight Gewichtung"),
        ("propensity", np.linspace(0.1, 0.9, N), "propensity"),
        ("", np.linspace(0.1, 0.9, N), "propensity_to_buy"),
    ],
)
def test_roles_follow_from_names_and_values(role: str, values: Array, names: str) -> None:
    for name in names.split():
        assert guess(name, values).roles == ({role: name} if role else {})


@pytest.mark.parametrize("name", ["prior_purchases", "umsatz_vorjahr", "clicks_12m", "voted_2004", "age", "kaufkraft"])
def test_columns_of_earlier_times_are_features_and_only_suggested_as_responses(name: str) -> None:
    draft = guess(name)
    assert "response" not in draft.roles
    assert name not in draft.left_out
    assert draft.others["response"] == (name,)


@pytest.mark.parametrize(
    "name", ["hh_id", "Kunden-Nr.", "customer number", "customerId", "ID", "Kundennummer", "user_no", "session id"]
)
def test_identifiers_are_never_features(name: str) -> None:
    for values in (ONCE, TWICE):
        draft = guess(name, values)
        assert name in {*draft.roles.values(), *draft.left_out}
        assert "response" not in draft.roles


@pytest.mark.parametrize(
    "name", ["household_size", "ave_hh_sz", "number of visits", "idle_days", "account_age", "no_children"]
)
def test_columns_that_only_sound_like_identifiers_stay_features(name: str) -> None:
    assert (guess(name, TWICE).roles, guess(name, TWICE).left_out) == ({}, {})


def test_a_text_column_with_a_control_is_the_level_where_no_name_is() -> None:
    words = DraftColumn("segment", "text", 3, None, words=("No E-Mail", "Mens E-Mail", "Womens E-Mail"))
    other = DraftColumn("zip", "text", 2, None, words=("Urban", "Rural"))
    assert guess_roles([other, words], N).roles == {"level": "segment"}


def test_known_roles_stand() -> None:
    draft = guess_roles([number("coupon"), number("bought"), number("z")], N, {"response": "z"})
    assert draft.roles == {"response": "z", "level": "coupon"}
    assert draft.left_out == {"bought": "may have happened afterwards"}


def test_columns_that_only_responses_fill_are_left_out() -> None:
    rng = np.random.default_rng(5)
    bought = (rng.random(500) < 0.2).astype(float)
    orders = pa.table(
        {
            "bought": bought,
            "spent": bought * rng.lognormal(3, 1, 500),
            "pays": [("card" if k % 2 else "bill") if yes else None for k, yes in enumerate(bought)],
            "visits": rng.poisson(0.3, 500) * 1.0,  # mostly zero, but not only where nobody bought
            "rare": np.where(np.arange(500) == np.flatnonzero(bought)[0], 1.0, 0.0),  # one row is no evidence
            "age": rng.integers(18, 80, 500) * 1.0,
        }
    )
    assert find_columns_after_response(orders, {"response": "bought"}) == {
        "spent": AFTER_RESPONSE,
        "pays": AFTER_RESPONSE,
    }
    assert find_columns_after_response(orders, {"response": "bought", "cost_column": "spent"}) == {
        "pays": AFTER_RESPONSE
    }
    for response in ("age", "unknown"):  # everybody responds, or nothing is known
        assert find_columns_after_response(orders, {"response": response}) == {}
