"""A campaign on Spark in one call, and the engine that a command asks for by name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from largesse.errors import Problem, fail, nearest
from largesse.records import Progress
from largesse.runs.campaign import Campaign, read_campaign
from largesse.runs.engine import Engine
from largesse.runs.line import LOCAL, run, silent
from largesse.runs.on_spark.engine import Spark
from largesse.runs.on_spark.logs import ROWS
from largesse.runs.on_spark.session import open_session

ENGINES = ("local", "spark")


def spark(
    campaign: Campaign | str | Path,
    out: str | Path,
    *,
    log: Any = None,
    customers: Any = None,
    session: Any = None,
    master: str | None = None,
    rows: int = ROWS,
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
    rows
        The most rows of the log that are brought to the driver; of a larger log, a random sample of every level.
    """
    found = campaign if isinstance(campaign, Campaign) else read_campaign(campaign)
    if log is not None:
        found = replace(found, log=_told(log))
    if customers is not None:
        found = replace(found, customers=_told(customers))
    with open_session(session, master) as started:
        return run(found, out, progress, engine=Spark(started, log=log, customers=customers, rows=rows))


def _told(source: Any) -> str:
    """Return what a campaign file says of a source."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else "table:a DataFrame"


@contextmanager
def open_engine(name: str = "local", master: str | None = None) -> Iterator[Engine]:
    """Give the engine of this name; Spark's session ends with the context."""
    if name not in ENGINES:
        fail("engine", Problem(f"there is no engine {name!r}", nearest(name, ENGINES)))
    if name == "local":
        if master is not None:
            fail("engine", Problem(f"--master {master} is given, but not --engine spark", "add --engine spark"))
        yield LOCAL
        return
    with open_session(master=master) as session:
        yield Spark(session)
