"""Names and values that tables, calls and ledgers seldom have."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

Rng = np.random.Generator

NAMES = (
    "age", "age ", "", " ", "a\nb", "\r\n", "\x1b[2J", "\x1b]0;owned\x07", "\u202eabc", "\u200f", "😀", "👩‍👩‍👧", "é",
    "e\u0301", "NULL", "nan", "None", "level", "response", "_level", "x0", "0", "-1", "1e5", "a.b", "a[0]", "a,b",
    'a"b', "a'b", "a\\b", "=1+1", "@SUM(A1)", "<b>", "</script>", "{{7*7}}", "%s", "%n", "../../etc/passwd", "a\tb",
    "\x7f", "\x85", "\u2028", "\ufeffage", "ＡＧＥ", "ſ", "İ", "ß", "\U0001d54f", "a" * 10_000, "😀" * 3000,
)  # fmt: skip
ODD_FLOATS = (
    float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, -5e-324, 2.2e-308, 1e308, -1e308, 1.7e308, 1e150, 3.4e38, 1e-45,
    0.1, 1.0, 2.0**53, 2.0**53 + 2, 1e16, 1e-300,
)  # fmt: skip
WORDS = (
    "", " ", "a", "A", "é", "\x1b[31m", "\n", "nan", "NaN", "inf", "-inf", "null", "1", "01", "1.0", "1_0", "５", "1e400", "true",
    "2020-01-01", "\u202e", "😀", "0x10", "a" * 5000, "=HYPERLINK(1)", "<script>alert(1)</script>", "\ufeff", "\u0000",
)  # fmt: skip
INTEGERS = (-(2**63), 2**63 - 1, 0, 1, -1, 2**53 + 1, 2**31, 255)


NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 1.7, "1", "x", "", None, True, float("nan"), float("inf"), -0.0, 1e308, 5e-324, 10**320, [1], {}, (), 1j, b"1",
    np.float32(1), np.int64(2), np.array(3), np.array([1.0]), object(), 2.5, -1.5, 10**30, 2**63,
)  # fmt: skip
TABLES: tuple[Any, ...] = (
    [[0.1, 0.4, 0.5], [0.2, 0.3, 0.9]], [[0.1], [0.2, 0.3]], [], [[]], 3, None, "text", {"a": [1]}, np.zeros((0, 3)),
    np.zeros((3, 0)), np.full((2, 3), np.nan), np.full((2, 3), np.inf), np.full((2, 3), 1e308), np.full((2, 3), "a"),
    np.zeros((2, 3), dtype=object), np.zeros((2, 3), dtype=complex), np.zeros((2, 2, 2)), np.array(["1", "2"]),
    np.zeros(3, dtype="M8[D]"), np.ones((2, 3), bool), np.arange(6.0).reshape(2, 3).astype("f2"),
    [["0.1", "0.2", "0.3"]], [[None, 1, 2]], [[10**400, 1, 2]], np.zeros((2, 3))[:, ::-1],
)  # fmt: skip
COSTS: tuple[Any, ...] = (
    [0, 1, 2], [0, 1e308, 1.5e308], [0, -1, 2], [2, 1, 0], [0, 1], ["0", "1", "2"], ["a", "b", "c"], [0, None, 2], [0, float("nan"), 1],
    np.array(3), 5, None, "0,1,2", {}, [[0, 1, 2], [0, 2, 4]], [0, 10**320, 10**321], np.zeros((2, 3), bool), [True, False], [], [[]],
)  # fmt: skip


LEDGER_COLUMNS = {
    "ledger": ("format", "total", "starts", "ends", "valid", "late", "spent", "promised", "requests",
               "decisions", "state", "plan", "open_expected"),
    "request": ("number", "id", "digest", "policy", "decided_at", "expires_at", "closed"),
    "decision": ("number", "customer", "place", "level", "at_once", "face", "expected", "propensity", "response", "price",
                 "reason", "paid"),
}  # fmt: skip
LEDGER_VALUES: tuple[Any, ...] = (
    0, -1, 1, 2, 7, 10**15, 2**62, "x", "", "[]", "{}", "NaN", "[NaN]", "[1e999]", b"\x00\xff", 1.5, "null", "[" * 5000, '"', "1" * 400,
    "a\x1b[2J",
)  # fmt: skip


def draw_name(rng: Rng) -> str:
    """Return a name: plain half of the time."""
    return f"x{rng.integers(0, 10**6)}" if rng.random() < 0.5 else str(NAMES[rng.integers(len(NAMES))])


def pick(rng: Rng, choices: Any, rows: int, missing: float = 0.1) -> list[Any]:
    """Return values drawn from a list of which a few are taken; some are missing."""
    few = [choices[i] for i in rng.integers(0, len(choices), int(rng.integers(1, 6)))]
    return [None if rng.random() < missing else few[rng.integers(len(few))] for _ in range(rows)]


def draw_values(rng: Rng, rows: int) -> Any:
    """Return a column of odd values: a list, an array of NumPy or one of Arrow."""
    return MAKERS[rng.integers(len(MAKERS))](rng, rows)


def floats(rng: Rng, rows: int) -> Any:
    values = rng.normal(size=rows)
    odd = rng.random(rows) < rng.choice([0.02, 0.3, 1.0])
    values[odd] = np.array(ODD_FLOATS)[rng.integers(0, len(ODD_FLOATS), odd.sum())]
    kind = rng.integers(3)
    if kind == 0:
        return values
    return pa.array(values, pa.float64(), mask=rng.random(rows) < 0.2, from_pandas=bool(kind == 1))


def small_floats(rng: Rng, rows: int) -> Any:
    with np.errstate(over="ignore"):
        return pa.array((rng.normal(size=rows) * 10.0 ** rng.integers(-9, 9)).astype(rng.choice(["f2", "f4"])))


def scaled(rng: Rng, rows: int) -> Any:
    return rng.normal(size=rows) * 10.0 ** rng.integers(-320, 308)


def integers(rng: Rng, rows: int) -> Any:
    kind = getattr(pa, str(rng.choice(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])))()
    top = 127 if kind == pa.int8() else 200 if kind.bit_width == 8 else 30_000
    return pa.array(rng.integers(0, top, rows), kind, mask=rng.random(rows) < 0.1)


def wide_integers(rng: Rng, rows: int) -> Any:
    return pa.array(pick(rng, INTEGERS, rows), pa.int64())


def huge_integers(rng: Rng, rows: int) -> Any:
    return pick(rng, (10**30, -(10**30), 10**400, 2**64, 1, 0), rows)


def words(rng: Rng, rows: int) -> Any:
    kind = (pa.string(), pa.large_string(), pa.string_view(), None)[rng.integers(4)]
    values = pick(rng, WORDS, rows)
    return values if kind is None else pa.array(values, kind)


def many_words(rng: Rng, rows: int) -> Any:
    return [f"word {rng.integers(0, 10**9)}" for _ in range(rows)]


def coded(rng: Rng, rows: int) -> Any:
    """A dictionary whose indices, or whose values, may be null."""
    values = pa.array(["a", None, "b", ""]) if rng.random() < 0.5 else pa.array([1.5, None, float("nan"), 2.0])
    codes = pa.array(rng.integers(0, 4, rows), pa.int8(), mask=rng.random(rows) < 0.3)
    return pa.DictionaryArray.from_arrays(codes, values)


def raw(rng: Rng, rows: int) -> Any:
    values = pick(rng, (b"", b"\x00", b"\xff\xfe", b"abc", "é".encode("latin-1")), rows)
    return values if rng.random() < 0.5 else pa.array(values, (pa.binary(), pa.large_binary())[rng.integers(2)])


def fixed(rng: Rng, rows: int) -> Any:
    return pa.array(pick(rng, (b"abcd", b"\x00\x00\x00\xff"), rows), pa.binary(4))


def nested(rng: Rng, rows: int) -> Any:
    kinds: tuple[tuple[Any, ...], ...] = (
        ([1, 2], [], [None], [1]),
        ({"a": 1, "b": "x"}, {"a": None, "b": None}),
        ([[1]], [[]], [[1, 2], []]),
    )
    values = pick(rng, kinds[rng.integers(len(kinds))], rows)
    return pa.array(values) if any(value is not None for value in values) else values


def maps(rng: Rng, rows: int) -> Any:
    return pa.array(pick(rng, ([("a", 1)], [], [("b", None)]), rows), pa.map_(pa.string(), pa.int64()))


def instants(rng: Rng, rows: int) -> Any:
    unit = str(rng.choice(["s", "ms", "us", "ns"]))
    zone = (None, "UTC", "Europe/Oslo", "+05:30", "Asia/Kathmandu")[rng.integers(5)]
    reach = {"s": 2**60, "ms": 2**60, "us": 2**62, "ns": 2**62}[unit] if rng.random() < 0.3 else 10**9
    return pa.array(rng.integers(-reach, reach, rows), pa.int64(), mask=rng.random(rows) < 0.2).cast(
        pa.timestamp(unit, zone)
    )


def days(rng: Rng, rows: int) -> Any:
    if rng.random() < 0.5:
        return pa.array(rng.integers(-(2**31), 2**31, rows), pa.int32()).cast(pa.date32())
    return pick(rng, (dt.date.min, dt.date.max, dt.date(2020, 2, 29), dt.datetime.max, dt.time(3, 4)), rows, 0.0)


def spans(rng: Rng, rows: int) -> Any:
    unit = str(rng.choice(["s", "ms", "us", "ns"]))
    return pa.array(rng.integers(-(2**62), 2**62, rows), pa.int64()).cast(pa.duration(unit))


def clocks(rng: Rng, rows: int) -> Any:
    kind, top = ((pa.time32("s"), 86_399), (pa.time64("ns"), 86_399 * 10**9))[rng.integers(2)]
    return pa.array(rng.integers(0, top, rows), pa.int32() if kind == pa.time32("s") else pa.int64()).cast(kind)


def decimals(rng: Rng, rows: int) -> Any:
    choices = (decimal.Decimal("1.10"), decimal.Decimal("-9" * 1 + "9" * 30), decimal.Decimal("0"))
    kind = (pa.decimal128(38, 2), pa.decimal256(76, 2), None)[rng.integers(3)]
    values = pick(rng, (*choices, decimal.Decimal("NaN")) if kind is None else choices, rows)
    return values if kind is None else pa.array(values, kind)


def flags(rng: Rng, rows: int) -> Any:
    return pa.array(rng.random(rows) < 0.5, mask=rng.random(rows) < 0.2)


def nothing(rng: Rng, rows: int) -> Any:
    return pa.nulls(rows) if rng.random() < 0.5 else pa.nulls(rows, pa.float64())


def mixtures(rng: Rng, rows: int) -> Any:
    return pick(rng, (1, "a", 1.5, None, b"x", [1], {"a": 1}, 10**30, True, dt.date(2020, 1, 1), object, 1j), rows)


def constants(rng: Rng, rows: int) -> Any:
    return np.full(rows, float(rng.choice([0.0, -0.0, 1.0, 1e308])))


def intervals(rng: Rng, rows: int) -> Any:
    return pa.array(pick(rng, ((1, 2, 3), (0, 0, 0)), rows), pa.month_day_nano_interval())


def runs(rng: Rng, rows: int) -> Any:
    if rows == 0:
        return pa.nulls(0)
    return pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array([1.5]))


def unions(rng: Rng, rows: int) -> Any:
    codes = pa.array(rng.integers(0, 2, rows), pa.int8())
    return pa.UnionArray.from_sparse(codes, [pa.array(np.arange(rows)), pa.array(["a"] * rows, pa.string())])


def ragged(rng: Rng, rows: int) -> Any:
    return list(range(rows + int(rng.integers(-1, 2)))) if rows else [1]


MAKERS: tuple[Callable[[Rng, int], Any], ...] = (
    floats, small_floats, scaled, integers, wide_integers, huge_integers, words, many_words, coded, raw, fixed, nested,
    maps, instants, days, spans, clocks, decimals, flags, nothing, mixtures, constants, intervals, runs, unions, ragged,
)  # fmt: skip


def write_as(rng: Rng, columns: dict[str, Any]) -> Any:
    """Return the columns as a dict, or as a table of Arrow, pandas or polars if they can be one; else as a dict."""
    kind = rng.integers(5)
    try:
        if kind == 0:
            return pa.table(columns)
        if kind == 1:  # two columns of one name
            arrays = [pa.array(values) if not isinstance(values, pa.Array) else values for values in columns.values()]
            names = list(columns)
            names[-1] = names[0] if rng.random() < 0.3 else names[-1]
            return pa.Table.from_arrays(arrays, names=names)
        plain = {name: v.to_pylist() if isinstance(v, pa.Array) else v for name, v in columns.items()}
        if kind == 2:
            import pandas as pd

            return pd.DataFrame(plain)
        if kind == 3:
            import polars as pl

            return pl.DataFrame(plain)
    except BaseException:  # what these libraries cannot hold (polars panics) is given as it is
        return columns
    return columns
