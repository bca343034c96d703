"""Section with the lower bounds of the plan's gain and of a simple rule's."""

from __future__ import annotations

from largesse.report.comparison_rows import view_reference
from largesse.report.number_format import MISSING_DASH, Numbers, Units, View, finite
from largesse.report.sentences import describe_bound, write_bound


def view_bounds(numbers: Numbers, units: Units) -> View:
    """Return the bound in words, the rows of the table, and the guarantee in words."""
    safety = numbers["safety"]
    rows = [
        view_reference(row, units) | {"gain": units.write_gain(row["gain"]), "bound": write_bound(units, row)}
        for row in safety["options"]
    ]
    rows += [
        view_reference(row, units) | {"gain": MISSING_DASH, "bound": MISSING_DASH} for row in numbers["versus"][:1]
    ]
    return {"bound": describe_bound(units, safety), "rows": rows, "guarantee": _write_guarantee(safety, units)}


def _write_guarantee(safety: Numbers, units: Units) -> str:
    """Write the guaranteed values, or the reason without any."""
    if safety["excuse"]:
        return str(safety["excuse"])
    known = [(row["name"], finite(row["guaranteed"])) for row in safety["options"]]
    bounds = [f"{units.response([bound]).text(bound)} with {name}" for name, bound in known if bound is not None]
    if not bounds:
        return ""
    return (
        f"Guaranteed value: at least {' and '.join(bounds)}, with 95 % confidence. This holds for any number of rows and any "
        "responses between 0 and 1, so it lies well below the interval."
    )
