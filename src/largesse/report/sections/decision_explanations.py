"""Section with a typical customer of each level, other prices, and feature importance."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.report.charts.row_charts import draw_share_strip
from largesse.report.comparison_rows import FigureRow, FigureRows, show_nonzero_ends
from largesse.report.number_format import Numbers, Units, View, finite, is_zero_text, write_percent, write_rate

MAX_LABELLED_LEVELS = 7
MAX_SHOWN_FEATURES = 8
MIN_SHOWN_PRICE_CHANGE = 0.0005  # a smaller change is "at all"


def view_explanations(numbers: Numbers, units: Units) -> View | None:
    """Return a row for each level that is given, and sentences about other prices; None without examples."""
    why = numbers["why"]
    if not why["examples"]:
        return None
    names = [level["name"] for level in numbers["levels"]]
    labels = names if len(names) <= MAX_LABELLED_LEVELS else []
    style = units.response([value for row in why["examples"] for value in row["curve"]])
    return {
        "labels": labels,
        "rows": [
            {
                "name": row["level"],
                "share": write_percent(row["share"]),
                "curve": [(label, style.text(value)) for label, value in zip(labels, row["curve"], strict=False)],
                "change": write_change(row),
            }
            for row in why["examples"]
        ],
        "moves": [_write_move(row) for row in why["moves"]],
        **_view_importance(why["movers"], units),
    }


def _view_importance(movers: Sequence[Numbers], units: Units) -> View:
    """Return a row for each of the most important features, and the number of the others."""
    rows = []
    for mover in movers[:MAX_SHOWN_FEATURES]:
        loss, moved = mover["loss"], write_percent(mover["moved"])
        style = show_nonzero_ends(units.gain_style(loss), loss)
        is_loss = (finite(loss["estimate"]) or 0.0) > 0 and not is_zero_text(style.text(loss["estimate"]))
        sub = f"loses {style.text(loss['estimate'])}" if is_loss else "loses nothing"
        label = f"{mover['feature']}: {moved} of customers get another level; {sub} ({style.interval(loss)})"
        figure = draw_share_strip(mover["moved"], label)
        rows.append(FigureRow(mover["feature"], figure, moved, sub=sub, mark=style.interval(loss) + _judge_loss(loss)))
    rest = len(movers) - MAX_SHOWN_FEATURES
    return {"importance": FigureRows(rows), "rest": f"{rest} more features move fewer customers." if rest > 0 else ""}


def _judge_loss(loss: Numbers) -> str:
    low, high = finite(loss.get("low")), finite(loss.get("high"))
    if low is None or high is None:
        return ""
    return ": using it pays" if low > 0 else ": using it costs" if high < 0 else ": may be zero"


def write_change(row: Numbers) -> str:
    r"""Write the price changes that would change the level of a typical customer.

    They are relative, because prices differ a little between the folds of the log, and from the plan's own.

    >>> write_change({"price": 1.0, "dearer": "10 €", "below": 0.8, "cheaper": "none", "above": 2.5})
    'would get 10 € if the price of budget fell by more than 20\u202f%, and none if it rose to more than 2.5 times as much'
    >>> write_change({"price": 1.0, "dearer": "10 €", "below": 1.0, "cheaper": None, "above": None})
    'would get 10 € if the price of budget fell at all'
    """
    now, changes = float(row["price"]), []
    if row["dearer"] is not None:
        change = 1 - max(row["below"], 0.0) / now if now > 0 else 0.0
        fall = (
            f" by more than {write_percent(change)}"
            if change >= MIN_SHOWN_PRICE_CHANGE
            else " at all"
            if now > 0
            else ""
        )
        changes.append(f"{row['dearer']} if the price of budget fell{fall}")
    if row["cheaper"] is not None:
        price = "it" if changes else "the price of budget"
        changes.append(f"{row['cheaper']} if {price} rose {_write_rise(now, row['above'])}")
    return f"would get {', and '.join(changes)}" if changes else "would get it at any price"


def _write_rise(now: float, above: float) -> str:
    if now <= 0:
        return f"above {write_rate(above)}"
    if above / now - 1 < MIN_SHOWN_PRICE_CHANGE:
        return "at all"
    if above < 2 * now:
        return f"by more than {write_percent(above / now - 1)}"
    return f"to more than {write_rate(above / now)} times as much"


def _write_move(row: Numbers) -> str:
    change = finite(row["change"]) or 0.0
    verb, share = "fell" if change < 0 else "rose", write_percent(row["share"])
    return f"If the price {verb} by {write_percent(abs(change))}, {share} of customers would get another level."
