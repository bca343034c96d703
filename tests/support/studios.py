"""Studios for tests: one in a process of its own, and one in memory for those who only knock."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from largesse.studio.studio_handlers import Studio
from support.services import Answer, knock

TOKEN = "a-token-that-nobody-guesses"
NASTY = "<script>alert('1')</script>"
OWN = [("Host", "127.0.0.1:8137"), ("Authorization", f"Bearer {TOKEN}"), ("X-Largesse", "studio")]


@dataclass
class House:
    """A studio in memory, over a folder with all sorts of things."""

    folder: Path
    private: Path
    studio: Studio
    app: Any

    def ask(self, target: str, method: str = "GET", body: Any = None, **more: Any) -> Answer:
        """Ask as the page does; a body that is not bytes is sent as JSON."""
        pieces = body if isinstance(body, list) else [] if body is None else [json.dumps(body).encode()]
        return knock(self.app, target, method=method, headers=[*OWN, *more.get("headers", [])], body=pieces)


@dataclass
class Running:
    """A studio in a process of its own, and a client that has its token."""

    folder: Path
    process: subprocess.Popen[str]
    client: httpx.Client

    def post(self, path: str, body: Any) -> httpx.Response:
        """Send JSON, or the bytes of a table."""
        given = {"content": body} if isinstance(body, bytes) else {"json": body}
        return self.client.post(path, **given)

    def wait(self, answer: httpx.Response) -> dict[str, Any]:
        """Return a job when it has ended."""
        assert answer.status_code == 202, answer.text
        job = answer.json()
        while job["state"] in ("waiting", "running"):
            time.sleep(0.05)
            job = self.client.get(f"/api/jobs/{job['id']}").json()
        return dict(job)

    def hidden(self) -> list[str]:
        """Return the hidden names in the folder, but for the studio's own."""
        return [p.name for p in self.folder.iterdir() if p.name[0] == "." and "studio" not in p.name]


@contextmanager
def start(folder: Path, code: int = 0) -> Iterator[Running]:
    """Run a studio and wait for its address; stop it at the end, as a terminal does, and expect this code."""
    command = [sys.executable, "-m", "largesse", "studio", "--no-browser", "--port", "0", "--folder", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, httpx.Client(timeout=120) as client:
        try:
            assert process.stdout is not None
            found = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", process.stdout.readline())
            assert found is not None
            client.base_url, client.headers["X-Largesse"] = httpx.URL(found[1]), "studio"
            assert client.get("/", params={"token": found[2]}).status_code == 303
            yield Running(folder, process, client)
        finally:
            process.terminate()
            said, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert said.endswith("The studio has stopped.\n") == (code == 0)
