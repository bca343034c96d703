"""Runs of an experiment by its name: the files in a folder, its page, and the division among processes."""

import json
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from largesse.errors import InputError, OutputError
from largesse_lab.experiment_runs import NOTES_MARK, ExperimentRunOptions, run_experiment, run_experiment_in_parallel
from largesse_lab.experiments import EXPERIMENTS, convergence_rates
from largesse_lab.runner.experiment_parts import gather_part_records, run_commands
from largesse_lab.runner.experiment_request import Request
from largesse_lab.runner.experiment_request import ignore_progress as quiet


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, small_logs: None) -> None:
    monkeypatch.setattr(convergence_rates, "RATE_LEVELS", (2, 5))


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_run_leaves_records_summary_page_and_figure_and_can_be_summarised_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "results"
    records, text = run_experiment("rates", ExperimentRunOptions(Request(repeats=2), folder / "rates.jsonl"), quiet)
    assert [path.name for path in folder.iterdir()] == ["rates.jsonl"]  # a file gets the records alone
    assert len((folder / "rates.jsonl").read_text().splitlines()) == len(records)
    monkeypatch.setattr(convergence_rates, "_measure_errors_on_truth", lambda *_: pytest.fail("measured"))
    options = ExperimentRunOptions(
        Request(), folder, kept=True, machine="two | cores", command="largesse experiment rates"
    )
    again, same_text = run_experiment("rates", options, quiet)
    assert (again, same_text) == (json.loads(json.dumps(records)), text)
    assert sorted(path.name for path in folder.iterdir()) == ["rates.json", "rates.jsonl", "rates.md", "rates.svg"]
    made = json.loads((folder / "rates.json").read_text())["made"]
    assert (made["machine"], made["repeats"], made["versions"]) == ("two | cores", 2, {})
    page = (folder / "rates.md").read_text()
    assert page.startswith("# Proposition 3")
    assert "Made by `largesse experiment rates` (2 repeats; two | cores;" in page
    assert "![Error by the number of levels](rates.svg)" in page
    assert "**Differences from the paper.**" in page
    assert all(line in page for line in text.splitlines())
    ET.parse(folder / "rates.svg")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    run_experiment("page", ExperimentRunOptions(Request(), folder), quiet)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before  # the same results give the same page
    (tmp_path / "results.md").write_text("## How to read these pages\n")
    run_experiment("page", ExperimentRunOptions(Request(), folder), quiet)
    assert "(../results.md#how-to-read-these-pages)" in (folder / "rates.md").read_text()
    notes = f"\n{NOTES_MARK}\n\n## Why\n"
    with (folder / "rates.md").open("a") as file:
        file.write(notes)
    run_experiment("page", ExperimentRunOptions(Request(), folder), quiet)
    assert (folder / "rates.md").read_text().endswith(f".\n{notes}")


def test_files_that_are_no_results_are_refused_together_and_nothing_is_written(tmp_path: Path) -> None:
    content = {"experiment": "rates", "made": {}, "summary": {"cells": {}}}
    (tmp_path / "rates.json").write_text(json.dumps(content))
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text('{"made": {}}')
    with pytest.raises(InputError, match="2 things are wrong") as refused:
        run_experiment("page", ExperimentRunOptions(Request(), tmp_path), quiet)
    assert all(name in str(refused.value) for name in ("a.json", "b.json"))
    assert len(list(tmp_path.iterdir())) == 3


INVALID = [
    pytest.param("tabel2", ExperimentRunOptions(Request()), "did you mean 'table2'", id="unknown experiment"),
    pytest.param("page", ExperimentRunOptions(Request()), "--out docs/results", id="page without folder"),
    pytest.param(
        "page", ExperimentRunOptions(Request(), Path("empty")), "largesse experiment rates", id="page of nothing"
    ),
    pytest.param("rates", ExperimentRunOptions(Request(), Path("empty"), kept=True), "no records", id="no records"),
    pytest.param(
        "rates", ExperimentRunOptions(Request(repeats=2), Path("empty"), jobs=2), "rates has no parts", id="no parts"
    ),
    pytest.param(
        "table1", ExperimentRunOptions(Request(), jobs=2), "without a shared folder", id="jobs without folder"
    ),
    pytest.param(
        "table1", ExperimentRunOptions(Request(), Path("x.jsonl"), jobs=2), "shared folder", id="jobs with a file"
    ),
    pytest.param("rates", ExperimentRunOptions(Request(seeds=(0, 3))), "range of --seeds", id="seeds of no world"),
    pytest.param("rates", ExperimentRunOptions(Request(sizes=[500])), "number of --rows", id="sizes of no world"),
]


@pytest.mark.parametrize(("name", "options", "message"), INVALID)
def test_invalid_options_are_refused(
    name: str, options: ExperimentRunOptions, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        run_experiment(name, options, quiet)


def test_numbers_out_of_range_are_refused_together() -> None:
    with pytest.raises(InputError, match="4 things are wrong") as refused:
        run_experiment("rates", ExperimentRunOptions(Request(repeats=0, chunk=0, mix=1.5), jobs=-1), quiet)
    assert all(word in str(refused.value) for word in ("--repeats 0", "--chunk 0", "--jobs -1", "--mix 1.5"))


# -- several processes -------------------------------------------------------------------------------------------------


def test_the_whole_finds_the_records_of_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request(["averaged"], ["per-level mean"], 4)
    for i in range(2):
        run_experiment("table1", ExperimentRunOptions(replace(request, part=(i, 2)), tmp_path), quiet)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table1.0-of-2.jsonl", "table1.1-of-2.jsonl"]
    monkeypatch.setattr(
        "largesse_lab.runner.method_measurement.draw_repeats", lambda keys, _: [] if not keys else pytest.fail("again")
    )
    records, _ = run_experiment("table1", ExperimentRunOptions(request, tmp_path, jobs=1), quiet)
    assert [record["repeat"] for record in records] == [0, 1, 2, 3]


def test_processes_share_the_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the processes do not know of smaller sizes
    request = Request(["averaged"], ["uniform level"], 2)
    records, _ = run_experiment("table1", ExperimentRunOptions(request, tmp_path, jobs=2), quiet)
    alone, _ = run_experiment("table1", ExperimentRunOptions(request), quiet)
    assert records == json.loads(json.dumps(alone))
    assert len((tmp_path / "table1.0-of-2.jsonl").read_text().splitlines()) == 1


def test_grids_are_searched_by_a_process_each_while_the_others_measure_methods_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[list[dict[str, str]]] = []

    def note(commands: list[list[str]], files: list[Path], _progress: object) -> None:
        options = [words[words.index("table1") + 1 :] for words in commands]
        stages.append([dict(zip(words[::2], words[1::2], strict=True)) for words in options])
        assert [process["--out"] for process in stages[-1]] == [str(file) for file in files]

    monkeypatch.setattr("largesse_lab.runner.experiment_parts.run_commands", note)
    run_experiment_in_parallel(
        EXPERIMENTS["table1"], Request(None, ["CFRNet, shared", "SIRE", "GANITE"], 20), 5, tmp_path, quiet
    )
    shares = [[(p["--models"], p["--repeats"], p["--part"]) for p in stage] for stage in stages]
    searches = [("CFRNet shared", "10", "0/1"), ("GANITE", "10", "0/1")]
    assert shares[0] == [*searches, *[("SIRE", "20", f"{i}/3") for i in range(3)]]
    assert shares[1] == [("CFRNet shared,GANITE", "20", f"{i}/5") for i in range(5)]
    stages.clear()
    run_experiment_in_parallel(
        EXPERIMENTS["table1"], Request(None, ["SIRE", "GANITE"], 9), 2, tmp_path, quiet
    )  # too few for a search
    assert [[process["--models"] for process in stage] for stage in stages] == [["SIRE,GANITE"] * 2]


@pytest.mark.parametrize("name", [name for name, experiment in EXPERIMENTS.items() if experiment.parallel])
def test_every_parallel_experiment_is_divided_into_parts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[list[str]]] = []
    monkeypatch.setattr(
        "largesse_lab.runner.experiment_parts.run_commands", lambda commands, *_: calls.append(commands)
    )
    run_experiment_in_parallel(EXPERIMENTS[name], Request(repeats=2), 2, tmp_path, quiet)
    assert [[words[words.index("--part") + 1] for words in commands] for commands in calls] == [["0/2", "1/2"]]


def test_a_request_that_every_process_would_refuse_starts_none(tmp_path: Path) -> None:
    for jobs in (2, None):
        with pytest.raises(InputError, match="did you mean 'averaged'"):
            run_experiment(
                "table1", ExperimentRunOptions(Request(["averagd"], ["oracle"], 2), tmp_path, jobs=jobs), quiet
            )
    assert not list(tmp_path.iterdir())


def test_a_failed_part_shows_its_output(tmp_path: Path) -> None:
    commands = [[sys.executable, "-c", f"raise SystemExit({words})"] for words in ("0", "'out of memory'")]
    with pytest.raises(OutputError, match="part 1 failed: out of memory"):
        run_commands(commands, [tmp_path / "a", tmp_path / "b"], quiet)


def test_gathering_keeps_existing_records_and_adds_each_new_line_once(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("1\n2\n")
    (tmp_path / "x.0-of-2.jsonl").write_text("1\n3\n")
    (tmp_path / "x.1-of-2.jsonl").write_text("2\n4\nhalf a li")
    gather_part_records(tmp_path, "x")
    assert (tmp_path / "x.jsonl").read_text() == "1\n2\n3\n4\n"


def test_options_request_the_same_from_another_process() -> None:
    request = Request(["averaged"], ["CFRNet, shared", "SIRE"], 3, (1, 4), mix=0.5)
    assert request.list_command_options(Path("part.jsonl")) == [
        *("--simulations", "averaged", "--models", "CFRNet shared,SIRE", "--repeats", "3", "--mix", "0.5"),
        *("--part", "1/4", "--out", "part.jsonl"),
    ]
    worlds = Request(models=["auto"], seeds=(5, 9), sizes=[500, 2000]).list_command_options(Path("x"))
    assert worlds[:-4] == ["--models", "auto", "--seeds", "5-9", "--rows", "500,2000"]
    assert Request().list_command_options(Path("x")) == ["--part", "0/1", "--out", "x"]
