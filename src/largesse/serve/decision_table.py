"""A ledger as a table of decisions, and its audit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.errors import LedgerError, Problem, fail, plural
from largesse.monitoring import CUSTOMER, PROPENSITY, REQUEST
from largesse.pipeline import check_table, write_table
from largesse.serve.ledger.ledger import Ledger, open_ledger
from largesse.serve.ledger.money import MICROS, show_money
from largesse.serve.ledger.records import Reason
from largesse.serve.ledger.statements import ENTRY
from largesse.serve.ledger.terms import KEPT, show_time

if TYPE_CHECKING:
    import pyarrow as pa

MONEY = {"at_once": "paid_at_once", "face": "promised", "paid": "redeemed"}
TIMES = ("decided_at", "expires_at", "redeemed_at")


def audit_ledger(address: str, total: Any = None, out: str | Path | None = None) -> dict[str, Any]:
    """Add the decisions of a ledger up again, and return where its budget stands; refuse one whose sums are wrong.

    `total` then changes the budget, and `out` gets all decisions as a table.
    """
    check_table(out, own="")
    with open_ledger(address) as ledger:
        _refuse_wrong_sums(ledger)
        if total is not None:
            ledger.change_total(total)
        standing = ledger.standing()
        if out is not None:
            write_table(tabulate(ledger), Path(out))
    period = {"starts": show_time(standing.terms.starts), "ends": show_time(standing.terms.ends)}
    words = {"ledger": ledger.shown, "unit": standing.plan.get("unit", "")}
    return {**words, **standing.as_dict(), **period, "now": show_time(standing.now)}


def _refuse_wrong_sums(ledger: Ledger) -> None:
    """Refuse a ledger whose sums are not those of its decisions, before anything is changed or written."""
    told = [
        Problem(f"{name} is {kept:,} in the ledger, but {added:,} by its decisions")
        for name, (kept, added) in ledger.audit().differences.items()
    ]
    if told:
        raise LedgerError("ledger", [*told, Problem("something else changed the ledger", "restore a copy of it")])


def describe_standing(shown: Mapping[str, Any]) -> str:
    """Say in a few lines where the budget of a ledger stands."""
    words = {"total": "budget", "spent": "spent", "promised": "promised, not yet redeemed", "room": "left"}
    if shown["promises"] != KEPT:
        words |= {"promised": "promised while it lasts", "held": "of that will probably be redeemed"}
        words = {name: words[name] for name in ("total", "spent", "promised", "held", "room")}
    amounts = {word: show_money(round(shown[name] * MICROS)) for name, word in words.items()}
    wide, long = (max(map(len, part)) for part in (amounts, amounts.values()))
    lines = [f"  {word:<{wide}}  {amount:>{long}} {shown['unit']}".rstrip() for word, amount in amounts.items()]
    told = f"{plural(shown['decisions'], 'decision')} in {plural(shown['requests'], 'request')}"
    told += f", {shown['redemptions']:,} redeemed, {shown['expired']:,} expired; the sums are right"
    return "\n".join([f"{shown['ledger']}, from {shown['starts']} until {shown['ends']}", *lines, f"  {told}"])


def tabulate(ledger: Ledger) -> pa.Table:
    """Return the decisions of a ledger as a table with a row for each; its columns begin as those of a plan."""
    import pyarrow as pa

    try:
        return _tabulate(ledger)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, LedgerError):
            raise
        problem = Problem("the ledger is damaged: its decisions hold odd values", "restore it from a copy")
        raise LedgerError("ledger", [problem]) from error


def _tabulate(ledger: Ledger) -> pa.Table:
    import pyarrow as pa

    rows = list(ledger.decisions())
    found = dict(zip(ENTRY, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(ENTRY, ())
    names = ledger.standing().plan.get("levels")
    level = np.array(found["level"], dtype=np.int32)
    money = {name: np.array(found[name], dtype=np.float64) / MICROS for name in ("at_once", "face", "expected", "paid")}
    columns: dict[str, Any] = {REQUEST: pa.array(found[REQUEST], pa.string())}
    columns[CUSTOMER] = pa.array(found[CUSTOMER], pa.string())
    if isinstance(names, list) and (not len(level) or level.max() < len(names)):
        columns["level"] = pa.array([str(names[k]) for k in level], pa.string())
    columns["level_number"] = pa.array(level)
    columns["expected_response"] = pa.array(found["response"], pa.float64())
    columns["expected_cost"] = pa.array(money["at_once"] + money["expected"])
    columns[PROPENSITY] = pa.array(found[PROPENSITY], pa.float64())
    columns["price"] = pa.array(found["price"], pa.float64())
    columns["reason"] = pa.array([Reason(one).name.lower() for one in found["reason"]], pa.string())
    columns |= {word: pa.array(money[name], from_pandas=True) for name, word in MONEY.items()}
    columns["policy"] = pa.array(found["policy"], pa.string())
    columns |= {name: pa.array(found[name], pa.timestamp("us", tz="UTC")) for name in TIMES}
    return pa.table(columns)


def read_decisions(address: str) -> pa.Table:
    """Return the decisions of a ledger; refuse one that has none."""
    with open_ledger(address) as ledger:
        found, shown = tabulate(ledger), ledger.shown
    if not len(found):
        fail("ledger", Problem(f"{shown} holds no decisions yet", "give the ledger that decisions were booked in"))
    return found
