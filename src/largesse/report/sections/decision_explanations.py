"""Section that explains decisions: typical customers, other shadow prices, and feature importance."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.report.charts.row_charts import draw_share_strip
from largesse.report.comparison_rows import FigureRow, FigureRows, add_decimals_for_nonzero_ends
from largesse.report.number_format import (
    Numbers,
    Units,
    View,
    finite_or_none,
    is_zero_text,
    write_percent,
    write_two_digits,
)

MAX_LABELLED_LEVELS = 7
MAX_SHOWN_FEATURES = 8
MIN_SHOWN_PRICE_CHANGE = 0.0005  # a smaller change is "at all"


def view_explanations(numbers: Numbers, units: Units) -> View | None:
    """Return the template values that explain the levels of typical customers; None without examples."""
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
                "change": write_level_changing_prices(row),
            }
            for row in why["examples"]
        ],
        "moves": [_write_price_effect(row) for row in why["moves"]],
        **_view_feature_importance(why["movers"], units),
    }


def _view_feature_importance(movers: Sequence[Numbers], units: Units) -> View:
    """Return figure rows of the most important features, and the number of other features."""
    rows = []
    for mover in movers[:MAX_SHOWN_FEATURES]:
        loss, moved = mover["loss"], write_percent(mover["moved"])
        style = add_decimals_for_nonzero_ends(units.gain_style(loss), loss)
        is_loss = (finite_or_none(loss["estimate"]) or 0.0) > 0 and not is_zero_text(style.text(loss["estimate"]))
        sub = f"loses {style.text(loss['estimate'])}" if is_loss else "loses nothing"
        label = f"{mover['feature']}: {moved} of customers get another level; {sub} ({style.interval(loss)})"
        figure = draw_share_strip(mover["moved"], label)
        rows.append(
            FigureRow(mover["feature"], figure, moved, sub=sub, mark=style.interval(loss) + _describe_loss_sign(loss))
        )
    rest = len(movers) - MAX_SHOWN_FEATURES
    return {"importance": FigureRows(rows), "rest": f"{rest} more features move fewer customers." if rest > 0 else ""}


def _describe_loss_sign(loss: Numbers) -> str:
    low, high = finite_or_none(loss.get("low")), finite_or_none(loss.get("high"))
    if low is None or high is None:
        return ""
    return ": using it pays" if low > 0 else ": using it costs" if high < 0 else ": may be zero"


def write_level_changing_prices(row: Numbers) -> str:
    r"""Write the shadow prices of the budget at which a typical customer would get another level.

    They are relative, because prices differ a little between the folds of the log, and from the plan's own.

    >>> write_level_changing_prices({"price": 1.0, "dearer": "10 €", "below": 0.8, "cheaper": "none", "above": 2.5})
    'would get 10 € if the price of budget fell by more than 20\u202f%, and none if it rose to more than 2.5 times as much'
    >>> write_level_changing_prices({"price": 1.0, "dearer": "10 €", "below": 1.0, "cheaper": None, "above": None})
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
        changes.append(f"{row['cheaper']} if {price} rose {_write_price_rise(now, row['above'])}")
    return f"would get {', and '.join(changes)}" if changes else "would get it at any price"


def _write_price_rise(now: float, above: float) -> str:
    if now <= 0:
        return f"above {write_two_digits(above)}"
    if above / now - 1 < MIN_SHOWN_PRICE_CHANGE:
        return "at all"
    if above < 2 * now:
        return f"by more than {write_percent(above / now - 1)}"
    return f"to more than {write_two_digits(above / now)} times as much"


def _write_price_effect(row: Numbers) -> str:
    change = finite_or_none(row["change"]) or 0.0
    verb, share = "fell" if change < 0 else "rose", write_percent(row["share"])
    return f"If the price {verb} by {write_percent(abs(change))}, {share} of customers would get another level."
