"""Export of a run's policy: SQL, ONNX or a policy tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largesse.campaign import Campaign, read_campaign
from largesse.errors import Problem, fail, path_problems, refuse, suggest
from largesse.pipeline import folder as files
from largesse.pipeline.commands import LOCAL, silent
from largesse.policy import Policy
from largesse.records import Progress

DEPTH = 3  # of a policy tree
ENDINGS = (".txt", ".sql")  # of a policy tree


@dataclass(frozen=True)
class ExportRequest:
    """Policy to export, and the settings of the export."""

    policy: Policy
    campaign: Campaign
    out: Path
    progress: Progress
    dialect: str
    table: str
    customer: str | None
    depth: int


def export(
    folder: str | Path,
    out: str | Path,
    progress: Progress = silent,
    *,
    to: str,
    dialect: str = "duckdb",
    table: str = "customers",
    customer: str | None = None,
    depth: int | str = DEPTH,
) -> dict[str, Any]:
    """Write the policy of a run folder to a file, and return a message about it.

    `dialect`, `table` and `customer` (by default the campaign's customer column) are those of a query, `depth` is that of
    a policy tree, which is a text or a query by the file's ending.
    """
    if to not in TARGETS:
        fail("export", Problem(f"there is no export to {to!r}", suggest(to, TARGETS)))
    refuse("export", path_problems(Path(out), "--out"))
    with files.look_into_run_folder(folder) as home:
        campaign = read_campaign(home)
        files.check_file(out, campaign.log, campaign.customers)
        policy = Policy.load(home / files.POLICY)
        if policy.price is None:
            hint = f"plan first: largesse plan {folder} --budget …"
            fail("export", Problem("the policy has no price yet, so it decides nothing", hint))
        own = campaign.columns.get("customer") if customer is None else customer
        request = ExportRequest(policy, campaign, Path(out), progress, dialect, table, own, _read_depth(depth))
        export_file = TARGETS[to](request)
    export_file.write()  # when nothing is read any more: the file may lie in the run folder
    return {"to": to, "out": str(out), "text": export_file.message}


@dataclass(frozen=True)
class ExportFile:
    """A file that is ready to be written, and the message about it."""

    write: Callable[[], object]
    message: str


def _make_sql(request: ExportRequest) -> ExportFile:
    query = request.policy.to_sql(request.dialect, table=request.table, customer=request.customer)
    message = f"wrote {request.out}: one SELECT for {request.dialect} that reads {request.table}"
    return ExportFile(lambda: files.write_text(request.out, query + "\n"), message)


def _make_onnx(request: ExportRequest) -> ExportFile:
    message = f"wrote {request.out}: an ONNX model; policy.onnx_inputs(customers) gives its inputs"
    return ExportFile(lambda: request.policy.to_onnx(request.out), message)


def _make_tree(request: ExportRequest) -> ExportFile:
    ending = request.out.suffix.lower()
    if ending not in ENDINGS:
        got = f"{request.out} has an ending that names no form of a policy tree"
        fail("export", Problem(got, f"use {', '.join(ENDINGS)}"))
    request.progress("learning a policy tree", 0.0)
    tree = request.policy.to_tree(LOCAL.read_log(request.campaign), depth=request.depth)
    query = ending == ".sql"
    text = tree.to_sql(request.dialect, table=request.table, customer=request.customer) if query else str(tree)
    return ExportFile(lambda: files.write_text(request.out, text + "\n"), f"{tree}\n\nwrote {request.out}")


def _read_depth(given: int | str) -> int:
    try:
        return int(given)
    except ValueError:
        fail("export", Problem(f"--depth is {given!r}", "give a whole number: 2 or 3"))


TARGETS: dict[str, Callable[[ExportRequest], ExportFile]] = {
    "sql": _make_sql,
    "onnx": _make_onnx,
    "tree": _make_tree,
    "card": _make_tree,  # its name in version 0.1.0
}
