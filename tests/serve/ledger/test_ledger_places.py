"""A ledger whose file is taken away, replaced or has no room: nothing is given that it does not hold."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError, LedgerError
from largesse.serve import Ledger, make_terms, open_ledger
from largesse.serve.ledger.units import read_money
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
    copy = Path(shutil.copy(path, path.with_suffix(".copy")))
    copy.replace(path)


def begin_another(path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    open_ledger(f"sqlite:///{path}", fixed_terms()).close()


def lose_journal(path: Path) -> None:
    Path(f"{path}-wal").unlink()


WAYS = (lose, move_away, put_copy, begin_another)
CASES = [*((change, connected) for change in WAYS for connected in (True, False)), (lose_journal, True)]


@pytest.mark.parametrize(("change", "connected"), CASES)
def test_a_file_that_is_taken_away_or_replaced_gives_nothing_more(
    ledger: Ledger, path: Path, change: Callable[[Path], None], connected: bool
) -> None:
    if not connected:
        ledger._store.disconnect()
    change(path)
    there = sorted(path.parent.iterdir())
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
    assert [one for one in path.parent.iterdir() if one not in there] == []


def test_a_file_that_came_back_is_whole_for_whoever_opens_it(ledger: Ledger, path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    with pytest.raises(LedgerError, match="taken away"):
        ledger.standing()
    path.with_suffix(".old").rename(path)
    with open_ledger(f"sqlite:///{path}") as again:
        assert again.audit().fine
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
    mounts.write_text(f"36 35 98:0 /l.db {path.resolve()} rw - ext4 /dev/x rw\n")
    monkeypatch.setattr("largesse.io.paths.MOUNTS", mounts)
    with pytest.raises(LedgerError, match="is mounted by itself"):
        open_ledger(f"sqlite:///{path}")
    mounts.write_text(f"36 35 98:0 / {path.parent.resolve()} rw - ext4 /dev/x rw\n")
    open_ledger(f"sqlite:///{path}").close()


def test_a_ledger_behind_a_link_and_under_an_odd_name_is_found_again(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real = tmp_path / "real" / "50% off? #1.db"
    (tmp_path / "link.db").symlink_to(real)
    with open_ledger(f"sqlite:///{tmp_path}/link.db", fixed_terms()) as ledger:
        for number in range(3):
            ledger.decide(f"r{number}", make_offers(["a"]), Dearest(), now=START)
            ledger._store.disconnect()
    with open_ledger(f"sqlite:///{real}") as ledger:
        assert ledger.standing(now=START).decisions == 3
    assert sorted(one.name for one in (tmp_path / "real").iterdir()) == [real.name]


def test_a_full_disk_loses_nothing_and_when_there_is_room_it_goes_on(ledger: Ledger) -> None:
    connection: Any = ledger._store
    connection._connect().execute("PRAGMA max_page_count = 12")
    many = make_offers([f"c{i}" for i in range(2000)])
    with pytest.raises(LedgerError, match="is full"):
        ledger.decide("many", many, Dearest(), now=START)
    assert ledger.audit().fine
    assert ledger.standing(now=START).decisions == 2
    assert len(ledger.decide("many", many, Dearest(), now=START)) == 2000  # the connection is another, without a limit
    assert ledger.audit().fine


def test_a_ledger_that_another_process_holds_is_waited_for(ledger: Ledger, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    connection: Any = ledger._store
    connection._connect().execute("PRAGMA busy_timeout = 10")
    with pytest.raises(LedgerError, match="is locked"):
        ledger.standing()
    other.execute("ROLLBACK")
    other.close()
    assert ledger.standing(now=START).promised == 20_000_000


# -- clocks and numbers ----------------------------------------------------------------------------------------------------


def test_a_clock_that_goes_back_releases_nothing_twice(ledger: Ledger) -> None:
    assert ledger.standing(now=START + 8 * DAY).promised == 0  # a week is over
    for now in (START, START - DAY, 0):
        found = ledger.standing(now=now)
        assert (found.promised, found.expired, found.room) == (0, 2, 100_000_000)
    with pytest.raises(LedgerError, match="the promise ended"):
        ledger.redeem("r0", "a", now=START)
    assert ledger.decide("r1", make_offers(["a"]), Dearest(), now=START - DAY).levels.tolist() == [0]
    assert ledger.decide("r2", make_offers(["a"]), Dearest(), now=START + DAY).levels.tolist() == [2]
    assert ledger.redeem("r2", "a", now=START).late is False  # told before it was decided
    assert ledger.audit().fine


@pytest.mark.parametrize("amount", [0.1 + 0.2, 1.1 * 3, 0.29 * 100, np.float64(0.1) * 3])
def test_a_sum_of_floats_is_the_amount_that_was_meant(amount: float) -> None:
    meant = round(float(amount), 2)
    assert read_money(amount, "the amount", up=True) == read_money(amount, "the total", up=False) == round(meant * 1e6)


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ("2027-01-31", "2027-02-01 00:00:00Z"),
        ("20270131", "2027-02-01 00:00:00Z"),  # the last day is part of the period, however it is written
        ("2027-01-31T18:00", "2027-01-31 18:00:00Z"),
        ("2027-03-28T02:30:00+01:00", "2027-03-28 01:30:00Z"),  # an hour that daylight saving leaves out
        ("2027-10-31T02:30:00+02:00", "2027-10-31 00:30:00Z"),  # and one that comes twice
        ("2027-10-31T02:30:00+01:00", "2027-10-31 01:30:00Z"),
    ],
)
def test_a_period_ends_when_it_says(ends: str, told: str) -> None:
    assert f"until {told};" in make_terms(5, ends, starts="2026-01-01").describe()


def test_a_missing_time_of_a_table_is_no_end() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with pytest.raises(InputError, match="the end is NaT"):
        make_terms(5, pandas.NaT, starts="2026-01-01")


def test_sums_beyond_what_can_be_counted_are_refused(ledger: Ledger, path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE ledger SET settled_expected = {2**63 - 2}")
    database.close()
    with pytest.raises(LedgerError, match="cannot count so far: settled_expected"):
        ledger.standing(now=START + 8 * DAY)  # two promises are over
    assert ledger.standing(now=START).promised == 20_000_000
