"""Running an experiment by its name: what is left in a folder, and how processes share the repeats."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from largesse.errors import InputError
from largesse_lab.command import NAMES, Order, run, share_out
from largesse_lab.experiments import EXPERIMENTS, rates
from largesse_lab.runner import measures
from largesse_lab.runner.request import Request
from largesse_lab.runner.request import ignore_progress as quiet


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "TRAIN", 300)
    monkeypatch.setattr(measures, "FRESH", 300)
    monkeypatch.setattr(rates, "LEVELS", (2, 5))


def test_a_file_gets_the_records_alone(tmp_path: Path) -> None:
    records, _ = run("rates", Order(Request(repeats=1), tmp_path / "kept.jsonl"), quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.jsonl"]
    assert len((tmp_path / "kept.jsonl").read_text().splitlines()) == len(records)


def test_the_whole_finds_the_records_of_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request(["averaged"], ["per-level mean"], 4)
    for i in range(2):
        run("table1", Order(replace(request, part=(i, 2)), tmp_path), quiet)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table1.0-of-2.jsonl", "table1.1-of-2.jsonl"]
    monkeypatch.setattr(
        "largesse_lab.runner.repeats.make_units", lambda keys, _: [] if not keys else pytest.fail("again")
    )
    records, _ = run("table1", Order(request, tmp_path, jobs=1), quiet)
    assert [record["repeat"] for record in records] == [0, 1, 2, 3]


def test_an_unknown_experiment_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'table2'"):
        run("tabel2", Order(Request()), quiet)
    assert {"table1", "table2", "kernels", "kappa", "rates", "simulation", "page"} <= set(NAMES)


def test_a_page_needs_a_folder() -> None:
    with pytest.raises(InputError, match="--out docs/results"):
        run("page", Order(Request()), quiet)


def test_kept_records_are_summarised_without_measuring_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, text = run("rates", Order(Request(repeats=2), tmp_path / "rates.jsonl"), quiet)
    monkeypatch.setattr(rates, "_measure_truth", lambda *_: pytest.fail("measured"))
    again, told = run("rates", Order(Request(), tmp_path, kept=True, machine="a large one"), quiet)
    assert (again, told) == (json.loads(json.dumps(records)), text)
    assert json.loads((tmp_path / "rates.json").read_text())["made"]["machine"] == "a large one"
    with pytest.raises(InputError, match="no records are kept"):
        run("false_alarms", Order(Request(), tmp_path, kept=True), quiet)


# -- several processes -------------------------------------------------------------------------------------------------


def test_processes_share_the_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the processes do not know of smaller sizes
    request = Request(["averaged"], ["uniform level"], 2)
    records, _ = run("table1", Order(request, tmp_path, jobs=2), quiet)
    alone, _ = run("table1", Order(request), quiet)
    assert records == json.loads(json.dumps(alone))
    assert len((tmp_path / "table1.0-of-2.jsonl").read_text().splitlines()) == 1


def test_grids_are_searched_by_a_process_each_while_the_others_run_rows_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[list[dict[str, str]]] = []

    def note(commands: list[list[str]], files: list[Path], _progress: object) -> None:
        options = [words[words.index("table1") + 1 :] for words in commands]
        stages.append([dict(zip(words[::2], words[1::2], strict=True)) for words in options])
        assert [one["--out"] for one in stages[-1]] == [str(file) for file in files]

    monkeypatch.setattr("largesse_lab.runner.process_pool.run_commands", note)
    share_out(EXPERIMENTS["table1"], Request(None, ["CFRNet, shared", "SIRE", "GANITE"], 20), 5, tmp_path, quiet)
    told = [[(one["--models"], one["--repeats"], one["--part"]) for one in stage] for stage in stages]
    searches = [("CFRNet shared", "10", "0/1"), ("GANITE", "10", "0/1")]
    assert told[0] == [*searches, *[("SIRE", "20", f"{i}/3") for i in range(3)]]
    assert told[1] == [("CFRNet shared,GANITE", "20", f"{i}/5") for i in range(5)]
    stages.clear()
    share_out(EXPERIMENTS["table1"], Request(None, ["SIRE", "GANITE"], 9), 2, tmp_path, quiet)  # too few for a search
    assert [[one["--models"] for one in stage] for stage in stages] == [["SIRE,GANITE"] * 2]


@pytest.mark.parametrize("name", [name for name, one in EXPERIMENTS.items() if one.parts])
def test_every_experiment_that_has_parts_can_be_shared(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[list[str]]] = []
    monkeypatch.setattr("largesse_lab.runner.process_pool.run_commands", lambda commands, *_: calls.append(commands))
    share_out(EXPERIMENTS[name], Request(repeats=2), 2, tmp_path, quiet)
    assert [[words[words.index("--part") + 1] for words in some] for some in calls] == [["0/2", "1/2"]]


def test_what_every_process_would_refuse_is_refused_before_any_is_started(tmp_path: Path) -> None:
    for jobs in (2, None):
        with pytest.raises(InputError, match="did you mean 'averaged'"):
            run("table1", Order(Request(["averagd"], ["oracle"], 2), tmp_path, jobs=jobs), quiet)
    assert not list(tmp_path.iterdir())


def test_an_experiment_without_parts_is_run_by_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rates has no parts"):
        run("rates", Order(Request(repeats=2), tmp_path, jobs=2), quiet)


def test_numbers_out_of_range_are_refused_together() -> None:
    with pytest.raises(InputError, match="4 things are wrong") as refused:
        run("rates", Order(Request(repeats=0, chunk=0, mix=1.5), jobs=-1), quiet)
    told = str(refused.value)
    assert all(word in told for word in ("--repeats 0", "--chunk 0", "--jobs -1", "--mix 1.5"))


def test_several_processes_need_a_folder(tmp_path: Path) -> None:
    for out in (None, tmp_path / "kept.jsonl"):
        with pytest.raises(InputError, match="no folder to share"):
            run("table1", Order(Request(repeats=2), out, jobs=2), quiet)
