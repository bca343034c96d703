"""Output of the command line."""

from pathlib import Path
from typing import Any

import pytest

from largesse.campaign import read_campaign
from largesse.pipeline import examine, report
from largesse.report import print_error, print_log_checkup, print_run_result
from largesse.report.sentences import select_note_warnings

WITHOUT_INTERVAL = {"estimate": 11.65, "low": None, "high": None, "se": None}


def join_words(text: str) -> str:
    """Return the words of a text, whatever spaces and line breaks were between them."""
    return " ".join(text.split())


@pytest.fixture
def checkup(ran: Path) -> dict[str, Any]:
    return examine(read_campaign(ran))


def test_the_answer_shows_comparisons_and_every_warning_the_urgent_ones_first(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    numbers = report(run_copy)
    print_run_result(numbers, run_copy)
    text = join_words(capsys.readouterr().out)
    shown = [numbers["answer"]["headline"], "this plan", "a simple rule", f"open {run_copy / 'report.html'}"]
    shown += [f"against {other['name']}: " for other in numbers["versus"]]
    shown += [warning["text"] for warning in select_note_warnings(numbers["answer"]["warnings"])]
    assert [words for words in shown if join_words(words) not in text] == []
    numbers["answer"]["warnings"] = [
        {"answer": "note", "text": "Only a note. And more."},
        {"answer": "careful", "text": "Few rows of 'Approx. A'. Expect wide intervals."},
        {"answer": "no", "text": "The levels may be in the wrong order. Put the cheapest first."},
    ]
    for row in (numbers, *numbers["safety"]["options"], *numbers["versus"]):
        row["value"] = dict(WITHOUT_INTERVAL)
    print_run_result(numbers, run_copy)
    text = join_words(capsys.readouterr().out)
    urgent = text.index("✗ no: The levels may be in the wrong order. ! careful: Few rows of 'Approx. A'. ")
    assert urgent < text.index("this plan") < text.index("· Only a note. And more.")
    assert "Expect wide" not in text
    assert "what was done before" in text
    assert "…" not in text  # nothing is cut


@pytest.mark.parametrize("page", [None, Path("checkup.html")])
def test_the_checkup_shows_every_check_and_level(
    checkup: dict[str, Any], page: Path | None, capsys: pytest.CaptureFixture[str]
) -> None:
    print_log_checkup(checkup | {"notes": ["A note"]}, page)
    text = capsys.readouterr().out
    assert "randomisation" in text
    firsts = [line.split()[0] for line in text.splitlines() if line.strip()]
    names = [row["name"] for row in checkup["curve"]["levels"]]
    assert [first for first in firsts if first in names] == names
    assert "· A note" in text
    assert ("Wrote checkup.html" if page else "--out page.html") in text


@pytest.mark.parametrize(
    ("name", "value", "end"),
    [
        (
            "a level whose name is much too long for a table of eighty columns",
            {"estimate": 0.2967, "low": 0.294112, "high": 0.299213},
            "29.41 to 29.92\u202f%",
        ),
        ("€{}.5", WITHOUT_INTERVAL, "too few responses"),
    ],
)
def test_no_number_and_no_level_of_the_table_is_cut(
    checkup: dict[str, Any],
    name: str,
    value: dict[str, Any],
    end: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for k, row in enumerate(checkup["curve"]["levels"]):
        row["name"] = name.format(k)
        row["value"] |= value
    print_log_checkup(checkup, None)
    lines = capsys.readouterr().out.splitlines()
    starts = [name.format(k)[:4] for k in range(len(checkup["curve"]["levels"]))]
    assert all(any(line.startswith(start) and line.rstrip().endswith(end) for line in lines) for start in starts)
    assert "…" not in "".join(lines)


def test_an_error_is_printed_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    print_error("log: [bold]no[/] markup\n   → " + "x" * 200)
    assert capsys.readouterr().err == "largesse: log: [bold]no[/] markup\n   → " + "x" * 200 + "\n"
