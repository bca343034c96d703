"""A private folder goes with its command; what a killed one left goes with the next."""

import os
import stat
import time
from pathlib import Path

import pytest

from largesse.errors import OutputError
from largesse.io import private_folder


def test_it_is_there_for_one_user_while_it_is_needed(tmp_path: Path) -> None:
    with private_folder(tmp_path, "work") as folder:
        assert folder.parent == tmp_path
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "table.csv").write_text("a")
    assert list(tmp_path.iterdir()) == []


def test_it_goes_when_the_command_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), private_folder(tmp_path, "work"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_those_that_are_held_stay_and_those_that_are_left_go(tmp_path: Path) -> None:
    left = tmp_path / ".work-0123abcd"
    left.mkdir()
    (left / "lock").touch()
    (left / "table.csv").touch()
    with private_folder(tmp_path, "work") as first:
        assert not left.exists()
        with private_folder(tmp_path, "work") as second:
            assert first.exists()
            assert first != second


def test_one_that_is_just_being_made_stays(tmp_path: Path) -> None:
    new, old = tmp_path / ".work-0123abcd", tmp_path / ".work-4567abcd"
    for path in (new, old):
        path.mkdir()
    os.utime(old, (time.time() - 3600,) * 2)
    with private_folder(tmp_path, "work"):
        assert (new.exists(), old.exists()) == (True, False)


def test_what_others_made_stays(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    kept = tmp_path / "kept"
    for path in (outside, kept, kept / ".work-zzzz", kept / ".other-0123abcd", kept / "work-0123abcd"):
        path.mkdir()
        (path / "lock").touch()
    (kept / ".work-0123abcd").symlink_to(outside)
    (kept / ".work-4567abcd").write_text("a file")
    before = sorted(path.name for path in kept.iterdir())
    with private_folder(kept, "work"):
        pass
    assert sorted(path.name for path in kept.iterdir()) == before
    assert (outside / "lock").exists()


def test_a_folder_that_is_not_there_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(OutputError), private_folder(tmp_path / "missing", "work"):
        pass
