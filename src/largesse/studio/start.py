"""Start a studio: choose its folder, find a port, print the address, and answer until it is stopped."""

from __future__ import annotations

import os
import secrets
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from largesse.errors import Problem, fail, make_visible
from largesse.io import private_folder, where_is
from largesse.pipeline import MARKS
from largesse.serve import AccessPolicy, AuthMiddleware, listen, require_packages, run_server

PORT = 8137
WORD = "largesse-studio"
REQUIRED_HEADER = ("X-Largesse", "studio")


def open_studio(
    run: Path | None = None,
    *,
    folder: Path | None = None,
    port: int | None = None,
    browser: bool = True,
    say: Callable[[str], None] = print,
    quiet: bool = False,
) -> None:
    """Answer on a port of this machine until SIGINT or SIGTERM comes.

    Run folders lie in `folder` and are made there: by default in that of `run`, or where the command is started. A
    `quiet` one says nothing but its address, and that only where no browser is opened.
    """
    require_packages("studio", "starlette", "uvicorn", "orjson")
    home, name = find_home(run, folder)
    with listen(port, PORT) as where, private_folder(home, WORD) as private:
        from largesse.studio.app import make_app
        from largesse.studio.places import Place
        from largesse.studio.studio import Setting, Studio

        number = where.getsockname()[1]
        token = secrets.token_urlsafe(32)
        studio = Studio(Setting(Place(home, private), name))
        app = AuthMiddleware(make_app(studio), access_policy(token, number))
        address = f"http://127.0.0.1:{number}/?token={token}"

        if not quiet:
            say(make_visible(f"The studio is at {address}\nRuns are kept in {home}. Stop it with Ctrl-C."))
        elif not (browser and has_screen()):
            say(address)
        sys.stdout.flush()
        if browser:  # the socket listens already: the page waits until the server is ready
            threading.Thread(target=_open_browser, args=(address,), daemon=True).start()
        run_server(app, where, studio.over.set, http="h11")
        if not quiet:
            say("The studio has stopped.")


def access_policy(token: str, port: int) -> AccessPolicy:
    """Return what the studio lets in: the page that the address opens, from this machine."""
    hosts = frozenset(f"{host}:{port}" for host in ("127.0.0.1", "localhost"))
    # Cookies of all ports of a host are sent to each of them: the name keeps two studios apart.
    return AccessPolicy(token, hosts, f"largesse-{port}", REQUIRED_HEADER, unlimited_paths=frozenset({"/api/tables"}))


def find_home(run: Path | None, folder: Path | None) -> tuple[Path, str | None]:
    """Return the folder of the studio, and the name of the run that is to be open."""
    home = where_is(folder or (where_is(run).parent if run is not None else Path()))
    if not home.is_dir():
        fail("studio", Problem(f"{home} is not a folder", "give the folder for run folders as --folder"))
    if not os.access(home, os.W_OK):
        fail("studio", Problem(f"{home} may not be written", "give a folder that you may write to as --folder"))
    if run is None:
        return home, None
    found = where_is(run)
    if found.parent != home or not all((found / mark).is_file() for mark in MARKS):
        hint = "give a run folder that lies in --folder, or no --folder; largesse run makes one"
        fail("studio", Problem(f"{run} is not a run folder in {home}", hint))
    return home, found.name


def _open_browser(address: str) -> None:
    """Open the address; where there is no screen, a browser would take over the terminal instead."""
    import webbrowser

    if has_screen():
        webbrowser.open(address)


def has_screen() -> bool:
    """Whether a browser can be opened."""
    seen = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return not sys.platform.startswith("linux") or any(os.environ.get(word) for word in seen)
