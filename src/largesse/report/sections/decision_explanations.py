"""Section with a typical customer of each level, other prices, and the features that move decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from largesse.report.charts.row_charts import draw_share_strip
from largesse.report.figure_rows import Row, Rows, tell_from_zero
from largesse.report.number_format import Units, finite, write_percent, write_rate
from largesse.report.section import Numbers, Part, Section

MOST = 7  # levels whose responses have room beside each other
LEAST = 0.0005  # change of a price that is told as a number
SHOWN = 8  # features that move decisions


def view_why(numbers: Numbers, units: Units) -> Part | None:
    """Return a row for each level that is given, and sentences about other prices; None where there is nothing to say."""
    found = numbers["why"]
    if not found["examples"]:
        return None
    names = [level["name"] for level in numbers["levels"]]
    labels = names if len(names) <= MOST else []
    style = units.response([value for row in found["examples"] for value in row["curve"]])
    return {
        "labels": labels,
        "rows": [
            {
                "name": row["level"],
                "share": write_percent(row["share"]),
                "curve": [(label, style.text(value)) for label, value in zip(labels, row["curve"], strict=False)],
                "change": _write_change(row),
            }
            for row in found["examples"]
        ],
        "moves": [_write_move(row) for row in found["moves"]],
        **view_movers(found["movers"], units),
    }


def view_movers(movers: Sequence[Mapping[str, Any]], units: Units) -> Part:
    """Return a row for each of the features that move most decisions, and how many others there are."""
    rows = []
    for mover in movers[:SHOWN]:
        style = tell_from_zero(units.gain_style(mover["loss"]), mover["loss"])
        moved, loss = write_percent(mover["moved"]), style.text(mover["loss"]["estimate"])
        label = f"{mover['feature']}: {moved} of customers get another level; loses {style.both(mover['loss'])}"
        words = {"sub": f"loses {loss}", "mark": f"{style.interval(mover['loss'])}{_judge_loss(mover['loss'])}"}
        rows.append(Row(mover["feature"], draw_share_strip(mover["moved"], label), moved, **words))
    rest = len(movers) - SHOWN
    return {"movers": Rows(rows), "rest": f"{rest} more features move fewer customers." if rest > 0 else ""}


def _judge_loss(loss: Mapping[str, Any]) -> str:
    """Say whether it is shown that looking at a feature pays; nothing where a loss has no interval."""
    low, high = finite(loss.get("low")), finite(loss.get("high"))
    if low is None or high is None:
        return ""
    return ": looking at it pays" if low > 0 else ": looking at it costs" if high < 0 else ": could be nothing"


def _write_change(row: Mapping[str, Any]) -> str:
    """Say what would change the decision: by how much the price would have to move.

    Prices differ a little between the folds of the log, and from the plan's own: changes are told relative to them.

    >>> _write_change({"price": 1.0, "dearer": "10 €", "below": 0.8, "cheaper": "none", "above": 2.5})
    'would get 10 € if the price of budget fell by more than 20 %, and none if it rose to more than 2.5 times as much'
    >>> _write_change({"price": 1.0, "dearer": "10 €", "below": 1.0, "cheaper": None, "above": None})
    'would get 10 € if the price of budget fell at all'
    """
    now, changes = float(row["price"]), []
    if row["dearer"] is not None:
        change = 1 - max(row["below"], 0.0) / now if now > 0 else 0.0
        fell = f" by more than {write_percent(change)}" if change >= LEAST else " at all" if now > 0 else ""
        changes.append(f"{row['dearer']} if the price of budget fell{fell}")
    if row["cheaper"] is not None:
        what = "it" if changes else "the price of budget"
        changes.append(f"{row['cheaper']} if {what} rose {_write_rise(now, row['above'])}")
    return f"would get {', and '.join(changes)}" if changes else "would get it at any price"


def _write_rise(now: float, above: float) -> str:
    """Say by how much a price rises to reach another; to what, where it is zero now."""
    if now <= 0:
        return f"above {write_rate(above)}"
    if above / now - 1 < LEAST:
        return "at all"
    return (
        f"by more than {write_percent(above / now - 1)}"
        if above < 2 * now
        else f"to more than {write_rate(above / now)} times as much"
    )


def _write_move(row: Mapping[str, Any]) -> str:
    change = finite(row["change"]) or 0.0
    way, share = "fell" if change < 0 else "rose", write_percent(row["share"])
    return f"If the price {way} by {write_percent(abs(change))}, {share} of customers would get another level."


SECTION = Section("decision_explanations", view_why, "Why this level?")
