"""Section on spend and gain in the groups of protected attributes."""

from __future__ import annotations

from largesse.report.number_format import Numbers, Units, View, write_count, write_percent
from largesse.report.sentences import quote_name, write_unequal_spending


def view_protected_groups(numbers: Numbers, units: Units) -> View | None:
    """Return a table of spend and gain for each protected attribute; None without such attributes."""
    if not numbers["protected"]:
        return None
    cheapest = numbers["levels"][0]["name"] if numbers["levels"] else ""
    return {
        "cheapest": quote_name(cheapest),
        "attributes": [
            {
                "name": attribute["column"],
                "rows": [_view_protected_group(group, units) for group in attribute["groups"]],
                "apart": write_unequal_spending(attribute, units),
            }
            for attribute in numbers["protected"]
        ],
    }


def _view_protected_group(group: Numbers, units: Units) -> dict[str, str]:
    return {
        "label": group["label"],
        "rows": write_count(group["rows"]),
        "share": write_percent(group["share"]),
        "spend": units.spend_style(group["spend"]).with_interval(group["spend"]),
        "extra": units.write_gain(group["extra"]),
        "gain": units.write_gain(group["gain"]),
    }
