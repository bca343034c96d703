"""Examine a log: that of a campaign file or run folder, or a bare table whose columns are named or guessed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from largesse.evaluation import doctor
from largesse.records import Progress
from largesse.report import describe_checkup, render_checkup
from largesse.runs.campaign import Campaign, campaign_from, read_campaign
from largesse.runs.engine import Engine
from largesse.runs.folder import CAMPAIGN, check_file, write_text
from largesse.runs.guess import guess_campaign
from largesse.runs.line import LOCAL, silent


def examine(
    campaign: Campaign,
    *,
    guessed: bool = False,
    out: str | Path | None = None,
    progress: Progress = silent,
    engine: Engine = LOCAL,
) -> dict[str, Any]:
    """Return the numbers of the checkup of a campaign's log; write its page to `out`, if given."""
    check_file(out, campaign.log, campaign.customers)
    progress("reading", 0.0)
    log = engine.read_log(campaign)
    progress("examining the log", 0.0)
    notes = []
    if guessed:
        roles = ", ".join(f"{role} is {column!r}" for role, column in campaign.columns.items())
        notes.append(f"columns were guessed: {roles}. Name them (--level, --response, --costs) if that is wrong.")
    shown = describe_checkup(
        doctor(log, seed=campaign.seed), log, title=campaign.title, unit=campaign.unit, notes=notes
    )
    if out is not None:
        write_text(Path(out), render_checkup(shown))
    return shown


def find_campaign(source: str) -> tuple[Campaign, bool]:
    """Return the campaign of a campaign file, a run folder or a bare table, and whether its columns were guessed."""
    path = Path(source)
    if path.suffix.lower() == ".toml" or (path / CAMPAIGN).is_file():
        return read_campaign(path), False
    return campaign_from(tomllib.loads(guess_campaign(source))), True
