"""Rules of `read_log`: levels, costs, roles, columns that are left out, and errors that name every problem."""

import datetime as dt
import tomllib
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from largesse.data import log_from_arrays, read_customers, read_log
from largesse.errors import InputError
from largesse.evaluation import evaluate
from largesse.levels import Levels
from largesse.records import Log
from largesse.response import Linear

N = 120
ROW = np.arange(N)
LEVEL, LEVEL3 = ROW % 4, ROW % 3
COSTS = (0, 5, 10, 20)
NAMES = ["none", "small", "big", "huge"]
NAMED = Levels(COSTS, names=NAMES)


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


def refused(table: Any = None, levels: Levels | None = None, **roles: Any) -> str:
    """Return the message and the number of problems of a refused log."""
    with pytest.raises(InputError) as caught:
        read(table, levels, **roles)
    return str(caught.value)


def spread(values: Any) -> list[Any]:
    return [values[k] for k in LEVEL]


# -- levels and costs ---------------------------------------------------------------------------------------------------

WRITTEN: dict[str, tuple[Any, Levels]] = {
    "numbers": (LEVEL, Levels(COSTS)),
    "small unsigned numbers": (LEVEL.astype(np.uint8), Levels(COSTS)),
    "floats": (LEVEL.astype(np.float64), Levels(COSTS)),
    "amounts equal to the costs": (spread([0, 5, 10, 20]), Levels(COSTS)),
    "amounts as floats": (spread([0.0, 5.0, 10.0, 20.0]), Levels(COSTS)),
    "amounts as decimals": (pa.array(spread([Decimal("0.00"), Decimal("5.00"), Decimal(10), Decimal(20)])), Levels(COSTS)),
    "amounts as text": (spread(["0", "5", "10.0", "20.00"]), Levels(COSTS)),
    "numbers as text": (spread(["0", "1", "2", "3"]), Levels(COSTS)),
    "doses": (spread([-1.5, 0, 2.5, 7]), Levels(COSTS, doses=[-1.5, 0, 2.5, 7])),
    "doses as text": (spread(["0", "2.50", "3", "9"]), Levels(COSTS, doses=[0, 2.5, 3, 9])),
    "names": (spread(NAMES), NAMED),
    "numbers of names": (LEVEL, NAMED),
    "amounts of names": (spread([0, 5, 10, 20]), NAMED),
    "names that are numbers": (spread([100, 50, 20, 10]), Levels(COSTS, names=["100", "50", "20", "10"])),
    "names that are numbers, as text": (spread(["100", "50", "20", "10"]), Levels(COSTS, names=["100", "50", "20", "10"])),
    "pandas categories": (pd.Categorical(spread(NAMES)), NAMED),
    "pandas categories of numbers": (pd.Categorical(spread([0, 5, 10, 20])), Levels(COSTS)),
    "polars categories": (pl.Series(spread(NAMES), dtype=pl.Categorical), NAMED),
    "polars enumeration": (pl.Series(spread(NAMES), dtype=pl.Enum(NAMES)), NAMED),
    "arrow codes": (pa.array(spread(NAMES)).dictionary_encode(), NAMED),
    "numbers of their costs": (LEVEL, Levels([0, 1, 2, 3])),
    "cost columns": (LEVEL, Levels(["c0", "c1", "c2", "c3"])),
}  # fmt: skip


@pytest.mark.parametrize("way", WRITTEN)
def test_levels_are_numbered_cheapest_first_in_every_notation(way: str) -> None:
    written, levels = WRITTEN[way]
    table = content(coupon=written, **{f"c{k}": np.full(N, float(k)) for k in range(4) if levels.cost_columns})
    source = pl.DataFrame(table) if isinstance(written, pl.Series) else table
    log = read(source if isinstance(written, pa.Array | pl.Series) else pd.DataFrame(table), levels)
    np.testing.assert_array_equal(log.level, LEVEL)
    assert log.level.dtype == np.int64
    assert len(log.levels) == 4
    amounts = (
        ("0", "5", "10", "20") if "amounts" in way or way == "pandas categories of numbers" else ("0", "1", "2", "3")
    )
    if levels.doses is None:
        assert log.levels.labels == (levels.names or amounts)


def test_costs_per_customer_come_from_their_columns_and_are_no_features() -> None:
    own = np.sort(np.random.default_rng(0).random((N, 4)), axis=1)
    own[:, 0] = 0
    columns = {f"c{k}": own[:, k] for k in range(4)}
    log = read(content(**columns), Levels(list(columns)))
    customers = read_customers(content(**columns), levels=log.levels)
    np.testing.assert_array_equal(log.costs, own)
    np.testing.assert_array_equal(customers.costs, own)
    assert log.features.column_names == ["age", "city"]
    assert "c0" not in customers.features.column_names


# -- roles --------------------------------------------------------------------------------------------------------------


def test_optional_roles_are_read_and_are_no_features() -> None:
    table = content(p=np.full(N, 0.25), policy=["a", "b"] * 60, home=ROW // 2, w=ROW + 1.0, who=ROW + 7)
    log = read(pd.DataFrame(table), propensity="p", logger="policy", cluster="home", weight="w", customer="who")
    for values, expected in ((log.propensity, np.full(N, 0.25)), (log.logger, ROW % 2), (log.cluster, ROW // 2)):
        np.testing.assert_array_equal(values, expected)
    np.testing.assert_allclose(log.weight, (ROW + 1) / (ROW + 1).mean())
    assert log.customer.to_pylist() == list(range(7, N + 7))
    assert log.features.column_names == ["age", "city"]
    assert repr(log) == "Log(120 rows, 2 features, 4 levels, with propensity, logger, cluster, weight, customer)"
    for roles in ({"cluster": "who"}, {}):  # rows of one customer are a cluster
        repeated = read(content(who=ROW // 2), customer="who", **roles)
        assert len(np.unique(repeated.cluster)) == N // 2
    assert read(content(who=ROW), customer="who").cluster is None
    unnamed = read(content(customer=ROW, weight=ROW))
    assert unnamed.customer is unnamed.weight is None
    assert "customer" in unnamed.features.column_names
    half = (ROW % 20).astype(np.float16)
    np.testing.assert_array_equal(
        read(content(home=half, policy=half), cluster="home", logger="policy").cluster, ROW % 20
    )


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
    log = read(content(bought=bought, w=ROW * 1.0, who=ROW), weight="w", customer="who")
    kept = np.delete(ROW, [5, 77])
    assert log.notes == ("2 rows without a response left out",)
    assert log.customer.to_pylist() == kept.tolist()
    np.testing.assert_allclose(log.weight, kept / kept.mean())
    np.testing.assert_array_equal(log.level, LEVEL[kept])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("mail", [f"{k}@example.org" for k in range(N)]),
        ("odd", pa.array([[1, 2]] * N)),
        ("odd", pa.array([{"a": 1}] * N)),
        ("odd", pa.array([b"x"] * N)),
        ("odd", pa.array([b"x"] * N, pa.binary_view())),
        *((name, ROW) for name in ("", "Unnamed: 0", "__index_level_0__")),
    ],
)
def test_identifiers_row_numbers_and_other_kinds_are_left_out_with_a_note(name: str, values: Any) -> None:
    log = read(content(**{name: values}))
    assert log.features.column_names == ["age", "city"]
    assert [note.startswith(f"column {name!r} left out: ") for note in log.notes] == [True]
    if not isinstance(values, pa.Array):
        assert name in read(content(**{name: values}), features=["age", name]).features.column_names


def test_dates_durations_times_empty_columns_and_few_categories_are_features() -> None:
    table = content(
        day=[dt.date(2024, 1, 1) + dt.timedelta(days=k) for k in range(N)],
        lasted=[dt.timedelta(hours=k) for k in range(N)],
        at=[dt.time(k % 24) for k in range(N)],
        nothing=pa.nulls(N),
        void=["", "a"] * 60,
    )
    assert set(table) - {"coupon", "bought"} == set(read(pa.table(table)).features.column_names)
    # Categories that no row uses do not make an identifier.
    city = pd.Categorical(["a", "b"] * 60, categories=["a", "b", *(f"c{k}" for k in range(500))])
    log = read(pd.DataFrame(content(city=city)))
    assert log.notes == ()
    assert "city" in log.features.column_names


# -- everything wrong, together -------------------------------------------------------------------------------------------


def test_all_mistakes_are_named_in_one_error() -> None:
    said = refused(None, Levels([0]), level="coupn", response="bougt", propensity="p", features=["age", "age", "citi"])
    assert "6 things are wrong" in said
    for part in ("'coupon'?", "'bought'?", "'p'", "'city'?", "listed twice", "only one level"):
        assert part in said
    table = content(
        coupon=np.where(ROW == 9, 7, LEVEL),
        bought=np.where(ROW == 4, np.inf, LEVEL % 2),
        p=np.where(ROW == 5, 1.2, 0.5),
        w=np.where(ROW < 3, -1.0, 1.0),
        who=pa.array([None, *range(N - 1)]),
    )
    said = refused(table, propensity="p", weight="w", customer="who")
    assert "5 things are wrong" in said
    for part in ("1 row: 7", "'bought' is infinite", "1 row: 1.2", "'w'", "'who' is missing in 1 row"):
        assert part in said


def test_the_few_words_among_numbers_are_named_and_hints_can_be_copied() -> None:
    """One typing error in a column of amounts is found; a column's name with a space is quoted in TOML."""
    amounts = {"coupon": [0, 1] * 4, "spent on it": ["0,50", "1,25", "two", "0,00", "3,10", "0,00", "0,00", "9,99"]}
    with pytest.raises(InputError, match=r"'spent on it' .*1 row.*'two'"):
        read_log(amounts, level="coupon", response="spent on it", levels=Levels([0, 1]))
    with pytest.raises(InputError) as caught:
        read_log(amounts | {"spent on it": ["much"] * 8}, level="coupon", response="spent on it", levels=Levels([0, 1]))
    hint = caught.value.problems[0].hint
    parsed = tomllib.loads(hint[hint.index("parse = ") : hint.index(" or {")])
    assert parsed == {"parse": {"spent on it": "decimal comma"}}


def on_rows(*rows: int) -> Any:
    return np.isin(ROW, rows).astype(float)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"age": [10**30] * N}, ""),
        ({"age": [-(10**25)] * N}, ""),
        ({"age": [10**400] * N}, ""),
        ({"bought": pa.array([2**60] * N, pa.timestamp("us"))}, ""),  # a time beyond the year 9999
        *(({"bought": ROW / N * largest}, "as large as") for largest in (1e38, 1e150, 1e300)),
        *(
            ({"coupon": np.where(LEVEL3 == 1, word, LEVEL3.astype(str))}, "not in the list")
            for word in ("1_0", "５", "1e5_0")  # only ASCII digits are numbers
        ),
        ({"w": np.where(LEVEL3 == 1, 0.0, 1.0)}, "all rows with level 1 have weight zero"),
        ({"w": np.where(LEVEL3 == 2, 1e-200, 1.0)}, "all rows with level 2 have weight zero"),
        ({"w": on_rows(7)}, "leave only about 1.0 of 120 rows"),
        ({"w": on_rows(0, 1, 2)}, "leave only about 3.0 of 120 rows"),
        ({"w": np.where(ROW == 3, 1e9, 1.0)}, "rows 3, 0, 1"),
        ({"w": np.full(N, 1e300)}, "the largest weight in 'w' is 1e+300"),
        ({"w": np.full(N, 1e-300)}, "the largest weight in 'w' is 1e-300"),
        ({"w": np.full(N, -1.0)}, "negative in 120 rows"),
        ({"w": np.full(N, np.nan)}, "missing, infinite or negative"),
        ({"w": np.zeros(N)}, "every weight in 'w' is zero"),
    ],
)
def test_values_that_cannot_be_computed_with_are_refused(columns: dict[str, Any], said: str) -> None:
    table = content(coupon=LEVEL3, w=np.ones(N)) | columns
    assert said in refused(table, Levels([0, 1, 2]), weight="w")


def test_weights_that_are_accepted_can_be_worked_with() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        weight = np.where((LEVEL3 == 0) & (ROW > 9), 0.0, rng.lognormal(0, 1, N))
        log = read(content(coupon=LEVEL3, w=weight), Levels([0, 1, 2]), weight="w")
        assert np.isfinite(evaluate(log, Linear(), budget=1.0).value)


# -- observed costs ------------------------------------------------------------------------------------------------------

COST_TABLE: dict[str, list[Any]] = {
    "age": [20, 30, 40, 50],
    "coupon": [0, 5, 0, 5],
    "bought": [0, 1, 1, 0],
    "paid": [0.0, 4.5, 0.0, 1.5],
}
OBSERVED = Levels(doses=[0, 5], observed=True)


def read_costs(levels: Levels = OBSERVED, cost_column: str | None = "paid", **changed: Any) -> Log:
    roles = {"features": changed.pop("features", None), "cost_column": cost_column}
    return read_log(COST_TABLE | changed, level="coupon", response="bought", levels=levels, **roles)


def test_observed_costs_are_read_and_are_no_feature() -> None:
    log = read_costs()
    assert log.paid is not None
    assert log.paid.tolist() == [0, 4.5, 0, 1.5]
    assert log.levels.observed
    assert log.features.column_names == ["age"]
    assert repr(log) == "Log(4 rows, 1 features, 2 levels, with paid)"
    part = log.take(np.array([1, 3]))
    assert part.paid is not None
    assert part.paid.tolist() == part.of_costs.response.tolist() == [4.5, 1.5]
    assert part.response.tolist() == [1, 0]
    listed = read_costs(Levels(costs=[0, 5]))  # listed costs give way, with a note
    assert (listed.levels.observed, listed.levels.doses) == (True, (0, 5))
    assert any("not used" in note for note in listed.notes)
    tripled = {name: values * 3 for name, values in COST_TABLE.items()}
    tripled["bought"][0] = tripled["paid"][0] = None  # a row without a response needs no cost
    longer = read_costs(**tripled)
    assert longer.paid is not None
    assert len(longer) == len(longer.paid) == 11


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"paid": [0, 1, -1, 0]}, "missing, infinite or negative in 1 row"),
        ({"paid": [0, None, 1, None]}, "missing, infinite or negative in 2 rows"),
        ({"paid": [0, 0, 0, 0]}, "is 0 in every row"),
        ({"paid": [0, 1, 1e40, 0]}, "as large as 1e\\+40"),
        ({"paid": ["a", "b", "c", "d"]}, "cost column 'paid' does not hold numbers"),
        ({"levels": Levels(costs=[0, 5], on_redemption=True)}, "named, and also on_redemption"),
        ({"levels": Levels(costs=[0, 5], contact_cost=1)}, "named, and also contact_cost"),
        ({"cost_column": None}, "no column with the paid costs"),
        ({"cost_column": "payd"}, "the cost column 'payd' is not in the table"),
        ({"features": ["paid"]}, "'paid' \\(cost\\)"),
    ],
)
def test_invalid_observed_costs_are_refused(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        read_costs(**changes)


def test_arrays_make_a_log_with_costs() -> None:
    log = log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0], paid=[0, 2, 0, 3])
    assert log.paid is not None
    assert (log.paid.tolist(), log.levels.observed) == ([0, 2, 0, 3], True)
    with pytest.raises(InputError, match="paid has shape"):
        log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0], paid=[0, 2])


def test_features_that_were_known_before_must_exist() -> None:
    assert read(known_before=["age"]).known_before == ("age",)
    assert "the known_before column 'agee' is not in the table" in refused(known_before=["agee"])
    assert "known_before is the text 'age'" in refused(known_before="age")
