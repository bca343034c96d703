"""Section with the planned levels of groups of customers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from largesse.report.charts.row_charts import draw_stacked_strip, draw_swatch
from largesse.report.comparison_rows import FigureRow, FigureRows
from largesse.report.number_format import Numbers, NumberStyle, Units, View, write_count, write_percent
from largesse.report.sections.budget_frontier import find_start, list_stops, write_budget


def view_segments(numbers: Numbers, units: Units) -> View:
    """Return the features that explain the plan, each with the rows of its groups; they follow the budget slider."""
    names, stops = [level["name"] for level in numbers["levels"]], list_stops(numbers)
    every = [group for feature in numbers["who"]["features"] for group in feature["groups"]]
    # Groups can follow the slider if they are counted at every stop.
    live = len(stops) > 1 and bool(every) and all(len(group["stop_counts"]) == len(stops) for group in every)
    features = []
    for feature in numbers["who"]["features"]:
        groups = feature["groups"]
        costs = units.money([group["average_cost"] for group in groups])
        # for the script: a line for each group, its average cost at every stop
        lines = ["\t".join(costs.text(cost) for cost in group["stop_costs"]) for group in groups] if live else []
        features.append(
            {
                "name": feature["feature"],
                "explains": write_percent(feature["explains"]),
                "figure": FigureRows([_view_group(group, names, costs, live) for group in groups]),
                "costs": "\n".join(lines),
            }
        )
    start = find_start(stops, numbers["budget"]["average"]) if live else 0
    return {
        "features": features,
        "names": json.dumps(names, ensure_ascii=False),
        "live": live,
        "start": start,
        "last": len(stops) - 1,
        "budget": write_budget(stops[start], numbers, units) if live else "",
        "spends": _view_spends(numbers["money"]["levels"], units),
    }


def _view_spends(rows: Sequence[Numbers], units: Units) -> list[dict[str, str]]:
    """Return customers and spend of each level."""
    spends = units.money([row["spend"] for row in rows])
    return [
        {
            "swatch": draw_swatch(level),
            "name": row["name"],
            "customers": write_count(row["customers"]),
            "share": write_percent(row["share"]),
            # in one style if all sums are small; large sums each in their own, so that none reads 0.000 million
            "spend": units.total(row["spend"]) if spends.unit > 1 else spends.text(row["spend"]),
            "spend_share": write_percent(row["spend_share"]),
        }
        for level, row in enumerate(rows)
    ]


def _view_group(group: Numbers, names: Sequence[str], costs: NumberStyle, live: bool) -> FigureRow:
    shares = ", ".join(f"{name} {write_percent(share)}" for name, share in zip(names, group["shares"], strict=False))
    counts = group["stop_counts"] if live else ()
    figure = draw_stacked_strip(group["shares"], names, f"{group['label']}: {shares}", counts)
    detail = f"{write_count(group['customers'])} customers"
    return FigureRow(group["label"], figure, costs.text(group["average_cost"]), detail, "average cost")
