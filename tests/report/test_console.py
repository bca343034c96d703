"""What the command line prints."""

from pathlib import Path

import pytest

from largesse.campaign import read_campaign
from largesse.pipeline import examine, report
from largesse.report import print_answer, print_checkup, print_error
from largesse.report.sentences import select_notes


def joined(text: str) -> str:
    """Return the words of a text, whatever spaces and line breaks were between them."""
    return " ".join(text.split())


def test_the_answer_is_printed_with_what_it_is_compared_with_and_every_warning(
    run_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = report(run_copy)
    print_answer(shown, run_copy)
    text = joined(capsys.readouterr().out)
    assert joined(shown["answer"]["headline"]) in text
    assert "this plan" in text
    assert "a simple rule" in text
    for other in shown["versus"]:
        assert f"against {other['name']}: " in text
    for warning in select_notes(shown["answer"]["warnings"]):
        assert joined(warning["text"]) in text
    assert f"open {run_copy / 'report.html'}" in text


def test_every_no_and_careful_stands_above_the_numbers_one_sentence_each(
    run_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = report(run_copy)
    shown["answer"]["warnings"] = [
        {"answer": "note", "text": "Only a note. And more."},
        {"answer": "careful", "text": "Few rows of 'Approx. A'. Expect wide intervals."},
        {"answer": "no", "text": "The levels may be in the wrong order. Put the cheapest first."},
    ]
    print_answer(shown, run_copy)
    text = joined(capsys.readouterr().out)
    serious = text.index("✗ no: The levels may be in the wrong order. ! careful: Few rows of 'Approx. A'. ")
    assert serious < text.index("this plan") < text.index("· Only a note. And more.")
    assert "Expect wide" not in text


@pytest.mark.parametrize("page", [None, Path("checkup.html")])
def test_the_checkup_is_printed_with_every_check_and_level(
    ran: Path, page: Path | None, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = examine(read_campaign(ran))
    print_checkup(shown | {"notes": ["A note"]}, page)
    text = capsys.readouterr().out
    assert "randomisation" in text
    firsts = [line.split()[0] for line in text.splitlines() if line.strip()]
    names = [row["name"] for row in shown["curve"]["levels"]]
    assert [first for first in firsts if first in names] == names
    assert "· A note" in text
    assert ("Wrote checkup.html" if page else "--out page.html") in text


def test_no_number_of_the_level_table_is_cut(
    ran: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = examine(read_campaign(ran))
    for row in shown["curve"]["levels"]:
        row["name"] = "a level whose name is much too long for a table of eighty columns"
        row["value"] |= {"estimate": 0.2967, "low": 0.294112, "high": 0.299213}
    print_checkup(shown, None)
    text = capsys.readouterr().out
    assert "…" not in text
    assert text.count("29.41 to 29.92") == len(shown["curve"]["levels"])


def test_an_error_is_printed_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    print_error("log: [bold]no[/] markup\n   → " + "x" * 200)
    assert capsys.readouterr().err == "largesse: log: [bold]no[/] markup\n   → " + "x" * 200 + "\n"


def test_levels_and_numbers_can_be_read_where_there_are_no_intervals(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    few = {"estimate": 11.65, "low": None, "high": None, "se": None}
    checkup = examine(read_campaign(run_copy))
    for k, row in enumerate(checkup["curve"]["levels"]):
        row["name"] = f"€{k}.5"
        row["value"] |= few
    print_checkup(checkup, None)
    lines = capsys.readouterr().out.splitlines()
    for k in range(len(checkup["curve"]["levels"])):
        assert [line for line in lines if line.startswith(f"€{k}.5") and line.rstrip().endswith("too few responses")]
    shown = report(run_copy)
    for row in (shown, *shown["safety"]["options"], *shown["versus"]):
        row["value"] = dict(few)
    print_answer(shown, run_copy)
    text = capsys.readouterr().out
    assert "what was done before" in text
    assert "…" not in text
