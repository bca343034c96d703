"""The door's rules: how levels, costs and roles are read, what is left out with a note, what is refused together."""

import datetime as dt
import tomllib
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from largesse.data.log import log_from_arrays, read_customers, read_log
from largesse.errors import InputError
from largesse.evaluation import evaluate
from largesse.levels import Levels
from largesse.records import Log
from largesse.response import Linear

N = 120
LEVEL = np.arange(N) % 4
COSTS = (0, 5, 10, 20)


def content(**columns: Any) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    usual = {
        "age": rng.normal(40, 10, N),
        "city": rng.choice(["Oslo", "Rome", "Bern"], N),
        "coupon": LEVEL,
        "bought": rng.integers(0, 2, N),
    }
    return usual | columns


def read(table: Any = None, levels: Levels | None = None, **roles: Any) -> Log:
    roles = {"level": "coupon", "response": "bought"} | roles
    return read_log(content() if table is None else table, levels=levels or Levels(COSTS), **roles)


def amounts(values: Any) -> list[Any]:
    return [values[k] for k in LEVEL]


# -- levels -------------------------------------------------------------------------------------------------------------

NAMED = Levels(COSTS, names=["none", "small", "big", "huge"])
WAYS: dict[str, tuple[Any, Levels]] = {
    "numbers": (LEVEL, Levels(COSTS)),
    "small unsigned numbers": (LEVEL.astype(np.uint8), Levels(COSTS)),
    "floats": (LEVEL.astype(np.float64), Levels(COSTS)),
    "amounts equal to the costs": (amounts([0, 5, 10, 20]), Levels(COSTS)),
    "amounts as floats": (amounts([0.0, 5.0, 10.0, 20.0]), Levels(COSTS)),
    "amounts as decimals": (
        pa.array(amounts([Decimal("0.00"), Decimal("5.00"), Decimal(10), Decimal(20)])),
        Levels(COSTS),
    ),
    "amounts as text": (amounts(["0", "5", "10.0", "20.00"]), Levels(COSTS)),
    "numbers as text": (amounts(["0", "1", "2", "3"]), Levels(COSTS)),
    "doses": (amounts([-1.5, 0, 2.5, 7]), Levels(COSTS, doses=[-1.5, 0, 2.5, 7])),
    "doses as text": (amounts(["0", "2.50", "3", "9"]), Levels(COSTS, doses=[0, 2.5, 3, 9])),
    "names": (amounts(["none", "small", "big", "huge"]), NAMED),
    "numbers of names": (LEVEL, NAMED),
    "amounts of names": (amounts([0, 5, 10, 20]), NAMED),
    "names that are numbers": (amounts([100, 50, 20, 10]), Levels(COSTS, names=["100", "50", "20", "10"])),
    "names that are numbers, as text": (
        amounts(["100", "50", "20", "10"]),
        Levels(COSTS, names=["100", "50", "20", "10"]),
    ),
    "pandas categories": (pd.Categorical(amounts(["none", "small", "big", "huge"])), NAMED),
    "pandas categories of numbers": (pd.Categorical(amounts([0, 5, 10, 20])), Levels(COSTS)),
    "arrow codes": (pa.array(amounts(["none", "small", "big", "huge"])).dictionary_encode(), NAMED),
    "numbers of their costs": (LEVEL, Levels([0, 1, 2, 3])),
    "cost columns": (LEVEL, Levels(["c0", "c1", "c2", "c3"])),
}


@pytest.mark.parametrize("way", WAYS)
def test_levels_are_numbered_cheapest_first_however_they_are_written(way: str) -> None:
    written, levels = WAYS[way]
    costs = {f"c{k}": np.full(N, float(k)) for k in range(4)} if levels.cost_columns else {}
    table = content(coupon=written, **costs)
    source = table if isinstance(written, pa.Array) else pd.DataFrame(table)
    log = read(source, levels)
    np.testing.assert_array_equal(log.level, LEVEL)
    assert log.level.dtype == np.int64
    assert len(log.levels) == 4


def test_polars_categories_and_enumerations_are_names() -> None:
    names = ["none", "small", "big", "huge"]
    for kind in (pl.Categorical, pl.Enum(names)):
        frame = pl.DataFrame(content(coupon=amounts(names))).with_columns(pl.col("coupon").cast(kind))
        np.testing.assert_array_equal(read(frame, NAMED).level, LEVEL)


def test_amounts_become_the_labels_of_the_levels() -> None:
    assert read(content(coupon=amounts([0, 5, 10, 20]))).levels.labels == ("0", "5", "10", "20")
    assert read().levels.labels == ("0", "1", "2", "3")
    assert read(content(coupon=amounts([0, 5, 10, 20])), NAMED).levels.labels == NAMED.names


# -- costs --------------------------------------------------------------------------------------------------------------


def test_costs_per_customer_come_from_their_columns_and_are_no_features() -> None:
    own = np.sort(np.random.default_rng(0).random((N, 4)), axis=1)
    own[:, 0] = 0
    columns = {f"c{k}": own[:, k] for k in range(4)}
    log = read(content(**columns), Levels(list(columns)))
    np.testing.assert_array_equal(log.costs, own)
    assert log.features.column_names == ["age", "city"]
    customers = read_customers(content(**columns), levels=log.levels)
    np.testing.assert_array_equal(customers.costs, own)
    assert "c0" not in customers.features.column_names


# -- roles --------------------------------------------------------------------------------------------------------------


def test_optional_roles_are_read_and_are_no_features() -> None:
    table = content(
        p=np.full(N, 0.25), policy=["a", "b"] * 60, home=np.arange(N) // 2, w=np.arange(N) + 1.0, who=np.arange(N) + 7
    )
    log = read(pd.DataFrame(table), propensity="p", logger="policy", cluster="home", weight="w", customer="who")
    np.testing.assert_array_equal(log.propensity, np.full(N, 0.25))
    np.testing.assert_array_equal(log.logger, np.arange(N) % 2)
    np.testing.assert_array_equal(log.cluster, np.arange(N) // 2)
    np.testing.assert_array_equal(log.weight, np.arange(N) + 1.0)
    assert log.customer.to_pylist() == list(range(7, N + 7))
    assert log.features.column_names == ["age", "city"]
    assert repr(log) == "Log(120 rows, 2 features, 4 levels, with propensity, logger, cluster, weight, customer)"


def test_repeated_customers_are_allowed_when_they_are_their_own_cluster() -> None:
    log = read(content(who=np.arange(N) // 2), customer="who", cluster="who")
    assert len(np.unique(log.cluster)) == N // 2


def test_a_column_may_be_called_as_a_role_without_having_it() -> None:
    log = read(content(customer=np.arange(N), weight=np.arange(N)))
    assert log.customer is None
    assert log.weight is None
    assert "customer" in log.features.column_names


@pytest.mark.parametrize(
    "response",
    [
        LEVEL % 2 == 0,
        pa.array([Decimal("1.50") * (k % 2) for k in range(N)]),
        (LEVEL % 2).astype(np.uint8),
        pa.array((LEVEL % 2).tolist()).dictionary_encode(),
    ],
    ids=["booleans", "decimals", "small numbers", "codes of numbers"],
)
def test_a_response_is_any_kind_of_number(response: Any) -> None:
    log = read(content(bought=response))
    assert log.response.dtype == np.float64
    assert len(np.unique(log.response)) == 2
    assert log.response_name == "bought"


# -- what is left out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_rows_without_a_response_are_left_out_with_a_note(missing: Any) -> None:
    bought = (LEVEL % 2).astype(float).tolist()
    bought[5] = bought[77] = missing
    log = read(content(bought=bought, w=np.arange(N) * 1.0, who=np.arange(N)), weight="w", customer="who")
    assert len(log) == N - 2
    assert log.notes == ("2 rows without a response left out",)
    kept = np.delete(np.arange(N), [5, 77])
    np.testing.assert_array_equal(log.weight, kept)
    assert log.customer.to_pylist() == kept.tolist()
    np.testing.assert_array_equal(log.level, LEVEL[kept])


def test_text_like_an_identifier_is_left_out_with_a_note_unless_asked_for() -> None:
    table = content(mail=[f"{k}@example.org" for k in range(N)])
    log = read(table)
    assert "mail" not in log.features.column_names
    assert log.notes == ("column 'mail' left out: nearly every row has its own text, like an identifier",)
    assert read(table, features=["age", "mail"]).features.column_names == ["age", "mail"]


def test_categories_that_no_row_uses_do_not_make_an_identifier() -> None:
    city = pd.Categorical(["a", "b"] * 60, categories=["a", "b", *(f"c{k}" for k in range(500))])
    log = read(pd.DataFrame(content(city=city)))
    assert log.notes == ()
    assert "city" in log.features.column_names


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1, 2]] * N),
        pa.array([{"a": 1}] * N),
        pa.array([b"x"] * N),
        pa.array([b"x"] * N, pa.binary_view()),
    ],
    ids=["lists", "records", "bytes", "views of bytes"],
)
def test_a_column_of_another_kind_is_left_out_with_a_note(values: pa.Array) -> None:
    log = read(pa.table(content(odd=values)))
    assert "odd" not in log.features.column_names
    assert "column 'odd' left out: it holds" in log.notes[0]


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_row_numbers_that_a_file_picked_up_are_left_out_with_a_note(name: str) -> None:
    log = read({name: np.arange(N), **content()})
    assert log.features.column_names == ["age", "city"]
    assert "row numbers" in log.notes[0]


def test_dates_durations_times_and_empty_columns_are_features() -> None:
    table = content(
        day=[dt.date(2024, 1, 1) + dt.timedelta(days=k) for k in range(N)],
        lasted=[dt.timedelta(hours=k) for k in range(N)],
        at=[dt.time(k % 24) for k in range(N)],
        nothing=pa.nulls(N),
        void=["", "a"] * 60,
    )
    assert set(table) - {"coupon", "bought"} == set(read(pa.table(table)).features.column_names)


# -- everything wrong, together -------------------------------------------------------------------------------------------


def test_all_mistakes_are_named_in_one_error() -> None:
    with pytest.raises(InputError) as caught:
        read(content(), Levels([0]), level="coupn", response="bougt", propensity="p", features=["age", "age", "citi"])
    assert len(caught.value.problems) == 6
    for part in ("'coupon'?", "'bought'?", "'p'", "'city'?", "listed twice", "only one level"):
        assert part in str(caught.value)
    table = content(
        coupon=np.where(np.arange(N) == 9, 7, LEVEL),
        bought=np.where(np.arange(N) == 4, np.inf, LEVEL % 2),
        p=np.where(np.arange(N) == 5, 1.2, 0.5),
        w=np.where(np.arange(N) < 3, -1.0, 1.0),
        who=np.r_[0, np.arange(N - 1)],
    )
    with pytest.raises(InputError) as caught:
        read(table, propensity="p", weight="w", customer="who")
    assert len(caught.value.problems) == 5
    for part in ("1 row: 7", "'bought' is infinite", "1 row: 1.2", "'w'", "repeats 1 customer: 0"):
        assert part in str(caught.value)


def test_the_few_words_among_numbers_are_named_and_hints_can_be_copied() -> None:
    """One typing error in a column of amounts is found; a column's name with a space is quoted in TOML."""
    amounts = {"coupon": [0, 1] * 4, "spent on it": ["0,50", "1,25", "two", "0,00", "3,10", "0,00", "0,00", "9,99"]}
    with pytest.raises(InputError, match=r"column 'spent on it' holds text in 1 row: 'two'"):
        read_log(amounts, level="coupon", response="spent on it", levels=Levels([0, 1]))
    with pytest.raises(InputError) as refused:
        read_log(amounts | {"spent on it": ["much"] * 8}, level="coupon", response="spent on it", levels=Levels([0, 1]))
    hint = refused.value.problems[0].hint
    assert tomllib.loads(hint[hint.index("parse = ") : hint.index(" or {")]) == {
        "parse": {"spent on it": "decimal comma"}
    }


# -- values at the edge of computing --------------------------------------------------------------------------------------

LEVEL3 = np.arange(N) % 3


def read3(**columns: Any) -> Log:
    rng = np.random.default_rng(2)
    usual = {"age": rng.normal(size=N), "coupon": LEVEL3, "bought": rng.integers(0, 2, N), "w": np.ones(N)}
    roles = {role: role for role in ("cluster", "logger", "customer") if role in columns}
    return read(usual | columns, Levels([0, 1, 2]), weight="w", **roles)


def on_rows(*rows: int) -> Any:
    weight = np.zeros(N)
    weight[list(rows)] = 1
    return weight


@pytest.mark.parametrize(
    "bad",
    [
        {"age": [10**30] * N},
        {"age": [-(10**25)] * N},
        {"age": [10**400] * N},
        {"bought": pa.array([2**60] * N, pa.timestamp("us"))},  # a time beyond the year 9999
    ],
)
def test_values_beyond_computing_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        read3(**bad)


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (np.where(LEVEL3 == 1, 0.0, 1.0), "all rows with level 1 have weight zero"),
        (np.where(LEVEL3 == 2, 1e-200, 1.0), "all rows with level 2 have weight zero"),
        (on_rows(7), "leave only about 1.0 of 120 rows"),
        (on_rows(0, 1, 2), "leave only about 3.0 of 120 rows"),
        (np.where(np.arange(N) == 3, 1e9, 1.0), "rows 3, 0, 1"),
        (np.full(N, 1e300), "the largest weight in 'w' is 1e+300"),
        (np.full(N, 1e-300), "the largest weight in 'w' is 1e-300"),
        (np.full(N, -1.0), "negative in 120 rows"),
        (np.full(N, np.nan), "missing, infinite or negative"),
        (np.zeros(N), "every weight in 'w' is zero"),
    ],
)
def test_weights_that_leave_nothing_to_estimate_are_refused(weight: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read3(w=weight)
    assert said in str(caught.value)


@pytest.mark.parametrize("seed", range(4))
def test_weights_that_are_accepted_can_be_worked_with(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight = np.where((LEVEL3 == 0) & (np.arange(N) > 9), 0.0, rng.lognormal(0, 1, N))
    assert np.isfinite(evaluate(read3(w=weight), Linear(), budget=1.0).value)


@pytest.mark.parametrize("largest", [1e38, 1e150, 1e300])
def test_responses_beyond_computing_are_refused(largest: float) -> None:
    with pytest.raises(InputError, match="as large as"):
        read3(bought=np.arange(N) / N * largest)


def test_half_precision_groups_are_read3() -> None:
    groups = (np.arange(N) % 20).astype(np.float16)
    log = read3(cluster=groups, logger=groups)
    assert np.array_equal(log.cluster, np.arange(N) % 20)


@pytest.mark.parametrize("word", ["1_0", "５", "1e5_0"])
def test_only_ascii_digits_are_numbers(word: str) -> None:
    with pytest.raises(InputError, match="not in the list"):
        read3(coupon=np.where(LEVEL3 == 1, word, LEVEL3.astype(str)))


# -- observed costs ------------------------------------------------------------------------------------------------------

COST_TABLE: dict[str, list[Any]] = {
    "age": [20, 30, 40, 50],
    "coupon": [0, 5, 0, 5],
    "bought": [0, 1, 1, 0],
    "paid": [0.0, 4.5, 0.0, 1.5],
}
OBSERVED = Levels(doses=[0, 5], observed=True)


def read_costs(levels: Levels = OBSERVED, **changed: Any) -> Log:
    return read_log(COST_TABLE | changed, level="coupon", response="bought", levels=levels, cost_column="paid")


def test_what_rows_cost_is_read_and_is_no_feature() -> None:
    log = read_costs()
    assert log.paid is not None
    assert log.paid.tolist() == [0, 4.5, 0, 1.5]
    assert log.levels.observed
    assert log.features.column_names == ["age"]
    assert repr(log) == "Log(4 rows, 1 features, 2 levels, with paid)"


def test_part_of_a_log_keeps_its_costs_and_they_can_be_its_response() -> None:
    part = read_costs().take(np.array([1, 3]))
    assert part.paid is not None
    assert part.paid.tolist() == part.of_costs.response.tolist() == [4.5, 1.5]
    assert part.response.tolist() == [1, 0]


def test_listed_costs_give_way_to_observed_ones_with_a_note() -> None:
    log = read_costs(Levels(costs=[0, 5]))
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
        read_costs(paid=paid)


def test_rows_without_a_response_need_no_cost() -> None:
    many = {name: values * 3 for name, values in COST_TABLE.items()}
    many["bought"][0] = many["paid"][0] = None
    log = read_costs(**many)
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
        read_costs(levels)


def test_observed_costs_without_a_column_and_a_column_that_is_not_there_are_refused() -> None:
    with pytest.raises(InputError, match="no column says what was paid"):
        read_log(COST_TABLE, level="coupon", response="bought", levels=OBSERVED)
    with pytest.raises(InputError, match="the cost column 'payd' is not in the table"):
        read_log(COST_TABLE, level="coupon", response="bought", levels=OBSERVED, cost_column="payd")
    with pytest.raises(InputError, match="the cost column 'paid' is also listed as a feature"):
        read_log(COST_TABLE, level="coupon", response="bought", levels=OBSERVED, cost_column="paid", features=["paid"])


def test_arrays_make_a_log_with_costs() -> None:
    log = log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0], paid=[0, 2, 0, 3])
    assert log.paid is not None
    assert (log.paid.tolist(), log.levels.observed) == ([0, 2, 0, 3], True)
    with pytest.raises(InputError, match="paid has shape"):
        log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0], paid=[0, 2])
