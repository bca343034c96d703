"""Take `docs/report.png` and `docs/studio.png`: `python docs/tools/screenshots.py`. Needs Chromium and Playwright.

`docs/screenshots.json` records the text that each picture shows, so that a test can find a stale picture.
"""

from __future__ import annotations

import json
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

DOCS = Path(__file__).resolve().parents[1]
TEXTS = DOCS / "screenshots.json"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT = 60  # seconds


@contextmanager
def open_studio(folder: Path, *options: str) -> Iterator[str]:
    """Run `largesse studio` for a folder and yield its address, with the token; stop it afterwards."""
    command = (sys.executable, "-m", "largesse", "studio", "--folder", str(folder), "--no-browser", "--port", "0")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            line = process.stdout.readline() if process.stdout is not None else ""
            address = re.search(r"http://\S+", line)
            if address is None:
                raise RuntimeError(f"the studio did not start: {line!r}")
            yield address[0]
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()


def show_report(browser: Any) -> tuple[str, bytes]:
    """Run the demo; return its verdict and a picture of the first screen."""
    from largesse.pipeline import demo_campaign, run

    campaign, table = demo_campaign()
    with tempfile.TemporaryDirectory() as folder:
        run(campaign, Path(folder) / "demo", table=table)
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto((Path(folder) / "demo" / "report.html").as_uri())
        words = f"{page.inner_text('h1')} {page.inner_text('.verdict')}"
        return " ".join(words.split()), page.screenshot(animations="disabled")


def show_studio(browser: Any) -> tuple[str, bytes]:
    """Describe the demo's table in a studio; return the words on the page and its picture."""
    with tempfile.TemporaryDirectory() as folder, open_studio(Path(folder)) as address:
        page = browser.new_page(viewport={"width": 1180, "height": 1120})
        page.set_default_timeout(1000 * TIMEOUT)
        page.goto(address)
        page.click("#example")
        page.click("#use-costs")
        page.click("#use-budget")
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        page.wait_for_selector("text=The question")
        return " ".join(page.inner_text("#view").split()), page.screenshot(animations="disabled")


PICTURES = {"report.png": show_report, "studio.png": show_studio}


def take_screenshots() -> None:
    """Write both pictures and the text that they show."""
    from playwright.sync_api import sync_playwright

    chromium = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if chromium is None:
        print(f"no browser ({', '.join(BROWSERS)}): the pictures stay unchanged")
        return
    texts = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, show in PICTURES.items():
            texts[name], png = show(browser)
            (DOCS / name).write_bytes(png)
        browser.close()
    TEXTS.write_text(json.dumps(texts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    take_screenshots()
