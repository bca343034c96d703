import inspect
import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from largesse.errors import InputError, OutputError
from largesse_lab.bench.jobs import run_all
from largesse_lab.command import EXPERIMENTS, NAMES, Asked, run, share_out
from largesse_lab.experiments import rates


def quiet(_what: str, _done: float) -> None:
    pass


def test_a_folder_gets_records_table_summary_and_figures_and_a_page_of_them_all(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    records, text = run("rates", Asked(repeats=2, out=folder, command="largesse experiment rates --repeats 2"), quiet)
    assert {path.suffix for path in folder.iterdir()} == {".jsonl", ".md", ".json", ".svg"}
    assert (folder / "rates.md").read_text() == text
    assert len((folder / "rates.jsonl").read_text().splitlines()) == len(records)
    found = json.loads((folder / "rates.json").read_text())
    assert found["summary"] == json.loads(json.dumps(rates.summary(records)))
    assert (found["made"]["command"], found["made"]["repeats"]) == ("largesse experiment rates --repeats 2", 2)
    _, told = run("page", Asked(out=folder), quiet)
    assert told == f"wrote {tmp_path / 'results.md'}"
    assert "rates" in (tmp_path / "results.md").read_text()


def test_a_file_gets_the_records_alone(tmp_path: Path) -> None:
    records, _ = run("rates", Asked(repeats=1, out=tmp_path / "kept.jsonl"), quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.jsonl"]
    assert len((tmp_path / "kept.jsonl").read_text().splitlines()) == len(records)


def test_the_whole_finds_what_parts_have_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(2):
        run("table1", Asked(["averaged"], ["oracle"], 4, (i, 2), out=tmp_path), quiet)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table1.0-of-2.jsonl", "table1.1-of-2.jsonl"]
    monkeypatch.setattr("largesse_lab.bench.repeats.units", lambda keys, _: [] if not keys else pytest.fail("again"))
    records, _ = run("table1", Asked(["averaged"], ["oracle"], 4, out=tmp_path), quiet)
    assert [record["repeat"] for record in records] == [0, 1, 2, 3]


def test_an_unknown_experiment_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'table2'"):
        run("tabel2", Asked(), quiet)
    assert {"table1", "table2", "kernels", "kappa", "rates", "simulation"} <= set(NAMES)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_can_be_asked_for_is_what_an_experiment_takes(name: str) -> None:
    one = EXPERIMENTS[name]
    takes = inspect.signature(getattr(import_module(f"largesse_lab.{one.module}"), one.module)).parameters
    assert set(one.words.values()) <= set(takes)
    assert ("chunk" in takes) == ("chunk" in one.words)


def test_a_page_needs_a_folder() -> None:
    with pytest.raises(InputError, match="--out docs/results"):
        run("page", Asked(), quiet)


def test_what_is_kept_is_summed_up_without_running_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records, text = run("rates", Asked(repeats=2, out=tmp_path / "rates.jsonl"), quiet)
    monkeypatch.setattr("largesse_lab.experiments.rates.rates", lambda **_: pytest.fail("ran"))
    again, told = run("rates", Asked(kept=True, machine="a large one", out=tmp_path), quiet)
    assert (again, told) == (json.loads(json.dumps(records)), text)
    assert json.loads((tmp_path / "rates.json").read_text())["made"]["machine"] == "a large one"
    with pytest.raises(InputError, match="no records are kept"):
        run("lots", Asked(kept=True, out=tmp_path), quiet)


def test_processes_share_the_repeats(tmp_path: Path) -> None:
    asked = Asked(["averaged"], ["oracle", "per-level mean"], 3, jobs=2, out=tmp_path)
    records, _ = run("table1", asked, quiet)
    alone, _ = run("table1", Asked(["averaged"], ["oracle", "per-level mean"], 3), quiet)
    assert records == json.loads(json.dumps(alone))
    assert len((tmp_path / "table1.0-of-2.jsonl").read_text().splitlines()) == 4


def test_grids_are_searched_by_a_process_each_while_the_others_run_rows_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[list[dict[str, str]]] = []

    def noted(commands: list[list[str]], files: list[Path], tell: object) -> None:
        options = [command[command.index("table1") + 1 :] for command in commands]
        stages.append([dict(zip(words[::2], words[1::2], strict=True)) for words in options])
        assert [one["--out"] for one in stages[-1]] == [str(file) for file in files]

    monkeypatch.setattr("largesse_lab.bench.jobs.run_all", noted)
    share_out("table1", Asked(None, ["CFRNet, shared", "SIRE", "GANITE"], 20, jobs=5), tmp_path, quiet)
    told = [[(one["--rows"], one["--repeats"], one["--part"]) for one in stage] for stage in stages]
    searches = [("CFRNet shared", "10", "0/1"), ("GANITE", "10", "0/1")]
    assert told[0] == [*searches, *[("SIRE", "20", f"{i}/3") for i in range(3)]]
    assert told[1] == [("CFRNet shared,GANITE", "20", f"{i}/5") for i in range(5)]
    stages.clear()
    share_out("table1", Asked(None, ["SIRE", "GANITE"], 9, jobs=2), tmp_path, quiet)  # too few repeats for a search
    assert [[one["--rows"] for one in stage] for stage in stages] == [["SIRE,GANITE"] * 2]


@pytest.mark.parametrize("name", [name for name, one in EXPERIMENTS.items() if "part" in one.words])
def test_every_experiment_that_has_parts_can_be_shared(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[list[str]]] = []
    monkeypatch.setattr("largesse_lab.bench.jobs.run_all", lambda commands, *_: calls.append(commands))
    share_out(name, Asked(repeats=2, jobs=2), tmp_path, quiet)
    assert [[command[command.index("--part") + 1] for command in some] for some in calls] == [["0/2", "1/2"]]


def test_what_every_process_would_refuse_is_refused_before_any_is_started(tmp_path: Path) -> None:
    for jobs in (2, None):
        with pytest.raises(InputError, match="did you mean 'averaged'"):
            run("table1", Asked(["averagd"], ["oracle"], 2, jobs=jobs, out=tmp_path), quiet)
    assert not list(tmp_path.iterdir())


def test_a_part_that_fails_is_told_of(tmp_path: Path) -> None:
    commands = [[sys.executable, "-c", f"raise SystemExit({words})"] for words in ("0", "'out of luck'")]
    with pytest.raises(OutputError, match="part 1 failed: out of luck"):
        run_all(commands, [tmp_path / "a", tmp_path / "b"], quiet)


def test_an_experiment_without_parts_is_run_by_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rates has no parts"):
        run("rates", Asked(repeats=2, jobs=2, out=tmp_path), quiet)


def test_numbers_of_nothing_are_refused_together() -> None:
    with pytest.raises(InputError, match="4 things are wrong") as refused:
        run("rates", Asked(repeats=0, chunk=0, jobs=-1, mix=1.5, out=None), quiet)
    told = str(refused.value)
    assert all(word in told for word in ("--repeats 0", "--chunk 0", "--jobs -1", "--mix 1.5"))


def test_several_processes_need_a_folder(tmp_path: Path) -> None:
    for out in (None, tmp_path / "kept.jsonl"):
        with pytest.raises(InputError, match="no folder to share"):
            run("table1", Asked(repeats=2, jobs=2, out=out), quiet)
