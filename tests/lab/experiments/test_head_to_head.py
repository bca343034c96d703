"""Head to head: every method plans unseen rows, all are judged by the same scores, and a failure is a row with its reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.records import Log
from largesse.worlds import simulate
from largesse_lab.experiments import head_to_head
from largesse_lab.runner.experiment_request import Request
from largesse_lab.runner.simple_models import PEERS, ConstantCurve

MODELS = ["linear", "sklearn S-learner", "sklearn T-learner", "uniform"]


class Broken(ConstantCurve):
    """A method that cannot do the task."""

    def fit(self, log: Log) -> Any:  # noqa: ARG002
        raise ValueError("two levels only")


class Spy(ConstantCurve):
    """A method that remembers the rows that it was fitted to and asked about."""

    seen: list[tuple[set[float], set[float]]] = []  # noqa: RUF012

    def fit(self, log: Log) -> Any:
        self.rows = set(np.asarray(log.features.column(0)).tolist())
        return super().fit(log)

    def predict(self, customers: Any) -> Any:
        self.seen.append((self.rows, set(np.asarray(customers.column(0)).tolist())))
        return super().predict(customers)


@pytest.fixture(autouse=True)
def two_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = {
        name: lambda _folder, seed=seed: simulate("averaged", n=400, seed=seed).log for seed, name in enumerate("AB")
    }
    monkeypatch.setattr(head_to_head, "HEAD_LOGS", logs)
    monkeypatch.setitem(PEERS, "broken", lambda _seed: Broken())
    monkeypatch.setitem(PEERS, "spy", lambda _seed: Spy())


def test_three_rivals_on_two_logs_are_compared_with_the_first(tmp_path: Path) -> None:
    request = Request(models=MODELS, repeats=1, out=tmp_path / "head_to_head.jsonl")
    records = head_to_head.measure(request)
    assert len(records) == 2 * len(MODELS) * 2
    for record in records:
        assert record["spend"][0] <= record["budget"] + 1e-9
        if record["model"] == "linear":
            assert record["lead"] == [0.0, 0.0, 0.0]
    text = head_to_head.tabulate(records)
    assert text.count("| uniform |") == 1 + 2 * 2
    assert "**A**" in text
    assert "**B**" in text


def test_a_stopped_run_compares_the_others_with_the_same_plan(tmp_path: Path) -> None:
    whole = head_to_head.measure(Request(["A"], MODELS, 1))
    out = tmp_path / "head_to_head.jsonl"
    head_to_head.measure(Request(["A"], MODELS[:2], 1, out=out))
    resumed = head_to_head.measure(Request(["A"], MODELS, 1, out=out))

    def untimed(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{field: value for field, value in record.items() if field != "seconds"} for record in records]

    assert untimed(resumed) == untimed(whole)


def test_a_method_that_fails_has_a_row_with_the_reason() -> None:
    records = head_to_head.measure(Request(["A"], ["uniform", "broken"], 1))
    failed = [record for record in records if record["model"] == "broken"]
    assert [record["failed"] for record in failed] == ["ValueError: two levels only"] * 2
    text = head_to_head.tabulate(records)
    assert "| broken | 25% | ValueError: two levels only |" in text
    assert "| broken | 0 | 0 | 0 | 0 | 2 |" in text


def test_no_method_sees_the_rows_that_it_plans() -> None:
    Spy.seen.clear()
    head_to_head.measure(Request(["A"], ["spy"], 1))
    assert len(Spy.seen) == 5
    for fitted, planned in Spy.seen:
        assert not fitted & planned
    assert sum(len(planned) for _, planned in Spy.seen) == 400


def test_unknown_logs_and_methods_are_named() -> None:
    with pytest.raises(InputError, match="unknown log 'C'"):
        head_to_head.measure(Request(["C"], ["linear"], 1))
    with pytest.raises(InputError, match="liner"):
        head_to_head.measure(Request(["A"], ["liner"], 1))


def test_a_case_behind_beyond_its_interval_is_listed() -> None:
    record = {
        "log": "A",
        "repeat": 0,
        "rows": 9,
        "clusters": None,
        "levels": 2,
        "share": 0.5,
        "budget": 1.0,
        "seconds": 1.0,
    }
    record |= {"value": [1.0, 0.0, 2.0], "spend": [1.0, 1.0, 1.0], "gain": [0.0, -1.0, 1.0]}
    records = [
        record | {"model": "first", "lead": [0.0, 0.0, 0.0]},
        record | {"model": "better", "lead": [-0.2, -0.3, -0.1]},
    ]
    assert "behind beyond the interval: A at 50% (better)" in head_to_head.tabulate(records)
