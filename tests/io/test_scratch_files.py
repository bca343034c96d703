"""Temporary files and folders go with their command; those of a killed command go with the next."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from largesse.errors import OutputError
from largesse.io import ScratchFile, private_folder, scratch_file


def test_a_scratch_file_has_no_name_and_holds_what_was_written(tmp_path: Path) -> None:
    with scratch_file(tmp_path) as scratch:
        scratch.append(b"0123")
        scratch.append(memoryview(b"4567"))
        scratch.finish()
        assert os.pread(scratch.file.fileno(), 99, 0) == b"01234567"
        assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_error_of_output(tmp_path: Path) -> None:
    class Full:
        def write(self, _content: Any) -> None:
            raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="disk is full"):
        ScratchFile(Full(), tmp_path).append(b"0")  # type: ignore[arg-type]


def test_a_private_folder_is_for_one_user_and_goes_at_the_end(tmp_path: Path) -> None:
    with private_folder(tmp_path, "work") as folder:
        assert folder.parent == tmp_path
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "table.csv").write_text("a")
    with pytest.raises(RuntimeError), private_folder(tmp_path, "work"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_private_folder_in_use_stays_and_one_of_a_killed_command_goes(tmp_path: Path) -> None:
    for name in ("lock", "table.csv"):
        left = tmp_path / f".work-{name[:4]}abcd"
        left.mkdir()
        (left / name).touch()
    with private_folder(tmp_path, "work") as first, private_folder(tmp_path, "work") as second:
        assert {first, second} == {*tmp_path.iterdir()}


def test_folders_of_others_stay(tmp_path: Path) -> None:
    outside, kept = tmp_path / "outside", tmp_path / "kept"
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


@pytest.mark.parametrize("make", [scratch_file, lambda near: private_folder(near, "work")])
def test_a_missing_folder_is_an_error_of_output(make: Any, tmp_path: Path) -> None:
    with pytest.raises(OutputError), make(tmp_path / "missing"):
        pass
