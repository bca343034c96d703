"""Web application of the studio: routes, access policy and start of the server."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from largesse.errors import Problem, fail, make_visible
from largesse.io import private_folder, resolve_links
from largesse.pipeline import RUN_FOLDER_MARKS
from largesse.serve import (
    AccessPolicy,
    AuthMiddleware,
    make_error_handlers,
    open_listening_socket,
    require_packages,
    run_server,
)

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from largesse.studio.studio_handlers import Studio

STUDIO_PORT = 8137
PRIVATE_NAME = "largesse-studio"
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
    """Serve the studio on a port of this machine until SIGINT or SIGTERM.

    Run folders lie in `folder`; default: the parent of `run`, or the current folder. A `quiet` studio prints only its address,
    and only if it opens no browser.
    """
    require_packages("studio", "starlette", "uvicorn", "httptools", "orjson")
    from largesse.studio.studio_files import StudioFolder
    from largesse.studio.studio_handlers import Studio

    home, name = find_studio_folder(run, folder)
    with open_listening_socket(port, STUDIO_PORT) as bound, private_folder(home, PRIVATE_NAME) as private:
        bound_port, token, code = bound.getsockname()[1], secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        studio = Studio(StudioFolder(home, private), name)
        address = f"http://127.0.0.1:{bound_port}/?token={token}"
        if not quiet:
            say(make_visible(f"The studio is at {address}\nIt keeps runs in {home}. Stop it with Ctrl-C."))
        elif not (browser and can_open_browser()):
            say(address)
        sys.stdout.flush()
        if browser and can_open_browser():  # without a screen, a browser would take over the terminal
            # The socket listens already: the page waits until the server is ready. The address is in the list of processes.
            once = (f"http://127.0.0.1:{bound_port}/?code={code}",)
            threading.Thread(target=webbrowser.open, args=once, daemon=True).start()
        run_server(
            AuthMiddleware(make_studio_app(studio), make_access_policy(token, bound_port, code)),
            bound,
            studio.closing.set,
        )
        if not quiet:
            say("The studio has stopped.")


def make_studio_app(studio: Studio) -> Starlette:
    """Make the web application of a studio: its routes and error handlers."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await studio.stop()

    addresses = [
        ("GET", "/", studio.get_page),
        ("GET", "/static/{name}", studio.get_page_file),
        ("GET", "/api/state", studio.get_state),
        ("POST", "/api/tables", studio.upload_table),
        ("POST", "/api/tables/pick", studio.pick_table),
        ("GET", "/api/tables/{key}", studio.get_table),
        ("DELETE", "/api/tables/{key}", studio.drop_table),
        ("POST", "/api/tables/{key}/look", studio.inspect_with_roles),
        ("POST", "/api/campaign", studio.get_campaign_file),
        ("POST", "/api/doctor", studio.start_checkup),
        ("GET", "/api/runs", studio.get_runs),
        ("POST", "/api/runs", studio.start_run),
        ("GET", "/api/runs/{name}", studio.get_run),
        ("PATCH", "/api/runs/{name}", studio.rename_run),
        ("DELETE", "/api/runs/{name}", studio.delete_run),
        ("GET", "/api/runs/{name}/files/{part}", studio.download_run_file),
        ("POST", "/api/runs/{name}/what-if", studio.start_what_if),
        ("GET", "/api/runs/{name}/what-if/{key}/{part}", studio.download_what_if_file),
        ("POST", "/api/runs/{name}/what-if/{key}/keep", studio.keep_what_if),
        ("GET", "/runs/{name}/report.html", studio.get_report),
        ("GET", "/api/jobs/{key}", studio.get_job),
        ("DELETE", "/api/jobs/{key}", studio.cancel_job),
        ("GET", "/api/jobs/{key}/events", studio.stream_job_states),
    ]
    routes = [Route(path, handler, methods=[method]) for method, path, handler in addresses]
    handlers = make_error_handlers("there is nothing at this address", "reload the page")
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    app.router.redirect_slashes = False  # another address is not found
    return app


def make_access_policy(token: str, port: int, code: str | None = None) -> AccessPolicy:
    """Make the access policy of a studio: only this machine, with the token of the printed address."""
    hosts = frozenset(f"{host}:{port}" for host in ("127.0.0.1", "localhost"))
    # Cookies do not depend on the port: the name keeps two studios apart.
    return AccessPolicy(
        token,
        hosts,
        f"largesse-{port}",
        REQUIRED_HEADER,
        unlimited_paths=frozenset({"/api/tables"}),
        hint="open the address that `largesse studio` printed when it started: every start has a token of its own",
        code=code,
    )


def find_studio_folder(run: Path | None, folder: Path | None) -> tuple[Path, str | None]:
    """Return the studio's folder, and the name of the run that the page shows first."""
    home = resolve_links(folder or (resolve_links(run).parent if run is not None else Path()))
    if not home.is_dir():
        fail("studio", Problem(f"{home} is not a folder", "give the folder for run folders as --folder"))
    if not os.access(home, os.W_OK):
        fail("studio", Problem(f"{home} is not writable", "give a folder that you may write to as --folder"))
    if run is None:
        return home, None
    path = resolve_links(run)
    if path.parent != home or not all((path / mark).is_file() for mark in RUN_FOLDER_MARKS):
        hint = "give a run folder that lies in --folder, or no --folder; largesse run makes one"
        fail("studio", Problem(f"{run} is not a run folder in {home}", hint))
    return home, path.name


def can_open_browser() -> bool:
    """Return True if this machine can open a browser window."""
    variables = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return not sys.platform.startswith("linux") or any(os.environ.get(name) for name in variables)
