"""Files of odd tables through the commands: init, doctor, fit and run."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
from commands import own_folder, try_command
from harness import FINE, Outcome
from odd_tables import draw_log

CAMPAIGN = """log = "{log}"
[columns]
level = {level}
response = {response}
[levels]
costs = {costs}
[plan]
budget = 3
[model]
name = "linear"
"""


def attack(seed: int) -> Outcome:
    """Write one odd table as a file, and give it to four commands."""
    rng = np.random.default_rng(seed)
    draw = draw_log(rng)
    with own_folder() as folder:
        path = write_file(draw.source, folder, rng)
        if path is None:  # a table that no file can hold
            return FINE
        level, response = str(draw.roles["level"]), str(draw.roles["response"])
        costs = ",".join(f"{cost:g}" for cost in draw.levels.costs)
        text = CAMPAIGN.format(log=path, level=quoted(level), response=quoted(response), costs=f"[{costs}]")
        (folder / "own.toml").write_text(text, encoding="utf-8")
        commands: tuple[tuple[Any, ...], ...] = (
            ("init", path),
            ("doctor", path),
            (
                "fit",
                path,
                f"--level={level}",
                f"--response={response}",
                f"--costs={costs}",
                "--model=linear",
                "--out=q",
            ),
            ("run", "own.toml", "--out=r"),
        )
        found = [try_command(folder, *words) for words in commands]
    bad = [outcome for outcome in found if not outcome.good]
    return bad[0] if bad else found[-1]


def quoted(name: str) -> str:
    """Return a name as TOML writes text."""
    plain = "".join(c if 32 <= ord(c) != 127 and c not in '"\\' else f"\\u{ord(c):04x}" for c in name)
    return f'"{plain}"'


def write_file(source: Any, folder: Path, rng: np.random.Generator) -> str | None:
    """Write a table as Parquet, Feather, Arrow or CSV; return its name, or None if it cannot be written."""
    try:
        table = source if isinstance(source, pa.Table) else pa.table(source)
    except Exception:
        return None
    kind = str(rng.choice(["parquet", "feather", "arrow", "csv"]))
    name, sink = f"log.{kind}", io.BytesIO()
    try:
        if kind == "parquet":
            pq.write_table(table, sink)
        elif kind == "csv":
            csv.write_csv(table, sink)
        elif kind == "feather":
            feather.write_feather(table, sink)
        else:
            with pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
    except Exception:
        return None
    (folder / name).write_bytes(sink.getvalue())
    return name
