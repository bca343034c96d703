import os
from pathlib import Path
from typing import Any

import pytest

from largesse.errors import OutputError
from largesse.io import Scratch, scratch_file


def test_what_was_written_is_read_back_and_the_file_has_no_name(tmp_path: Path) -> None:
    with scratch_file(tmp_path) as scratch:
        scratch.append(b"0123")
        scratch.append(memoryview(b"4567"))
        scratch.finish()
        assert (scratch.read(0, 4), scratch.read(3, 3), scratch.read(6, 99)) == (b"0123", b"345", b"67")
        assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError), scratch_file(tmp_path / "no"):
        pass


def test_a_read_that_comes_in_pieces_is_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, start: real(file, min(size, 3), start))
    with scratch_file(tmp_path) as scratch:
        scratch.append(b"0123456789")
        scratch.finish()
        assert scratch.read(1, 8) == b"12345678"


def test_an_error_of_the_disk_is_told_in_words(tmp_path: Path) -> None:
    class Full:
        def write(self, _content: Any) -> None:
            raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="the disk is full"):
        Scratch(Full(), tmp_path).append(b"0")  # type: ignore[arg-type]
