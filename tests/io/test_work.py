"""What a command has finished is kept beside its target until it succeeds, and never becomes a part of it."""

import os
import stat
from pathlib import Path

import pytest

from largesse.errors import OutputError
from largesse.io import find_work, keep_work, open_work


def finish(path: Path, key: str = "k1") -> None:
    (open_work(path, key) / "fit").write_text("finished")


def stop_after_finishing(target: Path, stop: type[BaseException], key: str = "k1") -> None:
    with keep_work(target) as work:
        finish(work, key)
        raise stop


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, MemoryError])
def test_what_was_finished_stays_when_a_command_is_stopped(stop: type[BaseException], tmp_path: Path) -> None:
    with pytest.raises(stop):
        stop_after_finishing(tmp_path / "R", stop)
    with keep_work(tmp_path / "R", resume=True) as work:
        assert (open_work(work, "k1") / "fit").read_text() == "finished"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OutputError("output", []), OSError("the disk is full")])
@pytest.mark.parametrize("before", [False, True])
def test_an_error_leaves_what_was_there_before(error: Exception, before: bool, tmp_path: Path) -> None:
    if before:
        finish(find_work(tmp_path / "R"))

    def refuse() -> None:
        with keep_work(tmp_path / "R", resume=True) as work:
            finish(work)
            raise error

    with pytest.raises(type(error)):
        refuse()
    assert [entry.name for entry in tmp_path.iterdir()] == [".R.largesse.work"] * before


def test_it_goes_when_the_command_succeeds(tmp_path: Path) -> None:
    with keep_work(tmp_path / "R") as work:
        finish(work)
        assert [entry.name for entry in tmp_path.iterdir()] == [".R.largesse.work"]
    assert list(tmp_path.iterdir()) == []


def test_it_is_removed_by_a_command_that_does_not_resume(tmp_path: Path) -> None:
    finish(find_work(tmp_path / "R"))
    with keep_work(tmp_path / "R") as work:
        assert not work.exists()


def test_an_empty_one_is_not_left(tmp_path: Path) -> None:
    def stop() -> None:
        with keep_work(tmp_path / "R") as work:
            open_work(work, "k1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert list(tmp_path.iterdir()) == []


def test_what_has_another_fingerprint_is_removed(tmp_path: Path) -> None:
    work = find_work(tmp_path / "R")
    finish(work, "k1")
    (work / "stray").write_text("stray")
    (work / "link").symlink_to(tmp_path)
    assert list(open_work(work, "k2").iterdir()) == []
    assert [entry.name for entry in work.iterdir()] == ["k2"]
    assert tmp_path.exists()


def test_only_its_owner_may_look_inside(tmp_path: Path) -> None:
    work = find_work(tmp_path / "R")
    finish(work)
    assert stat.S_IMODE(work.stat().st_mode) == stat.S_IMODE((work / "k1").stat().st_mode) == 0o700


@pytest.mark.parametrize("make", [lambda path: path.write_text(""), lambda path: path.symlink_to("/")])
def test_what_is_no_folder_is_refused(make: object, tmp_path: Path) -> None:
    make(find_work(tmp_path / "R"))  # type: ignore[operator]
    with pytest.raises(OutputError, match="in the way"), keep_work(tmp_path / "R", resume=True):
        pass
    assert os.path.lexists(find_work(tmp_path / "R"))


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(find_work(tmp_path / "R"))
    monkeypatch.setattr(os, "geteuid", lambda: -1)
    with pytest.raises(OutputError, match="no folder of yours"), keep_work(tmp_path / "R"):
        pass


def test_it_lies_beside_what_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "R")
    assert find_work(tmp_path / "link") == tmp_path / "real" / ".R.largesse.work"
