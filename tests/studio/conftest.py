"""One studio in a process of its own for all tests that need work done, and one in memory for those that only knock."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.csv as csv
import pytest

from largesse.serve import AuthMiddleware
from largesse.studio.studio_app import make_access_policy, make_studio_app
from largesse.studio.studio_files import StudioFolder
from largesse.studio.studio_handlers import Studio
from support.shops import shop_table
from support.studios import NASTY, TOKEN, House, Running, start


def build_house(ran: Path, home: Path) -> House:
    """Build a folder with a run, a table, links that lead outside, a damaged run and a folder of the user's own."""
    folder, private, outside = home / "folder", home / "folder" / ".private", home / "outside"
    for path in (folder, private, outside, folder / "photos", folder / "bare"):
        path.mkdir()
    (outside / "secret.csv").write_text("secret\n1\n")
    (folder / "photos" / "me.jpg").write_bytes(b"me")
    for copy in (folder / "run", outside / "run", folder / "tampered", folder / "damaged"):
        shutil.copytree(ran, copy)
    (folder / "tampered" / "report.html").unlink()
    (folder / "tampered" / "report.html").symlink_to(outside / "secret.csv")
    (folder / "linked").symlink_to(outside / "run")
    (folder / "link.csv").symlink_to(outside / "secret.csv")
    (folder / "damaged" / "plan.json").write_text('{"format": 2, "planned": ' + "[" * 5000)
    (folder / "damaged" / "campaign.toml").write_text("title = [[[")
    (folder / "table.csv").write_text("a,b\n1,2\n")
    studio = Studio(StudioFolder(folder, private), max_upload_bytes=1000)
    return House(folder, private, studio, AuthMiddleware(make_studio_app(studio), make_access_policy(TOKEN, 8137)))


@pytest.fixture(scope="session")
def house(ran: Path, tmp_path_factory: pytest.TempPathFactory) -> House:
    """A studio in memory for requests that must change nothing."""
    return build_house(ran, tmp_path_factory.mktemp("house"))


@pytest.fixture
def own_house(ran: Path, tmp_path: Path) -> House:
    """A studio in memory that a test may change."""
    return build_house(ran, tmp_path)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A studio for all tests that let it work; a column of its table has a name that would be code."""
    folder = tmp_path_factory.mktemp("studio")
    table = shop_table(120, seed=1)
    csv.write_csv(
        table.rename_columns([NASTY if name == "city" else name for name in table.column_names]), folder / "log.csv"
    )
    with start(folder) as found:
        yield found
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.fixture(scope="session")
def draft(running: Running) -> dict[str, Any]:
    """A complete draft for the shop's log, which was sent."""
    table = running.post(f"/api/tables?name={NASTY}.csv", (running.folder / "log.csv").read_bytes()).json()
    levels = {"names": [level["name"] for level in table["levels"]], "costs": [0, 5, 10], "on_redemption": False}
    return {
        "table": table["id"],
        "roles": table["roles"],
        "levels": levels,
        "budget": 2.5,
        "unit": "€",
        "title": NASTY,
        "model": "linear",
        "seed": 0,
    }
