"""MkDocs hooks: pages from files that stand in the root of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ROOT_PAGES = ("CHANGELOG.md", "SECURITY.md", "SUPPORT.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the root, with links as seen from `docs/`."""
    from mkdocs.structure.files import File

    for name in ROOT_PAGES:
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name.lower(), content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Point links to files of the root at their pages."""
    return re.sub(rf"\]\((?:\.\./)?((?:\.\./)*)({'|'.join(ROOT_PAGES)})", lambda m: f"]({m[1]}{m[2].lower()}", markdown)
