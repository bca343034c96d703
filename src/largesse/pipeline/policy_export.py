"""Export of a run's policy as SQL, ONNX or a policy tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from largesse.campaign import read_campaign
from largesse.errors import Problem, fail, find_path_problems, refuse, suggest
from largesse.pipeline import run_folder as files
from largesse.pipeline.commands import LOCAL_ENGINE, show_no_progress
from largesse.policy import Policy
from largesse.records import Progress

DEFAULT_DEPTH = 3  # of a policy tree
TREE_ENDINGS = (".txt", ".sql")
TARGETS = ("sql", "onnx", "tree", "card")  # card: a tree, by its name in version 0.1.0


def export(
    folder: str | Path,
    out: str | Path,
    progress: Progress = show_no_progress,
    *,
    to: str,
    dialect: str = "duckdb",
    table: str = "customers",
    customer: str | None = None,
    depth: int | str = DEFAULT_DEPTH,
) -> dict[str, Any]:
    """Write the policy of a run folder to a file, and return a message for the user.

    `dialect`, `table` and `customer` (by default the campaign's customer column) are those of a query, `depth` is that of
    a policy tree, which is a text or a query by the file's ending.
    """
    path, text = Path(out), None
    if to not in TARGETS:
        fail("export", Problem(f"there is no export to {to!r}", suggest(to, TARGETS)))
    refuse("export", find_path_problems(path, "--out"))
    with files.read_run_folder(folder) as home:
        campaign = read_campaign(home)
        files.check_output_file(path, campaign.log, campaign.customers)
        policy = Policy.load(home / files.POLICY_FILE)
        if policy.price is None:
            hint = f"plan first: largesse plan {folder} --budget …"
            fail("export", Problem("the policy has no price yet, so it decides nothing", hint))
        id_column = campaign.columns.get("customer") if customer is None else customer
        query: dict[str, Any] = {"table": table, "customer": id_column}
        if not isinstance(depth, int) and not depth.isdecimal():
            fail("export", Problem(f"--depth is {depth!r}", "give a whole number: 2 or 3"))
        if to == "sql":
            text = policy.to_sql(dialect, **query)
            message = f"wrote {path}: one SELECT for {dialect} that reads {table}"
        elif to == "onnx":
            message = f"wrote {path}: an ONNX model; policy.onnx_inputs(customers) gives its inputs"
        else:
            ending = path.suffix.lower()
            if ending not in TREE_ENDINGS:
                got = f"{path} has an ending that names no form of a policy tree"
                fail("export", Problem(got, f"use {', '.join(TREE_ENDINGS)}"))
            progress("learning a policy tree", 0.0)
            tree = policy.to_tree(LOCAL_ENGINE.read_log(campaign), depth=int(depth))
            text = tree.to_sql(dialect, **query) if ending == ".sql" else str(tree)
            message = f"{tree}\n\nwrote {path}"
    # Nothing is read any more: the file may lie in the run folder.
    if text is None:
        policy.to_onnx(path)
    else:
        files.write_text(path, text + "\n")
    return {"to": to, "out": str(out), "text": message}
