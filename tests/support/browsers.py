"""A real browser: one Chromium for the whole run, driven by Playwright. Tests that take `browser` skip without one."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True}


@dataclass
class Watched:
    """A page, what it complained about, and what it asked the network for."""

    page: Any  # playwright.sync_api.Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def find_barriers(self, *impacts: str) -> list[str]:
        """Return what axe-core finds to be a barrier, of these impacts: serious and critical ones, unless others are named."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        wanted = impacts or ("serious", "critical")
        return [f"{one['id']}: {node['target']}" for one in found if one["impact"] in wanted for node in one["nodes"]]


@contextmanager
def run_chromium() -> Iterator[str]:
    """Run the browser as a process, and give the address at which programs reach it."""
    with TemporaryDirectory(prefix="largesse-chromium-") as home:
        settings = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--mute-audio",
        ]
        command = [str(CHROMIUM), *settings, "--remote-debugging-port=0", f"--user-data-dir={home}", "about:blank"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
            assert process.stderr is not None
            try:
                found = next((line for line in process.stderr if "DevTools listening on " in line), "")
                drain = threading.Thread(target=process.stderr.read, daemon=True)  # a full pipe would stop the browser
                drain.start()
                yield found.rpartition(" ")[2].strip()
            finally:
                process.terminate()
                process.wait()


@contextmanager
def reach_chromium(address: str) -> Iterator[Any]:
    """Give the running browser; its loop ends with the block, for it gets into the way of other tests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.connect_over_cdp(address)
        yield browser
        browser.close()


@contextmanager
def watch(browser: Any, address: str | None = None, **options: Any) -> Iterator[Watched]:
    """Open a page in a fresh context, and write down its errors and requests. `options` go to the context."""
    context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
    watched = Watched(context.new_page())
    watched.page.on("console", lambda message: watched.errors.append(message.text) if message.type == "error" else None)
    watched.page.on("pageerror", lambda error: watched.errors.append(str(error)))
    watched.page.on("request", lambda request: watched.requests.append(request.url))
    if address is not None:
        watched.page.goto(address)
    yield watched
    context.close()
