"""What is filled only where there was a response is not offered to a model."""

import numpy as np
import pyarrow as pa
import pytest

from largesse.campaign.draft.leaks import WHY, find_consequences


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
    assert find_consequences(orders, {"response": "bought"}) == {"spent": WHY, "pays": WHY}


def test_a_column_with_a_role_is_no_feature_anyway(orders: pa.Table) -> None:
    assert find_consequences(orders, {"response": "bought", "cost_column": "spent"}) == {"pays": WHY}


@pytest.mark.parametrize("response", ["age", "unknown"])
def test_nothing_is_left_out_where_everybody_responds_or_nothing_is_known(orders: pa.Table, response: str) -> None:
    assert find_consequences(orders, {"response": response}) == {}
