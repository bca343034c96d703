from collections.abc import Sequence
from pathlib import Path
from typing import Any

from largesse_lab.runner.experiment_request import ignore_progress
from largesse_lab.runner.record_cache import Key, RecordCache


def test_records_survive_a_run_that_is_killed_while_writing(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "cache.jsonl"
    RecordCache(path, ("a",)).add({"a": 1, "b": 2})
    path.write_text(path.read_text() + '{"a": 2, "b')
    assert RecordCache(path, ("a",)).records == {(1,): {"a": 1, "b": 2}}
    assert path.read_text() == '{"a": 1, "b": 2}\n'


def test_only_missing_keys_are_measured_group_by_group(tmp_path: Path) -> None:
    measured: list[list[Key]] = []

    def measure(keys: Sequence[Key]) -> list[dict[str, Any]]:
        measured.append(list(keys))
        return [{"a": key[0], "square": key[0] ** 2} for key in keys]

    groups = [[(1,), (2,)], [(3,), (4,)], [(5,)]]
    cache = RecordCache(tmp_path / "cache.jsonl", ("a",))
    for a in (2, 5):
        cache.add({"a": a, "square": -1})
    records = cache.measure_groups(groups, measure, ignore_progress)
    assert measured == [[(1,)], [(3,), (4,)]]
    assert [record["square"] for record in records] == [1, -1, 9, 16, -1]
    again = RecordCache(tmp_path / "cache.jsonl", ("a",))
    assert again.measure_groups(groups, measure, ignore_progress) == records
    assert len(measured) == 2
    assert [record["square"] for record in again.select([(5,), (4,), (1,)])] == [-1, 16, 1]


def test_progress_names_the_group_and_the_share_of_finished_groups() -> None:
    stages: list[tuple[str, float]] = []
    cache = RecordCache(None, ("a", "b"))
    keys = [("unit", 1), ("unit", 2)]
    cache.measure_each(keys, lambda a, b: {"a": a, "b": b}, lambda stage, share: stages.append((stage, share)))
    assert stages == [("unit, 1", 0.0), ("unit, 2", 0.5)]
