"""Request handlers of the studio: one coroutine for each route."""

from __future__ import annotations

import asyncio
import mimetypes
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from largesse import pipeline
from largesse.errors import InputError, LargesseError
from largesse.response import list_models
from largesse.serve import RequestError, make_json_response, read_json, write_json
from largesse.studio import runs_and_what_ifs
from largesse.studio.background_jobs import Job, JobManager, WorkerProcess, decode_problems
from largesse.studio.studio_files import MAX_UPLOAD_BYTES, StudioFolder, StudioTable, TableStore, open_run_file
from largesse.version import __version__

EXAMPLE = "thornton"
EXAMPLE_SUGGESTIONS = ("suggested_on_redemption", "suggested_unit", "suggested_title")
SIMPLER_PLANS = ("rule.csv", "mix.csv")
LEVEL_SUGGESTIONS = ("levels", "order_known", "suggested_costs", "suggested_budget")
PAGE_TYPES = (".html", ".css", ".js", ".svg", ".png", ".woff2")
READ_BYTES = 1 << 18
# A report may come from anybody: it runs in a sandbox, without the page's cookie, and loads nothing.
SANDBOX = (
    "sandbox allow-scripts allow-popups allow-modals; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; font-src data:; frame-ancestors 'self'"
)
MEDIA_TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
    ".toml": "text/plain; charset=utf-8",
}


class Studio:
    """Request handlers of the studio, with its tables, background jobs, what-if plans and worker processes.

    `open_run` is the run that the page shows first.
    """

    def __init__(
        self, folder: StudioFolder, open_run: str | None = None, *, max_upload_bytes: int = MAX_UPLOAD_BYTES
    ) -> None:
        self.folder, self.open_run = folder, open_run
        self.tables = TableStore(folder.private, max_upload_bytes)
        self.jobs = JobManager(self._complete_what_if, self.tables.replace_paths)
        self.inspector = WorkerProcess(("pyarrow.parquet", "pyarrow.csv", "pyarrow.compute"), self.tables.replace_paths)
        self.what_ifs = runs_and_what_ifs.WhatIfStore(folder.private)
        self.closing = asyncio.Event()
        self._columns: dict[tuple[Path, int], dict[str, Any]] = {}
        self._warming: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """Stop the worker processes, and wait until their unfinished files are removed."""
        self.closing.set()
        await asyncio.gather(*self._warming)
        await asyncio.gather(self.jobs.stop(), self.inspector.stop())

    def _warm_up(self, process: WorkerProcess) -> None:
        """Start a worker process before its first task, unless a process is already starting."""
        if not self._warming and not self.closing.is_set():
            task = asyncio.create_task(process.warm_up())
            self._warming.add(task)
            task.add_done_callback(self._warming.discard)

    # -- the page --------------------------------------------------------------------------------------------------------

    async def get_page(self, _: Request) -> Response:
        """Return the HTML page of the studio."""
        return _make_page_response("index.html")

    async def get_page_file(self, request: Request) -> Response:
        """Return a script, style sheet or image of the page."""
        return _make_page_response(request.path_params["name"])

    async def get_state(self, _: Request) -> Response:
        """Return the initial data of the page: runs, tables, models and the current job."""
        self._warm_up(self.inspector)  # a table may come next
        listed, tables = await asyncio.gather(self._list_runs(), asyncio.to_thread(self.folder.list_tables))
        job = self.jobs.current
        return make_json_response(
            {
                "version": __version__,
                "folder": str(self.folder.path),
                "open": self.open_run,
                "runs": listed,
                "files": [{"name": path.name, "bytes": path.stat().st_size} for path in tables if path.is_file()],
                "job": None if job is None else job.describe(),
                "limits": {"upload_bytes": self.tables.find_upload_limit()},
                "models": [{"name": name, "sentence": entry.about} for name, entry in list_models().items()],
            }
        )

    # -- tables ----------------------------------------------------------------------------------------------------------

    async def upload_table(self, request: Request) -> Response:
        """Store an uploaded table, and return its inspection."""
        name, length = request.query_params.get("name", ""), request.headers.get("content-length")
        table = await self.tables.receive_upload(name, length, request.stream())
        return make_json_response(await self._add_inspected_table(table, "inspect"), 201)

    async def pick_table(self, request: Request) -> Response:
        """Inspect a table of the studio's folder, the example table, or the log of an earlier run."""
        content = await _read_json_body(request)
        if isinstance(content.get("run"), str):
            run = await asyncio.to_thread(self.folder.find_run, content["run"])
            log = await asyncio.to_thread(runs_and_what_ifs.find_run_log, run)
            table = StudioTable(f"{run.name}: {log.name}", log, uploaded=False)
            return make_json_response(await self._add_inspected_table(table, "again", folder=str(run)), 201)
        if content.get("example") == EXAMPLE:
            table, task = self.tables.prepare_table("Thornton 2008", ".parquet"), "example"
        else:
            name = content.get("file")
            if not isinstance(name, str):
                raise RequestError(400, "no file is named", 'give {"file": "name"} or {"example": "thornton"}')
            path = await asyncio.to_thread(self.folder.find_table, name)
            table, task = StudioTable(path.name, path, uploaded=False), "inspect"
        return make_json_response(await self._add_inspected_table(table, task), 201)

    async def _add_inspected_table(self, table: StudioTable, task: str, **more: str) -> dict[str, Any]:
        self.tables.add(table)
        try:
            table.inspection = await self.inspector.send_task({"task": task, "path": str(table.path), **more})
        except BaseException:
            self.tables.drop(table.id)
            raise
        return table.describe()

    async def get_table(self, request: Request) -> Response:
        """Return a table's inspection."""
        return make_json_response(self.tables.find(request.path_params["key"]).describe())

    async def drop_table(self, request: Request) -> Response:
        """Remove a table from the studio."""
        await asyncio.to_thread(self.tables.drop, request.path_params["key"])
        return Response(status_code=204)

    async def inspect_with_roles(self, request: Request) -> Response:
        """Inspect a table again, with the column roles that the page gives."""
        table, content = self.tables.find(request.path_params["key"]), await _read_json_body(request)
        if not isinstance(content.get("roles"), dict):
            raise RequestError(400, "no roles are given", 'send {"roles": {…}}')
        task = {"task": "inspect", "path": str(table.path), "roles": content["roles"]}
        before, now = table.inspection, await self.inspector.send_task(task)
        # Suggestions stay valid as long as the levels are the same.
        same = all(before["roles"][role] == now["roles"][role] for role in ("level", "response"))
        keys = [
            *("draft" for _ in range("draft" in before)),
            *EXAMPLE_SUGGESTIONS,
            *(LEVEL_SUGGESTIONS if same and now["suggested_costs"] is None else ()),
        ]
        table.inspection = now | {key: before[key] for key in keys}
        return make_json_response(table.describe())

    # -- drafts and jobs -------------------------------------------------------------------------------------------------

    async def get_campaign_file(self, request: Request) -> Response:
        """Return the campaign file (TOML) of a draft, and the draft's problems."""
        checked = await self._check_draft(await _read_json_body(request))
        return make_json_response({"toml": checked["toml"], "problems": checked["problems"]})

    async def _check_draft(self, draft: dict[str, Any], *, checkup: bool = False) -> dict[str, Any]:
        table = self.tables.find(draft.get("table"))
        if isinstance(draft.get("customers"), str) and draft["customers"]:
            customers = await asyncio.to_thread(self.folder.find_table, draft["customers"])
            draft = {**draft, "customers": str(customers)}
        task = {
            "task": "campaign",
            "path": str(table.path),
            "draft": draft,
            "keeps_log": table.uploaded,
            "checkup": checkup,
        }
        checked: dict[str, Any] = await self.inspector.send_task(task)
        if self.jobs.current is None:
            self._warm_up(self.jobs.worker)
        return checked

    async def _require_valid_draft(self, draft: object, *, checkup: bool = False) -> tuple[StudioTable, str]:
        if not isinstance(draft, dict):
            raise RequestError(400, "no draft is given", "send one as an object")
        checked = await self._check_draft(draft, checkup=checkup)
        if checked["problems"]:
            raise InputError("draft", decode_problems(checked["problems"]))
        return self.tables.find(draft["table"]), checked["now"]

    async def start_checkup(self, request: Request) -> Response:
        """Start a background job that checks a log."""
        draft = await _read_json_body(request)
        self.jobs.check_no_job_is_running()
        _, toml = await self._require_valid_draft(draft, checkup=True)
        return make_json_response(self.jobs.start("doctor", {"task": "doctor", "toml": toml}).describe(), 202)

    async def start_run(self, request: Request) -> Response:
        """Start a background job that runs a campaign."""
        content = await _read_json_body(request)
        self.jobs.check_no_job_is_running()
        out = await asyncio.to_thread(self.folder.make_run_path, content.get("name"))
        table, toml = await self._require_valid_draft(content.get("draft"))
        home = self.tables.find_folder(table)
        home.mkdir(mode=0o700, exist_ok=True)
        task = {"task": "run", "toml": toml, "out": str(out), "private": str(home), "keeps_log": table.uploaded}
        job = self.jobs.start("run", task)
        self.tables.busy = table.id
        return make_json_response(job.describe(), 202)

    async def get_job(self, request: Request) -> Response:
        """Return the state of a background job."""
        return make_json_response(self.jobs.find(request.path_params["key"]).describe())

    async def cancel_job(self, request: Request) -> Response:
        """Cancel a background job."""
        return make_json_response((await self.jobs.cancel(request.path_params["key"])).describe())

    async def stream_job_states(self, request: Request) -> Response:
        """Stream the states of a background job as server-sent events."""
        key = request.path_params["key"]
        self.jobs.find(key)

        async def stream() -> AsyncIterator[bytes]:
            async for job in self.jobs.watch(key, self.closing):
                yield b"data: " + write_json(job) + b"\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")

    def _complete_what_if(self, job: Job) -> None:
        if job.kind == "what-if":
            job.result = self.what_ifs.complete(job.id, job.result)

    # -- runs ------------------------------------------------------------------------------------------------------------

    async def get_runs(self, _: Request) -> Response:
        """Return the summaries of all runs, the newest first."""
        return make_json_response(await self._list_runs())

    async def _list_runs(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(lambda: runs_and_what_ifs.list_runs(self.folder.list_runs()))

    async def get_run(self, request: Request) -> Response:
        """Return the summary of one run, with its campaign file and its what-if plans."""
        name = request.path_params["name"]
        path = await asyncio.to_thread(self.folder.find_run, name)
        described = await asyncio.to_thread(runs_and_what_ifs.describe_listed_run, path)
        rules = await asyncio.to_thread(runs_and_what_ifs.describe_campaign_rules, path)
        if self.jobs.current is None:
            self._warm_up(self.jobs.worker)
        columns = await self._find_rule_columns(path) if described["kept"] else {"columns": [], "segments": {}}
        toml = await asyncio.to_thread(runs_and_what_ifs.read_campaign_text, path)
        return make_json_response(
            {**described, **rules, **columns, "toml": toml, "what_ifs": self.what_ifs.list_results(name)}
        )

    async def rename_run(self, request: Request) -> Response:
        """Rename a run folder, and return the run's summary."""
        name, content = request.path_params["name"], await _read_json_body(request)
        path = self.folder.find_run(name)
        self.jobs.check_run_folder_unused(path)
        renamed = self.folder.rename_run(path, content.get("name"))  # not in a thread: no job can begin meanwhile
        self._forget_run(name)
        return make_json_response(await asyncio.to_thread(runs_and_what_ifs.describe_listed_run, renamed))

    async def delete_run(self, request: Request) -> Response:
        """Delete a run folder."""
        name = request.path_params["name"]
        path = self.folder.find_run(name)
        self.jobs.check_run_folder_unused(path)
        detached = self.folder.move_run_to_private_folder(path)
        self._forget_run(name)
        await asyncio.to_thread(shutil.rmtree, detached, ignore_errors=True)
        return make_json_response({})

    def _forget_run(self, name: str) -> None:
        self.what_ifs.drop_run(name)
        if self.open_run == name:
            self.open_run = None

    async def _find_rule_columns(self, path: Path) -> dict[str, Any]:
        """Return the columns that constraints can name, or no columns if the customer table is too large."""
        key = (path, runs_and_what_ifs.read_change_time(path / pipeline.CAMPAIGN_FILE))
        if key not in self._columns:
            try:
                columns = await self.inspector.send_task({"task": "describe", "folder": str(path)})
            except LargesseError:
                columns = {"columns": [], "segments": {}}
            self._columns = {**dict(list(self._columns.items())[-50:]), key: columns}
        return self._columns[key]

    async def get_report(self, request: Request) -> Response:
        """Return the HTML report of a run, in a sandbox."""
        path = await asyncio.to_thread(self.folder.find_run, request.path_params["name"])
        file, size = await asyncio.to_thread(open_run_file, path, "report.html")
        headers = {"content-security-policy": SANDBOX, "content-length": str(size)}
        return StreamingResponse(_stream_file(file), media_type="text/html; charset=utf-8", headers=headers)

    async def download_run_file(self, request: Request) -> Response:
        """Return a file of a run as a download."""
        name = request.path_params["name"]
        path, part = await asyncio.to_thread(self.folder.find_run, name), request.path_params["part"]
        if part in SIMPLER_PLANS:
            return await self._send_simpler_plan(path, part, name)
        return await self._send_file(path, part, name)

    async def _send_simpler_plan(self, path: Path, part: str, name: str) -> Response:
        """Write a run's simple rule or mix of levels as a plan in a background job; return the plan as a download."""
        self.jobs.check_no_job_is_running()
        out = self.folder.private / f"{secrets.token_hex(8)}-{part}"
        task = {"task": "simpler", "folder": str(path), "kind": part.partition(".")[0], "out": str(out)}
        try:
            job = await self.jobs.wait(self.jobs.start("simpler", task))
            if job.state == "cancelled":
                raise RequestError(409, "the plan was not written: it was cancelled", "download it again")
            if job.error is not None:
                raise InputError("plan", decode_problems(job.error["problems"]))
            file = await asyncio.to_thread(out.open, "rb")
            return _make_download(file, out.stat().st_size, part, name)
        finally:
            await asyncio.to_thread(out.unlink, missing_ok=True)

    async def _send_file(self, folder: Path, part: str, name: str) -> Response:
        if part == "plan.csv":
            plan, _ = await asyncio.to_thread(open_run_file, folder, pipeline.PLAN_FILE)
            file, size = await asyncio.to_thread(_convert_plan_to_csv, plan, self.folder.private)
        else:
            file, size = await asyncio.to_thread(open_run_file, folder, part)
        return _make_download(file, size, part, name)

    # -- what-ifs --------------------------------------------------------------------------------------------------------

    async def start_what_if(self, request: Request) -> Response:
        """Start a background job that plans a run again under other constraints."""
        name, content = request.path_params["name"], await _read_json_body(request)
        self.jobs.check_no_job_is_running()
        path = await asyncio.to_thread(self.folder.find_run, name)
        rules, before = (
            runs_and_what_ifs.parse_what_if_rules(content),
            await asyncio.to_thread(runs_and_what_ifs.describe_listed_run, path),
        )
        if not before["kept"]:
            hint = "bring the table back, or run the campaign again"
            raise RequestError(409, f"the table that {name!r} was made from is gone", hint)
        tried = self.what_ifs.begin(name, before)
        task = {"task": "what-if", "folder": str(path), "out": str(tried.folder), "rules": rules}
        drop = partial(self.what_ifs.drop, tried.id)
        try:
            return make_json_response(self.jobs.start("what-if", task, drop, tried.id).describe(), 202)
        except BaseException:
            drop()
            raise

    async def download_what_if_file(self, request: Request) -> Response:
        """Return a file of a what-if plan as a download."""
        name, key, file = (request.path_params[word] for word in ("name", "key", "part"))
        tried = self.what_ifs.find(name, key)
        if file not in runs_and_what_ifs.WHAT_IF_FILES:
            hint = f"there are {', '.join(runs_and_what_ifs.WHAT_IF_FILES)}"
            raise RequestError(404, f"a what-if has no {file[:80]!r}", hint)
        return await self._send_file(tried.folder, file, f"{name}-what-if")

    async def keep_what_if(self, request: Request) -> Response:
        """Save a what-if plan as a new run."""
        name, content = request.path_params["name"], await _read_json_body(request)
        self.jobs.check_no_job_is_running()
        path = await asyncio.to_thread(self.folder.find_run, name)
        tried = self.what_ifs.find(name, request.path_params["key"])
        out = await asyncio.to_thread(self.folder.make_run_path, content.get("name"))
        task = {"task": "keep", "folder": str(path), "tried": str(tried.folder), "out": str(out)}
        job = await self.jobs.wait(self.jobs.start("keep", task))
        if job.state == "cancelled":
            raise RequestError(409, "the run was not kept: it was cancelled", "keep it again")
        if job.error is not None:
            raise InputError("run", decode_problems(job.error["problems"]))
        return make_json_response(await asyncio.to_thread(runs_and_what_ifs.describe_listed_run, out), 201)


def _make_download(file: IO[bytes], size: int, part: str, name: str) -> Response:
    """Return a response that sends an open file as a download."""
    ending = part[part.rfind(".") :]
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(f'{name}-{part}')}",
        "content-security-policy": SANDBOX,
        "content-length": str(size),
    }
    media_type = MEDIA_TYPES.get(ending, mimetypes.types_map.get(ending, "application/octet-stream"))
    return StreamingResponse(_stream_file(file), media_type=media_type, headers=headers)


async def _read_json_body(request: Request) -> dict[str, Any]:
    return read_json(await request.body())


def _make_page_response(name: str) -> Response:
    """Return a response with a script, style sheet or image of the page."""
    ending = name[name.rfind(".") :]
    path = files("largesse.studio") / "page" / name
    plain = name.replace(".", "").replace("-", "").replace("_", "").isalnum() and ending in PAGE_TYPES
    if not (plain and path.is_file()):
        raise RequestError(404, "the page has no such part", "reload the page")
    media_type = "text/javascript" if ending == ".js" else mimetypes.types_map.get(ending, "application/octet-stream")
    return Response(path.read_bytes(), media_type=media_type)


def _convert_plan_to_csv(plan: IO[bytes], folder: Path) -> tuple[IO[bytes], int]:
    """Convert a Parquet plan to a temporary CSV file; return it with its size in bytes."""
    with plan:
        csv = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        try:
            pipeline.convert_plan_to_csv(plan, csv)
            size = csv.tell()
            csv.seek(0)
        except BaseException as error:
            csv.close()
            if isinstance(error, Exception):
                raise RequestError(409, "the plan is damaged", "plan again") from error
            raise
    return csv, size


async def _stream_file(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while chunk := await asyncio.to_thread(file.read, READ_BYTES):
            yield chunk
