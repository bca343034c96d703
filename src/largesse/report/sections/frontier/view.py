"""The frontier figure in both sizes, its key and the numbers behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from largesse.report.charts.frontier import DESK, PHONE, Chart, Point, choose_labels, draw_frontier
from largesse.report.formats import DASH, Units, finite
from largesse.report.section import Numbers, Part, Section
from largesse.report.sections.frontier.numbers import describe_frontier, describe_stops
from largesse.report.sections.frontier.slider import view_slider

UNLIKE = {"constraints": "your constraints", "exploration": "exploration"}  # topic of a warning → what was not judged


def view_frontier(numbers: Numbers, units: Units) -> Part:
    """Return the figure for a desk and for a phone, the key of its squares, and its table."""
    points, uniform = numbers["frontier"]["points"], numbers["uniform"]
    names = [row["name"] for row in uniform]
    labels = choose_labels(names)
    chart = _make_chart(numbers, units, labels)
    return {
        "desk": draw_frontier(chart, DESK),
        "phone": draw_frontier(chart, PHONE),
        "banded": any(finite(row["band"]["low"]) is not None for row in points),
        "key": list(zip(labels, names, strict=True)) if labels != names else [],
        "table": [_view_point(row, units) for row in points],
        "uniform": [_view_uniform(row, units) for row in uniform],
        "readout": _write_plan(numbers, units),
        "promise": describe_promises(points),
        "unlike": _describe_unlike(numbers),
        **view_slider(numbers, units),
    }


def _describe_unlike(numbers: Numbers) -> str:
    """Say by what the plans that were judged differ from those of the slider; nothing where they do not."""
    topics = {warning["topic"] for warning in numbers["warnings"]}
    without = next((words for topic, words in UNLIKE.items() if topic in topics), "")
    return f"Value and gain are those of plans without {without}." if without else ""


def describe_promises(points: Sequence[Mapping[str, Any]]) -> str:
    """Say at how many budgets the model's promise lies above the honest value."""
    pairs = [(finite(row["promise"]), finite(row["value"]["estimate"])) for row in points]
    known = [(promise, value) for promise, value in pairs if promise is not None and value is not None]
    above = sum(promise > value for promise, value in known)
    return f"above the honest value at {above} of {len(known)} budgets" if known else ""


def _make_chart(numbers: Numbers, units: Units, labels: list[str]) -> Chart:
    measure = (
        "response rate" if units.binary else f"mean response{', ' if units.response_unit else ''}{units.response_unit}"
    )
    return Chart(
        curve=[
            Point(
                row["budget"],
                row["value"],
                _write_readout(_view_point(row, units), units),
                band=row["band"],
                beside=row["promise"],
            )
            for row in numbers["frontier"]["points"]
        ],
        summary=f"Value at each budget. {_write_plan(numbers, units)}",
        across_title=units.title_axis("budget per customer"),
        up_title=f"value per customer ({measure})",
        units=units,
        squares=[
            Point(
                row["spend"]["estimate"],
                row["value"],
                f"everyone gets {row['name']}: {_view_uniform(row, units)['value']}",
                label=label,
            )
            for row, label in zip(numbers["uniform"], labels, strict=True)
        ],
        chosen=Point(numbers["budget"]["average"], numbers["value"], "", label="this plan"),
    )


def _view_point(row: Mapping[str, Any], units: Units) -> dict[str, str]:
    style = units.value_style(row["value"])
    return {
        "budget": units.cost(row["budget"]),
        "spend": units.cost(row["spend"]["estimate"]),
        "value": style.text(row["value"]["estimate"]),
        "interval": style.interval(row["value"]),
        "both": style.both(row["value"]),
        "band": style.interval(row.get("band", {})),
        "promise": style.text(row["promise"]),
        "price": units.rate(row["price"]),
    }


def _view_uniform(row: Mapping[str, Any], units: Units) -> dict[str, str]:
    style = units.value_style(row["value"])
    return {
        "name": row["name"],
        "spend": units.cost(row["spend"]["estimate"]),
        "value": style.text(row["value"]["estimate"]),
        "interval": style.interval(row["value"]),
    }


def _write_readout(row: Mapping[str, str], units: Units) -> str:
    more = f"; {units.one_more} buys {row['price']}" if row["price"] != DASH else ""
    return f"Budget {row['budget']} per customer: spend {row['spend']}, value {row['both']}{more}."


def _write_plan(numbers: Numbers, units: Units) -> str:
    row = {
        "budget": numbers["budget"]["average"],
        "value": numbers["value"],
        "spend": numbers["spend"],
        "promise": numbers["promise"],
        "price": numbers["planned"]["price"],
    }
    return f"This plan. {_write_readout(_view_point(row, units), units)}"


SECTION = Section(
    "frontier", view_frontier, "What each budget would bring", plan=describe_stops, study=describe_frontier
)
