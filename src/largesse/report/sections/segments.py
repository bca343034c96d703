"""Section with the planned levels of groups of customers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from largesse.report.charts.row_charts import draw_stacked_strip
from largesse.report.figure_rows import Row, Rows
from largesse.report.number_format import Style, Units, write_count, write_percent
from largesse.report.section import Numbers, Part, Section
from largesse.report.sections.budget_frontier import find_start, list_stops, write_budget


def view_who(numbers: Numbers, units: Units) -> Part:
    """Return the features that explain the plan, each with the rows of its groups; they follow the budget slider."""
    names, stops = [level["name"] for level in numbers["levels"]], list_stops(numbers)
    features, live = [], len(stops) > 1 and _are_counted(numbers, len(stops))
    for feature in numbers["who"]["features"]:
        groups = feature["groups"]
        costs = units.money([group["average_cost"] for group in groups])
        features.append(
            {
                "name": feature["feature"],
                "explains": write_percent(feature["explains"]),
                "figure": Rows([_view_group(group, names, costs, live) for group in groups]),
                "costs": _list_costs(groups, costs) if live else "",
            }
        )
    start = find_start(stops, numbers["budget"]["average"]) if live else 0
    budget = write_budget(stops[start], numbers, units) if live else ""
    words = {"live": live, "start": start, "last": len(stops) - 1, "budget": budget}
    return {"features": features, "names": json.dumps(names, ensure_ascii=False), **words}


def _are_counted(numbers: Numbers, stops: int) -> bool:
    """Whether every group is counted at every stop."""
    groups = [group for feature in numbers["who"]["features"] for group in feature["groups"]]
    return bool(groups) and all(len(group["stop_counts"]) == stops for group in groups)


def _list_costs(groups: Sequence[Mapping[str, Any]], costs: Style) -> str:
    """Return the average cost of each group at every stop, for the script: a line for each group."""
    lines = ["\t".join(costs.text(cost) for cost in group["stop_costs"]) for group in groups]
    return "\n".join(lines)


def _view_group(group: Mapping[str, Any], names: Sequence[str], costs: Style, live: bool) -> Row:
    shares = ", ".join(f"{name} {write_percent(share)}" for name, share in zip(names, group["shares"], strict=False))
    counts = group["stop_counts"] if live else ()
    figure = draw_stacked_strip(group["shares"], names, f"{group['label']}: {shares}", counts)
    words = {"detail": f"{write_count(group['customers'])} customers", "sub": "average cost"}
    return Row(group["label"], figure, costs.text(group["average_cost"]), **words)


SECTION = Section("segments", view_who, "Who gets what")
