"""A campaign on Spark in one call, and the engine that a command asks for by name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from largesse.campaign import Campaign, read_campaign
from largesse.errors import Problem, fail, limit_problems, refuse, suggest
from largesse.pipeline.engine import Engine
from largesse.pipeline.line import LOCAL, run, silent
from largesse.pipeline.on_spark.engine import Spark
from largesse.pipeline.on_spark.session import open_session
from largesse.records import Progress

ENGINES = ("local", "spark")


def spark(
    campaign: Campaign | str | Path,
    out: str | Path,
    *,
    log: Any = None,
    customers: Any = None,
    session: Any = None,
    master: str | None = None,
    most_rows: int | str | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Run a campaign on Spark; leave a run folder and return the numbers of the report.

    Parameters
    ----------
    campaign
        A campaign, or the path of a campaign file.
    out
        The run folder, on a disk that the driver and the executors share.
    log, customers
        DataFrames, names of tables or paths, instead of those that the campaign names.
    session, master
        The session, or the master to start one with; by default the active session, else one on this machine.
    most_rows
        Models learn from a random sample of so many rows of a larger log, as `most_rows` under [data] says.
    """
    found = campaign if isinstance(campaign, Campaign) else read_campaign(campaign)
    if log is not None:
        found = replace(found, log=_told(log))
    if customers is not None:
        found = replace(found, customers=_told(customers))
    if most_rows is not None:
        refuse("log", limit_problems(most_rows, "most_rows"))
        found = replace(found, most_rows=most_rows)
    near = find_shared(out)
    with open_session(session, master) as started, Spark(started, log=log, customers=customers, near=near) as engine:
        return run(found, out, progress, engine=engine)


def find_shared(out: str | Path) -> Path:
    """Return the folder nearest to a run folder that is there already."""
    return next(folder for folder in Path(out).absolute().parents if folder.is_dir())


def _told(source: Any) -> str:
    """Return what a campaign file says of a source."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else "table:a DataFrame"


@contextmanager
def open_engine(engine: str = "local", master: str | None = None, *, out: str | Path = "run") -> Iterator[Engine]:
    """Give the engine of this name, for a run folder `out`; Spark's session ends with the context."""
    if engine not in ENGINES:
        fail("engine", Problem(f"there is no engine {engine!r}", suggest(engine, ENGINES)))
    if engine == "local":
        if master is not None:
            fail("engine", Problem(f"--master {master} is given, but not --engine spark", "add --engine spark"))
        yield LOCAL
        return
    with open_session(master=master) as session, Spark(session, near=find_shared(out)) as made:
        yield made
