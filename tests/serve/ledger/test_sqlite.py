"""A ledger in a file: other files are left alone; a file that is taken away, replaced or full gives nothing it does not hold."""

import itertools
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from largesse.errors import LedgerError
from largesse.serve import Ledger, open_ledger
from support.ledgers import DAY, START, Dearest, fixed_terms, make_offers


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spring.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A ledger of 100 that has promised 20."""
    with open_ledger(f"sqlite:///{path}", fixed_terms(), timeout=0.1) as opened:
        opened.decide("r0", make_offers(["a", "b"]), Dearest(), now=START)
        yield opened


def lose(path: Path) -> None:
    path.unlink()


def move_away(path: Path) -> None:
    path.rename(path.with_suffix(".old"))


def put_copy(path: Path) -> None:
    Path(shutil.copy(path, path.with_suffix(".copy"))).replace(path)


def begin_another(path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    open_ledger(f"sqlite:///{path}", fixed_terms()).close()


def lose_journal(path: Path) -> None:
    Path(f"{path}-wal").unlink()


CHANGES = (lose, move_away, put_copy, begin_another)
CASES = [*((change, connected) for change in CHANGES for connected in (True, False)), (lose_journal, True)]


@pytest.mark.parametrize(("change", "connected"), CASES)
def test_a_file_that_is_taken_away_or_replaced_gives_nothing_more(
    ledger: Ledger, path: Path, change: Callable[[Path], None], connected: bool
) -> None:
    if not connected:
        ledger._store.disconnect()
    change(path)
    before = sorted(path.parent.iterdir())
    uses: tuple[Callable[[], object], ...] = (
        lambda: ledger.decide("r1", make_offers(["c"]), Dearest(), now=START),
        lambda: ledger.redeem("r0", "a", now=START),
        ledger.standing,
        lambda: ledger.change_total(5000),
    )
    for use in uses:
        with pytest.raises(LedgerError, match="was taken away or replaced while it was open") as caught:
            use()
        assert caught.value.__cause__ is not None  # a service answers 503
    assert [file for file in path.parent.iterdir() if file not in before] == []


def test_a_file_that_came_back_is_whole(ledger: Ledger, path: Path) -> None:
    move_away(path)
    with pytest.raises(LedgerError, match="taken away"):
        ledger.standing()
    path.with_suffix(".old").rename(path)
    with open_ledger(f"sqlite:///{path}") as again:
        assert again.audit().matches
        assert again.standing(now=START).promised == 20_000_000


def test_a_ledger_of_two_names_is_refused_for_each_would_have_the_budget(ledger: Ledger, path: Path) -> None:
    path.with_suffix(".other").hardlink_to(path)
    for name in (path, path.with_suffix(".other")):
        with pytest.raises(LedgerError, match="has more than one name"):
            open_ledger(f"sqlite:///{name}", fixed_terms())
    assert ledger.standing(now=START).promised == 20_000_000  # whoever has opened it goes on
    path.with_suffix(".other").unlink()
    open_ledger(f"sqlite:///{path}").close()


def test_a_ledger_that_is_mounted_by_itself_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_ledger(f"sqlite:///{path}", fixed_terms()).close()
    mounts = path.with_name("mountinfo")
    monkeypatch.setattr("largesse.io.output_path_checks.MOUNT_TABLE", mounts)
    mounts.write_text(f"36 35 98:0 /l.db {path.resolve()} rw - ext4 /dev/x rw\n")
    with pytest.raises(LedgerError, match="is mounted by itself"):
        open_ledger(f"sqlite:///{path}")
    mounts.write_text(f"36 35 98:0 / {path.parent.resolve()} rw - ext4 /dev/x rw\n")
    open_ledger(f"sqlite:///{path}").close()


def test_a_ledger_behind_a_link_and_under_an_odd_name_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    real = tmp_path / "real" / "50% off? #1.db"
    (tmp_path / "link.db").symlink_to(real)
    with open_ledger(f"sqlite:///{tmp_path}/link.db", fixed_terms()) as ledger:
        for number in range(3):
            ledger.decide(f"r{number}", make_offers(["a"]), Dearest(), now=START)
            ledger._store.disconnect()
    with open_ledger(f"sqlite:///{real}") as ledger:
        assert ledger.standing(now=START).decisions == 3
    assert {file.name for file in (tmp_path / "real").iterdir()} == {real.name, f"{real.name}-lock"}
    monkeypatch.chdir(tmp_path)
    open_ledger("sqlite:///:memory:", fixed_terms()).close()
    assert (tmp_path / ":memory:").is_file()


def test_other_files_are_left_as_they_are(tmp_path: Path) -> None:
    other, text, empty = (tmp_path / name for name in ("other.db", "text.db", "empty.db"))
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE mine (x)")
    text.write_text("hello" * 1000)
    empty.touch()
    os.mkfifo(tmp_path / "pipe")
    before = [path.read_bytes() for path in (other, text, empty)]
    for subject, path, terms in (
        ("ledger", other, fixed_terms()),
        ("damaged", text, fixed_terms()),
        ("folder", tmp_path / "nowhere" / "x.db", fixed_terms()),
        ("file", tmp_path, fixed_terms()),
        ("pipe", tmp_path / "pipe", fixed_terms()),
        ("there is no ledger", empty, None),
    ):
        with pytest.raises(LedgerError, match=subject):
            open_ledger(f"sqlite:///{path}", terms)
    assert [path.read_bytes() for path in (other, text, empty)] == before


def test_a_full_disk_loses_nothing_and_when_there_is_room_it_goes_on(ledger: Ledger) -> None:
    store: Any = ledger._store
    store._connect().execute("PRAGMA max_page_count = 12")
    many = make_offers([f"c{i}" for i in range(2000)])
    with pytest.raises(LedgerError, match="is full"):
        ledger.decide("many", many, Dearest(), now=START)
    assert ledger.audit().matches
    assert ledger.standing(now=START).decisions == 2
    assert len(ledger.decide("many", many, Dearest(), now=START)) == 2000  # the connection is another, without a limit
    assert ledger.audit().matches


def test_a_locked_file_is_waited_for_and_then_named(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("largesse.serve.ledger.sqlite.WRITER_TIMEOUT_SECONDS", 0.0)
    ledger._store.disconnect()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="is locked"):
            ledger.change_total(70)
        assert ledger.standing(now=START).promised == 20_000_000  # who reads does not wait
        other.execute("ROLLBACK")
    assert ledger.change_total(70).terms.total == 70_000_000


def test_processes_write_in_turn(ledger: Ledger, path: Path) -> None:
    order: list[int] = []

    def write(number: int) -> None:
        def work(_: object) -> None:
            order.append(number)
            time.sleep(0.002)

        with open_ledger(f"sqlite:///{path}") as own:
            for _ in range(20):
                own._run_transaction(work)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    longest = max(len(list(group)) for _, group in itertools.groupby(order[3:-20]))
    assert len(order) == 60
    assert longest <= 3


@contextmanager
def as_nobody() -> Iterator[None]:
    """Give up the rights of root inside the block: root may write everywhere."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_ledger_that_cannot_be_written_can_be_read(ledger: Ledger, path: Path) -> None:
    ledger.close()
    assert path.stat().st_mode & 0o777 == 0o600
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(path, copy)
        copy.chmod(0o444)
        Path(folder).chmod(0o555)
        with as_nobody():
            with open_ledger(f"sqlite:///{copy}", read_only=True) as opened:
                assert opened.standing(now=START).promised == 20_000_000
                assert opened.audit().matches
                assert len(list(opened.decisions())) == 2
            with pytest.raises(LedgerError, match="cannot be opened for writing"):
                open_ledger(f"sqlite:///{copy}")
        Path(folder).chmod(0o755)
        (Path(folder) / "copy.db-wal").write_bytes(b"x")
        Path(folder).chmod(0o555)
        with as_nobody(), pytest.raises(LedgerError, match=r"copy\.db-wal"):
            open_ledger(f"sqlite:///{copy}", read_only=True)


def test_another_thread_is_not_waited_for_longer_than_the_timeout(ledger: Ledger) -> None:
    held, release = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        held.set()
        release.wait(10)

    thread = threading.Thread(target=ledger._run_transaction, args=(hold,))
    thread.start()
    assert held.wait(10)
    with pytest.raises(LedgerError, match="is busy"):
        ledger.standing()
    release.set()
    thread.join()
    assert ledger.standing(now=START).decisions == 2


def test_sums_beyond_what_can_be_counted_are_refused(ledger: Ledger, path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE ledger SET settled_expected = {2**63 - 2}")
    database.close()
    with pytest.raises(LedgerError, match="cannot count so far: settled_expected"):
        ledger.decide("r1", make_offers(["a"]), Dearest(), now=START + 8 * DAY)  # two promises are over
    assert ledger.standing(now=START).promised == 20_000_000
