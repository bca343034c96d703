"""Run folders, and what a folder holds."""

from pathlib import Path


def everything_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


def earlier_run(folder: Path) -> Path:
    """Make a folder as an earlier run left it."""
    (folder / "run").mkdir()
    for name in ("campaign.toml", "policy.largesse", "report.html"):
        (folder / "run" / name).write_text(f"old {name}")
    return folder / "run"
