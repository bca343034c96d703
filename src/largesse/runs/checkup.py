"""Examine a log where it is: a campaign file, a run folder, or a bare table whose columns are named or guessed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from largesse.evaluation import doctor
from largesse.files import atomic_file
from largesse.report import checkup_numbers, render_checkup
from largesse.runs.campaign import Campaign, campaign_from, read_campaign
from largesse.runs.guess import guess_campaign
from largesse.runs.local import Tell, read, silent


def examine(
    campaign: Campaign, *, guessed: bool = False, out: str | Path | None = None, tell: Tell = silent
) -> dict[str, Any]:
    """Return the numbers of the checkup of a campaign's log, and write its page where `out` says."""
    tell("reading", 0.0)
    log = read(campaign)
    tell("examining the log", 0.0)
    notes = [note + "." for note in log.notes]
    if guessed:
        roles = ", ".join(f"{role} is {column!r}" for role, column in campaign.columns.items())
        notes.insert(0, f"columns were guessed: {roles}. Name them (--level, --response, --costs) if that is wrong.")
    shown = checkup_numbers(doctor(log, seed=campaign.seed), log, title=campaign.title, unit=campaign.unit, notes=notes)
    if out is not None:
        with atomic_file(Path(out)) as part:
            part.write_text(render_checkup(shown), encoding="utf-8")
    return shown


def campaign_of(source: str) -> tuple[Campaign, bool]:
    """Return the campaign of a campaign file, a run folder or a bare table, and whether its columns were guessed."""
    path = Path(source)
    if path.suffix.lower() == ".toml" or (path / "campaign.toml").is_file():
        return read_campaign(path), False
    return campaign_from(tomllib.loads(guess_campaign(source))), True
