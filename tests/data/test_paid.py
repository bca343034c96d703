"""Costs that are observed, from a column of the log."""

from typing import Any

import numpy as np
import pytest

from largesse.data.log import log_from_arrays, read_log
from largesse.errors import InputError
from largesse.levels import Levels
from largesse.records import Log

TABLE: dict[str, list[Any]] = {
    "age": [20, 30, 40, 50],
    "coupon": [0, 5, 0, 5],
    "bought": [0, 1, 1, 0],
    "paid": [0.0, 4.5, 0.0, 1.5],
}
LEVELS = Levels(doses=[0, 5], observed=True)


def read(levels: Levels = LEVELS, **changed: Any) -> Log:
    return read_log(TABLE | changed, level="coupon", response="bought", levels=levels, cost_column="paid")


def test_what_rows_cost_is_read_and_is_no_feature() -> None:
    log = read()
    assert log.paid is not None
    assert log.paid.tolist() == [0, 4.5, 0, 1.5]
    assert log.levels.observed
    assert log.features.column_names == ["age"]
    assert repr(log) == "Log(4 rows, 1 features, 2 levels, with paid)"


def test_part_of_a_log_keeps_its_costs_and_they_can_be_its_response() -> None:
    part = read().take(np.array([1, 3]))
    assert part.paid is not None
    assert part.paid.tolist() == part.of_costs.response.tolist() == [4.5, 1.5]
    assert part.response.tolist() == [1, 0]


def test_listed_costs_give_way_to_observed_ones_with_a_note() -> None:
    log = read(Levels(costs=[0, 5]))
    assert (log.levels.observed, log.levels.doses) == (True, (0, 5))
    assert any("not used" in note for note in log.notes)


@pytest.mark.parametrize(
    ("paid", "what"),
    [
        ([0, 1, -1, 0], "missing, infinite or negative in 1 row"),
        ([0, None, 1, None], "missing, infinite or negative in 2 rows"),
        ([0, 0, 0, 0], "is 0 in every row"),
        ([0, 1, 1e40, 0], "as large as 1e\\+40"),
        (["a", "b", "c", "d"], "cost column 'paid' does not hold numbers"),
    ],
)
def test_odd_costs_are_refused(paid: list[Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        read(paid=paid)


def test_rows_without_a_response_need_no_cost() -> None:
    many = {name: values * 3 for name, values in TABLE.items()}
    many["bought"][0] = many["paid"][0] = None
    log = read(**many)
    assert log.paid is not None
    assert len(log) == len(log.paid) == 11


@pytest.mark.parametrize(
    ("levels", "what"),
    [
        (Levels(costs=[0, 5], on_redemption=True), "on_redemption says how levels are paid"),
        (Levels(costs=[0, 5], contact_cost=1), "contact_cost says how levels are paid"),
    ],
)
def test_two_ways_to_pay_exclude_each_other(levels: Levels, what: str) -> None:
    with pytest.raises(InputError, match=what):
        read(levels)


def test_observed_costs_without_a_column_and_a_column_that_is_not_there_are_refused() -> None:
    with pytest.raises(InputError, match="no column says what was paid"):
        read_log(TABLE, level="coupon", response="bought", levels=LEVELS)
    with pytest.raises(InputError, match="the cost column 'payd' is not in the table"):
        read_log(TABLE, level="coupon", response="bought", levels=LEVELS, cost_column="payd")
    with pytest.raises(InputError, match="the cost column 'paid' is also listed as a feature"):
        read_log(TABLE, level="coupon", response="bought", levels=LEVELS, cost_column="paid", features=["paid"])


def test_arrays_make_a_log_with_costs() -> None:
    log = log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0], paid=[0, 2, 0, 3])
    assert log.paid is not None
    assert (log.paid.tolist(), log.levels.observed) == ([0, 2, 0, 3], True)
    with pytest.raises(InputError, match="paid has shape"):
        log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0], paid=[0, 2])
