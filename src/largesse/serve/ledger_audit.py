"""Audit of a ledger's sums, and export of its decisions as a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.errors import LedgerError, Problem, fail, plural
from largesse.monitoring import CUSTOMER, PROPENSITY, REQUEST
from largesse.pipeline import check_table_path, write_table
from largesse.serve.ledger.amounts_and_times import MICROS, format_money, format_time
from largesse.serve.ledger.ledger import Ledger, open_ledger
from largesse.serve.ledger.ledger_records import KEPT_PROMISES, Reason
from largesse.serve.ledger.sql_statements import DECISION_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

MONEY_COLUMNS = {"at_once": "paid_at_once", "face": "promised", "paid": "redeemed"}
TIMES = ("decided_at", "expires_at", "redeemed_at")


def audit_ledger(address: str, total: Any = None, out: str | Path | None = None) -> dict[str, Any]:
    """Compare the sums of a ledger with its decisions; return the sums, or raise an error if they differ.

    `total` then changes the budget, and `out` gets all decisions as a table.
    """
    check_table_path(out, own="")
    with open_ledger(address, read_only=total is None) as ledger:
        differences = ledger.audit().differences
        if differences:  # before anything is changed or written
            problems = [
                Problem(f"{name} is {counted:,} in the ledger, but {added:,} by its decisions")
                for name, (counted, added) in differences.items()
            ]
            problems.append(Problem("something else changed the ledger", "restore a copy of it"))
            raise LedgerError("ledger", problems)
        if total is not None:
            ledger.change_total(total)
        standing = ledger.standing()
        if out is not None:
            write_table(tabulate_decisions(ledger), Path(out))
    times = {"starts": standing.terms.starts, "ends": standing.terms.ends, "now": standing.now}
    texts = {name: format_time(micros) for name, micros in times.items()}
    return {"ledger": ledger.display_address, "unit": standing.plan.get("unit", ""), **standing.as_dict(), **texts}


def describe_standing(standing: Mapping[str, Any]) -> str:
    """Format the current sums of a ledger as a few lines of text."""
    labels = {"total": "budget", "spent": "spent", "promised": "promised, not yet redeemed", "room": "left"}
    if standing["promises"] != KEPT_PROMISES:
        labels = {"total": "budget", "spent": "spent", "promised": "promised while it lasts"}
        labels |= {"held": "of that will probably be redeemed", "room": "left"}
    amounts = {label: format_money(round(standing[name] * MICROS)) for name, label in labels.items()}
    width, digits = (max(map(len, texts)) for texts in (amounts, amounts.values()))
    unit = standing["unit"]
    lines = [f"  {label:<{width}}  {amount:>{digits}} {unit}".rstrip() for label, amount in amounts.items()]
    counts = f"{plural(standing['decisions'], 'decision')} in {plural(standing['requests'], 'request')}"
    counts += f", {standing['redemptions']:,} redeemed, {standing['expired']:,} expired; the sums are right"
    head = f"{standing['ledger']}, from {standing['starts']} until {standing['ends']}"
    return "\n".join([head, *lines, f"  {counts}"])


def tabulate_decisions(ledger: Ledger) -> pa.Table:
    """Return the decisions of a ledger as an Arrow table with one row per customer.

    The first columns are those of a plan.
    """
    import pyarrow as pa

    rows = list(ledger.decisions())
    entries = (
        dict(zip(DECISION_COLUMNS, zip(*rows, strict=True), strict=True))
        if rows
        else dict.fromkeys(DECISION_COLUMNS, ())
    )
    names = ledger.standing().plan.get("levels")
    try:
        level = np.array(entries["level"], dtype=np.int32)
        money = {name: np.array(entries[name], np.float64) / MICROS for name in ("at_once", "face", "expected", "paid")}
        columns: dict[str, Any] = {name: pa.array(entries[name], pa.string()) for name in (REQUEST, CUSTOMER)}
        if isinstance(names, list) and (not len(level) or level.max() < len(names)):
            columns["level"] = pa.array([str(names[k]) for k in level], pa.string())
        columns["level_number"] = pa.array(level)
        columns["expected_response"] = pa.array(entries["response"], pa.float64())
        columns["expected_cost"] = pa.array(money["at_once"] + money["expected"])
        columns[PROPENSITY] = pa.array(entries[PROPENSITY], pa.float64())
        columns["price"] = pa.array(entries["price"], pa.float64())
        columns["reason"] = pa.array([Reason(value).name.lower() for value in entries["reason"]], pa.string())
        columns |= {column: pa.array(money[name], from_pandas=True) for name, column in MONEY_COLUMNS.items()}
        columns["policy"] = pa.array(entries["policy"], pa.string())
        columns |= {name: pa.array(entries[name], pa.timestamp("us", tz="UTC")) for name in TIMES}
        return pa.table(columns)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        problem = Problem("the ledger is damaged: its decisions hold odd values", "restore it from a copy")
        raise LedgerError("ledger", [problem]) from error


def read_decisions(address: str) -> pa.Table:
    """Read the decisions of a ledger as a table; refuse a ledger without decisions."""
    with open_ledger(address, read_only=True) as ledger:
        table, address_text = tabulate_decisions(ledger), ledger.display_address
    if not len(table):
        fail(
            "ledger", Problem(f"{address_text} holds no decisions yet", "give the ledger that decisions were booked in")
        )
    return table
