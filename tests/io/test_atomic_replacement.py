"""Output is whole: a failure, an interrupt or a kill leaves the old content or the new."""

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from largesse.errors import OutputError
from largesse.io import (
    atomic_file,
    atomic_folder,
    atomic_replacement,
    can_recover_folder,
    file_transaction,
    hold_folder,
)
from support.folders import earlier_run, everything_in

RUN = {"marks": ("campaign.toml", "policy.largesse"), "files": ("campaign.toml", "policy.largesse", "report.html")}
STOPS = [RuntimeError("boom"), KeyboardInterrupt(), SystemExit(143), OSError(errno.ENOSPC, "No space left on device")]
by_stop = pytest.mark.parametrize("stop", STOPS, ids=lambda stop: type(stop).__name__)


def fails_with(stop: BaseException) -> type[BaseException]:
    return OutputError if isinstance(stop, OSError) else type(stop)


def replace_run(out: Path, text: str = "new") -> None:
    with atomic_folder(out, **RUN) as part:
        (part / "report.html").write_text(text)


def stop_half_way(path: Path, stop: BaseException) -> None:
    path.write_text("half")
    raise stop


@by_stop
def test_a_failure_leaves_the_old_content_and_nothing_else(stop: BaseException, tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    (tmp_path / "t.txt").write_text("old")
    before = everything_in(tmp_path)
    for target in (tmp_path / "t.txt", tmp_path / "new" / "deep" / "t.txt"):
        with pytest.raises(fails_with(stop)), atomic_file(target) as part:
            stop_half_way(part, stop)
    for target in (out, tmp_path / "new" / "deep" / "run"):
        with pytest.raises(fails_with(stop)), atomic_folder(target, **RUN) as part:
            stop_half_way(part / "report.html", stop)
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize("in_one_step", [True, False])
@by_stop
def test_an_exchange_that_fails_brings_the_old_folder_back(
    stop: BaseException, in_one_step: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = earlier_run(tmp_path)
    before = everything_in(tmp_path)
    rename = os.rename

    def failing(*paths: Path) -> None:
        if in_one_step or str(paths[0]).endswith(".part"):
            raise stop
        rename(*paths)

    monkeypatch.setattr(os, "rename", failing)
    monkeypatch.setattr(atomic_replacement, "_find_renameat2", lambda: failing if in_one_step else None)
    with pytest.raises(fails_with(stop)):
        replace_run(out)
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize("in_one_step", [True, False])
def test_new_content_replaces_the_old(in_one_step: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_one_step:
        monkeypatch.setattr(atomic_replacement, "_find_renameat2", lambda: None)
    replace_run(earlier_run(tmp_path))
    (tmp_path / "empty").mkdir()
    replace_run(tmp_path / "empty")
    with atomic_file(tmp_path / "new" / "deep" / "t.txt") as part:
        part.write_text("new")
    assert everything_in(tmp_path) == {
        "empty": b"",
        "empty/report.html": b"new",
        "new": b"",
        "new/deep": b"",
        "new/deep/t.txt": b"new",
        "run": b"",
        "run/report.html": b"new",
    }


@pytest.mark.parametrize(
    "inside", [["thesis.tex"], ["campaign.toml", "log.parquet"], ["campaign.toml", "policy.largesse", "notes.md"]]
)
def test_a_folder_with_files_of_the_user_is_never_replaced(inside: list[str], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in inside:
        (tmp_path / "out" / name).write_text("mine")
    before = everything_in(tmp_path)
    with pytest.raises(OutputError, match=inside[-1]):
        replace_run(tmp_path / "out")
    assert everything_in(tmp_path) == before


def test_hidden_files_allow_a_replacement_and_stay(tmp_path: Path) -> None:
    out, hidden = earlier_run(tmp_path), {".DS_Store", "Thumbs.db", ".nfs0000000012345678"}
    for name in (*hidden, ".plan.parquet.8f30e26a.part"):
        (out / name).write_text("stray")
    replace_run(out)
    assert {path.name for path in out.iterdir()} == {"report.html", *hidden}


def test_other_files_in_a_renewed_folder_come_along(tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    (out / "notes" / "deep").mkdir(parents=True)
    (out / "notes" / "deep" / "a.md").write_text("mine")
    (out / "link").symlink_to("notes")
    with hold_folder(out), file_transaction() as batch:
        new = batch.add_folder(out, RUN["files"], renew=True)
        with atomic_file(new / "report.html") as part:
            part.write_text("new")
        assert (out / "report.html").read_text() == "old report.html"  # though it was the same file
        (out / "late.md").write_text("mine")
    assert (out / "report.html").read_text() == "new"
    assert (out / "campaign.toml").read_text() == "old campaign.toml"
    assert (out / "link" / "deep" / "a.md").read_text() == (out / "late.md").read_text() == "mine"
    assert (out / "link").is_symlink()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def write_both(folder: Path, file: Path) -> None:
    with hold_folder(folder), file_transaction() as batch:
        batch.add_file(file).write_text("new")
        (batch.add_folder(folder, RUN["files"]) / "report.html").write_text("new")


@pytest.mark.parametrize("in_one_step", [True, False])
def test_when_the_file_cannot_appear_the_folder_goes_back(
    in_one_step: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = earlier_run(tmp_path)
    (tmp_path / "x.csv").write_text("old")
    before = everything_in(tmp_path)

    def failing(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "replace", failing)
    if not in_one_step:
        monkeypatch.setattr(atomic_replacement, "_find_renameat2", lambda: None)
    with pytest.raises(OutputError):
        write_both(out, tmp_path / "x.csv")
    assert everything_in(tmp_path) == before


# -- what a killed command leaves ----------------------------------------------------------------------------------------


def test_leftovers_of_killed_commands_are_removed_and_no_other_names(tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    others = (".run.mine.part", ".running.0123abcd.part", "run.0123abcd.part", ".run.0123abcd.bak")
    for name in (*others, ".run.0123abcd.part"):
        (tmp_path / name).mkdir()
    (tmp_path / ".run.0123abcd.part" / "report.html").write_text("half")
    (tmp_path / ".run.89abcdef.part").symlink_to(tmp_path / ".run.mine.part")
    (tmp_path / ".t.txt.0123abcd.part.txt").write_text("half")
    (tmp_path / ".run.largesse.lock").touch()
    replace_run(out)
    with atomic_file(tmp_path / "t.txt") as part:
        part.write_text("new")
    assert {path.name for path in tmp_path.iterdir()} == {*others, ".run.89abcdef.part", "run", "t.txt"}


def test_a_folder_that_a_killed_command_moved_away_comes_back(tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    before = everything_in(tmp_path)
    out.rename(tmp_path / ".run.0123abcd.old")
    (tmp_path / ".run.89abcdef.part").mkdir()
    assert can_recover_folder(out)
    with hold_folder(out):
        pass
    assert everything_in(tmp_path) == before
    assert not can_recover_folder(out)


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
from largesse.io import file_transaction, atomic_replacement, hold_folder

out, file, times, in_one_step = Path("run"), Path("x.csv"), int(sys.argv[1]), sys.argv[2] == "exchange"
names = [f"{k}.txt" for k in range(6)]
if not in_one_step:
    atomic_replacement._find_renameat2 = lambda: None

def write(number):
    with hold_folder(out), file_transaction() as batch:
        part = batch.add_folder(out, names, renew=out.exists())
        for name in names:
            (part / name).unlink(missing_ok=True)
            (part / name).write_text(str(number))
        batch.add_file(file).write_text(str(number))

write(0)
(out / "mine.md").write_text("mine")
for round in range(times):
    child = os.fork()
    if child == 0:
        for number in range(100_000):
            write(number)
    time.sleep(random.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with hold_folder(out):
        found = {(out / name).read_text() for name in names}
        assert len(found) == 1, found
        number, copy = int(found.pop()), int(file.read_text())
        assert (out / "mine.md").read_text() == "mine"
        assert copy in (number, number - 1) or number == 0, (number, copy)  # the folder first, the file next
write(1)
print(sorted(os.listdir(".")))
"""


@pytest.mark.parametrize("way", ["exchange", "renames"])
@pytest.mark.parametrize("times", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_kill_at_any_instant_leaves_the_old_or_the_new(way: str, times: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(times), way]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['run', 'x.csv']\n", "")


# -- locks, names and rights ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use", [replace_run, lambda path: atomic_file(path).__enter__()])
def test_output_in_use_is_refused_after_a_wait(
    use: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic_replacement, "MAX_LOCK_SECONDS", 0.05)
    with atomic_replacement.hold_path_lock(tmp_path / "out"), pytest.raises(OutputError, match="in use"):
        use(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_two_commands_write_one_after_the_other(tmp_path: Path) -> None:
    write = "from largesse.io import atomic_file\nfor _ in range(50):\n with atomic_file('t') as t: t.write_text('x')"
    running = [subprocess.Popen([sys.executable, "-c", write], cwd=tmp_path) for _ in range(2)]
    assert [command.wait() for command in running] == [0, 0]
    assert everything_in(tmp_path) == {"t": b"x"}


def test_the_targets_of_links_are_replaced(tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    (tmp_path / "latest").symlink_to(out)
    replace_run(tmp_path / "latest")
    (tmp_path / "link").symlink_to("run/t.txt")
    for text in ("first", "second"):
        with atomic_file(tmp_path / "link") as part:
            part.write_text(text)
        assert everything_in(out) == {"report.html": b"new", "t.txt": text.encode()}
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_symlink()) == ["latest", "link"]


def test_a_name_of_255_bytes_can_be_written(tmp_path: Path) -> None:
    with atomic_file(tmp_path / ("a" * 255)) as part:
        part.write_text("new")
    replace_run(tmp_path / ("b" * 255))
    assert sorted(len(path.name) for path in tmp_path.iterdir()) == [255, 255]


def test_modes_and_owners_stay(tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    (tmp_path / "t.txt").touch()
    owner = (1234, 4321) if os.geteuid() == 0 else (os.geteuid(), os.getegid())  # only root may give files away
    for path, mode in ((out, 0o700), (tmp_path / "t.txt", 0o600), (out / "report.html", 0o640)):
        path.chmod(mode)
        os.chown(path, *owner)
    with atomic_file(tmp_path / "t.txt") as part:
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
    with atomic_folder(out, **RUN) as part:
        assert stat.S_IMODE(part.stat().st_mode) == 0o700
        (part / "report.html").write_text("new")
    facts = {path.name: path.stat() for path in (out, tmp_path / "t.txt", out / "report.html")}
    modes = {name: stat.S_IMODE(fact.st_mode) for name, fact in facts.items()}
    assert modes == {"run": 0o700, "t.txt": 0o600, "report.html": 0o640}
    assert {(fact.st_uid, fact.st_gid) for fact in facts.values()} == {owner}


def test_new_files_and_folders_are_private_also_in_an_open_folder(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        for name in ("new", "open"):
            if name == "open":
                (tmp_path / name).mkdir()
            with atomic_folder(tmp_path / name, **RUN) as part:
                (part / "report.html").write_text("new")
                (part / "parts").mkdir()
        with atomic_file(tmp_path / "plan.csv") as part:
            part.write_text("new")
    finally:
        os.umask(before)
    names = ("new", "new/parts", "new/report.html", "open", "open/report.html", "plan.csv")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names]
    assert modes == [0o700, 0o700, 0o600, 0o755, 0o600, 0o600]


def test_an_interrupt_leaves_the_old_or_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, exchange = earlier_run(tmp_path), atomic_replacement.exchange_folders

    def interrupted(part: Path, path: Path) -> None:
        exchange(part, path)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(atomic_replacement, "exchange_folders", interrupted)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            replace_run(out)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert everything_in(tmp_path) == {"run": b"", "run/report.html": b"new"}
