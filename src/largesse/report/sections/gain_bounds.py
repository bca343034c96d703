"""Section with the lower bounds of the plan and a simple rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from largesse.report.number_format import DASH, Units, finite
from largesse.report.section import Numbers, Part, Section
from largesse.report.sentences import write_bound, write_least


def view_safety(numbers: Numbers, units: Units) -> Part:
    """Return the bound in words, the rows of the table, and the guarantee in words."""
    options = numbers["safety"]["options"]
    everyone = [_view_row(row, units) for row in numbers["versus"][:1]]
    return {
        "bound": write_bound(units, numbers["safety"]),
        "rows": [*(_view_option(row, units) for row in options), *everyone],
        "guarantee": _write_guarantee(numbers["safety"], units),
    }


def _view_row(row: Mapping[str, Any], units: Units) -> dict[str, str]:
    value, spend = units.value_style(row["value"]), units.spend_style(row["spend"])
    return {
        "name": row["name"],
        "detail": row["detail"],
        "value": value.text(row["value"]["estimate"]),
        "interval": value.interval(row["value"]),
        "spend": spend.text(row["spend"]["estimate"]),
        "gain": DASH,
        "least": DASH,
    }


def _view_option(row: Mapping[str, Any], units: Units) -> dict[str, str]:
    gain = units.gain_style(row["gain"]).both(row["gain"], signed=True)
    return _view_row(row, units) | {"gain": gain, "least": write_least(units, row)}


def _write_guarantee(safety: Mapping[str, Any], units: Units) -> str:
    """Say which values are guaranteed, or why none is."""
    if safety["excuse"]:
        return str(safety["excuse"])
    known = [(row["name"], finite(row["guaranteed"])) for row in safety["options"]]
    shown = [f"{units.response([least]).text(least)} with {name}" for name, least in known if least is not None]
    if not shown:
        return ""
    return (
        f"Guaranteed value: at least {' and '.join(shown)}, with 95 % confidence. This holds for any number of rows and any "
        "responses between 0 and 1, so it lies well below the interval."
    )


SECTION = Section("gain_bounds", view_safety, "How safe is this plan?")
