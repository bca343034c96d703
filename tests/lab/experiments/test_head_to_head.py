"""Head to head: every method plans unseen rows, all are judged by the same scores, and a failure is a row with its reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.records import Log
from largesse.worlds import simulate
from largesse_lab.experiments import head_to_head
from largesse_lab.experiments.head_to_head_page import HEAD_SETTINGS, HEAD_SOURCES
from largesse_lab.runner.competitor_models import PEERS, ConstantCurveModel
from largesse_lab.runner.experiment_request import Records, Request
from largesse_lab.runner.limited_process import describe_error

MODELS = ["linear", "sklearn S-learner", "sklearn T-learner", "uniform"]


class Broken(ConstantCurveModel):
    """A method that cannot do the task."""

    def fit(self, log: Log) -> Any:  # noqa: ARG002
        raise ValueError("two levels only")


class Spy(ConstantCurveModel):
    """A method that predicts 1 for rows that it was fitted to, and 0 for others."""

    def fit(self, log: Log) -> Any:
        self.rows = np.asarray(log.features.column(0))
        return super().fit(log)

    def predict(self, customers: Any) -> Any:
        seen = np.isin(np.asarray(customers.column(0)), self.rows)
        return np.tile(seen[:, None].astype(float), (1, len(self.means)))


def run_here(work: Any, *arguments: Any) -> dict[str, Any]:
    try:
        return work(*arguments) | {"megabytes": 1}
    except Exception as error:
        return {"failed": describe_error(error), "megabytes": 1}


@pytest.fixture(autouse=True)
def two_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = {
        name: lambda _folder, seed=seed: simulate("averaged", n=400, seed=seed).log for seed, name in enumerate("AB")
    }
    monkeypatch.setattr(head_to_head, "HEAD_LOGS", logs)
    monkeypatch.setattr(head_to_head, "run_in_limited_process", run_here)
    monkeypatch.setitem(PEERS, "broken", lambda _seed: Broken())
    monkeypatch.setitem(PEERS, "spy", lambda _seed: Spy())


def write_page(records: Records) -> str:
    experiment = head_to_head.HEAD_EXPERIMENT
    return experiment.make_result_section(experiment.summarise(records)).join_paragraphs()


def test_three_rivals_on_two_logs_are_compared_with_the_first(tmp_path: Path) -> None:
    request = Request(["A", "B"], MODELS, 1, out=tmp_path / "head_to_head.jsonl")
    records = head_to_head.measure(request)
    assert len(records) == 2 * len(MODELS) * 2
    for record in records:
        assert record["spend"][0] <= record["budget"] + 1e-9
        assert len(record["qini"]) == 4
        if record["model"] == "linear":
            assert record["lead"] == [0.0, 0.0, 0.0]
    text = write_page(records)
    assert text.count("| uniform |") == 1 + 2 + 1  # standing, two logs, settings
    assert "### A" in text
    assert "### B" in text


def test_a_stopped_run_compares_the_others_with_the_same_plan(tmp_path: Path) -> None:
    whole = head_to_head.measure(Request(["A"], MODELS, 1))
    out = tmp_path / "head_to_head.jsonl"
    head_to_head.measure(Request(["A"], MODELS[:2], 1, out=out))
    resumed = head_to_head.measure(Request(["A"], MODELS, 1, out=out))

    def untimed(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{field: value for field, value in record.items() if field != "seconds"} for record in records]

    assert untimed(resumed) == untimed(whole)


def test_processes_share_the_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(2):
        out = tmp_path / f"head_to_head.{i}-of-2.jsonl"
        assert head_to_head.measure(Request(["A", "B"], MODELS, 1, part=(i, 2), out=out)) == []
    monkeypatch.setattr(head_to_head, "run_in_limited_process", lambda *_: pytest.fail("a fit is repeated"))
    records = head_to_head.measure(Request(["A", "B"], MODELS, 1, out=tmp_path / "head_to_head.jsonl"))
    assert len(records) == 2 * len(MODELS) * 2


def test_a_method_that_fails_has_a_row_with_the_reason() -> None:
    records = head_to_head.measure(Request(["A"], ["uniform", "broken"], 1))
    failed = [record for record in records if record["model"] == "broken"]
    assert [record["failed"] for record in failed] == ["ValueError: two levels only"] * 2
    text = write_page(records)
    assert "| broken | ValueError: two levels only |" in text
    assert "| broken | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |" in text


def test_no_method_sees_the_rows_that_it_plans(tmp_path: Path) -> None:
    out = tmp_path / "head_to_head.jsonl"
    head_to_head.measure(Request(["A"], ["spy"], 1, out=out))
    _, curves = head_to_head.FitFolder(tmp_path / "head_to_head-fits").load_fit("A", 0, "spy")
    assert curves is not None
    assert curves.shape == (400, 5)
    assert (curves == 0).all()


def test_methods_plan_for_fresh_customers_of_random_worlds() -> None:
    request = Request(["worlds"], ["logistic", "uniform", "broken"], seeds=(1000, 1001), sizes=[500])
    records = head_to_head.measure(request)
    assert [record["world"] for record in records] == [1000] * 3 + [1001] * 3
    done = [record for record in records if "failed" not in record]
    assert len(done) == 4
    assert all(record["effects"] > 0 for record in done)
    text = write_page(records)
    assert "2: ValueError: two levels only" in text
    assert "2 random worlds of 500 rows" in text


def test_unknown_logs_and_methods_are_named() -> None:
    with pytest.raises(InputError, match="unknown log 'C'"):
        head_to_head.measure(Request(["C"], ["linear"], 1))
    with pytest.raises(InputError, match="liner"):
        head_to_head.measure(Request(["A"], ["liner"], 1))


def test_a_log_whose_file_is_missing_is_named_with_its_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(head_to_head, "HEAD_FILES", {"B": "nowhere"})
    monkeypatch.setattr(head_to_head, "find_data_folder", lambda: tmp_path)
    assert head_to_head.list_available_logs() == ["A"]
    with pytest.raises(InputError, match=r"nowhere\.csv\.gz"):
        head_to_head.measure(Request(["B"], ["uniform"], 1))
    text = write_page(head_to_head.measure(Request(["A"], ["uniform"], 1)))
    assert all(source in text for source in HEAD_SOURCES.values())


def test_settings_of_all_methods_are_stated() -> None:
    assert set(head_to_head.HEAD_MODELS) == set(HEAD_SETTINGS)


def test_a_case_behind_beyond_its_interval_is_listed() -> None:
    record = {"log": "A", "repeat": 0, "rows": 9, "clusters": None, "levels": 2, "share": 0.5, "budget": 1.0}
    record |= {"value": [1.0, 0.0, 2.0], "spend": [1.0, 1.0, 1.0], "gain": [0.0, -1.0, 1.0], "qini": [0.5]}
    record |= {"seconds": 1.0, "megabytes": 100, "aucc": 0.5, "mt_aucc": 0.5}
    records = [
        record | {"model": "first", "lead": [0.0, 0.0, 0.0]},
        record | {"model": "better", "lead": [-0.2, -0.3, -0.1]},
    ]
    text = write_page(records)
    assert "A at 50%: better (−0.2 (−0.3 to −0.1))" in text
    assert "| better | 1 | 0 | 0 | 1 | 1 | 0 | 0 | 0 |" in text
