"""A real browser: Chromium of this machine, driven by Playwright. Tests that need it say why they skip."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
BROWSER_GROUP = "browser"  # tests of one group run one after the other, in one process
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True}


def needs_browser(test: Any) -> Any:
    """Mark a test that needs the browser: it skips without one, and shares a process with the others that need it."""
    skip = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")
    return pytest.mark.xdist_group(BROWSER_GROUP)(skip(test))


def browser_marks() -> list[Any]:
    """Return the marks for a file in which every test needs the browser."""
    skip = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")
    return [skip, pytest.mark.xdist_group(BROWSER_GROUP)]


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
def launch() -> Iterator[Any]:
    """Run the browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
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
