"""Section with the planned levels of groups of customers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from largesse.report.charts.row_charts import draw_stacked_strip, draw_swatch
from largesse.report.comparison_rows import FigureRow, FigureRows
from largesse.report.number_format import Numbers, NumberStyle, Units, View, write_count, write_percent
from largesse.report.sections.budget_frontier import find_initial_stop, list_slider_stops, write_stop_budget


def view_segments(numbers: Numbers, units: Units) -> View:
    """Return figure rows of planned levels by customer group, for the features that explain the plan."""
    names, stops = [level["name"] for level in numbers["levels"]], list_slider_stops(numbers)
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
                "figure": FigureRows([_view_segment(group, names, costs, live) for group in groups]),
                "costs": "\n".join(lines),
            }
        )
    start = find_initial_stop(stops, numbers["budget"]["average"]) if live else 0
    return {
        "features": features,
        "names": json.dumps(names, ensure_ascii=False),
        "live": live,
        "start": start,
        "last": len(stops) - 1,
        "budget": write_stop_budget(stops[start], numbers, units) if live else "",
        "spends": _view_spend_by_level(numbers["money"]["levels"], units),
    }


def _view_spend_by_level(rows: Sequence[Numbers], units: Units) -> list[dict[str, str]]:
    """Return table rows of customers and spend by level."""
    spends = units.money([row["spend"] for row in rows])
    return [
        {
            "swatch": draw_swatch(level),
            "name": row["name"],
            "customers": write_count(row["customers"]),
            "share": write_percent(row["share"]),
            # in one style if all sums are small; large sums each in their own, so that none reads 0.000 million
            "spend": units.write_total_cost(row["spend"]) if spends.unit > 1 else spends.text(row["spend"]),
            "spend_share": write_percent(row["spend_share"]),
        }
        for level, row in enumerate(rows)
    ]


def _view_segment(group: Numbers, names: Sequence[str], costs: NumberStyle, live: bool) -> FigureRow:
    shares = ", ".join(f"{name} {write_percent(share)}" for name, share in zip(names, group["shares"], strict=False))
    counts = group["stop_counts"] if live else ()
    figure = draw_stacked_strip(group["shares"], names, f"{group['label']}: {shares}", counts)
    detail = f"{write_count(group['customers'])} customers"
    return FigureRow(group["label"], figure, costs.text(group["average_cost"]), detail, "average cost")
