"""The documentation builds without a broken link, needs no network, and names every key and every public name."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from architecture import PAGE, write_page
from examples import read_blocks

import largesse
from largesse.campaign.campaign_file import CAMPAIGN_SECTIONS, LABELS, TOP

ROOT = Path(__file__).resolve().parents[2]
IMPORTED = re.compile(r"^(?:>>> )?from (largesse\.[\w.]+) import ([\w, ]+)", re.MULTILINE)
LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]+(?:src|href)=\"(?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; a link or an anchor that leads nowhere fails the build."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def test_pages_load_nothing_from_a_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    assert [page for page in pages if LOADED.search(page.read_text(encoding="utf-8"))] == []


def test_every_picture_has_a_text(site: Path) -> None:
    for page in site.rglob("*.html"):
        for image in re.findall(r"<img\b[^>]*>", page.read_text(encoding="utf-8")):
            assert re.search(r'alt="[^"]+"', image), f"{page}: {image}"


def test_notebooks_have_the_code_of_their_pages(site: Path) -> None:
    """The pages are run by test_examples.py; a notebook that has their code runs, too."""
    pages = list((ROOT / "docs" / "tutorials").glob("*.md"))
    assert len(pages) > 4
    for page in pages:
        notebook = json.loads((site / "tutorials" / f"{page.stem}.ipynb").read_text(encoding="utf-8"))
        code = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
        assert len(code) == len(list(read_blocks(page.read_text(encoding="utf-8"))))
        for cell in code:
            if not cell.startswith("!"):
                compile(cell, page.name, "exec")
        assert f'href="{page.stem}.ipynb"' in (site / "tutorials" / f"{page.stem}.html").read_text(encoding="utf-8")


def test_the_campaign_page_lists_every_key() -> None:
    page = (ROOT / "docs" / "campaign.md").read_text(encoding="utf-8")
    listed = {
        part.partition("\n")[0].strip("`[]"): set(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE))
        for part in page.split("\n## ")[1:]
    }
    assert listed == {
        "At the top": set(TOP),
        LABELS: set(),  # its keys are columns and levels
        **{section: set(keys) for section, keys in CAMPAIGN_SECTIONS.items()},
    }


def test_campaigns_on_pages_have_known_keys() -> None:
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for block in re.findall(r"^```toml\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            for section, keys in tomllib.loads(block).items():
                assert section in (*TOP, LABELS, *CAMPAIGN_SECTIONS), path
                assert (
                    section == LABELS or not isinstance(keys, dict) or set(keys) <= set(CAMPAIGN_SECTIONS[section])
                ), path


def test_the_reference_has_every_public_name() -> None:
    entries = re.findall(r"^::: largesse\.(\w+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(entries) == sorted(name for name in dir(largesse) if name[0] != "_")


def test_the_reference_has_every_imported_name() -> None:
    """Names that a page imports from a package of largesse."""
    reference = set(re.findall(r"^::: (\S+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE))
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for package, names in IMPORTED.findall(path.read_text(encoding="utf-8")):
            assert {f"{package}.{name.strip()}" for name in names.split(",")} <= reference, path


def test_the_command_page_lists_every_command() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `largesse (\w+)\b", page, re.MULTILINE)
    commands = subprocess.run([sys.executable, "-m", "largesse", "--help"], capture_output=True, text=True, check=True)
    described = commands.stdout.partition("Commands:")[2]
    assert sorted(listed) == sorted(re.findall(r"^  (\w+)  +\S", described, re.MULTILINE))


def test_the_map_lists_every_file() -> None:
    assert write_page() == PAGE.read_text(encoding="utf-8"), "run python docs/tools/architecture.py"


@pytest.mark.slow
def test_result_pages_follow_from_their_summaries(tmp_path: Path) -> None:
    """`largesse experiment page` repairs a stale page."""
    folder, copy = ROOT / "docs" / "results", tmp_path / "results"
    copy.mkdir()
    (tmp_path / "results.md").touch()  # the pages link to it if it is there
    for summary in folder.glob("*.json"):
        shutil.copy(summary, copy)
        shutil.copy(summary.with_suffix(".md"), copy)  # its notes are kept
    subprocess.run([sys.executable, "-m", "largesse", "experiment", "page", "--out", str(copy)], check=True)
    for page in copy.glob("*.md"):
        assert page.read_text(encoding="utf-8") == (folder / page.name).read_text(encoding="utf-8"), page.name
