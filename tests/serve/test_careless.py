"""What happens to a service while it runs: its ledger is taken away, its policy replaced by what cannot be served, and so on."""

import io
import itertools
import json
import socket
import subprocess
import sys
import types
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from services import Ask, connect

from largesse.errors import LedgerError
from largesse.pipeline import plan
from largesse.serve import LedgerSettings, Settings, start, tell_mistake, telling, workers
from largesse.serve.policy_store import Watched
from largesse.serve.service import Service
from largesse.serve.settings import open_parts

Row = dict[str, Any]
FAR = "2999-12-31"


def test_a_ledger_that_is_taken_away_is_503_and_no_other_one_begins(
    booked: tuple[Ask, Service], tmp_path: Path, customers: list[Row]
) -> None:
    ask = booked[0]
    assert ask("/v1/decide", {"request_id": "a", "customers": customers[:1]}).status_code == 200
    for name in ("spring.db", "spring.db-wal", "spring.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    asks = (("/v1/decide", {"request_id": "b", "customers": customers[:1]}), ("/v1/budget", None))
    for path, content in (*asks, ("/v1/redeem", {"request_id": "a", "customer": customers[0]["id"]})):
        found = ask(path, content)
        assert found.status_code == 503
        assert "was taken away or replaced while it was open" in found.json()["error"]["message"]
    assert ask("/healthz", headers={}).status_code == 200
    assert "largesse_ledger_up 0" in ask("/metrics").text
    assert not (tmp_path / "spring.db").exists()


def test_workers_open_the_ledger_and_never_begin_one(
    run_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Settings] = []
    monkeypatch.setattr(start, "supervise", lambda settings, *_: given.append(settings))
    ledger = LedgerSettings(f"sqlite:///{tmp_path / 'spring.db'}", "60", FAR, promises="while_it_lasts")
    start.open_service(Settings(run_copy, port=0, ledger=ledger, workers=2))
    assert (tmp_path / "spring.db").is_file()
    with ExitStack() as stack:
        _, books = open_parts(given[0], stack)
        assert books is not None
        assert books.ledger.standing().terms.total == 60_000_000
    (tmp_path / "spring.db").unlink()
    with ExitStack() as stack, pytest.raises(LedgerError, match="there is no ledger"):
        open_parts(given[0], stack)
    assert not (tmp_path / "spring.db").exists()


@pytest.mark.parametrize(
    ("since", "until", "words"),
    [("2020-01-01", "2020-01-31", "ended at 2020-02-01"), ("2990-01-01", FAR, "begins at 2990-01-01"), (None, FAR, "")],
)
@pytest.mark.parametrize("many", [1, 2])
def test_outside_the_period_it_says_that_nobody_gets_anything(
    run_copy: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    since: str | None,
    until: str,
    words: str,
    many: int,
) -> None:
    monkeypatch.setattr("largesse.serve.settings.serve", lambda *_: None)
    monkeypatch.setattr(Watched, "keep_up", lambda _: None)
    monkeypatch.setattr(start, "supervise", lambda *_: None)
    ledger = LedgerSettings(f"sqlite:///{tmp_path / 'spring.db'}", "60", until, since)
    start.open_service(Settings(run_copy, port=0, ledger=ledger, workers=many))
    said = capsys.readouterr().err
    assert (said.count("everyone gets the cheapest level") == 1) if words else (said == "")
    assert words in said


class Dead:
    """A process that has ended."""

    returncode = -9

    def poll(self) -> int:
        return self.returncode


@pytest.fixture
def member(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A worker process that ends at once, whenever it is started; the second time it cannot be."""
    made = types.SimpleNamespace(now=100.0, started=[], errors={2})

    def begin(self: Any) -> None:
        made.started.append(made.now)
        if len(made.started) in made.errors:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        self._process, self._begun, self._died = Dead(), made.now, None

    monkeypatch.setattr(workers._Member, "_start", begin)
    monkeypatch.setattr(workers.time, "monotonic", lambda: made.now)
    made.member = workers._Member(Settings(Path("run")), None, None)  # type: ignore[arg-type]
    return made


def test_a_worker_that_cannot_be_started_now_is_started_later(member: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(100):
        member.now += 0.1
        member.member.keep_alive()
    assert len(member.started) > 2
    assert "no worker process can be started now (Resource temporarily unavailable)" in capsys.readouterr().err


def test_a_worker_that_always_ends_at_once_is_started_ever_more_rarely(member: Any) -> None:
    member.errors = set()
    for _ in range(6000):  # ten minutes
        member.now += 0.1
        member.member.keep_alive()
    waits = [later - before for before, later in itertools.pairwise(member.started)]
    assert [round(wait) for wait in waits[:9]] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_what_a_worker_needs_and_is_gone_is_said_without_a_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "largesse.serve.worker"]
    pipe = subprocess.PIPE
    with socket.socket() as where:
        task = {**asdict(Settings(tmp_path / "gone")), "token": None, "socket": where.fileno()}
        with subprocess.Popen(command, stdin=pipe, stderr=pipe, text=True, pass_fds=[where.fileno()]) as process:
            assert process.stdin is not None
            assert process.stderr is not None
            process.stdin.write(json.dumps(task, default=str) + "\n")
            process.stdin.flush()  # and not closed: that would tell it to stop
            said = process.stderr.read()
    assert process.returncode == 2
    assert "there is no policy at" in said
    assert "Traceback" not in said


def test_whatever_is_wrong_with_a_new_policy_the_old_one_goes_on(
    run_copy: Path, customers: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    watched = Watched(run_copy, warn=said.append)

    def fail(_: Path) -> None:
        raise MemoryError

    monkeypatch.setattr("largesse.serve.policy_store.load_served", fail)
    (run_copy / "policy.largesse").touch()
    for _ in range(3):
        watched.refresh()
    assert "MemoryError" in str(watched.problem)
    assert len(said) == 1
    assert connect(Service(watched))("/v1/decide", {"customers": customers[:1]}).status_code == 200


def test_where_nobody_reads_what_it_says_a_service_goes_on(
    run_copy: Path, member: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError(32, "Broken pipe")

        def fileno(self) -> int:
            return left.fileno()

    with (tmp_path / "left").open("w") as left:
        monkeypatch.setattr(sys, "stdout", Gone())
        monkeypatch.setattr(sys, "stderr", Gone())
        watched = Watched(run_copy, say=telling.say, warn=telling.warn)
        for budget in (0.7, 1.7):
            plan(run_copy, budget=budget)
            watched.refresh()
        assert watched.reloads == 2
        for _ in range(100):
            member.now += 0.1
            member.member.keep_alive()
        assert len(member.started) > 2
        tell_mistake(ValueError("a mistake"))
        left.write("nowhere")
    assert (tmp_path / "left").read_text() == ""
