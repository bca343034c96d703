"""Nothing is ever half there: what a failure, an interrupt or a kill leaves is what was there before."""

import errno
import os
from pathlib import Path

import pytest
from folders import earlier_run, everything_in

from largesse.errors import OutputError
from largesse.files import atomic_file, atomic_folder, system

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
