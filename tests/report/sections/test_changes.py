from typing import Any

import pytest

from largesse.report import render_report
from largesse.report.numbers import Units
from largesse.report.sections.transitions import view_changes, view_fall, view_matrix, write_moved

Numbers = dict[str, Any]
EURO = Units("binary", "€")
MOVES = [
    {"before": 0, "after": 1, "rows": 30, "share": 0.3, "value": 0.1, "spend": 2.0},
    {"before": 1, "after": 1, "rows": 50, "share": 0.5, "value": 0.0, "spend": 0.0},
    {"before": 2, "after": 1, "rows": 20, "share": 0.2, "value": -0.05, "spend": -1.0},
]


def test_the_waterfall_goes_from_what_was_done_to_the_plan(binary: Numbers) -> None:
    found = binary["changes"]
    total = found["before"]["value"]["estimate"] + sum(row["value"]["estimate"] for row in found["levels"])
    assert total == pytest.approx(binary["value"]["estimate"])
    rows = view_fall(found, "value", ["none", "small", "big"], (EURO.value_style, EURO.gain_style), EURO.response).rows
    assert [rows[0].label, rows[-1].label] == ["What was done", "This plan"]
    assert len(rows) == 2 + len(found["levels"])
    assert all(row.number[0] in "+−" for row in rows[1:-1])
    assert rows[-1].number == EURO.value_style(binary["value"]).text(binary["value"]["estimate"])


def test_moves_are_told_by_level_and_only_levels_that_anyone_gets_have_a_column(binary: Numbers) -> None:
    matrix = view_matrix(MOVES, ["none", "small", "big"])
    assert matrix["names"] == ["small"]
    assert [row["name"] for row in matrix["rows"]] == ["none", "small", "big"]
    assert [row["cells"][0]["text"] for row in matrix["rows"]] == ["30\u202f%", "50\u202f%", "20\u202f%"]
    assert [row["cells"][0]["same"] for row in matrix["rows"]] == [False, True, False]
    assert "50\u202f% of the log’s customers would get another level" in write_moved(MOVES)
    binary["changes"]["moves"] = MOVES
    view = view_changes(binary, EURO)
    assert view is not None
    assert [row["name"] for row in view["moves"]] == ["none → small", "big → small"]
    assert [row["each"] for row in view["moves"]] == ["€20.00", "–"]
    assert [row["spend"] for row in view["moves"]] == ["+€2.00", "−€1.00"]


def test_without_moves_there_is_no_such_section(binary: Numbers) -> None:
    binary["changes"]["moves"] = []
    assert 'id="transitions"' not in render_report(binary)
