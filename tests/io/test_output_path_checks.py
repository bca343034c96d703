"""Only regular files and folders are written over; links are followed, and everything else is refused."""

import os
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from largesse.errors import OutputError
from largesse.io import atomic_file, atomic_folder, resolve_links, resolve_output_file, resolve_output_folder


def refuse(path: Any, message: str = ".", *writers: Callable[[Any], Any]) -> None:
    for write in writers or (atomic_file, atomic_folder):
        with pytest.raises(OutputError, match=message), write(path):
            pytest.fail("written")


def make_device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("devices cannot be made here")


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


NODES: dict[str, Callable[[Path], None]] = {"device": make_device, "FIFO": os.mkfifo, "socket": make_socket}


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("kind", NODES)
def test_devices_fifos_and_sockets_stay(
    kind: str, linked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    NODES[kind](Path("node"))
    if linked:
        Path("link").symlink_to("node")
    before = Path("node").lstat()
    refuse(Path("link" if linked else "node"), f"is a {kind}")
    after = Path("node").lstat()
    assert (after.st_ino, after.st_mode, after.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)
    assert sorted(path.name for path in tmp_path.iterdir()) == (["link", "node"] if linked else ["node"])


def test_an_open_file_of_a_process_stays(tmp_path: Path) -> None:
    code = "from largesse.io import atomic_file\nwith atomic_file('out') as part: part.write_text('new')"
    (tmp_path / "out").symlink_to("/proc/self/fd/1")
    with (tmp_path / "shown").open("w") as stream:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=tmp_path, stdout=stream, stderr=subprocess.PIPE, text=True, check=False)
    assert "a file that another process has open" in done.stderr
    assert (tmp_path / "shown").read_text() == ""
    assert (tmp_path / "out").is_symlink()


def test_circular_links_are_refused_and_resolve_to_themselves(tmp_path: Path) -> None:
    for name, target in (("a", "b"), ("b", "a"), ("loop", "loop"), ("there", ".")):
        (tmp_path / name).symlink_to(target)
    for resolve in (resolve_output_file, resolve_output_folder):
        with pytest.raises(OutputError):
            resolve(tmp_path / "a")
    assert resolve_links(tmp_path / "loop") == tmp_path / "loop"
    assert resolve_links(tmp_path / "there") == tmp_path.resolve()


def test_mount_points_and_the_current_folder_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutputError, match="mount point"):
        resolve_output_folder("/")
    monkeypatch.chdir(tmp_path)
    refuse(".", "you are inside", atomic_folder)


@pytest.mark.parametrize("name", ["a" * 300, "a\0b", 5, None, True, [], b"x", "\ud800"])
def test_names_that_no_file_can_have_are_refused(name: Any, tmp_path: Path) -> None:
    valid = isinstance(name, str) and name.isascii()
    refuse(tmp_path / name if valid else name, "." if valid else "the path is")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_file_stays(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("old")
    (tmp_path / "t.txt").chmod(0o400)
    refuse(tmp_path / "t.txt", "may not be written", atomic_file)


def test_a_database_stays(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ledger.csv") as database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    (tmp_path / "link.csv").symlink_to("ledger.csv")
    before = (tmp_path / "ledger.csv").read_bytes()
    for name in ("ledger.csv", "link.csv"):
        refuse(tmp_path / name, "is a database, perhaps a ledger", atomic_file)
    assert (tmp_path / "ledger.csv").read_bytes() == before
