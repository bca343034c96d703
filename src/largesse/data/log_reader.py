"""Reading and checking of logs and customer tables, from files, dataframes or arrays.

`table_checks` holds the rules.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from largesse.data.arrow_columns import (
    convert_to_floats,
    convert_to_seconds,
    count_words,
    find_feature_kind,
    index_words,
)
from largesse.data.column_roles import make_role_spec, read_role_columns
from largesse.data.large_log_reader import read_large_log
from largesse.data.table_batches import TableBatches
from largesse.data.table_checks import TableChecker
from largesse.data.table_reader import check_column_names, list_reading_notes, read_table
from largesse.data.text_parsing import find_parse_setting_problems, parse_text_columns
from largesse.errors import InputError, Problem, fail, find_response_value_problems, join_some, plural, refuse, suggest
from largesse.levels import Levels
from largesse.records import Array, Customers, Log, Roles

if TYPE_CHECKING:
    import pyarrow as pa


def read_log(
    source: Any,
    *,
    levels: Levels | Mapping[str, float],
    most_rows: int | str | None = None,
    seed: int = 0,
    response_value: float | None = None,
    **roles: Unpack[Roles],
) -> Log:
    """Read and check a log of past decisions.

    Parameters
    ----------
    source
        A path, a glob, a folder, or a pandas, polars or pyarrow table.
    levels
        The levels in order, and their costs: `Levels`, or a dict of name and cost, ``{"none": 0, "small": 5}``.

    Other Parameters
    ----------------
    level, response
        The columns of the level that each customer got, and of the response.
    propensity, logger, cluster, weight, customer
        Optional columns: the probability with which the row's own level was chosen, in (0, 1]; the policy that chose it;
        the household, village or other group whose rows are not independent; the row's weight; the customer's id. Customers
        with several rows are clusters, unless `cluster` names others.
        `propensity` may also be a list with one probability for each level, where all customers had the same.
    propensity_strata
        Optional column, instead of `propensity`: levels were drawn within its strata; a level's share there is its propensity.
    cost_column
        Optional column: the cost that was paid for each row, if it depends on the customer's response. No list of costs is needed
        then; budgets hold for expected costs.
    features
        The columns to learn from; by default every column that has no other role.
    known_before
        Features that `doctor` suspects, but that were known before the level was chosen.
    accepted
        Topics of checks, such as "balance", whose warnings are known: `doctor` lists them as accepted.
    protected
        Columns such as sex or religion that neither models of the response nor plans see. Propensities are estimated with them.
    most_rows, seed
        A log of more rows is read in batches: models learn from a random sample of `most_rows` of them, drawn from every
        level with this seed, and are judged by all. "auto": as many as fit into memory. None: all rows are in memory.
    response_value
        Value of one unit of response, in the unit of costs: 1 where the response is money, a margin, or the value of a yes.
        Evaluations then contain the profit after costs.
    parse
        Notations of columns, where they are not plain: "decimal comma", "decimal point", "percent", "text", "day first",
        "month first", "excel date", or the number for each word: ``parse={"bought": {"yes": 1, "no": 0}}``.

    Examples
    --------
    >>> table = {"age": [20, 30, 40, 50], "coupon": [0, 5, 0, 5], "bought": [0, 1, 1, 0]}
    >>> read_log(table, level="coupon", response="bought", levels=Levels(costs=[0, 5])).level
    array([0, 1, 0, 1])
    """
    refuse("log", find_response_value_problems(response_value))
    spec = make_role_spec(Levels(levels) if isinstance(levels, Mapping) else levels, {**roles})
    if most_rows is not None and (large := read_large_log(source, spec, most_rows, seed)) is not None:
        return replace(large, response_value=response_value)
    texts = dict.fromkeys(spec.columns_read_as_text, "text")
    if isinstance(source, TableBatches):
        source = source.read_all()
    table = read_table(source, what="log", plain=spec.plain_text_columns, parse=texts)
    check_column_names(table.column_names, len(table), "log")
    parsed, notes, problems = parse_text_columns(table, spec.parse, skip=spec.plain_text_columns)
    notes = [*list_reading_notes(table.schema), *notes]
    check = TableChecker(parsed, [*find_parse_setting_problems(spec.parse, table.column_names), *problems], notes)
    log = replace(read_role_columns(check, spec), response_value=response_value)
    refuse("log", check.problems)
    known = np.isfinite(log.response)
    return log if known.all() else log.take(known)


def read_customers(
    source: Any,
    *,
    levels: Levels | None = None,
    customer: str | None = None,
    features: Sequence[str] | None = None,
    parse: Mapping[str, Any] | None = None,
) -> Customers:
    """Read and check a table of customers to plan for.

    Parameters
    ----------
    source
        A path, a glob, a folder, or a pandas, polars or pyarrow table.
    levels
        Needed if costs differ between customers; they name the columns of costs.
    customer
        Column with the customer's id, each once.
    features
        Columns the model needs; by default every column but the id and the costs.
    parse
        Notations of columns, as for `read_log`.
    """
    table = read_table(source, what="customers", plain=[str(customer)], parse=parse)
    return make_checked_customers(table, levels=levels, customer=customer, features=features)


def make_checked_customers(
    table: pa.Table,
    *,
    levels: Levels | None = None,
    customer: str | None = None,
    features: Sequence[str] | None = None,
) -> Customers:
    """Check a customer table that is already an Arrow table, and return its customers.

    The arguments are those of `read_customers`.
    """
    check_column_names(table.column_names, len(table), "customers")
    check = TableChecker(table)
    cost_columns = (levels.cost_columns if levels is not None else None) or ()
    require_customer_columns(table.column_names, [*([customer] if customer else []), *cost_columns, *(features or ())])
    ids = None if customer is None else check.read_ids(customer, repeats=False)
    costs = None if levels is None else check.read_costs(levels)
    left = [name for name in table.column_names if name != customer and name not in cost_columns]
    refuse("customers", check.problems)
    return Customers(table.select(list(features) if features is not None else left), ids, costs)


def require_customer_columns(known: Sequence[str], required: Sequence[str]) -> None:
    """Refuse a customer table that lacks a required column."""
    missing = [name for name in required if name not in known]
    refuse("customers", [Problem(f"a column {name!r} is not in the table", suggest(name, known)) for name in missing])


def log_from_arrays(
    features: Any,
    level: Any,
    response: Any,
    *,
    levels: Levels | None = None,
    propensity: Any = None,
    weight: Any = None,
    cluster: Any = None,
    paid: Any = None,
) -> Log:
    """Make a checked log from features (n, p), levels (n,) in 0..K−1 and responses (n,).

    Features may also be a dataframe.

    `paid` (n,) is the actual cost of each row, where costs are observed.

    >>> log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0])
    Log(4 rows, 4 features, 2 levels)
    """
    import pyarrow as pa

    table = make_feature_table(features)
    rows, width = table.num_rows, table.num_columns
    extras = {"level": level, "response": response, "propensity": propensity, "weight": weight, "cluster": cluster}
    extras["cost_column"] = paid
    with _convert_array_errors("level, response or another column"):
        arrays = {f"_{role}": np.asarray(values) for role, values in extras.items() if values is not None}
    problems = [
        Problem(
            f"{_name_role_argument(role[1:])} has shape {values.shape}, features have {plural(rows, 'row')}",
            "give one value per row",
        )
        for role, values in arrays.items()
        if values.shape != (rows,)
    ]
    missing = [role for role in ("level", "response") if extras[role] is None]
    problems += [Problem(f"{_name_role_argument(role)} is None", "give one value per row") for role in missing]
    if rows == 0 or width == 0:
        problems.append(Problem(f"features have shape ({rows}, {width})", "give at least one row and one column"))
    refuse("arrays", problems)
    for role, values in arrays.items():
        with _convert_array_errors(_name_role_argument(role[1:])):
            table = table.append_column(role, pa.array(values))
    if levels is None:
        levels = Levels(costs=[float(k) for k in range(_find_highest_level(arrays["_level"]) + 1)])
    return read_log(
        table,
        levels=levels,
        features=table.column_names[:width],
        **{role: (f"_{role}" if f"_{role}" in arrays else None) for role in extras},  # type: ignore[arg-type]
    )


def _name_role_argument(role: str) -> str:
    return "paid" if role == "cost_column" else role


def make_feature_table(features: Any) -> pa.Table:
    """Convert features to an Arrow table.

    The columns of an array are named x0, x1 and so on. A list of dicts has one row each.
    """
    import pyarrow as pa

    if isinstance(features, list) and features and all(isinstance(row, Mapping) for row in features):
        with _convert_array_errors("features"):
            return read_table(pa.Table.from_pylist(features), what="features")
    if hasattr(features, "toarray"):  # of SciPy
        fail("features", Problem(f"features are a sparse matrix: {type(features).__name__}", "give X.toarray()"))
    if isinstance(features, list | np.ndarray):
        with _convert_array_errors("features"):
            matrix = np.asarray(features)
        if matrix.ndim != 2:
            hint = "give a table or an array of shape (n, p)"
            fail("features", Problem(f"features have shape {matrix.shape}", hint))
        with _convert_array_errors("a column of the features"):
            features = pa.table({f"x{j}": np.ascontiguousarray(matrix[:, j]) for j in range(matrix.shape[1])})
    return read_table(features, what="features")


@contextmanager
def _convert_array_errors(what: str) -> Iterator[None]:
    """Convert NumPy's and Arrow's errors about ragged or mixed arrays to an `InputError`."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        hint = "give values of one type, and rows of one length"
        raise InputError("arrays", [Problem(f"{what} cannot be made an array: {error}", hint)]) from error


def _find_highest_level(level: Array) -> int:
    """Return the highest level number of an array; refuse numbers that are too high."""
    if not np.issubdtype(level.dtype, np.number) and level.dtype != bool:
        hint = "give numbers 0, 1, 2 …; for names or amounts: read_log with levels=Levels(…)"
        fail("arrays", Problem(f"level does not hold numbers: {join_some(list(level[:3]))}", hint))
    known = level[np.isfinite(level)]
    top = int(known.max()) if len(known) else 0
    if top >= len(level):
        hint = "levels are numbered 0, 1, 2 …; for amounts: read_log with levels=Levels(costs=…)"
        fail("arrays", Problem(f"level goes up to {top} in {plural(len(level), 'row')}", hint))
    return max(top, 0)


def digest_log(log: Log) -> str:
    """Return a hash of all values of a log.

    >>> from largesse.data import log_from_arrays
    >>> one, other = (log_from_arrays([[1.0], [x]], [0, 1], [0, 1]) for x in (2.0, 3.0))
    >>> digest_log(one) == digest_log(one), digest_log(one) == digest_log(other)
    (True, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps(asdict(log.levels), sort_keys=True).encode())
    if log.sample is not None:  # its features are not in the log, and models depend on the rows that were drawn
        digest.update(f"\0{log.sample.digest}\0".encode() + log.sample.rows.tobytes())
    for name in log.features.column_names:
        digest.update(f"\0{name}\0".encode("utf-8", "surrogatepass"))
        _add_column_to_digest(digest, log.features.column(name))
    if log.protected is not None:
        for name in log.protected.column_names:
            digest.update(f"\0protected {name}\0".encode("utf-8", "surrogatepass"))
            _add_column_to_digest(digest, log.protected.column(name))
    for word in ("level", "response", "propensity", "logger", "cluster", "weight", "costs", "paid"):
        values = getattr(log, word)
        digest.update(f"\0{word}\0".encode())
        if values is not None:
            digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def _add_column_to_digest(digest: Any, column: pa.ChunkedArray) -> None:
    """Add the values of a column to a hash."""
    kind = find_feature_kind(column.type)
    digest.update(kind.encode())
    if kind == "text":
        words = sorted(count_words(column))
        digest.update("\0".join(words).encode("utf-8", "surrogatepass"))
        digest.update(np.asarray(index_words(column, words), dtype=np.int64).tobytes())
    elif kind not in ("nothing", "other"):
        digest.update((convert_to_seconds(column) if kind == "date" else convert_to_floats(column)).tobytes())
