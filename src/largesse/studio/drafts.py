"""What a page has filled in, as a campaign: the same that a campaign file would give, checked by the same rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from largesse.campaign import Campaign, Draft, TableProfile, campaign_from
from largesse.errors import InputError, Problem, refuse, repr_short, suggest
from largesse.records import ROLES
from largesse.studio.tables import SINGLE, list_levels, look_again

TEXTS = ("title", "unit", "response_unit")
KNOWN = ("table", "roles", "levels", "budget", "total", "response_value", "model", "seed", "plan", "parse", *TEXTS)
LEVEL_WORDS = ("names", "costs", "dose_unit", "on_redemption", "contact_cost", "propensities")


def draft_campaign(draft: Mapping[str, Any], seen: TableProfile, log: str, *, checkup: bool = False) -> Campaign:
    """Return the campaign that a draft stands for; for a `checkup`, costs and budget do not matter."""
    refuse("draft", _find_problems(draft))
    look, features = look_again(seen, draft.get("roles") or {})
    columns: dict[str, Any] = {role: look.guess.roles[role] for role in SINGLE if role in look.guess.roles}
    if features:
        columns["features"] = features
    parse = {**look.find_parse(features), **(draft.get("parse") or {})}
    if parse:
        columns["parse"] = parse
    given: dict[str, Any] = {word: draft[word] for word in TEXTS if draft.get(word)}
    given |= {"log": log, "columns": columns}
    if draft.get("response_value") is not None:
        given["response_value"] = draft["response_value"]
    given["levels"] = _draft_levels(draft.get("levels") or {}, look, checkup=checkup)
    given["model"] = {"name": draft.get("model") or "auto", "seed": draft.get("seed") or 0}
    if not checkup:
        spent = {word: draft[word] for word in ("budget", "total") if draft.get(word) is not None}
        given["plan"] = {**(draft.get("plan") or {}), **spent}
    campaign = campaign_from(given)
    return campaign if checkup else campaign.spending()


def list_problems(error: InputError) -> list[dict[str, str]]:
    """Return what is wrong with a draft, as JSON types."""
    return [{"what": problem.what, "hint": problem.hint} for problem in error.problems]


def _find_problems(draft: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with the shape of a draft."""
    found = [Problem(f"{word!r} is not a part of a draft", suggest(word, KNOWN)) for word in draft if word not in KNOWN]
    found += [
        Problem(f"{word} is {repr_short(draft[word])}", "give an object")
        for word in ("roles", "levels", "plan", "parse")
        if draft.get(word) is not None and not isinstance(draft[word], dict)
    ]
    levels = draft.get("levels")
    if isinstance(levels, dict):
        found += [
            Problem(f"levels.{w} is not a setting", suggest(w, LEVEL_WORDS)) for w in levels if w not in LEVEL_WORDS
        ]
        names = levels.get("names")
        if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            found.append(Problem(f"levels.names is {repr_short(names)}", "give a list of names, the cheapest first"))
    roles = draft.get("roles")
    if isinstance(roles, dict):
        found += [
            Problem(f"the role {role} is {repr_short(name)}", "give the name of a column")
            for role, name in roles.items()
            if role != "features" and role in ROLES and name is not None and not isinstance(name, str)
        ]
    return found


def _draft_levels(given: Mapping[str, Any], look: Draft, *, checkup: bool) -> dict[str, Any]:
    """Return the section [levels]; the names of amounts become amounts again."""
    order, known, _ = list_levels(look)
    names: Sequence[str] = given.get("names") or (order if known else [])
    section: dict[str, Any] = {w: given[w] for w in LEVEL_WORDS if w != "names" and given.get(w) is not None}
    if look.doses is not None:
        doses = {f"{dose:g}": dose for dose in look.doses}
        unknown = [name for name in names if name not in doses]
        refuse("levels", [Problem(f"the log has no level {name!r}", suggest(name, doses)) for name in unknown])
        section["doses"] = [doses[name] for name in names]
    else:
        section["names"] = list(names)
    observed = "cost_column" in look.guess.roles
    if observed and not section.get("costs"):
        section.pop("costs", None)
    elif checkup and not section.get("costs"):
        section["costs"] = [float(k) for k in range(len(names))]
    elif "costs" not in section:
        section["costs"] = []
    return section
