"""From a table to a checked `Log` or `Customers`: every rule, once, and every broken one named together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data.read import check_names, read_table
from largesse.errors import Problem, count, nearest, refuse, some
from largesse.records import Array, Customers, Levels, Log

if TYPE_CHECKING:
    import pyarrow as pa

MOST_MISSING = 0.2  # above this share of missing responses, missing probably means something


def read_log(
    source: Any,
    *,
    level: str,
    response: str,
    levels: Levels,
    propensity: str | None = None,
    logger: str | None = None,
    cluster: str | None = None,
    weight: str | None = None,
    customer: str | None = None,
    features: Sequence[str] | None = None,
) -> Log:
    """Read and check a log of past decisions.

    Parameters
    ----------
    source
        A path, a glob, a folder, or a pandas, polars or pyarrow table.
    level, response
        The columns with the level each customer got and with what happened.
    levels
        The levels in order, and their costs.
    propensity
        Column with the probability with which the row's own level was chosen, in (0, 1].
    logger
        Column that names the policy that chose the level.
    cluster
        Column with the household, village or other group whose rows are not independent.
    weight
        Column with the weight of each row.
    customer
        Column with the customer's id.
    features
        Columns to learn from; by default every column that has no other role.

    >>> log = read_log({"age": [20, 30, 40, 50], "coupon": [0, 5, 0, 5], "bought": [0, 1, 1, 0]},
    ...                level="coupon", response="bought", levels=Levels(costs=[0, 5]))
    >>> log
    Log(4 rows, 1 features, 2 levels)
    >>> log.level
    array([0, 1, 0, 1])
    """
    table = read_table(source, what="log")
    check_names(table, "log")
    roles = {
        "level": level,
        "response": response,
        "propensity": propensity,
        "logger": logger,
        "cluster": cluster,
        "weight": weight,
        "customer": customer,
    }
    named = {role: column for role, column in roles.items() if column is not None}
    check = _Check(table)
    check.roles(named, levels, features)
    refuse("log", check.problems)  # values are looked at only once the columns are known to be there

    codes, levels = check.level(level, levels)
    outcome = check.response(response)
    shares = None if propensity is None else check.propensity(propensity)
    policy = None if logger is None else check.codes(logger, "logger")
    groups = None if cluster is None else check.codes(cluster, "cluster")
    weights = None if weight is None else check.weight(weight)
    ids = None if customer is None else check.ids(customer, repeats=cluster is not None)
    costs = check.costs(levels)
    used = check.features(features, {*named.values(), *(levels.cost_columns or ())})
    check.enough(codes, outcome, levels)
    refuse("log", check.problems)

    log = Log(used, codes, outcome, levels, shares, policy, groups, weights, ids, costs, tuple(check.notes), response)
    known = np.isfinite(outcome)
    return log if known.all() else log.take(known)


def read_customers(
    source: Any,
    *,
    levels: Levels | None = None,
    customer: str | None = None,
    features: Sequence[str] | None = None,
) -> Customers:
    """Read and check a table of customers to plan for.

    Parameters
    ----------
    source
        A path, a glob, a folder, or a pandas, polars or pyarrow table.
    levels
        Needed when costs are per customer: names the columns that hold them.
    customer
        Column with the customer's id, each once.
    features
        Columns the model needs; by default every column but the id and the costs.
    """
    table = read_table(source, what="customers")
    check_names(table, "customers")
    check = _Check(table)
    cost_columns = (levels.cost_columns if levels is not None else None) or ()
    for column in [*([customer] if customer else []), *cost_columns, *(features or ())]:
        check.column(column)
    refuse("customers", check.problems)
    ids = None if customer is None else check.ids(customer, repeats=False)
    costs = None if levels is None else check.costs(levels)
    left = [name for name in table.column_names if name != customer and name not in cost_columns]
    refuse("customers", check.problems)
    return Customers(table.select(list(features) if features is not None else left), ids, costs)


def log_from_arrays(
    features: Any,
    level: Any,
    response: Any,
    *,
    levels: Levels | None = None,
    propensity: Any = None,
    weight: Any = None,
    cluster: Any = None,
) -> Log:
    """Make a checked log from arrays: features (n, p) or a dataframe, level (n,) in 0..K−1, response (n,).

    >>> log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0])
    Log(4 rows, 4 features, 2 levels)
    """
    table = feature_table(features)
    rows, width = table.num_rows, table.num_columns
    extras = {"level": level, "response": response, "propensity": propensity, "weight": weight, "cluster": cluster}
    given = {f"_{role}": np.asarray(values) for role, values in extras.items() if values is not None}
    problems = [
        Problem(f"{role[1:]} has shape {values.shape}, features have {count(rows, 'row')}", "give one value per row")
        for role, values in given.items()
        if values.shape != (rows,)
    ]
    if rows == 0 or width == 0:
        problems.append(Problem(f"features have shape ({rows}, {width})", "give at least one row and one column"))
    refuse("arrays", problems)
    for role, values in given.items():
        table = table.append_column(role, [values])
    if levels is None:
        top = int(np.nanmax(np.asarray(level, dtype=np.float64)))
        levels = Levels(costs=[float(k) for k in range(max(top, 0) + 1)])
    return read_log(
        table,
        levels=levels,
        features=table.column_names[:width],
        **{role: (f"_{role}" if f"_{role}" in given else None) for role in extras},  # type: ignore[arg-type]
    )


def feature_table(features: Any) -> pa.Table:
    """Return features as an Arrow table; columns of an array are called x0, x1 and so on."""
    import pyarrow as pa

    if isinstance(features, list | np.ndarray):
        matrix = np.asarray(features)
        if matrix.ndim != 2:
            raise_shape = Problem(f"features have shape {matrix.shape}", "give a table or an array of shape (n, p)")
            refuse("features", [raise_shape])
        return pa.table({f"x{j}": np.ascontiguousarray(matrix[:, j]) for j in range(matrix.shape[1])})
    return read_table(features, what="features")


@dataclass
class _Check:
    """The rules, each a method that returns what it read and writes down what is wrong."""

    table: pa.Table
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def column(self, name: str, role: str = "") -> bool:
        if name in self.table.column_names:
            return True
        asked = f"the {role} column" if role else "a column"
        self.problems.append(Problem(f"{asked} {name!r} is not in the table", nearest(name, self.table.column_names)))
        return False

    def roles(self, named: dict[str, str], levels: Levels, features: Sequence[str] | None) -> None:
        for role, column in named.items():
            self.column(column, role)
        for column in levels.cost_columns or ():
            self.column(column, "cost")
        for column in features or ():
            self.column(column, "feature")
        seen: dict[str, str] = {}
        for role, column in named.items():
            # The same id may well name the customer and the cluster: repeated customers are their own cluster.
            if column in seen and {role, seen[column]} != {"customer", "cluster"}:
                self.problems.append(
                    Problem(
                        f"{column!r} is named both as {seen[column]} and as {role}", "each role needs its own column"
                    )
                )
            seen[column] = role
        for column in features or ():
            if column in seen and seen[column] in ("level", "response", "propensity"):
                self.problems.append(
                    Problem(
                        f"the {seen[column]} column {column!r} is also listed as a feature",
                        "a model may not see what it must predict",
                    )
                )
        if len(set(features or ())) < len(features or ()):
            self.problems.append(Problem("a feature is listed twice", "list each feature once"))
        if len(levels) < 2:
            self.problems.append(
                Problem("there is only one level", "a choice needs at least two levels with their costs")
            )

    def level(self, name: str, levels: Levels) -> tuple[Array, Levels]:
        """Return level numbers 0..K−1, −1 where the value is not one of the levels; and the levels as the log writes them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = _plain(self.table.column(name))
        if column.null_count:
            missing = count(column.null_count, "row")
            self.problems.append(
                Problem(
                    f"{missing} of {name!r} have no level",
                    "write the level they got (the lowest, if nothing was given)",
                )
            )
        distinct = pc.unique(column).drop_null()
        words = pa.types.is_string(distinct.type)
        if not words and not _numeric(distinct.type) and not pa.types.is_null(distinct.type):
            self.problems.append(
                Problem(f"the level column {name!r} holds {distinct.type}", "levels are numbers, amounts or names")
            )
            return np.zeros(len(column), dtype=np.int64), levels
        levels = _as_written(levels, distinct, words)
        values: Sequence[Any] = levels.labels if words else _level_values(levels)
        lookup = pa.array(values, type=pa.string() if words else pa.float64())
        keys = column if words else column.cast(pa.float64(), safe=False)
        index = pc.fill_null(pc.index_in(keys, value_set=lookup), -1)
        codes = np.asarray(index, dtype=np.int64)
        self._unknown_levels(name, column, codes, values)
        return codes, levels

    def _unknown_levels(self, name: str, column: pa.ChunkedArray, codes: Array, values: Sequence[Any]) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        odd = column.filter(pa.array(codes < 0)).drop_null()
        if len(odd):
            found = sorted(str(value) for value in pc.unique(odd).to_pylist())
            known = some([f"{v:g}" if isinstance(v, float) else v for v in values], 12)
            self.problems.append(
                Problem(
                    f"{count(len(odd), 'row')} of {name!r} hold a level that is not in the list: {some(found)}",
                    f"the list is: {known}",
                )
            )

    def response(self, name: str) -> Array:
        values = self._numbers(name, "response")
        if values is None:
            return np.zeros(len(self.table))
        if np.isinf(values).any():
            self.problems.append(
                Problem(
                    f"the response {name!r} is infinite in {count(int(np.isinf(values).sum()), 'row')}",
                    "write finite numbers",
                )
            )
        missing = np.isnan(values)
        if missing.all():
            self.problems.append(
                Problem(f"the response {name!r} is missing in every row", "name the column that says what happened")
            )
        elif missing.mean() > MOST_MISSING:
            share = f"{missing.mean():.0%}"
            self.problems.append(
                Problem(
                    f"the response {name!r} is missing in {share} of the rows",
                    "write 0 if missing means that nothing happened; else leave those rows out",
                )
            )
        elif missing.any():
            self.notes.append(f"{count(int(missing.sum()), 'row')} without a response left out")
        if not missing.all() and np.nanmin(values) == np.nanmax(values):
            self.problems.append(
                Problem(
                    f"the response {name!r} is {np.nanmin(values):g} in every row",
                    "there is nothing to learn from; is it the right column?",
                )
            )
        return values

    def propensity(self, name: str) -> Array | None:
        values = self._numbers(name, "propensity")
        if values is None:
            return None
        bad = ~((values > 0) & (values <= 1))
        if bad.any():
            examples = some([f"{v:g}" for v in values[bad][:4]], 3)
            hint = "it is the probability with which the row's own level was chosen; leave the column out to have it estimated"
            self.problems.append(
                Problem(f"{count(int(bad.sum()), 'row')} of {name!r} are not in (0, 1]: {examples}", hint)
            )
        return values

    def weight(self, name: str) -> Array | None:
        values = self._numbers(name, "weight")
        if values is None:
            return None
        bad = ~(np.isfinite(values) & (values >= 0))
        if bad.any():
            self.problems.append(
                Problem(
                    f"{count(int(bad.sum()), 'row')} of the weight {name!r} are missing, infinite or negative",
                    "weights are zero or more",
                )
            )
        elif values.sum() == 0:
            self.problems.append(Problem(f"every weight in {name!r} is zero", "at least one row must count"))
        return values

    def codes(self, name: str, role: str) -> Array:
        """Return group numbers in order of appearance."""
        import pyarrow.compute as pc

        column = _plain(self.table.column(name))
        if column.null_count:
            self.problems.append(
                Problem(
                    f"the {role} column {name!r} is missing in {count(column.null_count, 'row')}",
                    f"give every row its {role}",
                )
            )
        return np.asarray(pc.fill_null(pc.index_in(column, value_set=pc.unique(column)), -1), dtype=np.int64)

    def ids(self, name: str, *, repeats: bool) -> pa.Array:
        import pyarrow.compute as pc

        column = _plain(self.table.column(name)).combine_chunks()
        if column.null_count:
            self.problems.append(
                Problem(
                    f"the customer id {name!r} is missing in {count(column.null_count, 'row')}", "give every row an id"
                )
            )
        tally = pc.value_counts(column.drop_null())
        twice = tally.filter(pc.greater(tally.field("counts"), 1))
        if len(twice) and not repeats:
            examples = some([str(value) for value in twice.field("values").to_pylist()], 3)
            hint = f"keep one row per customer, or, in a log, name {name!r} as the cluster too"
            self.problems.append(
                Problem(f"{count(len(twice), 'customer id')} of {name!r} appear more than once: {examples}", hint)
            )
        return column

    def costs(self, levels: Levels) -> Array | None:
        if levels.cost_columns is None:
            return None
        columns = [self._numbers(name, "cost") for name in levels.cost_columns]
        if any(column is None for column in columns):
            return None
        costs = np.column_stack([column for column in columns if column is not None])
        bad = ~np.isfinite(costs) | (costs < 0)
        if bad.any():
            names = some([levels.cost_columns[k] for k in np.flatnonzero(bad.any(axis=0))])
            self.problems.append(
                Problem(
                    f"{count(int(bad.any(axis=1).sum()), 'row')} have a negative, missing or infinite cost in {names}",
                    "every customer needs a cost of zero or more for every level",
                )
            )
        elif (np.diff(costs, axis=1) < 0).any():
            falls = int((np.diff(costs, axis=1) < 0).any(axis=1).sum())
            self.problems.append(
                Problem(
                    f"costs fall as levels rise in {count(falls, 'row')}",
                    "list the cost columns from the cheapest level to the dearest",
                )
            )
        return costs

    def features(self, listed: Sequence[str] | None, taken: set[str]) -> pa.Table:
        names = list(listed) if listed is not None else [n for n in self.table.column_names if n not in taken]
        kept = []
        for name in names:
            column = self.table.column(name)
            if _unusable(column.type):
                self._unusable_feature(name, column.type, asked=listed is not None)
            elif listed is None and _identifier(column):
                self.notes.append(f"column {name!r} left out: nearly every row has its own text, like an identifier")
            else:
                kept.append(name)
        if not kept and not self.problems:
            self.problems.append(Problem("there is no column left to learn from", "the log needs at least one feature"))
        return self.table.select(kept)

    def _unusable_feature(self, name: str, kind: pa.DataType, *, asked: bool) -> None:
        if asked:
            self.problems.append(
                Problem(f"the feature {name!r} holds {kind}", "features are numbers, booleans, text or dates")
            )
        else:
            self.notes.append(f"column {name!r} left out: it holds {kind}, not numbers, text or dates")

    def enough(self, codes: Array, outcome: Array, levels: Levels) -> None:
        if self.problems:
            return
        rows = np.bincount(codes[np.isfinite(outcome) & (codes >= 0)], minlength=len(levels))
        empty = [levels.labels[k] for k in np.flatnonzero(rows == 0)]
        if empty:
            hint = "a level nobody got cannot be judged: leave it out of the levels, or try it on some customers first"
            self.problems.append(Problem(f"no row of the log has level {some(empty)}", hint))

    def _numbers(self, name: str, role: str) -> Array | None:
        """Return a column as float64, missing as NaN; None when it does not hold numbers."""
        import pyarrow as pa

        column = _plain(self.table.column(name))
        kind = column.type
        if pa.types.is_null(kind):
            return np.full(len(column), np.nan)
        if not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_decimal(kind)
        ):
            examples = some([str(value) for value in column.slice(0, 3).to_pylist()])
            self.problems.append(
                Problem(
                    f"the {role} column {name!r} does not hold numbers but {kind}: {examples}",
                    "give numbers, or true and false",
                )
            )
            return None
        return as_floats(column)


def as_floats(column: pa.ChunkedArray) -> Array:
    """Return numbers or booleans as float64, missing as NaN."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column without dictionary encoding."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _as_written(levels: Levels, distinct: pa.Array, words: bool) -> Levels:
    """Where the log writes the costs themselves, they are the doses."""
    common = levels.common_costs
    if words or levels.doses is not None or common is None or len(set(common.tolist())) < len(common):
        return levels
    if levels.names is not None and all(_is_number(name) for name in levels.names):
        return levels
    found = {float(value) for value in distinct.to_pylist()}
    if found <= set(range(len(levels))) or not found <= set(common.tolist()):
        return levels
    return Levels(common, levels.names, common, levels.on_redemption)


def _level_values(levels: Levels) -> list[float]:
    """Return the number the log writes for each level: its dose, its name if that is a number, else 0..K−1."""
    if levels.doses is not None:
        return list(levels.doses)
    if levels.names is not None and all(_is_number(name) for name in levels.names):
        return [float(name) for name in levels.names]
    return [float(k) for k in range(len(levels))]


def _numeric(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unusable(kind: pa.DataType) -> bool:
    import pyarrow as pa

    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_nested(inner)
        or pa.types.is_binary(inner)
        or pa.types.is_large_binary(inner)
        or pa.types.is_fixed_size_binary(inner)
    )


def _identifier(column: pa.ChunkedArray) -> bool:
    """Text of which nearly every row has its own value says nothing about the next customer."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or len(column) < 50:
        return False
    distinct = max((len(chunk.dictionary) for chunk in column.chunks), default=0)
    return distinct > 0.9 * (len(column) - column.null_count) > 0
