"""Checkup of the log of a campaign file, a run folder or a bare table."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from largesse.campaign import (
    CHECKUP_KEYS,
    MAX_LEVELS,
    MAX_LISTED,
    Campaign,
    CampaignDraft,
    make_campaign_from_options,
    profile_table,
    read_campaign,
)
from largesse.errors import Problem, join_some, refuse
from largesse.evaluation import doctor
from largesse.pipeline.commands import LOCAL_ENGINE, show_no_progress
from largesse.pipeline.engine_protocol import Engine
from largesse.pipeline.run_folder import CAMPAIGN_FILE, check_output_file, write_text
from largesse.records import Progress
from largesse.report import apply_display_labels, make_log_checkup_numbers, render_log_checkup


def examine(
    campaign: Campaign,
    *,
    guessed: bool = False,
    out: str | Path | None = None,
    progress: Progress = show_no_progress,
    engine: Engine = LOCAL_ENGINE,
) -> dict[str, Any]:
    """Check a campaign's log, write the page of the checkup, and return its numbers."""
    check_output_file(out, campaign.log, campaign.customers)
    progress("reading", 0.0)
    log = engine.read_log(campaign)
    progress("examining the log", 0.0)
    notes = []
    if guessed:
        roles = ", ".join(f"{role} is {column!r}" for role, column in campaign.columns.items())
        order = ", ".join(repr(label) for label in campaign.levels.labels)
        notes.append(f"columns were guessed: {roles}; levels from the cheapest: {order}.")
        notes.append("name columns (--level, --response …) or the order of levels (--names) if that is wrong.")
    units = {"unit": campaign.unit, "response_unit": campaign.response_unit}
    shown = make_log_checkup_numbers(doctor(log, seed=campaign.seed), log, title=campaign.title, notes=notes, **units)
    shown = apply_display_labels(shown, campaign.page_labels)
    if out is not None:
        write_text(Path(out), render_log_checkup(shown))
    return shown


def find_or_guess_campaign(
    source: str, columns: Mapping[str, Any] | None = None, levels: Mapping[str, Any] | None = None
) -> tuple[Campaign, bool]:
    """Return the campaign of a file, a run folder or a bare table, and a flag for guessed columns.

    Of a bare table, options may name `columns` and `levels`; the rest is guessed. Costs do not matter to a checkup.
    """
    path, named, levels = Path(source), dict(columns or {}), levels or {}
    if not named and not levels and (path.suffix.lower() == ".toml" or (path / CAMPAIGN_FILE).is_file()):
        return read_campaign(path, optional=CHECKUP_KEYS), False
    if levels and {"level", "response"} <= set(named):
        return make_campaign_from_options(source, named, levels), False
    look = profile_table(source).make_draft({role: column for role, column in named.items() if role != "features"})
    refuse("doctor", _list_missing_options(look, ordered=bool(levels)))
    features = {"features": look.features} if look.features else {}
    roles = {**look.guess.roles, **features, **named}
    if levels:
        return make_campaign_from_options(source, roles, levels), True
    stated = look.doses if look.doses is not None else look.order.names if look.order is not None else ()
    section = {"doses" if look.doses is not None else "names": list(stated)}
    section |= {} if "cost_column" in roles else {"costs": list(range(len(stated)))}
    return make_campaign_from_options(source, roles, section), True


def _list_missing_options(look: CampaignDraft, *, ordered: bool) -> list[Problem]:
    """Return one problem per missing piece of information, with the option that gives it."""
    problems = []
    for role, meaning in (("level", "what each customer got"), ("response", "what happened")):
        if role not in look.guess.roles:
            likely = look.guess.others.get(role, ())
            names = [repr(name) for name in (*likely, *(name for name in look.columns if name not in likely))]
            hint = f"add --{role} COLUMN, one of {join_some(names, MAX_LISTED)}"
            problems.append(Problem(f"no column looks like the {role} ({meaning})", hint))
    if ordered or look.level is None:
        return problems
    if look.level.distinct > MAX_LEVELS:
        text = f"the level column {look.level.name!r} has {look.level.distinct:,} distinct values"
        problems.append(Problem(text, "name another with --level, or give the levels with --names, the cheapest first"))
    elif look.doses is None and look.order is None:
        text = f"the names of the levels in {look.level.name!r} do not state their order"
        order = look.measure_mean_responses()
        way = "by mean response only" if order else "in no order"
        listed = shlex.quote(",".join(order or look.level.words))
        hint = f"add --names with the cheapest first; {way}, they are --names {listed}"
        problems.append(Problem(text, hint))
    return problems
