"""`docs/studio.png`: the studio with the demo's table described, taken by the build and marked with the words that it shows.

It needs a browser and Playwright; without them the picture stays as it is.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from largesse_site.screenshot import BROWSERS, mark_picture

PICTURE = Path(__file__).resolve().parents[1] / "studio.png"
SIZE = {"width": 1180, "height": 1120}
COMMAND = "from largesse.cli import main; main()"
PATIENCE = 60  # seconds for the studio to stop


@contextmanager
def open_studio(folder: Path, *options: str) -> Iterator[str]:
    """Run `largesse studio` for a folder and give its address, with the token; stop it afterwards."""
    command = (sys.executable, "-c", COMMAND, "studio", "--folder", str(folder), "--no-browser", "--port", "0")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            line = process.stdout.readline() if process.stdout is not None else ""
            found = re.search(r"http://\S+", line)
            if found is None:
                raise RuntimeError(f"the studio did not start: {line!r}")
            yield found[0]
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


def take_picture(picture: Path) -> bool:
    """Write the studio with the demo's table as a marked PNG; False where there is no browser, or no Playwright."""
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is None or importlib.util.find_spec("playwright") is None:
        return False
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        words, png = show_studio(browser)
        browser.close()
    picture.write_bytes(mark_picture(png, words))
    return True


def show_studio(browser: Any) -> tuple[str, bytes]:
    """Describe the demo's table in a studio; return the words on the page, and its picture.

    `browser` is one of Playwright's.
    """
    with tempfile.TemporaryDirectory() as folder, open_studio(Path(folder)) as address:
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(address)
        page.click("#example")
        page.click("#use-costs")
        page.click("#use-budget")
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        page.wait_for_selector("text=The question")
        words, png = " ".join(page.inner_text("#view").split()), page.screenshot(animations="disabled")
        page.close()
    return words, png
