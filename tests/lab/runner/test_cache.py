from collections.abc import Sequence
from pathlib import Path
from typing import Any

from largesse_lab.runner.cache import Kept, Key
from largesse_lab.runner.request import ignore_progress


def test_records_survive_a_run_that_is_killed_while_writing(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kept.jsonl"
    kept = Kept(path, ("a",))
    kept.add({"a": 1, "b": 2})
    path.write_text(path.read_text() + '{"a": 2, "b')
    assert Kept(path, ("a",)).found == {(1,): {"a": 1, "b": 2}}
    assert path.read_text() == '{"a": 1, "b": 2}\n'


def test_only_missing_keys_are_measured_group_by_group(tmp_path: Path) -> None:
    asked: list[list[Key]] = []

    def measure(keys: Sequence[Key]) -> list[dict[str, Any]]:
        asked.append(list(keys))
        return [{"a": key[0], "square": key[0] ** 2} for key in keys]

    groups = [[(1,), (2,)], [(3,), (4,)], [(5,)]]
    kept = Kept(tmp_path / "kept.jsonl", ("a",))
    for a in (2, 5):
        kept.add({"a": a, "square": -1})
    kept.complete(groups, measure, ignore_progress)
    assert asked == [[(1,)], [(3,), (4,)]]
    again = Kept(tmp_path / "kept.jsonl", ("a",))
    again.complete(groups, measure, ignore_progress)
    assert len(asked) == 2
    assert [record["square"] for record in again.take([(5,), (4,), (1,)])] == [-1, 16, 1]


def test_progress_names_the_group_and_the_share_of_groups_done() -> None:
    told: list[tuple[str, float]] = []
    groups = [[("unit", 1)], [("unit", 2)]]
    measure = lambda keys: [{"a": keys[0][0], "b": keys[0][1]}]  # noqa: E731
    Kept(None, ("a", "b")).complete(groups, measure, lambda what, share: told.append((what, share)))
    assert told == [("unit, 1", 0.0), ("unit, 2", 0.5)]
