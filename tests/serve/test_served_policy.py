"""A changed policy replaces the one that is served, unless it must not."""

import logging
import queue
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from largesse.pipeline import plan
from largesse.policy import Policy
from largesse.serve import LedgerSettings, ServiceSettings
from largesse.serve.endpoints import load_service
from largesse.serve.served_policy import PolicyStore, load_policy
from support.services import connect


def test_a_changed_policy_is_loaded_and_a_broken_one_is_not(run_copy: Path, customers: list[dict[str, Any]]) -> None:
    path = run_copy / "policy.largesse"
    with load_service(ServiceSettings(run_copy)) as service:
        ask = connect(service)
        before = ask("/healthz").json()["policy"]
        plan(run_copy, budget=0.5)
        service.store.reload_if_changed()
        health = ask("/healthz").json()
        assert (health["status"], health["policy"] != before) == ("ok", True)
        path.write_bytes(b"broken")
        service.store.reload_if_changed()
        broken = ask("/healthz").json()
        assert (broken["status"], broken["policy"]) == ("outdated", health["policy"])
        assert str(run_copy) not in broken["problem"]  # it is for the operator's log: no token is needed to read this
        assert ask("/v1/decide", {"customers": customers[:2]}).status_code == 200


def test_a_new_policy_is_loaded_without_a_request(run_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.serve.served_policy.RELOAD_CHECK_SECONDS", 0.02)
    messages: queue.Queue[str] = queue.Queue()
    for level in ("info", "warning"):
        monkeypatch.setattr(logging.Logger, level, lambda _, text, *given: messages.put(text % given))
    store = PolicyStore(run_copy)
    store.watch()
    first = (run_copy / "policy.largesse").read_bytes()
    plan(run_copy, budget=0.5)
    assert "decides now" in messages.get(timeout=30)
    (run_copy / "policy.largesse").write_bytes(first[:100])
    assert "cannot be served" in messages.get(timeout=30)
    store.close()


def test_the_old_policy_goes_on_whatever_error_the_new_one_raises(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PolicyStore(run_copy)
    before, loads = store.current, []

    def run_out(source: Path) -> None:
        loads.append(source)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("largesse.serve.served_policy.load_policy", run_out)
        (run_copy / "policy.largesse").touch()
        for _ in range(3):
            store.reload_if_changed()
    assert "MemoryError" in str(store.problem)
    assert len(loads) == 1
    assert store.current is before
    store._retry_at = 0.0  # the error has passed: the policy is read again, although the file is the same
    store.reload_if_changed()
    assert (store.problem, store.reloads) == (None, 1)


def test_a_policy_that_a_ledger_cannot_count_does_not_take_over(run_copy: Path, tmp_path: Path) -> None:
    ledger, path = LedgerSettings(f"sqlite:///{tmp_path / 'l.db'}", "60", "2999-12-31"), run_copy / "policy.largesse"
    with load_service(ServiceSettings(run_copy, ledger=ledger)) as service:
        before, policy = service.store.current, Policy.load(path)
        policy.model.binary_ = False  # an amount: its list of costs is no limit
        for change, words in (
            ({"names": ("none", "small", "large")}, "other levels than the ledger's decisions"),
            ({"on_redemption": True}, "maximum cost"),
        ):
            replace(policy, levels=replace(policy.levels, **change)).save(path)  # type: ignore[arg-type]
            service.store.reload_if_changed()
            assert service.store.current is before
            assert words in str(service.store.problem)


def test_the_version_is_that_of_the_policy_even_if_another_comes_meanwhile(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, load = load_policy(run_copy), Policy.load

    def load_late(path: Path) -> Policy:
        monkeypatch.setattr(Policy, "load", load)
        plan(run_copy, budget=0.5)
        return load(path)

    monkeypatch.setattr(Policy, "load", load_late)
    served, again = load_policy(run_copy), load_policy(run_copy)
    assert (served.version, served.policy.price) == (again.version, again.policy.price)
    assert served.version != before.version
