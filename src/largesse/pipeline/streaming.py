"""Tables of customers that are larger than memory: read in batches, checked by the same rules, scored once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.allocation import check_batch, expected_costs
from largesse.data import Batches, as_floats, check_customers, is_text, kind_of, open_batches, read_notation
from largesse.errors import refuse
from largesse.evaluation import SAMPLE
from largesse.io import scratch_file
from largesse.levels import Levels
from largesse.pipeline.ahead import read_ahead
from largesse.pipeline.customers import check_schema, may_be_wrong
from largesse.pipeline.scored import LocalScored, Sampler, Spilled
from largesse.policy import Policy
from largesse.progress import advance
from largesse.records import Array, Customers
from largesse.response import expect_in_blocks

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class CustomerStream:
    """A table of customers that is read in batches, again and again. Fulfils `Source`."""

    batches: Batches
    levels: Levels
    customer: str | None  # the column with the ids
    parse: Mapping[str, Any]

    @property
    def n(self) -> int:
        """How many customers there are."""
        return self.batches.rows

    @property
    def costs(self) -> Sequence[str]:
        """The columns with customers' own costs."""
        return self.levels.cost_columns or ()

    @property
    def features(self) -> Sequence[str]:
        """The columns that are neither ids nor costs."""
        return [name for name in self.batches.schema.names if name != self.customer and name not in self.costs]

    def read(self, features: Sequence[str]) -> Iterator[Customers]:
        """Give all customers in their order, batch by batch, with some of their features; costs are not read."""
        own = [] if self.customer is None else [self.customer]
        for table in self._tables([*own, *features]):
            ids = None if self.customer is None else table.column(self.customer).combine_chunks()
            yield Customers(table.select(list(features)), ids)

    def read_rows(self, features: Sequence[str]) -> Iterator[tuple[Customers, Array]]:
        """Give all customers with their own costs, if they have any, and which rows (n,) may break a rule."""
        own = [*([] if self.customer is None else [self.customer]), *self.costs]
        for table in self._tables([*own, *features]):
            odd = may_be_wrong(table, self.customer, self.costs)
            costs = np.column_stack([as_floats(table.column(name)) for name in self.costs]) if self.costs else None
            ids = None if self.customer is None else table.column(self.customer).combine_chunks()
            yield Customers(table.select(list(features)), ids, costs), odd

    def refuse_rows(self, repeated: Array) -> None:
        """Refuse rows that break a rule, and ids that repeat; `repeated` are numbers of ids that may do so.

        Rows that keep the rules count for nothing in a message, so only the others are looked at together.
        """
        import pyarrow as pa

        own = [*([] if self.customer is None else [self.customer]), *self.costs]
        suspects = []
        for table in self._tables(own):
            odd = may_be_wrong(table, self.customer, self.costs)
            if self.customer is not None and len(repeated):
                ids = table.column(self.customer).combine_chunks()
                odd[np.asarray(ids.is_valid())] |= np.isin(number_ids(ids), repeated)
            suspects.append(table.filter(odd))
        check_customers(pa.concat_tables(suspects), levels=self.levels, customer=self.customer)

    def _tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Give some columns in batches, read as `parse` says."""
        parse = {name: way for name, way in self.parse.items() if name in columns}
        for table in self.batches.read(list(dict.fromkeys(columns))):
            reading = read_notation(table, parse, None)
            refuse("customers", reading.problems)
            yield reading.table


def open_stream(
    source: Any, levels: Levels, customer: str | None, features: Mapping[str, str], parse: Mapping[str, Any]
) -> CustomerStream | None:
    """Open a table to be read in batches, and check its columns; None where it must be read whole.

    That is where numbers or dates are written as text, and all of it tells how; and where ids are neither numbers nor text.
    """
    texts = [name for name, way in parse.items() if way == "text"]
    batches = open_batches(source, what="customers", plain=[str(customer)], texts=texts)
    if not batches.rows:
        return None
    named = check_schema(batches.schema, levels, customer, list(features))
    numbers = [*(name for name, kind in features.items() if kind in ("number", "date")), *(levels.cost_columns or ())]
    written = [name for name in numbers if kind_of(batches.schema.field(name).type) == "text" and name not in parse]
    plain = named is None or _is_plain(batches.schema.field(named).type)
    return CustomerStream(batches, levels, named, parse) if plain and not written and named not in parse else None


def _is_plain(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or is_text(kind))


@contextmanager
def score_stream(policy: Policy, stream: CustomerStream, near: Path) -> Iterator[LocalScored]:
    """Score every customer once; curves and own costs go to files without a name in the folder `near`."""
    features = list(policy.model.encoder_.features)
    with ExitStack() as stack:
        curves = Spilled(stack.enter_context(scratch_file(near)), len(policy.levels))
        own: Spilled | None = None
        if stream.costs or policy.levels.observed:
            own = Spilled(stack.enter_context(scratch_file(near)), len(policy.levels))
        sampler, numbers, start, wrong = Sampler(SAMPLE), [np.zeros(0, np.uint64)], 0, False
        for part, odd in read_ahead(stream.read_rows(features)):
            wrong |= bool(odd.any())
            if part.customer is not None:
                numbers.append(number_ids(part.customer))
            if not wrong:  # else only what is wrong with others is still of interest
                expected, paid = expect_in_blocks(policy.model, part)
                check_batch(expected, expected_costs(policy.levels, expected, paid), start)
                curves.append(expected)
                if own is not None and paid is not None:
                    own.append(paid)
                sampler.add(np.arange(start, start + len(part)), part.features)
            start += len(part)
            advance(start / stream.n)
        repeated = _find_repeated(np.concatenate(numbers))
        del numbers
        if wrong or len(repeated):
            stream.refuse_rows(repeated)
        for file in (curves, *([own] if own is not None else [])):
            file.file.finish()
        yield LocalScored(stream.n, policy.levels, stream, curves, own, sampler.sample())


def number_ids(ids: pa.Array) -> Array:
    """Return a number for each id, those that are missing left out; equal ids have equal numbers."""
    import pyarrow as pa

    if pa.types.is_integer(ids.type):
        return np.asarray(ids.drop_null().cast(pa.int64(), safe=False)).view(np.uint64)
    from largesse.pipeline.hashing import hash_ids

    return hash_ids(ids.drop_null())


def _find_repeated(numbers: Array) -> Array:
    """Return the numbers that come more than once."""
    if (numbers[1:] > numbers[:-1]).all():  # many tables are in the order of their ids
        return numbers[:0]
    numbers.sort()
    return np.unique(numbers[1:][numbers[1:] == numbers[:-1]])
