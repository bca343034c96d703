"""Write the list of files of docs/architecture.md from the docstrings: `python docs/tools/architecture.py`."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
START = "<!-- the rest of this page is written by docs/tools/architecture.py -->\n"
# The packages in the order in which a row passes through them; tests/test_house.py checks imports against it.
PACKAGES = (
    *("records", "io", "stats", "data", "propensity", "response", "allocation", "worlds", "evaluation", "exploration"),
    *("policy", "monitoring", "report", "campaign", "pipeline", "serve", "studio", "cli"),
)


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring, with the marks of a table escaped."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0].replace("|", r"\|")


def list_folder(folder: Path, root: Path) -> list[str]:
    """Return a table with one line per module of a package, those of its own packages included."""
    paths = sorted(folder.rglob("*.py"), key=lambda path: (path.parent, path.name))
    modules = [path for path in paths if path.name not in ("__init__.py", "__main__.py")]
    rows = [f"| `{path.relative_to(root).as_posix()}` | {first_line(path)} |" for path in modules]
    return ["| file | content |", "|---|---|", *rows]


def list_files() -> str:
    """Return the section on all files: the top level, each package in order, and the lab."""
    product, lab = ROOT / "src" / "largesse", ROOT / "lab" / "largesse_lab"
    parts = ["## All files", "", "### largesse", "", "| file | content |", "|---|---|"]
    parts += [
        f"| `{path.name}` | {first_line(path)} |" for path in sorted(product.glob("*.py")) if path.name[:2] != "__"
    ]
    for name in PACKAGES:
        folder = product / name
        parts += ["", f"### {name}", "", first_line(folder / "__init__.py"), "", *list_folder(folder, folder)]
    parts += ["", "### largesse_lab", "", first_line(lab / "__init__.py"), "", *list_folder(lab, lab)]
    return "\n".join(parts) + "\n"


def write_page() -> str:
    """Return the page with its list of files renewed."""
    written, mark, _ = PAGE.read_text(encoding="utf-8").partition(START)
    return f"{written}{mark}\n{list_files()}"


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
