"""For each telling feature, one stacked bar per group of customers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from largesse.report.charts.strips import draw_stacked_strip
from largesse.report.formats import Style, Units, write_count, write_percent
from largesse.report.rows import Row, Rows
from largesse.report.section import Numbers, Part, Section
from largesse.report.sections.who.numbers import describe_who


def view_who(numbers: Numbers, units: Units) -> Part:
    """Return the features that explain the plan, each with the rows of its groups."""
    names = [level["name"] for level in numbers["levels"]]
    features = []
    for feature in numbers["who"]["features"]:
        costs = units.money([group["average_cost"] for group in feature["groups"]])
        rows = Rows([_view_group(group, names, costs) for group in feature["groups"]])
        features.append({"name": feature["feature"], "explains": write_percent(feature["explains"]), "figure": rows})
    return {"features": features}


def _view_group(group: Mapping[str, Any], names: Sequence[str], costs: Style) -> Row:
    shares = ", ".join(f"{name} {write_percent(share)}" for name, share in zip(names, group["shares"], strict=False))
    figure = draw_stacked_strip(group["shares"], names, f"{group['label']}: {shares}")
    words = {"detail": f"{write_count(group['customers'])} customers", "sub": "average cost"}
    return Row(group["label"], figure, costs.text(group["average_cost"]), **words)


SECTION = Section("who", view_who, "Who gets what", plan=describe_who)
