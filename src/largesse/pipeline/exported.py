"""The policy of a run folder as a file that needs no Python: SQL, ONNX, a score card; or as an MLflow model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largesse.campaign import Campaign, read_campaign
from largesse.errors import Problem, fail, path_problems, refuse, suggest
from largesse.pipeline import folder as files
from largesse.pipeline.line import LOCAL, silent
from largesse.policy import Policy, ScoreCard, save_mlflow
from largesse.records import Progress

DEPTH = 3  # of a score card
ENDINGS = (".html", ".txt", ".sql")  # of a score card


@dataclass(frozen=True)
class Asked:
    """What is to be written, of which policy."""

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
    """Write the policy of a run folder to a file (to MLflow: a new folder), and say what was written.

    `dialect`, `table` and `customer` (by default the campaign's customer column) are those of a query, `depth` is that of
    a score card, which is a page, a text or a query, as the file's ending says.
    """
    if to not in TARGETS:
        fail("export", Problem(f"there is no export to {to!r}", suggest(to, TARGETS)))
    refuse("export", path_problems(Path(out), "--out"))
    with files.look_into_run_folder(folder) as home:
        campaign = read_campaign(home)
        if to != "mlflow":
            files.check_file(out, campaign.log, campaign.customers)
        policy = Policy.load(home / files.POLICY)
        if policy.price is None:
            hint = f"plan first: largesse plan {folder} --budget …"
            fail("export", Problem("the policy has no price yet, so it decides nothing", hint))
        own = campaign.columns.get("customer") if customer is None else customer
        asked = Asked(policy, campaign, Path(out), progress, dialect, table, own, _read_depth(depth))
        made = TARGETS[to](asked)
    made.write()  # when nothing is read any more: the file may lie in the run folder
    return {"to": to, "out": str(out), "text": made.told}


@dataclass(frozen=True)
class Made:
    """What is ready to be written, and what is said then."""

    write: Callable[[], object]
    told: str


def _make_sql(asked: Asked) -> Made:
    query = asked.policy.to_sql(asked.dialect, table=asked.table, customer=asked.customer)
    told = f"wrote {asked.out}: one SELECT for {asked.dialect} that reads {asked.table}"
    return Made(lambda: files.write_text(asked.out, query + "\n"), told)


def _make_onnx(asked: Asked) -> Made:
    told = f"wrote {asked.out}: an ONNX model; policy.onnx_inputs(customers) gives its inputs"
    return Made(lambda: asked.policy.to_onnx(asked.out), told)


def _make_card(asked: Asked) -> Made:
    ending = asked.out.suffix.lower()
    if ending not in ENDINGS:
        got = f"{asked.out} has an ending that names no kind of score card"
        fail("export", Problem(got, f"use {', '.join(ENDINGS)}"))
    asked.progress("learning a score card", 0.0)
    card: ScoreCard = asked.policy.to_score_card(LOCAL.read_log(asked.campaign), depth=asked.depth)
    if ending == ".sql":
        text = card.to_sql(asked.dialect, table=asked.table, customer=asked.customer) + "\n"
    else:
        text = card.to_html() if ending == ".html" else f"{card}\n"
    return Made(lambda: files.write_text(asked.out, text), f"{card}\n\nwrote {asked.out}")


def _make_mlflow(asked: Asked) -> Made:
    told = f"wrote {asked.out}: mlflow.pyfunc.load_model({str(asked.out)!r}).predict(customers)"
    return Made(lambda: save_mlflow(asked.policy, asked.out), told)


def _read_depth(given: int | str) -> int:
    try:
        return int(given)
    except ValueError:
        fail("export", Problem(f"--depth is {given!r}", "give a whole number: 2 or 3"))


TARGETS: dict[str, Callable[[Asked], Made]] = {
    "sql": _make_sql,
    "onnx": _make_onnx,
    "card": _make_card,
    "mlflow": _make_mlflow,
}
