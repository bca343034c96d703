"""MkDocs hooks: pages from files in the root of the repository, and notebooks of the tutorials."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ROOT_PAGES = ("CHANGELOG.md", "SECURITY.md", "SUPPORT.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the root, with links as seen from `docs/`, and a notebook of each tutorial."""
    from mkdocs.structure.files import File

    sys.path.append(str(Path(__file__).parent))  # MkDocs removes the folder of its hooks
    from notebooks import make_notebook

    for name in ROOT_PAGES:
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name.lower(), content=text))
    for path in (ROOT / "docs" / "tutorials").glob("*.md"):
        notebook = make_notebook(path.read_text(encoding="utf-8"))
        files.append(File.generated(config, f"tutorials/{path.stem}.ipynb", content=notebook))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links to files of the root at their pages, and offer each tutorial as a notebook."""
    if page.file.src_uri.startswith("tutorials/"):
        title, _blank, text = markdown.partition("\n\n")
        markdown = f"{title}\n\n[This page as a notebook]({Path(page.file.src_uri).stem}.ipynb)\n\n{text}"
    return re.sub(rf"\]\((?:\.\./)?((?:\.\./)*)({'|'.join(ROOT_PAGES)})", lambda m: f"]({m[1]}{m[2].lower()}", markdown)
