"""Which column is what, from names and values."""

import numpy as np
import pyarrow as pa
import pytest

from largesse.campaign.column_roles import AFTER_RESPONSE, DraftColumn, find_consequences, guess_roles
from largesse.records import Array

N = 60
ONES = np.arange(N) % 2 * 1.0


def number(name: str, values: Array = ONES) -> DraftColumn:
    return DraftColumn(name, "number", len(np.unique(values)), values)


RESPONSES = "voted kauf umsatz converted Purchase revenue out_gavedum tookUp eingelöst conversion_flag"
EARLIER = "prior_purchases umsatz_vorjahr clicks_12m voted_2004 age kaufkraft"
IDS = ["hh_id", "Kunden-Nr.", "customer number", "customerId", "ID", "Kundennummer", "user_no", "session id"]
FEATURES = ["household_size", "ave_hh_sz", "number of visits", "idle_days", "account_age", "no_children"]


@pytest.mark.parametrize("name", RESPONSES.split())
def test_names_of_responses_are_known(name: str) -> None:
    assert guess_roles([number("age", np.arange(N) * 1.0), number(name)], N).roles == {"response": name}


@pytest.mark.parametrize("name", EARLIER.split())
def test_columns_of_earlier_times_are_features_and_asked_for_as_responses(name: str) -> None:
    found = guess_roles([number(name)], N)
    assert "response" not in found.roles
    assert name not in found.left_out
    assert found.others["response"] == (name,)  # asked for, never taken


@pytest.mark.parametrize("name", IDS)
def test_identifiers_are_never_features(name: str) -> None:
    for values in (np.arange(N) * 1.0, np.arange(N) // 2 * 1.0):
        found = guess_roles([number(name, values)], N)
        assert name in {*found.roles.values(), *found.left_out}
        assert "response" not in found.roles


@pytest.mark.parametrize("name", FEATURES)
def test_columns_that_only_sound_like_identifiers_stay_features(name: str) -> None:
    found = guess_roles([number(name, np.arange(N) // 2 * 1.0)], N)
    assert not found.roles
    assert not found.left_out


def test_households_and_repeated_customers_are_clusters_and_single_ones_customers() -> None:
    twice, once = np.arange(N) // 2 * 1.0, np.arange(N) * 1.0
    for name in ("hh_id", "Haushalt", "village", "customer_id"):
        assert guess_roles([number(name, twice)], N).roles == {"cluster": name}
    assert guess_roles([number("customer_id", once)], N).roles == {"customer": "customer_id"}


@pytest.mark.parametrize("name", ["gewicht", "weight", "sample_weight", "Gewichtung"])
def test_weights_are_known(name: str) -> None:
    assert guess_roles([number(name, np.linspace(0.5, 2, N))], N).roles == {"weight": name}


def test_a_score_of_something_else_is_no_propensity() -> None:
    shares = np.linspace(0.1, 0.9, N)
    assert guess_roles([number("propensity", shares)], N).roles == {"propensity": "propensity"}
    assert guess_roles([number("propensity_to_buy", shares)], N).roles == {}


def test_a_text_column_with_a_control_is_the_level_where_no_name_is() -> None:
    words = DraftColumn("segment", "text", 3, None, words=("No E-Mail", "Mens E-Mail", "Womens E-Mail"))
    other = DraftColumn("zip", "text", 2, None, words=("Urban", "Rural"))
    assert guess_roles([other, words], N).roles == {"level": "segment"}


def test_roles_that_are_known_stand() -> None:
    found = guess_roles([number("coupon"), number("bought"), number("z")], N, {"response": "z"})
    assert found.roles == {"response": "z", "level": "coupon"}
    assert found.left_out == {"bought": "may have happened afterwards"}


@pytest.fixture
def orders() -> pa.Table:
    rng = np.random.default_rng(5)
    bought = (rng.random(500) < 0.2).astype(float)
    spent = bought * rng.lognormal(3, 1, 500)
    pays = [("card" if k % 2 else "bill") if yes else None for k, yes in enumerate(bought)]
    visits = rng.poisson(0.3, 500) * 1.0  # mostly zero, but not only where nobody bought
    rare = np.where(np.arange(500) == np.flatnonzero(bought)[0], 1.0, 0.0)  # one row says nothing
    age = rng.integers(18, 80, 500) * 1.0
    return pa.table({"bought": bought, "spent": spent, "pays": pays, "visits": visits, "rare": rare, "age": age})


def test_amounts_and_words_that_only_buyers_have_are_left_out(orders: pa.Table) -> None:
    assert find_consequences(orders, {"response": "bought"}) == {"spent": AFTER_RESPONSE, "pays": AFTER_RESPONSE}


def test_a_column_with_a_role_is_no_feature_anyway(orders: pa.Table) -> None:
    assert find_consequences(orders, {"response": "bought", "cost_column": "spent"}) == {"pays": AFTER_RESPONSE}


@pytest.mark.parametrize("response", ["age", "unknown"])
def test_nothing_is_left_out_where_everybody_responds_or_nothing_is_known(orders: pa.Table, response: str) -> None:
    assert find_consequences(orders, {"response": response}) == {}
