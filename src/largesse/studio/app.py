"""The studio's addresses: which request asks for what. `Guard` has let in whoever gets here."""

from __future__ import annotations

import asyncio
import mimetypes
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from largesse import pipeline
from largesse.serve import RequestError, error_handlers, read_json, to_json
from largesse.studio.places import open_part
from largesse.studio.studio import Studio
from largesse.studio.trials import FILES as TRIAL_FILES

PARTS = (".html", ".css", ".js", ".svg", ".png", ".woff2")
CHUNK = 1 << 18
# A report may come from anybody: it runs apart from this page, without its cookie, and loads nothing.
APART = (
    "sandbox allow-scripts allow-popups allow-modals; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; font-src data:; frame-ancestors 'self'"
)
TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
    ".toml": "text/plain; charset=utf-8",
}
EMPTY = b"<!doctype html><html lang=en><meta charset=utf-8><title>largesse studio</title><p>The page is not installed.</p></html>"
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def make_app(studio: Studio) -> Starlette:
    """Return the application of a studio."""

    @asynccontextmanager
    async def live(_: Starlette) -> AsyncIterator[None]:
        yield
        await studio.stop()

    views = Views(studio)
    listed: list[tuple[str, str, Handler]] = [
        ("GET", "/", views.page),
        ("GET", "/static/{name}", views.part),
        ("GET", "/api/state", views.state),
        ("POST", "/api/tables", views.receive),
        ("POST", "/api/tables/pick", views.pick),
        ("GET", "/api/tables/{key}", views.table),
        ("DELETE", "/api/tables/{key}", views.drop),
        ("POST", "/api/tables/{key}/look", views.look),
        ("POST", "/api/campaign", views.campaign),
        ("POST", "/api/doctor", views.doctor),
        ("GET", "/api/runs", views.runs),
        ("POST", "/api/runs", views.run),
        ("GET", "/api/runs/{name}", views.describe),
        ("GET", "/api/runs/{name}/files/{part}", views.download),
        ("POST", "/api/runs/{name}/what-if", views.what_if),
        ("GET", "/api/runs/{name}/what-if/{key}/{part}", views.download_trial),
        ("POST", "/api/runs/{name}/what-if/{key}/keep", views.keep),
        ("GET", "/runs/{name}/report.html", views.report),
        ("GET", "/api/jobs/{key}", views.job),
        ("DELETE", "/api/jobs/{key}", views.cancel),
        ("GET", "/api/jobs/{key}/events", views.events),
    ]
    routes = [Route(path, handler, methods=[method]) for method, path, handler in listed]
    handlers = error_handlers("there is nothing at this address", "reload the page")
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=live)
    app.router.redirect_slashes = False  # another address is not found; nothing sends anybody elsewhere
    return app


class Views:
    """One method for each address: a request in, an answer out."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    # -- the page --------------------------------------------------------------------------------------------------------

    async def page(self, _: Request) -> Response:
        """Return the page."""
        return _read_page("index.html") or Response(EMPTY, media_type="text/html")

    async def part(self, request: Request) -> Response:
        """Return a part of the page."""
        found = _read_page(request.path_params["name"])
        if found is None:
            raise RequestError(404, "the page has no such part", "reload the page")
        return found

    async def state(self, _: Request) -> Response:
        """Return what the page needs first."""
        return _answer(await self.studio.state())

    # -- tables ----------------------------------------------------------------------------------------------------------

    async def receive(self, request: Request) -> Response:
        """Take in a table."""
        name, length = request.query_params.get("name", ""), request.headers.get("content-length")
        return _answer(await self.studio.receive(name, length, request.stream()), 201)

    async def pick(self, request: Request) -> Response:
        """Look at a table of the folder."""
        return _answer(await self.studio.pick(await _read(request)), 201)

    async def table(self, request: Request) -> Response:
        """Return a table."""
        return _answer(self.studio.tables.find(request.path_params["key"]).describe())

    async def drop(self, request: Request) -> Response:
        """Remove a table."""
        await asyncio.to_thread(self.studio.tables.drop, request.path_params["key"])
        return Response(status_code=204)

    async def look(self, request: Request) -> Response:
        """Look at a table again, with other roles."""
        return _answer(await self.studio.look(request.path_params["key"], await _read(request)))

    # -- drafts and jobs -------------------------------------------------------------------------------------------------

    async def campaign(self, request: Request) -> Response:
        """Return the campaign file of a draft."""
        found = await self.studio.check(await _read(request))
        return _answer({"toml": found["toml"], "problems": found["problems"]})

    async def doctor(self, request: Request) -> Response:
        """Start a checkup."""
        return _answer((await self.studio.examine(await _read(request))).describe(), 202)

    async def run(self, request: Request) -> Response:
        """Start a run."""
        return _answer((await self.studio.run(await _read(request))).describe(), 202)

    async def job(self, request: Request) -> Response:
        """Return a job."""
        return _answer(self.studio.jobs.find(request.path_params["key"]).describe())

    async def cancel(self, request: Request) -> Response:
        """Stop a job."""
        return _answer((await self.studio.jobs.cancel(request.path_params["key"])).describe())

    async def events(self, request: Request) -> Response:
        """Tell of a job whenever it has changed."""
        key = request.path_params["key"]
        self.studio.jobs.find(key)

        async def tell() -> AsyncIterator[bytes]:
            async for job in self.studio.jobs.watch(key, self.studio.over):
                yield b"data: " + to_json(job) + b"\n\n"

        return StreamingResponse(tell(), media_type="text/event-stream")

    # -- runs ------------------------------------------------------------------------------------------------------------

    async def runs(self, _: Request) -> Response:
        """Return all runs."""
        return _answer(await self.studio.runs())

    async def describe(self, request: Request) -> Response:
        """Return a run."""
        return _answer(await self.studio.describe(request.path_params["name"]))

    async def report(self, request: Request) -> Response:
        """Return the report of a run, to be shown apart from the page."""
        path = await asyncio.to_thread(self.studio.place.find_run, request.path_params["name"])
        file, size = await asyncio.to_thread(open_part, path, "report.html")
        headers = {"content-security-policy": APART, "content-length": str(size)}
        return StreamingResponse(_read_file(file), media_type="text/html; charset=utf-8", headers=headers)

    async def download(self, request: Request) -> Response:
        """Return a file of a run."""
        name = request.path_params["name"]
        path = await asyncio.to_thread(self.studio.place.find_run, name)
        return await self._send(path, request.path_params["part"], name)

    async def _send(self, folder: Path, part: str, name: str) -> Response:
        if part != "plan.csv":
            file, size = await asyncio.to_thread(open_part, folder, part)
            return send_file(file, size, f"{name}-{part}")
        plan, _ = await asyncio.to_thread(open_part, folder, pipeline.PLAN)
        csv, size = await asyncio.to_thread(_to_csv, plan, self.studio.place.private)
        return send_file(csv, size, f"{name}-{part}")

    # -- what-ifs --------------------------------------------------------------------------------------------------------

    async def what_if(self, request: Request) -> Response:
        """Start planning by other rules."""
        job = await self.studio.what_if(request.path_params["name"], await _read(request))
        return _answer(job.describe(), 202)

    async def download_trial(self, request: Request) -> Response:
        """Return a file of a what-if."""
        name, key, part = (request.path_params[word] for word in ("name", "key", "part"))
        trial = self.studio.trials.find(name, key)
        if part not in TRIAL_FILES:
            raise RequestError(404, f"a what-if has no {part[:80]!r}", f"there are {', '.join(TRIAL_FILES)}")
        return await self._send(trial.folder, part, f"{name}-what-if")

    async def keep(self, request: Request) -> Response:
        """Make a run of a what-if."""
        name, key = request.path_params["name"], request.path_params["key"]
        return _answer(await self.studio.keep(name, key, await _read(request)), 201)


def _to_csv(plan: IO[bytes], near: Path) -> tuple[IO[bytes], int]:
    """Return a plan as CSV, in a file without a name, and its size."""
    with plan:
        csv = tempfile.TemporaryFile(dir=near)  # noqa: SIM115
        try:
            pipeline.write_csv(plan, csv)
            size = csv.tell()
            csv.seek(0)
        except BaseException as error:
            csv.close()
            if isinstance(error, Exception):
                raise RequestError(409, "the plan is damaged", "plan again") from error
            raise
    return csv, size


def send_file(file: IO[bytes], size: int | None, name: str) -> Response:
    """Return an open file as a download."""
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}", "content-security-policy": APART}
    if size is not None:
        headers["content-length"] = str(size)
    ending = name[name.rfind(".") :]
    kind = TYPES.get(ending, mimetypes.types_map.get(ending, "application/octet-stream"))
    return StreamingResponse(_read_file(file), media_type=kind, headers=headers)


async def _read_file(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := await asyncio.to_thread(file.read, CHUNK):
            yield piece


def _read_page(name: str) -> Response | None:
    """Return a part of the page; None if there is none of this name."""
    ending = name[name.rfind(".") :]
    if not name.replace(".", "").replace("-", "").replace("_", "").isalnum() or ending not in PARTS:
        return None
    found = files("largesse.studio") / "page" / name
    if not found.is_file():
        return None
    kind = mimetypes.types_map.get(ending, "application/octet-stream")
    return Response(found.read_bytes(), media_type="text/javascript" if ending == ".js" else kind)


async def _read(request: Request) -> dict[str, Any]:
    return read_json(await request.body())


def _answer(content: Any, status: int = 200) -> Response:
    return Response(to_json(content), status, media_type="application/json")
