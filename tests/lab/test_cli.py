"""The options of `largesse experiment`."""

import json
import sys
from pathlib import Path

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
    assert all(option in shown for option in ("--repeats", "--models", "--part", "--kept", "--json"))
    assert "worlds: rows of each log" in shown
    assert "as 0-199" in shown


@pytest.mark.parametrize("seeds", ["5-3", "x", "3-", "-3", "1-2-3", "1.5"])
def test_unusable_seeds_are_refused(
    seeds: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "worlds", f"--seeds={seeds}") == 2
    told = capsys.readouterr().err
    assert f"--seeds {seeds}" in told
    assert "as 0-199" in told


def test_worlds_are_named_by_seeds_and_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("--seeds", "3-4", "--rows", "300", "--models", "uniform,oracle", "--out", str(tmp_path / "kept.jsonl"))
    assert call(monkeypatch, "worlds", *words) == 0
    assert "2 worlds (seeds 3–4), logs of 300 rows" in capsys.readouterr().out
    assert call(monkeypatch, "rates", "--rows", "300") == 2
    assert "rates does not know a number of --rows" in capsys.readouterr().err


def test_names_may_be_given_as_rows_and_numbers_as_seeds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--simulations", "averaged", "--rows", "uniform level", "--seeds", "1", "--json")
    assert call(monkeypatch, "table1", *words) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert (record["row"], record["repeat"]) == ("uniform level", 0)


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
    assert "pip install -e lab" in capsys.readouterr().err
