"""Nothing is ever half there: what a failure, an interrupt or a kill leaves is what was there before."""

import errno
import gc
import os
import signal
import stat
import warnings
from pathlib import Path

import pytest
from folders import earlier_run, everything_in

from largesse.errors import OutputError
from largesse.io import atomic, atomic_file, atomic_folder, can_recover, hold_folder, system, write_together

RUN = {"marks": ("campaign.toml", "policy.largesse"), "files": ("campaign.toml", "policy.largesse", "report.html")}
STOPS = [RuntimeError("boom"), KeyboardInterrupt(), SystemExit(143), OSError(errno.ENOSPC, "No space left on device")]
by_name = pytest.mark.parametrize("stop", STOPS, ids=lambda stop: type(stop).__name__)


def write_half(path: Path, stop: BaseException) -> None:
    path.write_text("half")
    raise stop


def fails_with(stop: BaseException) -> type[BaseException]:
    return OutputError if isinstance(stop, OSError) else type(stop)


@by_name
def test_a_file_that_fails_leaves_the_old_one_and_nothing_else(stop: BaseException, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("old")
    before = everything_in(tmp_path)
    with pytest.raises(fails_with(stop)), atomic_file(tmp_path / "t.txt") as part:
        write_half(part, stop)
    assert everything_in(tmp_path) == before


@by_name
def test_a_folder_that_fails_leaves_the_old_one_and_nothing_else(stop: BaseException, tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    before = everything_in(tmp_path)
    with pytest.raises(fails_with(stop)), atomic_folder(out, **RUN) as part:
        write_half(part / "report.html", stop)
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize("in_one_step", [True, False])
@by_name
def test_a_swap_that_fails_half_way_brings_the_old_folder_back(
    stop: BaseException, in_one_step: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = earlier_run(tmp_path)
    before = everything_in(tmp_path)
    rename = os.rename

    def failing(source: Path, target: Path) -> None:
        if in_one_step or str(source).endswith(".part"):
            raise stop
        rename(source, target)

    def exchanging(source: Path, target: Path) -> bool:
        return bool(in_one_step and failing(source, target))

    monkeypatch.setattr(os, "rename", failing)
    monkeypatch.setattr(system, "exchange", exchanging)
    with pytest.raises(fails_with(stop)), atomic_folder(out, **RUN) as part:
        (part / "report.html").write_text("new")
    assert everything_in(tmp_path) == before


def test_a_file_and_a_folder_take_the_place_of_the_old_ones(tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    with atomic_folder(out, **RUN) as part:
        (part / "report.html").write_text("new")
    with atomic_file(tmp_path / "new" / "deep" / "t.txt") as part:
        part.write_text("new")
    assert everything_in(tmp_path) == {
        "new": b"",
        "new/deep": b"",
        "new/deep/t.txt": b"new",
        "run": b"",
        "run/report.html": b"new",
    }


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with atomic_folder(tmp_path / "run") as part:
        (part / "report.html").write_text("new")
    assert (tmp_path / "run" / "report.html").read_text() == "new"


def test_of_a_link_the_folder_it_points_to_is_replaced(tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    (tmp_path / "latest").symlink_to(out)
    with atomic_folder(tmp_path / "latest", **RUN) as part:
        (part / "report.html").write_text("new")
    assert (tmp_path / "latest").is_symlink()
    assert everything_in(out) == {"report.html": b"new"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["latest", "run"]


@pytest.mark.parametrize(
    "inside", [["thesis.tex"], ["campaign.toml", "log.parquet"], ["campaign.toml", "policy.largesse", "notes.md"]]
)
def test_a_folder_with_anything_of_the_users_is_never_replaced(inside: list[str], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in inside:
        (tmp_path / "out" / name).write_text("mine")
    before = everything_in(tmp_path)
    with (
        pytest.raises(OutputError, match="holds other files and will not be replaced"),
        atomic_folder(tmp_path / "out", **RUN),
    ):
        pytest.fail("it must not come so far")
    assert everything_in(tmp_path) == before


# -- what a killed command leaves -----------------------------------------------------------------------------------------


def test_what_a_killed_command_left_is_swept_and_what_another_holds_is_not(tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    (tmp_path / ".run.0123abcd.part").mkdir()
    (tmp_path / ".run.0123abcd.part" / "report.html").write_text("half")
    (tmp_path / ".t.txt.0123abcd.part.txt").write_text("half")
    (tmp_path / ".run.largesse.lock").touch()
    with atomic_file(tmp_path / "t.txt") as first:
        with atomic_file(tmp_path / "t.txt") as second:
            second.write_text("second")
        first.write_text("first")
    with atomic_folder(out, **RUN) as part:
        (part / "report.html").write_text("new")
    assert everything_in(tmp_path) == {"run": b"", "run/report.html": b"new", "t.txt": b"first"}


def test_a_folder_that_was_moved_away_by_a_killed_command_comes_back(tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    before = everything_in(tmp_path)
    out.rename(tmp_path / ".run.0123abcd.old")
    (tmp_path / ".run.89abcdef.part").mkdir()
    assert can_recover(out)
    with hold_folder(out, RUN["files"]):
        pass
    assert everything_in(tmp_path) == before
    assert not can_recover(out)


def test_only_names_that_are_ours_are_swept(tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    for name in (".run.mine.part", ".running.0123abcd.part", "run.0123abcd.part", ".run.0123abcd.bak"):
        (tmp_path / name).mkdir()
    (tmp_path / ".run.0123abcd.part").symlink_to(tmp_path / ".run.mine.part")
    before = {path.name for path in tmp_path.iterdir()}
    with atomic_folder(out, **RUN):
        pass
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", [".DS_Store", ".plan.parquet.8f30e26a.part", "Thumbs.db", ".nfs0000000012345678"])
def test_hidden_files_do_not_keep_a_folder_from_being_replaced_and_those_of_others_stay(
    name: str, tmp_path: Path
) -> None:
    out = earlier_run(tmp_path)
    (out / name).write_text("stray")
    with atomic_folder(out, **RUN) as part:
        (part / "report.html").write_text("new")
    ours = system.is_temporary(name)
    assert {path.name for path in out.iterdir()} == {"report.html"} | (set() if ours else {name})


def test_what_others_put_into_a_folder_comes_along(tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    (out / "notes" / "deep").mkdir(parents=True)
    (out / "notes" / "deep" / "a.md").write_text("mine")
    (out / "link").symlink_to("notes")
    with hold_folder(out, RUN["files"]), write_together() as batch:
        new = batch.add_folder(out, RUN["files"], renew=True)
        with atomic_file(new / "report.html") as part:
            part.write_text("new")
        assert (out / "report.html").read_text() == "old report.html"
    assert (out / "report.html").read_text() == "new"
    assert (out / "campaign.toml").read_text() == "old campaign.toml"
    assert (out / "link" / "deep" / "a.md").read_text() == "mine"
    assert (out / "link").is_symlink()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_what_others_put_into_a_folder_at_the_last_moment_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = earlier_run(tmp_path)
    swap = system.swap

    def late(part: Path, path: Path) -> Path | None:
        (path / "notes.md").write_text("mine")
        return swap(part, path)

    monkeypatch.setattr(system, "swap", late)
    with atomic_folder(out, **RUN) as part:
        (part / "report.html").write_text("new")
    assert everything_in(tmp_path) == {"run": b"", "run/notes.md": b"mine", "run/report.html": b"new"}


# -- together -------------------------------------------------------------------------------------------------------------


def write_both(folder: Path, file: Path) -> None:
    with hold_folder(folder, RUN["files"]), write_together() as batch:
        (batch.add_folder(folder, RUN["files"]) / "report.html").write_text("new")
        batch.add_file(file).write_text("new")


def test_when_the_file_cannot_appear_the_folder_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = earlier_run(tmp_path)
    (tmp_path / "x.csv").write_text("old")
    before = everything_in(tmp_path)

    def failing(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "replace", failing)
    for exchange in (system.exchange, lambda *_: False):
        monkeypatch.setattr(system, "exchange", exchange)
        with pytest.raises(OutputError, match="may not be written"):
            write_both(out, tmp_path / "x.csv")
        assert everything_in(tmp_path) == before


def test_folders_that_were_made_for_a_file_vanish_when_it_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), atomic_file(tmp_path / "new" / "deep" / "t.txt"):
        raise RuntimeError
    with pytest.raises(RuntimeError), atomic_folder(tmp_path / "new" / "deep" / "run"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_is_waited_for_a_little_and_then_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = earlier_run(tmp_path)
    before = everything_in(out)
    monkeypatch.setattr(system, "WAIT", 0.05)
    with hold_folder(out), pytest.raises(OutputError, match="in use by another largesse command"), hold_folder(out):
        pytest.fail("it must not come so far")
    assert everything_in(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_modes_stay(tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    out.chmod(0o700)
    for name in ("campaign.toml", "report.html"):
        (out / name).chmod(0o640)
    (tmp_path / "t.txt").touch(mode=0o600)
    with atomic_file(tmp_path / "t.txt") as part:
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
        part.write_text("new")
    with atomic_folder(out, **RUN) as part:
        assert stat.S_IMODE(part.stat().st_mode) == 0o700
        for name in ("campaign.toml", "policy.largesse", "report.html", "frontier.parquet"):
            (part / name).write_text("new")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (out, tmp_path / "t.txt", *out.iterdir())}
    assert modes == {
        "run": 0o700,
        "t.txt": 0o600,
        "campaign.toml": 0o640,
        "policy.largesse": 0o644,
        "report.html": 0o640,
        "frontier.parquet": 0o640,
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_owners_stay(tmp_path: Path) -> None:
    out = earlier_run(tmp_path)
    for path in (out, *out.iterdir()):
        os.chown(path, 1234, 4321)
    with atomic_folder(out, **RUN) as part:
        (part / "report.html").write_text("new")
    assert {(path.stat().st_uid, path.stat().st_gid) for path in (out, *out.iterdir())} == {(1234, 4321)}


def test_an_interrupt_waits_until_a_folder_has_changed_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = earlier_run(tmp_path)
    swap = system.swap

    def interrupted(part: Path, path: Path) -> Path | None:
        signal.raise_signal(signal.SIGINT)
        return swap(part, path)

    monkeypatch.setattr(system, "swap", interrupted)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt), atomic_folder(out, **RUN) as part:
            (part / "report.html").write_text("new")
        assert everything_in(tmp_path) == {"run": b"", "run/report.html": b"new"}
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)


def test_a_listing_is_closed_when_what_follows_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    for name in ("a", "b", "c"):
        (source / name).write_text(name)

    def broken(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(atomic, "_link", broken)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(OSError, match="broken"):
            atomic._carry(source, target, lambda _: True)
        gc.collect()
    assert not [one for one in said if issubclass(one.category, ResourceWarning)]
