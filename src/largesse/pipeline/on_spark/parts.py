"""Plans that executors write: one file of Parquet for each task, in a folder that is there as a whole or not at all."""

from __future__ import annotations

import functools
import json
import operator
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from largesse.allocation import PricedPlan, Stop, pack_answer, unpack_answer
from largesse.errors import OutputError, Problem
from largesse.evaluation import PlanTally, Shown, keep_telling, number_groups, tally_codes
from largesse.pipeline.on_spark.scoring import SparkScored
from largesse.pipeline.on_spark.session import SHARE
from largesse.pipeline.on_spark.spool import Block, Stored, column_matrix, give_answer, read_parts
from largesse.pipeline.on_spark.tasks import Costs, load_policy
from largesse.pipeline.planned import Planned, Target
from largesse.pipeline.writing import open_writer
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Order:
    """How a plan is written: numbers, and the sealed policy."""

    folder: str
    policy: bytes
    plan: PricedPlan
    scale: float
    ratio: float
    stops: tuple[Stop, ...]
    shown: tuple[Shown, ...]
    ids: pa.DataType | None  # None: customers are numbered by their rows


def write_parts(planned: Planned, targets: Sequence[Target]) -> tuple[Sequence[Shown], PlanTally]:
    """Let executors write the plan into the first target, a folder; other targets are written here, from its parts."""
    scored, (first, *others) = cast(SparkScored, planned.scored), targets
    folder = first.path
    folder.unlink(missing_ok=True)  # it may be a second name of a file that others still see
    folder.mkdir()
    plan = cast(PricedPlan, planned.plan)
    place, facts = str(folder.absolute()), (planned.scale, planned.ratio, planned.stops, scored.shown, scored.ids)
    order = Order(place, scored.policy, plan, *facts)
    told = scored.spool.ask(write_part, order, scored.costs, doing="writing the plan")
    answers = [(json.loads(head), tally) for head, _, tally in (answer.partition(b"\n") for answer in told)]
    _check_parts(folder, [head for head, _ in answers], scored.n)
    tally = functools.reduce(operator.add, (unpack_answer(PlanTally, packed) for _, packed in answers))
    for target in others:
        _copy(folder, target)
    return keep_telling(scored.shown, tally)


def _check_parts(folder: Path, told: Sequence[dict[str, int]], n: int) -> None:
    """Refuse a plan of which a part is not here: executors wrote it to a disk of their own."""
    import pyarrow.parquet as pq

    here = {path.name for path in folder.iterdir()}
    missing = [head["file"] for head in told if head["file"] not in here]
    if missing or sum(head["rows"] for head in told) != n:
        got = f"{len(missing)} of {len(told)} parts of the plan are not in {folder}"
        raise OutputError("output", [Problem(got, SHARE)])
    for name in here - {head["file"] for head in told}:
        (folder / name).unlink()  # of attempts that were given up
    rows = sum(pq.read_metadata(path).num_rows for path in folder.iterdir())
    assert rows == n, f"{rows} rows of {n} were written"


def _copy(folder: Path, target: Target) -> None:
    """Write the parts of a plan, one after the other, to another file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_writer(target) as writer:
        for path in sorted(folder.iterdir()):
            with pq.ParquetFile(path) as opened:
                for batch in opened.iter_batches():
                    writer.write(pa.Table.from_batches([batch]))


# -- on executors ---------------------------------------------------------------------------------------------------------


def write_part(
    order: Order, costs: Costs, stored: Stored, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the plan of this task's customers to a file of its own; give its name, its rows and its tally.

    Until it is whole, the file has the name of this attempt: an attempt that fails or is repeated changes nothing.
    """
    import pyarrow.parquet as pq

    policy, nowhere = load_policy(order.policy), cast(SparkScored, None)
    planned = Planned(order.plan, policy, nowhere, order.scale, order.ratio, stops=order.stops)
    folder, name, rows, tallies = Path(order.folder), "", 0, []
    part = folder / f".{uuid.uuid4().hex}.part"
    with ExitStack() as stack:
        writer = None
        for block in read_parts(stored, batches):
            table, tally = _plan_block(planned, order, costs, block)
            if writer is None:
                name = f"part-{block.first:012d}.parquet"
                writer = stack.enter_context(pq.ParquetWriter(stack.enter_context(part.open("wb")), table.schema))
            writer.write_table(table)
            rows += len(table)
            tallies.append(tally)
    if tallies:
        part.replace(folder / name)
        head = json.dumps({"file": name, "rows": rows}).encode()
        yield give_answer(0, head + b"\n" + pack_answer(functools.reduce(operator.add, tallies)))


def _plan_block(planned: Planned, order: Order, known: Costs, block: Block) -> tuple[pa.Table, PlanTally]:
    """Return the plan of a block's customers, and who gets what."""
    import pyarrow as pa

    rows, curves, costs = known.batch(block)
    decided, paid = planned.decide(rows, curves, costs), planned.show_costs(curves, costs)
    ids = pa.array(rows) if order.ids is None else block.data.column("customer").cast(order.ids)
    groups: list[Array] = []
    if order.shown:
        groups = list(column_matrix(block.data.column("groups")).T.astype(np.int64))
    stops = planned.count_stops((rows, curves, costs), *number_groups(order.shown, groups, len(rows)))
    tally = tally_codes(order.shown, groups, decided[0], curves, paid, stops)
    return planned.tabulate(ids, decided, curves, paid), tally
