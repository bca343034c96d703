"""Where a studio works, and what it says when it cannot start."""

import queue
import sys
from pathlib import Path

import pytest

from largesse import cli
from largesse.errors import InputError
from largesse.studio import studio_app as app
from largesse.studio.studio_app import find_studio_folder


def test_the_folder_is_that_of_the_run_or_the_one_that_is_named(run_copy: Path, tmp_path: Path) -> None:
    assert find_studio_folder(run_copy, None) == (tmp_path, "run")
    assert find_studio_folder(run_copy, tmp_path) == (tmp_path, "run")
    assert find_studio_folder(None, tmp_path) == (tmp_path, None)
    assert find_studio_folder(None, None) == (Path.cwd(), None)


@pytest.mark.parametrize(
    ("run", "folder", "message"),
    [
        ("missing", None, "not a run folder"),
        ("other", None, "not a run folder"),
        ("run", "other", "not a run folder"),
        (None, "nowhere", "not a folder"),
        ("loop", None, "not a run folder"),
        (None, "loop", "not a folder"),
    ],
)
def test_what_is_not_there_is_refused(
    run_copy: Path, tmp_path: Path, run: str | None, folder: str | None, message: str
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=message):
        find_studio_folder(None if run is None else tmp_path / run, None if folder is None else tmp_path / folder)


def test_a_part_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setattr(sys, "argv", ["largesse", "studio", "--no-browser", "--folder", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert "pip install 'largesse[studio]'" in capsys.readouterr().err


def test_a_quiet_studio_says_its_address_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "run_server", lambda *_, **__: None)
    said: list[str] = []
    app.open_studio(folder=tmp_path, port=0, browser=False, say=said.append, quiet=True)
    assert len(said) == 1
    assert said[0].startswith("http://127.0.0.1:")
    app.open_studio(folder=tmp_path, port=0, browser=False, say=said.append)
    assert said[-1] == "The studio has stopped."


def test_the_token_is_not_in_the_command_line_of_the_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(app, "run_server", lambda *_, **__: None)
    monkeypatch.setattr(app, "can_open_browser", lambda: True)
    monkeypatch.setattr(app.webbrowser, "open", opened.put)
    said: list[str] = []
    app.open_studio(folder=tmp_path, port=0, say=said.append)
    token = said[0].partition("token=")[2].split()[0]
    address = opened.get(timeout=10)
    assert "/?code=" in address
    assert token not in address
