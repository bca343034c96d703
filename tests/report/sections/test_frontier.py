from typing import Any

from largesse.report.numbers import Units
from largesse.report.sections.frontier import describe_promises, view_frontier

Numbers = dict[str, Any]
EURO = Units("binary", "€")


def test_the_band_for_all_budgets_holds_the_interval(binary: Numbers) -> None:
    for point in binary["frontier"]["points"]:
        low, high = point["band"]
        assert low <= point["value"]["low"] <= point["value"]["high"] <= high


def test_the_figure_is_drawn_for_a_desk_and_for_a_phone_with_its_band(binary: Numbers) -> None:
    view = view_frontier(binary, EURO)
    assert view["banded"]
    for size in ("desk", "phone"):
        assert view[size].count("band outer") == 1
    assert len(view["table"]) == len(binary["frontier"]["points"])


def test_long_names_become_numbers_with_a_key(binary: Numbers, ugly: Numbers) -> None:
    assert view_frontier(ugly, EURO)["key"][3] == ("4", "n")
    ugly["uniform"] = [{**row, "name": f"level {k}"} for k, row in enumerate(ugly["uniform"][:3])]
    assert view_frontier(ugly, EURO)["key"] == []


def test_the_readout_says_what_the_plan_costs_and_brings(binary: Numbers) -> None:
    binary |= {"value": {"estimate": 0.31, "low": 0.29, "high": 0.33}, "spend": {"estimate": 1.0}}
    binary["budget"]["average"], binary["planned"]["price"] = 1.05, 0.02
    words = view_frontier(binary, EURO)["readout"]
    assert words == (
        "This plan. Budget €1.05 per customer: spend €1.00, value 31.0\u202f% (29.0 to 33.0\u202f%); €1 more buys 0.020 responses."
    )


def test_the_promise_is_described_as_measured(binary: Numbers) -> None:
    points = binary["frontier"]["points"]
    for k, row in enumerate(points):
        row["promise"] = row["value"]["estimate"] + (0.01 if k < 3 else -0.01)
    points[-1]["promise"] = None
    assert describe_promises(points) == f"above the honest value at 3 of {len(points) - 1} budgets"
    assert describe_promises([]) == ""
