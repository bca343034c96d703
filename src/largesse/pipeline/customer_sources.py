"""Tables of customers to plan for, in memory or read in batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.campaign import Campaign
from largesse.data import (
    TableBatches,
    bound_value_and_row_counts,
    convert_to_floats,
    find_feature_kind,
    find_parse_setting_problems,
    is_text_type,
    make_checked_customers,
    open_batches,
    parse_text_columns,
    read_table,
)
from largesse.errors import refuse
from largesse.levels import Levels
from largesse.pipeline.customer_table_validation import (
    check_customer_columns,
    check_customer_table,
    check_memory,
    find_suspicious_rows,
    hash_customers,
    list_settings_needing_memory,
)
from largesse.pipeline.engine_protocol import Engine
from largesse.records import Array, Customers, Log, LogSample

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class CustomerSource:
    """Source of customers for repeated reading: a table in memory, or the rows of a large log."""

    n: int
    features: Sequence[str]
    read: Callable[[Sequence[str]], Iterator[Customers]]  # all customers in their order, with some of their features
    sample: tuple[Array, pa.Table]  # row numbers (m,), rising, and features of customers who are in memory
    log: Log | None = None  # whose rows they are, where it is larger than memory
    rows: Array | None = None  # (n,) rising: which of its rows; None: all


def make_in_memory_source(customers: Customers) -> CustomerSource:
    """Return a customer table in memory as a source."""
    table = customers.features
    return CustomerSource(
        len(customers),
        table.column_names,
        lambda features: iter([replace(customers, features=table.select(list(features)))]),
        (np.arange(len(customers)), table),
    )


def make_large_log_source(log: Log, sample: LogSample) -> CustomerSource:
    """Return the customers of a log larger than memory as a source, with the last row of each customer."""
    names, ids, costs, last = sample.log.features.column_names, log.customer, log.costs, log.last_rows
    rows = np.arange(len(log)) if last is None else last

    def read(features: Sequence[str]) -> Iterator[Customers]:
        start = 0
        # Arrow drops the row count of a batch without columns.
        for table in sample.batches(list(features) or names[:1]):
            planned = rows[slice(*np.searchsorted(rows, [start, start + len(table)]))]
            part = table if len(planned) == len(table) else table.take(planned - start)
            start += len(table)
            yield Customers(part, None if ids is None else ids.take(planned), None if costs is None else costs[planned])

    sampled = np.isin(sample.rows, rows)
    places = np.searchsorted(rows, sample.rows[sampled])
    features = sample.log.features if sampled.all() else sample.log.features.filter(sampled)
    return CustomerSource(len(rows), names, read, (places, features), log, last)


@dataclass(frozen=True, eq=False)
class CustomerStream:
    """Customer table larger than memory that is read and checked in batches."""

    batches: TableBatches
    levels: Levels
    customer: str | None  # the column with the ids
    parse: Mapping[str, Any]

    @property
    def n(self) -> int:
        """Number of customers."""
        return self.batches.rows

    @property
    def costs(self) -> Sequence[str]:
        """Names of the table columns with each customer's costs of the levels."""
        return self.levels.cost_columns or ()

    @property
    def features(self) -> Sequence[str]:
        """Names of the columns that are neither ids nor costs."""
        return [name for name in self.batches.schema.names if name != self.customer and name not in self.costs]

    def read(self, features: Sequence[str]) -> Iterator[Customers]:
        """Yield all customers batch by batch with the given features, without costs."""
        for table in self._read_tables([*self._list_id_column, *features]):
            yield Customers(table.select(list(features)), self._read_ids(table))

    def read_rows(self, features: Sequence[str]) -> Iterator[tuple[Customers, Array]]:
        """Yield all customers batch by batch with each customer's costs, and a mask (n,) of suspicious rows."""
        for table in self._read_tables([*self._list_id_column, *self.costs, *features]):
            suspect = find_suspicious_rows(table, self.customer, self.costs)
            costs = (
                np.column_stack([convert_to_floats(table.column(name)) for name in self.costs]) if self.costs else None
            )
            yield Customers(table.select(list(features)), self._read_ids(table), costs), suspect

    def refuse_rows(self, repeated: Array) -> None:
        """Raise an error for invalid rows and repeated ids.

        `repeated` are hashes of ids that may be repeated.
        """
        import pyarrow as pa

        suspects = []
        for table in self._read_tables([*self._list_id_column, *self.costs]):
            suspect = find_suspicious_rows(table, self.customer, self.costs)
            if self.customer is not None and len(repeated):
                ids = table.column(self.customer).combine_chunks()
                suspect[np.asarray(ids.is_valid())] |= np.isin(hash_customers(ids), repeated)
            suspects.append(table.filter(suspect))
        make_checked_customers(pa.concat_tables(suspects), levels=self.levels, customer=self.customer)

    @property
    def _list_id_column(self) -> list[str]:
        return [] if self.customer is None else [self.customer]

    def _read_ids(self, table: pa.Table) -> pa.Array | None:
        return None if self.customer is None else table.column(self.customer).combine_chunks()

    def _read_tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the given columns in batches, with text parsed by the settings of `parse`."""
        parse = {name: way for name, way in self.parse.items() if name in columns}
        for table in self.batches.read(list(dict.fromkeys(columns))):
            parsed, _, problems = parse_text_columns(table, parse, None)
            refuse("customers", problems)
            yield parsed


# -- opening ----------------------------------------------------------------------------------------------------------


def open_planned_customers(campaign: Campaign, log: Log, engine: Engine) -> Any:
    """Open the customers to plan for: the campaign's customer table, or else the log's customers.

    Customers of the log who have several rows are planned by the last of them.
    """
    if campaign.customers is not None:
        kinds: dict[str, str] = {field.name: find_feature_kind(field.type) for field in log.seen.features.schema}
        return engine.open_customers(campaign, campaign.customers_source, kinds)
    if log.sample is not None:
        names = log.seen.features.column_names
        check_memory(log.customers, len(names), len(log.levels), list_settings_needing_memory(campaign.planning))
        return make_large_log_source(log, log.sample)
    planned = log if log.last_rows is None else log.take(log.last_rows)
    table = planned.features
    if planned.protected is not None:  # rules may name protected columns, such as segments with budgets of their own
        for name in planned.protected.column_names:
            if name in campaign.planning.rule_columns:
                table = table.append_column(name, planned.protected.column(name))
    return Customers(table, planned.customer, planned.costs)


def open_customer_table(
    campaign: Campaign, source: Any, features: Mapping[str, str], max_rows: int
) -> Customers | CustomerStream:
    """Read and check a customer table, or open it for batches if it has too many rows.

    A table without the id column is numbered by its rows.
    """
    customer, parse = campaign.columns.get("customer"), campaign.roles.get("parse") or {}
    if isinstance(source, str | os.PathLike) and bound_value_and_row_counts(source, "customers")[1] > max_rows:
        refuse("customers", find_parse_setting_problems(parse))
        stream = _open_customer_stream(source, campaign.levels, customer, features, parse)
        if stream is not None:
            columns, reasons = len(stream.batches.schema), list_settings_needing_memory(campaign.planning)
            check_memory(stream.n, columns, len(campaign.levels), reasons)
            return stream
    table = read_table(source, what="customers", plain=[str(customer)], parse=parse)
    return check_customer_table(table, campaign.levels, customer, list(features))


def _open_customer_stream(
    source: Any, levels: Levels, customer: str | None, features: Mapping[str, str], parse: Mapping[str, Any]
) -> CustomerStream | None:
    """Open a customer table for reading in batches after a check of its columns; None if impossible.

    It must where numbers or dates are written as text, whose notation only all rows together show, and where ids are neither
    numbers nor text.
    """
    import pyarrow as pa

    texts = [name for name, way in parse.items() if way == "text"]
    batches = open_batches(source, what="customers", plain=[str(customer)], texts=texts)
    if not batches.rows:
        return None
    named = check_customer_columns(batches.schema, levels, customer, list(features))
    numbers = [*(name for name, kind in features.items() if kind in ("number", "date")), *(levels.cost_columns or ())]
    written = [
        name for name in numbers if find_feature_kind(batches.schema.field(name).type) == "text" and name not in parse
    ]
    kind = None if named is None else batches.schema.field(named).type
    plain = kind is None or pa.types.is_integer(kind) or is_text_type(kind)
    return CustomerStream(batches, levels, named, parse) if plain and not written and named not in parse else None
