"""The options of `largesse experiment`."""

import sys

import pytest

from largesse import cli
from largesse_lab.cli import drop_source


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["largesse", "experiment", *words])
    try:
        cli.main()
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


def test_the_command_kept_with_results_does_not_say_where_they_were_summarised() -> None:
    words = ["experiment", "table1", "--kept", "--machine", "a large one", "--out", "docs/results"]
    assert drop_source(words) == ["experiment", "table1", "--out", "docs/results"]
    assert drop_source(["experiment", "--machine=x", "rates"]) == ["experiment", "rates"]


@pytest.mark.parametrize("part", ["4/4", "x", "1", "-1/3", "1/0"])
def test_an_invalid_part_is_refused(
    part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "rates", f"--part={part}") == 2
    assert "parts of 4 are 0/4" in capsys.readouterr().err


def test_unknown_experiments_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "covrage") == 2
    assert "did you mean 'coverage'" in capsys.readouterr().err


def test_help_lists_the_labs_own_options(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "--help") == 0
    shown = capsys.readouterr().out
    assert "largesse experiment" in shown
    assert all(option in shown for option in ("--repeats", "--rows", "--part", "--kept", "--json"))


@pytest.mark.parametrize("words", [(), ("rates", "--repaets", "2"), ("rates", "--repeats", "two")])
def test_unusable_options_are_named(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *words) == 2
    assert "Usage: largesse experiment" in capsys.readouterr().err


def test_without_the_lab_the_command_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "largesse_lab.cli", None)
    assert call(monkeypatch, "rates") == 2
    assert "pip install 'largesse[lab]'" in capsys.readouterr().err
