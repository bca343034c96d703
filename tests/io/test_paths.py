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
from largesse.io import atomic_file, atomic_folder, resolve_file, resolve_folder, where_is


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
def test_devices_fifos_and_sockets_keep_their_place(
    kind: str, linked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    NODES[kind](Path("node"))
    if linked:
        Path("link").symlink_to("node")
    before = Path("node").lstat()
    out = Path("link" if linked else "node")
    for write in (atomic_file, atomic_folder):
        with pytest.raises(OutputError, match=f"is a {kind}"), write(out):
            pytest.fail("it must not come so far")
    after = Path("node").lstat()
    assert (after.st_ino, after.st_mode, after.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)
    assert sorted(path.name for path in tmp_path.iterdir()) == (["link", "node"] if linked else ["node"])


def test_what_a_process_has_open_is_not_a_file_to_replace(tmp_path: Path) -> None:
    code = "from largesse.io import atomic_file\nwith atomic_file('out') as part: part.write_text('new')"
    (tmp_path / "out").symlink_to("/proc/self/fd/1")
    with (tmp_path / "shown").open("w") as stream:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, stdout=stream, stderr=subprocess.PIPE, text=True, check=False
        )
    assert "is what a process has open" in done.stderr
    assert (tmp_path / "shown").read_text() == ""
    assert (tmp_path / "out").is_symlink()


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for resolve in (resolve_file, resolve_folder):
        with pytest.raises(OutputError):
            resolve(tmp_path / "a")


def test_a_mount_point_keeps_its_place() -> None:
    with pytest.raises(OutputError, match="is a mount point"):
        resolve_folder("/")


def test_the_folder_where_the_command_is_called_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match="you are inside"), atomic_folder("."):
        pytest.fail("it must not come so far")


@pytest.mark.parametrize("name", ["a" * 300, "a\0b"])
def test_a_name_that_no_file_can_have_is_named(name: str, tmp_path: Path) -> None:
    for write in (atomic_file, atomic_folder):
        with pytest.raises(OutputError), write(tmp_path / name):
            pytest.fail("it must not come so far")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_what_is_marked_read_only_stays(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("old")
    (tmp_path / "t.txt").chmod(0o400)
    with pytest.raises(OutputError, match="may not be written"), atomic_file(tmp_path / "t.txt"):
        pytest.fail("it must not come so far")


def test_links_that_lead_in_a_circle_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "there").symlink_to(".")
    assert where_is(tmp_path / "loop") == tmp_path / "loop"
    assert where_is(tmp_path / "there") == tmp_path.resolve()


@pytest.mark.parametrize("name", [5, None, True, [], b"x", "\ud800"])
def test_what_is_no_path_is_refused_in_words(name: Any) -> None:
    for write in (atomic_file, atomic_folder):
        with pytest.raises(OutputError, match="the path is"), write(name):
            pytest.fail("it must not come so far")


def test_a_database_is_not_written_over(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ledger.csv") as database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    (tmp_path / "link.csv").symlink_to("ledger.csv")
    before = (tmp_path / "ledger.csv").read_bytes()
    for name in ("ledger.csv", "link.csv"):
        with pytest.raises(OutputError, match="is a database, perhaps a ledger"), atomic_file(tmp_path / name):
            pytest.fail("it must not come so far")
    assert (tmp_path / "ledger.csv").read_bytes() == before
