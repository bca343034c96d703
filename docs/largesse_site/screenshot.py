"""`docs/report.png`: the first screen of the demo's report, taken by the build, and marked with the headline that it shows.

`python -m largesse_site.screenshot` runs the demo and takes it. Without Chromium the picture stays as it is, and the command
says so.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from html import unescape
from pathlib import Path

PICTURE = Path(__file__).resolve().parents[1] / "report.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
KEY = "headline"
WORDS = 240  # letters of the verdict
LENGTH, SIGNATURE = 12, 8  # bytes around the content of a chunk of PNG, and before the first chunk


def read_headline(report: Path) -> str:
    """Return the first words of a report, from its heading on: the verdict and its figures."""
    _, _, page = report.read_text(encoding="utf-8").partition("<h1")
    plain = re.sub(r"<(svg|style|script)\b.*?</\1>", " ", page.partition(">")[2], flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", "", plain)).split())[:WORDS]


def mark_picture(png: bytes, words: str) -> bytes:
    """Return a PNG with words in it, which nobody sees."""
    content = b"iTXt" + KEY.encode() + b"\0\0\0\0\0" + words.encode("utf-8")
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    head = SIGNATURE + LENGTH + 13  # the header is the first chunk, and has 13 bytes
    return png[:head] + chunk + png[head:]


def read_mark(png: bytes) -> str:
    """Return the words in a PNG, or "".

    >>> png = bytes(33)
    >>> read_mark(mark_picture(png, "It pays.")), read_mark(png)
    ('It pays.', '')
    """
    start = png.find(b"iTXt" + KEY.encode() + b"\0")
    if start < 0:
        return ""
    (size,) = struct.unpack(">I", png[start - 4 : start])
    return png[start + 4 : start + 4 + size].split(b"\0", 5)[-1].decode("utf-8")


def take_picture(report: Path, picture: Path) -> bool:
    """Write the first screen of a report as a marked PNG; False where there is no browser."""
    browser = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if browser is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,860")
        command = [browser, *options, f"--screenshot={shot}", report.resolve().as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        png = shot.read_bytes()
    picture.write_bytes(mark_picture(png, read_headline(report)))
    return True


def run_demo(out: Path) -> Path:
    """Run the demo into a folder and return its report."""
    from largesse.pipeline import demo_campaign, run

    campaign, table = demo_campaign()
    run(campaign, out, table=table)
    return out / "report.html"


def main() -> int:
    """Run the demo and take its picture; then that of the studio."""
    with tempfile.TemporaryDirectory() as folder:
        if take_picture(run_demo(Path(folder) / "demo"), PICTURE):
            sys.stdout.write(f"{PICTURE}: {read_mark(PICTURE.read_bytes())}\n")
        else:
            sys.stdout.write(f"no browser ({', '.join(BROWSERS)}): {PICTURE.name} stays as it is\n")
    from largesse_site import studio

    taken = studio.take_picture(studio.PICTURE)
    kept = f"no browser or no Playwright: {studio.PICTURE.name} stays as it is"
    sys.stdout.write(f"{studio.PICTURE if taken else kept}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
