"""Running an experiment by its name: what is left in a folder, and how processes share the repeats."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from largesse.errors import InputError
from largesse_lab.bench import measures
from largesse_lab.bench.request import Request
from largesse_lab.bench.request import ignore_progress as quiet
from largesse_lab.command import NAMES, Order, run, share_out
from largesse_lab.experiments import EXPERIMENTS, rates


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "TRAIN", 300)
    monkeypatch.setattr(measures, "FRESH", 300)
    monkeypatch.setattr(rates, "LEVELS", (2, 5))


def test_a_folder_gets_records_table_summary_and_figures_and_a_page_of_them_all(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    order = Order(Request(repeats=2), folder, command="largesse experiment rates --repeats 2")
    records, text = run("rates", order, quiet)
    assert {path.suffix for path in folder.iterdir()} == {".jsonl", ".md", ".json", ".svg"}
    assert (folder / "rates.md").read_text() == text
    assert len((folder / "rates.jsonl").read_text().splitlines()) == len(records)
    found = json.loads((folder / "rates.json").read_text())
    assert found["summary"] == json.loads(json.dumps(rates.summarise_levels(records)))
    assert (found["made"]["command"], found["made"]["repeats"]) == ("largesse experiment rates --repeats 2", 2)
    _, told = run("page", Order(Request(), folder), quiet)
    assert told == f"wrote {tmp_path / 'results.md'}"
    assert "rates" in (tmp_path / "results.md").read_text()


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
        "largesse_lab.bench.repeats.make_units", lambda keys, _: [] if not keys else pytest.fail("again")
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


def test_rows_are_added_to_the_results_of_an_earlier_run(tmp_path: Path) -> None:
    first = Order(Request(["averaged"], ["uniform level", "random"], 3), tmp_path, jobs=1, command="all")
    run("table1", first, quiet)
    before = json.loads((tmp_path / "table1.json").read_text())
    (tmp_path / "table1.jsonl").unlink()  # the summary alone is left
    more = Order(Request(["averaged"], ["oracle"], 2), tmp_path, jobs=1, add=True, machine="a large one")
    run("table1", more, quiet)
    found = json.loads((tmp_path / "table1.json").read_text())
    rows = found["summary"]["simulations"]["averaged"]
    assert list(rows) == ["uniform level", "random", "oracle"]
    assert rows["random"] == before["summary"]["simulations"]["averaged"]["random"]
    assert rows["oracle"]["cells"]["rmse"]["n"] == 2
    assert (found["made"]["command"], found["made"]["machine"], found["made"]["repeats"]) == ("all", "a large one", 3)
    assert "| random |" in (tmp_path / "table1.md").read_text()
    run("table1", replace(more, add=False), quiet)
    assert list(json.loads((tmp_path / "table1.json").read_text())["summary"]["simulations"]["averaged"]) == ["oracle"]


def test_what_cannot_be_added_to_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder to add to"):
        run("table1", Order(Request(repeats=1), add=True), quiet)
    with pytest.raises(InputError, match="nothing can be added to rates"):
        run("rates", Order(Request(repeats=1), tmp_path, add=True), quiet)


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

    monkeypatch.setattr("largesse_lab.bench.jobs.run_commands", note)
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
    monkeypatch.setattr("largesse_lab.bench.jobs.run_commands", lambda commands, *_: calls.append(commands))
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
