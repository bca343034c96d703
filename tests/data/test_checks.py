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

from largesse.data.log import read_customers, read_log
from largesse.errors import InputError
from largesse.levels import Levels
from largesse.records import Log

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


def test_booleans_are_two_levels() -> None:
    log = read(content(coupon=LEVEL % 2 == 1), Levels([0, 3]))
    np.testing.assert_array_equal(log.level, LEVEL % 2)


def test_amounts_become_the_labels_of_the_levels() -> None:
    assert read(content(coupon=amounts([0, 5, 10, 20]))).levels.labels == ("0", "5", "10", "20")
    assert read().levels.labels == ("0", "1", "2", "3")
    assert read(content(coupon=amounts([0, 5, 10, 20])), NAMED).levels.labels == NAMED.names


def test_costs_that_are_the_level_numbers_read_the_same_either_way() -> None:
    np.testing.assert_array_equal(read(levels=Levels([0, 1, 2, 3])).level, LEVEL)


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


def test_costs_common_to_all_are_not_spread_over_the_rows() -> None:
    assert read().costs is None
    assert read(levels=Levels(COSTS, on_redemption=True)).levels.on_redemption


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


def test_intervals_from_pandas_are_left_out_with_a_note() -> None:
    log = read(pd.DataFrame(content(bin=pd.cut(np.arange(N), 4))))
    assert "column 'bin' left out" in log.notes[0]


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


def test_five_mistakes_of_naming_are_named_in_one_error() -> None:
    with pytest.raises(InputError) as caught:
        read_log(
            content(),
            level="coupn",
            response="bougt",
            levels=Levels([0]),
            propensity="p",
            features=["age", "age", "citi"],
        )
    message = str(caught.value)
    assert len(caught.value.problems) == 6
    for part in (
        "6 things are wrong",
        "the level column 'coupn' is not in the table\n   → did you mean 'coupon'?",
        "the response column 'bougt' is not in the table\n   → did you mean 'bought'?",
        "the propensity column 'p' is not in the table",
        "the feature column 'citi' is not in the table\n   → did you mean 'city'?",
        "a feature is listed twice",
        "there is only one level",
    ):
        assert part in message


def test_five_mistakes_of_values_are_named_in_one_error() -> None:
    table = content(
        coupon=np.where(np.arange(N) == 9, 7, LEVEL),
        bought=np.where(np.arange(N) == 4, np.inf, LEVEL % 2),
        p=np.where(np.arange(N) == 5, 1.2, 0.5),
        w=np.where(np.arange(N) < 3, -1.0, 1.0),
        who=np.r_[0, np.arange(N - 1)],
    )
    with pytest.raises(InputError) as caught:
        read(table, propensity="p", weight="w", customer="who")
    message = str(caught.value)
    assert "5 things are wrong" in message
    for part in (
        "'coupon' holds a level that is not in the list in 1 row: 7\n   → the list is: 0, 1, 2, 3",
        "the response 'bought' is infinite in 1 row",
        "the propensity 'p' is not in (0, 1] in 1 row: 1.2",
        "the weight 'w' is missing, infinite or negative in 3 rows",
        "the customer id 'who' repeats 1 customer: 0",
    ):
        assert part in message


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
