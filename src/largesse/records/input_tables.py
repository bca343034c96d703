"""Checked input tables: the log of past decisions, and the customers to plan for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Required, TypeAlias, TypedDict

import numpy as np

from largesse.errors import percent
from largesse.levels import Levels
from largesse.records.array_type import Array
from largesse.records.display import Card, DisplayMixin, join_first_names

if TYPE_CHECKING:
    import pyarrow as pa

# The roles of columns and their contents: the only list of roles, for `read_log`, campaign files and options.
ROLES = {
    "level": "the level each customer got",
    "response": "what happened",
    "propensity": "the probability with which the row's own level was chosen, in (0, 1]",
    "propensity_strata": "the stratum within which levels were drawn: a level's share there is its propensity",
    "cost_column": "what the row really cost, where that depends on what the customer did",
    "logger": "the policy that chose the level",
    "cluster": "the household, village or other group whose rows are not independent",
    "weight": "the weight of the row",
    "customer": "the customer's id",
    "features": "the columns to learn from; by default every column that has no other role",
}


class Roles(TypedDict, total=False):
    """Column name of each role (level, response, propensity, …) in a log."""

    level: Required[str]
    response: Required[str]
    propensity: str | Sequence[float] | None
    propensity_strata: str | None
    cost_column: str | None
    logger: str | None
    cluster: str | None
    weight: str | None
    customer: str | None
    features: Sequence[str] | None
    known_before: Sequence[str] | None  # suspicious features that were known before the level was chosen
    accepted: Sequence[str] | None  # topics of checks whose warnings are known and accepted
    protected: Sequence[str] | None  # columns that models of the response and plans do not see, such as sex or religion
    parse: Mapping[str, Any] | None  # notations of columns, where they are not plain
    absent: bool  # True if levels may have no rows, as in a log that is only compared with a plan


@dataclass(frozen=True, eq=False)
class AssignmentUnit:
    """Groups of rows whose level was assigned once per group, such as the villages of a trial.

    They count as groups that got their levels together where the log names them, or larger ones, as clusters.
    """

    column: str
    code: Array  # (n,) int64, the group of every row
    groups: int

    def take(self, index: Array) -> AssignmentUnit:
        """Return the assignment groups of selected rows."""
        return replace(self, code=self.code[index])


@dataclass(frozen=True, eq=False)
class Log(DisplayMixin):
    """Checked log of past decisions: n rows of features, level, response and optional columns.

    Made by `read_log`, which checks every rule, so that other code need not check a log. A log too large for memory knows all of
    its rows but their features; of these it has a `sample`, from which models learn.
    """

    features: pa.Table
    level: Array  # (n,) int64 in 0..K−1
    response: Array  # (n,) float64
    levels: Levels
    propensity: Array | None = None  # (n,) float64: probability with which the row's own level was chosen
    logger: Array | None = None  # (n,) int64 codes of the logging policy
    cluster: Array | None = None  # (n,) int64 codes
    weight: Array | None = None  # (n,) float64, scaled to mean one; None if all are equal
    customer: pa.Array | None = None
    costs: Array | None = None  # (n, K) float64, when costs are per customer
    notes: tuple[str, ...] = ()
    response_name: str = "response"
    paid: Array | None = None  # (n,) float64, zero or more: what the row really cost, when costs are observed
    sample: LogSample | None = None  # of a log too large for memory, whose `features` have no columns
    response_value: float | None = None  # value of one unit of response, in the unit of costs
    known_before: tuple[str, ...] = ()  # suspicious features that were known before the level was chosen
    accepted: tuple[str, ...] = ()  # topics of checks whose warnings are known and accepted
    unit: AssignmentUnit | None = None  # groups within which levels are constant, as far as the log shows
    protected: pa.Table | None = None  # (n rows) columns that models of the response and plans do not see

    def __post_init__(self) -> None:
        # Models, folds and estimates must not depend on the unit of weights.
        if self.weight is not None and self.weight.any():
            equal = self.weight.min() == self.weight.max()
            object.__setattr__(self, "weight", None if equal else self.weight / self.weight.mean())

    def __len__(self) -> int:
        return len(self.level)

    def __repr__(self) -> str:
        extras = [
            name
            for name in ("propensity", "paid", "logger", "cluster", "weight", "customer")
            if getattr(self, name) is not None
        ]
        known = f", with {', '.join(extras)}" if extras else ""
        return f"Log({len(self):,} rows, {self.features.num_columns} features, {len(self.levels)} levels{known})"

    def card(self) -> Card:
        """Return a notebook table of rows, responses and propensities by level, and of the features."""
        rows: list[tuple[Any, ...]] = []
        for k, label in enumerate(self.levels.titles):
            chosen = self.level == k
            known = None if self.propensity is None or not chosen.any() else self.propensity[chosen].mean()
            mean = (
                np.average(self.response[chosen], weights=self.weights[chosen]) if self.weights[chosen].any() else None
            )
            rows.append((label, int(chosen.sum()), percent(chosen.mean(), 1), mean, known))
        head = ("level", "rows", "share", f"mean {self.response_name}", "mean propensity")
        names = self.seen.features.column_names
        return Card(repr(self), head, rows, (f"Features: {join_first_names(names)}.", *self.notes))

    def to_arrow(self) -> pa.Table:
        """Return a table of the logged decisions: features, level, response and optional columns.

        The level has two columns, its name and its number.

        A column that a feature has the name of gets an underscore. Of a large log, it is the sample.
        """
        import pyarrow as pa

        log = self.seen
        names = pa.DictionaryArray.from_arrays(pa.array(log.level.astype(np.int32)), pa.array(log.levels.labels))
        columns: dict[str, Any] = {"customer": log.customer, "level": names, "level_number": log.level}
        columns |= {log.response_name: log.response, "propensity": log.propensity, "cost": log.paid}
        columns |= {"logger": log.logger, "cluster": log.cluster, "weight": log.weight}
        table = log.features
        for name, values in columns.items():
            if values is not None:
                while name in table.column_names:
                    name += "_"
                table = table.append_column(name, values if isinstance(values, pa.Array) else pa.array(values))
        return table

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        log = self.seen
        return len(log), log.features.num_columns

    def __getitem__(self, rows: Any) -> Log:
        """Return the log of the selected rows: a slice, indices or a mask.

        Of a large log, these are rows of its sample.
        """
        rows = rows[0] if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is ... else rows
        log = self.seen
        return log.take(np.atleast_1d(np.arange(len(log))[rows]))

    @cached_property
    def binary(self) -> bool:
        """True if every response is 0 or 1."""
        return bool(np.isin(self.response, (0.0, 1.0)).all())

    @cached_property
    def clusters(self) -> int | None:
        """Number of clusters; None if the rows are independent."""
        return None if self.cluster is None else len(np.unique(self.cluster))

    @cached_property
    def customers(self) -> int:
        """Number of distinct customer ids; without ids, the number of rows."""
        return len(self) if self.last_rows is None else len(self.last_rows)

    @cached_property
    def last_rows(self) -> Array | None:
        """Row number (m,) of each customer's last row, ascending; None if each customer has one row."""
        last = None if self.customer is None else find_last_row_per_id(self.customer)
        return None if last is None or len(last) == len(self) else last

    @cached_property
    def assigned(self) -> Array | None:
        """Group numbers (n,) of the rows that received a level together; None if each row received its own level."""
        if self.unit is None or self.cluster is None or not are_groups_nested(self.unit.code, self.cluster):
            return self.cluster
        return self.unit.code

    @property
    def weights(self) -> Array:
        """Weights (n,) of the rows; ones if the log has no weights."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def fingerprint(self) -> str:
        """Short digest of levels and responses, which identifies the log."""
        digest = hashlib.sha256(np.ascontiguousarray(self.level).tobytes())
        digest.update(np.ascontiguousarray(self.response).tobytes())
        return digest.hexdigest()[:16]

    def take(self, rows: Array) -> Log:
        """Return the log restricted to rows, given by indices or by a mask."""
        index = np.flatnonzero(rows) if rows.dtype == bool else rows

        def select(values: Array | None) -> Array | None:
            return None if values is None else values[index]

        return Log(
            features=self.features.take(index),
            level=self.level[index],
            response=self.response[index],
            levels=self.levels,
            propensity=select(self.propensity),
            logger=select(self.logger),
            cluster=select(self.cluster),
            weight=select(self.weight),
            customer=None if self.customer is None else self.customer.take(index),
            costs=select(self.costs),
            notes=self.notes,
            response_name=self.response_name,
            paid=select(self.paid),
            response_value=self.response_value,
            known_before=self.known_before,
            accepted=self.accepted,
            unit=None if self.unit is None else self.unit.take(index),
            protected=None if self.protected is None else self.protected.take(index),
        )

    @property
    def confounders(self) -> pa.Table:
        """Columns that may have influenced the level: the features and the protected columns.

        Propensities need both: levels of the past may have followed a protected column, and an evaluation that ignores it is biased.
        """
        table = self.features
        if self.protected is not None:
            for name in self.protected.column_names:
                table = table.append_column(name, self.protected.column(name))
        return table

    @property
    def seen(self) -> Log:
        """Part of the log with features in memory: the sample of a large log, otherwise all rows."""
        return self if self.sample is None else self.sample.log

    @property
    def outside(self) -> Array:
        """Mask (n,) of the rows outside the sample from which models learn."""
        outside = np.full(len(self), self.sample is not None)
        if self.sample is not None:
            outside[self.sample.rows] = False
        return outside

    @property
    def bare(self) -> Log:
        """The log without its features, for models that receive encoded features separately."""
        return replace(self, features=self.features.select([]), customer=None, protected=None)

    @property
    def of_costs(self) -> Log:
        """The log with the paid cost as the response, for models of observed costs."""
        assert self.paid is not None  # a log of observed costs is read with them
        sample = None if self.sample is None else replace(self.sample, log=self.sample.log.of_costs)
        return replace(self, response=self.paid, response_name="cost", paid=None, sample=sample, response_value=None)


def are_groups_nested(inner: Array, outer: Array) -> bool:
    """Test if every group of rows in `inner` (n,) lies within one group of `outer` (n,).

    >>> are_groups_nested(np.array([0, 1, 1]), np.array([5, 5, 5])), are_groups_nested(np.array([5, 5, 5]), np.array([0, 1, 1]))
    (True, False)
    """
    _, first, code = np.unique(inner, return_index=True, return_inverse=True)
    return bool((outer[first][code] == outer).all())


def find_last_row_per_id(ids: pa.Array) -> Array:
    """Return the row number of the last row of each customer id (m,), ascending.

    >>> import pyarrow as pa
    >>> find_last_row_per_id(pa.array(["a", "b", "a"]))
    array([1, 2])
    """
    codes = np.asarray(ids.dictionary_encode().indices)
    last = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    last[codes] = np.arange(len(codes))  # of equal codes, the last assignment stays
    return np.sort(last)


RowTask: TypeAlias = Callable[["pa.Table"], Array]  # features of m rows → numbers (m, …)


@dataclass(frozen=True, eq=False)
class LogSample:
    """Random sample of a large log for fitting models, with access to the features of all rows.

    `map` runs a task where the rows are, and yields its results for some rows (rising indices) batch by batch. A task that is
    to run on another machine consists of functions of this package and plain values.
    """

    log: Log  # the sampled rows with features; weights correct for levels that were sampled at higher rates
    rows: Array  # (m,) int64, rising: indices of the sampled rows in the large log
    batches: Callable[[Sequence[str] | None], Iterator[pa.Table]]  # some features, or all, of all rows in order
    map: Callable[[RowTask, Sequence[str] | None, Array], Iterator[Array]]  # of some features, or all
    digest: str  # of the features of all rows
    most: int  # largest number of rows of a log that is read as a whole


@dataclass(frozen=True, eq=False)
class Customers(DisplayMixin):
    """Customers to plan for: features, and optionally ids and costs."""

    features: pa.Table
    customer: pa.Array | None = None
    costs: Array | None = None  # (n, K) float64, when costs are per customer

    def __len__(self) -> int:
        return int(self.features.num_rows)

    def __repr__(self) -> str:
        costs = ", with costs per customer" if self.costs is not None else ""
        return f"Customers({len(self):,} customers, {self.features.num_columns} features{costs})"

    def card(self) -> Card:
        """Return a notebook table of the number of customers and their features."""
        return Card(repr(self), lines=(f"Features: {join_first_names(self.features.column_names)}.",))

    def to_arrow(self) -> pa.Table:
        """Return a table of the customers' ids, if they have any, and features."""
        if self.customer is None:
            return self.features
        name = "customer"
        while name in self.features.column_names:
            name += "_"
        return self.features.add_column(0, name, self.customer)
