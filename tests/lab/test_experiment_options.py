"""The options of `largesse experiment`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from largesse import cli
from largesse_lab.experiment_options import drop_existing_record_options

Call = Callable[..., int]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """A function that runs the command with some words in this process and returns the exit code."""

    def run(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["largesse", "experiment", *words])
        try:
            cli.main()
        except SystemExit as stopped:
            return int(stopped.code or 0)
        return 0

    return run


def test_the_recorded_command_does_not_name_the_machine_of_the_summary() -> None:
    assert drop_existing_record_options(["experiment", "--machine=x", "--kept", "rates"]) == ["experiment", "rates"]


INVALID = [
    *(
        pytest.param(("rates", f"--part={part}"), "parts of 4 are 0/4", id=part)
        for part in ("4/4", "x", "1", "-1/3", "1/0")
    ),
    *(pytest.param(("worlds", f"--seeds={s}"), f"--seeds {s}", id=s) for s in ("5-3", "x", "3-", "-3", "1-2-3", "1.5")),
    pytest.param(("covrage",), "did you mean 'coverage'", id="unknown experiment"),
    pytest.param(("rates", "--rows", "300"), "--rows", id="rows of an experiment without random worlds"),
    pytest.param((), "Usage: largesse experiment", id="no name"),
    pytest.param(("rates", "--repaets", "2"), "Usage: largesse experiment", id="unknown option"),
    pytest.param(("rates", "--repeats", "two"), "Usage: largesse experiment", id="no number"),
]


@pytest.mark.parametrize(("words", "message"), INVALID)
def test_invalid_words_are_refused(
    words: tuple[str, ...], message: str, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*words) == 2
    assert message in capsys.readouterr().err


def test_help_lists_the_options_of_the_lab(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--help") == 0
    text = capsys.readouterr().out
    assert all(option in text for option in ("--repeats", "--models", "--part", "--kept", "--json", "0-199"))


def test_worlds_are_named_by_seeds_and_rows(call: Call, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("--seeds", "3-4", "--rows", "300", "--models", "uniform,oracle", "--out", str(tmp_path / "kept.jsonl"))
    assert call("worlds", *words) == 0
    assert "2 worlds (seeds 3–4), logs of 300 rows" in capsys.readouterr().out


def test_names_may_be_given_as_rows_and_numbers_as_seeds(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--simulations", "averaged", "--rows", "uniform level", "--seeds", "1", "--json")
    assert call("table1", *words) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert (record["row"], record["repeat"]) == ("uniform level", 0)
