"""A changed policy takes the place of the one that is served, unless it must not."""

import queue
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from services import connect

from largesse.pipeline import plan
from largesse.policy import Policy
from largesse.serve import LedgerSettings, Settings
from largesse.serve.policy_store import Watched
from largesse.serve.service import Service
from largesse.serve.settings import open_parts

Row = dict[str, Any]


def test_a_changed_policy_is_loaded_and_a_broken_one_is_not(run_copy: Path, customers: list[Row]) -> None:
    watched = Watched(run_copy)
    ask = connect(Service(watched))
    before = ask("/healthz").json()["policy"]
    plan(run_copy, budget=0.5)
    watched.refresh()
    health = ask("/healthz").json()
    assert health["policy"] != before
    assert health["status"] == "ok"
    (run_copy / "policy.largesse").write_bytes(b"broken")
    watched.refresh()
    broken = ask("/healthz").json()
    assert broken["status"] == "outdated"
    assert broken["policy"] == health["policy"]
    assert ask("/v1/decide", {"customers": customers[:2]}).status_code == 200


def test_a_new_policy_is_loaded_though_nobody_asks(run_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.serve.policy_store.LOOK", 0.02)
    said: queue.Queue[str] = queue.Queue()
    Watched(run_copy, say=said.put, warn=said.put).keep_up()
    first = (run_copy / "policy.largesse").read_bytes()
    plan(run_copy, budget=0.5)
    assert "decides now" in said.get(timeout=30)
    (run_copy / "policy.largesse").write_bytes(first[:100])
    assert "cannot be served" in said.get(timeout=30)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"names": ("none", "small", "large")}, "other levels than the ledger's decisions"),
        ({"on_redemption": True}, "nothing says the most that a level may cost"),
    ],
)
def test_a_policy_that_a_ledger_cannot_count_does_not_take_over(
    run_copy: Path, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    ledger = LedgerSettings(f"sqlite:///{tmp_path / 'spring.db'}", "60", "2999-12-31")
    with ExitStack() as stack:
        watched, _ = open_parts(Settings(run_copy, ledger=ledger), stack)
        before = watched.current
        policy = Policy.load(run_copy / "policy.largesse")
        policy.model.binary_ = False  # an amount: its list of costs is no limit
        replace(policy, levels=replace(policy.levels, **change)).save(run_copy / "policy.largesse")
        watched.refresh()
        assert watched.current is before
        assert words in str(watched.problem)
