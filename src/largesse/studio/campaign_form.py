"""Forms of the page: a table with the guessed roles of its columns, and a draft that becomes a campaign.

A draft is checked by the same rules as a campaign file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from largesse.campaign import (
    MAX_LEVELS,
    Campaign,
    CampaignDraft,
    Guess,
    TableProfile,
    campaign_from,
    unknown_columns,
)
from largesse.data import decode_dictionary, skip_reason
from largesse.errors import InputError, Problem, join_some, make_visible, refuse, repr_short, suggest
from largesse.records import ROLES

if TYPE_CHECKING:
    import pyarrow as pa

MOST_SEGMENTS = 20
EXAMPLES, LETTERS = 3, 60  # values that are shown of a column, and how much of each
FEATURE, IGNORED = "feature", "ignore"
SINGLE = tuple(role for role in ROLES if role != "features")
LABELS = {"cost_column": "Cost of the row", "propensity_strata": "Strata", "customer": "Customer id"}
ASKED = {"level": "what each customer got", "response": "what happened"}

TEXTS = ("title", "unit", "response_unit")
KNOWN = ("table", "roles", "levels", "budget", "total", "response_value", "model", "seed", "plan", "parse", *TEXTS)
LEVEL_WORDS = ("names", "costs", "dose_unit", "on_redemption", "contact_cost", "propensities")


def list_roles() -> list[dict[str, Any]]:
    """Return the roles that a column can have, in the order in which a page should offer them."""
    usual = ("level", "response", "customer")
    order = [*usual, *(role for role in SINGLE if role not in usual)]
    named = [
        {"role": role, "label": LABELS.get(role, role.capitalize()), "help": ROLES[role], "many": False}
        for role in order
    ]
    feature = {
        "role": FEATURE,
        "label": "Feature",
        "help": "known before the level was chosen: to learn from",
        "many": True,
    }
    ignored = {"role": IGNORED, "label": "Ignore", "help": "not used", "many": True}
    return [*named[:2], feature, ignored, *named[2:]]


def assign_roles(profile: TableProfile, roles: Mapping[str, Any]) -> tuple[CampaignDraft, list[str]]:
    """Return the inspection of a table with the roles of a page, and its features."""
    single = {role: str(name) for role, name in roles.items() if role in SINGLE and name is not None}
    names, features = profile.table.column_names, roles.get("features")
    wrong = [
        Problem(f"{role!r} is not a role", f"known: {join_some([*SINGLE, 'features'])}")
        for role in roles
        if role not in ROLES
    ]
    refuse("roles", [*wrong, *unknown_columns(single, names)])
    found = profile.with_roles(Guess(single, {}, profile.guess(single).guess.left_out))
    if features is None:
        return found, found.features
    if not (isinstance(features, list) and all(isinstance(name, str) for name in features)):
        refuse("roles", [Problem("features are no list of columns", "give a list of their names")])
    refuse("roles", unknown_columns({f"feature {k}": name for k, name in enumerate(features)}, names))
    return found, [name for name in features if name not in single.values()]


def describe_inspection(inspection: CampaignDraft, features: Sequence[str]) -> dict[str, Any]:
    """Return what the page shows of a table."""
    roles = dict(inspection.guess.roles)
    named = {column: role for role, column in roles.items()} | dict.fromkeys(features, FEATURE)
    return {
        "rows": inspection.table.num_rows,
        "columns": [
            _describe_column(name, inspection, named.get(name, IGNORED)) for name in inspection.table.column_names
        ],
        "roles": {**{role: roles.get(role) for role in SINGLE}, "features": list(features)},
        "role_names": list_roles(),
        **describe_levels(inspection),
        "suggested_budget": inspection.suggest_budget() if _is_few(inspection) else None,
        "suggested_on_redemption": False,
        "suggested_unit": "",
        "suggested_title": "",
        "notes": _list_notes(inspection),
        "problems": [{"what": problem.what, "hint": problem.hint} for problem in _find_problems(inspection, features)],
        "parse": [
            {"column": name, "example": found.example, "ways": list(found.ways)}
            for name, found in inspection.written.items()
            if len(found.ways) > 1 and named.get(name, IGNORED) != IGNORED
        ],
    }


def _describe_column(name: str, inspection: CampaignDraft, role: str) -> dict[str, Any]:
    column, values = inspection.columns[name], inspection.table.column(name)
    reason = None
    if role == IGNORED:
        reason = inspection.guess.left_out.get(name) or skip_reason(name, values) or None
    elif role in inspection.guess.roles:
        reason = f"{column.distinct:,} distinct values" if role in ASKED else "by its name and values"
    return {
        "name": name,
        "kind": "yes/no" if column.yes_or_no else column.kind,
        "missing": values.null_count,
        "distinct": column.distinct if column.kind not in ("nothing", "other") else None,
        "examples": _list_examples(values),
        "role": role,
        "reason": reason,
    }


def _list_examples(values: pa.ChunkedArray) -> list[str]:
    import pyarrow as pa

    try:
        found = decode_dictionary(values.slice(0, 200)).unique().drop_null().slice(0, EXAMPLES).to_pylist()
    except (pa.ArrowException, OverflowError, ValueError):  # dates beyond the calendar, types that cannot be compared
        return []
    words = [f"{value:g}" if isinstance(value, float) else str(value) for value in found]
    return [make_visible(word if len(word) <= LETTERS else f"{word[:LETTERS]}…") for word in words]


# -- levels ----------------------------------------------------------------------------------------------------------


def list_levels(inspection: CampaignDraft) -> tuple[list[str], bool, str]:
    """Return the levels, cheapest first as far as that is known; whether it is, and why."""
    if inspection.level is None:
        return [], False, ""
    if inspection.doses is not None:
        return [f"{dose:g}" for dose in inspection.doses], True, "by their amounts"
    if inspection.order is not None:
        return list(inspection.order.names), True, "by what their names say"
    by_response = inspection.order_by_response()
    if by_response is not None:
        return list(by_response), False, "by mean response only: put them in order, the cheapest first"
    return list(inspection.level.words), False, "in no order: put them in order, the cheapest first"


def _is_few(inspection: CampaignDraft) -> bool:
    return inspection.level is not None and 0 < inspection.level.distinct <= MAX_LEVELS


def describe_levels(inspection: CampaignDraft) -> dict[str, Any]:
    """Return the levels with their rows and mean responses, and what they may cost."""
    if not _is_few(inspection):
        return {"levels": None, "order_known": False, "order_reason": "", "suggested_costs": None}
    names, known, reason = list_levels(inspection)
    tally = inspection.count_levels()
    rows = [{"name": name, "rows": tally[name][0], "mean_response": tally[name][1]} for name in names if name in tally]
    return {"levels": rows, "order_known": known, "order_reason": reason, "suggested_costs": inspection.suggest_costs()}


# -- what to say -----------------------------------------------------------------------------------------------------


def _list_notes(inspection: CampaignDraft) -> list[str]:
    notes = []
    others = inspection.guess.others.get("cost_column", ())
    if others:
        notes.append(f"{join_some([repr(name) for name in others])} may be what each row really cost.")
    notes += [
        f"The {role} may also be {join_some([repr(name) for name in more])}."
        for role in ASKED
        if role in inspection.guess.roles and (more := inspection.guess.others.get(role))
    ]
    return notes


def _find_problems(inspection: CampaignDraft, features: Sequence[str]) -> list[Problem]:
    found = [
        Problem(f"no column is the {role} ({meaning})", "choose it in the list of columns")
        for role, meaning in ASKED.items()
        if role not in inspection.guess.roles
    ]
    if inspection.level is not None and not _is_few(inspection):
        got = f"the level {inspection.level.name!r} has {inspection.level.distinct:,} distinct values"
        found.append(Problem(got, f"choose a column with at most {MAX_LEVELS}, or group its values first"))
    if not features:
        found.append(Problem("no column is left to learn from", "make at least one column a feature"))
    return found


def list_segments(profile: TableProfile, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns that can tell segments apart, each with its values, the most common first."""
    found = {}
    for name in names:
        column, values = profile.columns[name], profile.table.column(name)
        if column.kind not in ("text", "number") or not 2 <= column.distinct <= MOST_SEGMENTS or values.null_count:
            continue
        counts = decode_dictionary(values).value_counts().to_pylist()
        counts.sort(key=lambda one: -one["counts"])
        found[name] = [str(one["values"]) for one in counts]
    return found


# -- drafts --------------------------------------------------------------------------------------------------------------


def draft_campaign(draft: Mapping[str, Any], profile: TableProfile, log: str, *, checkup: bool = False) -> Campaign:
    """Return the campaign that a draft stands for; for a `checkup`, costs and budget do not matter."""
    refuse("draft", _find_shape_problems(draft))
    inspection, features = assign_roles(profile, draft.get("roles") or {})
    columns: dict[str, Any] = {role: inspection.guess.roles[role] for role in SINGLE if role in inspection.guess.roles}
    if features:
        columns["features"] = features
    parse = {**inspection.find_parse(features), **(draft.get("parse") or {})}
    if parse:
        columns["parse"] = parse
    given: dict[str, Any] = {word: draft[word] for word in TEXTS if draft.get(word)}
    given |= {"log": log, "columns": columns}
    if draft.get("response_value") is not None:
        given["response_value"] = draft["response_value"]
    given["levels"] = _draft_levels(draft.get("levels") or {}, inspection, checkup=checkup)
    given["model"] = {"name": draft.get("model") or "auto", "seed": draft.get("seed") or 0}
    if not checkup:
        spent = {word: draft[word] for word in ("budget", "total") if draft.get(word) is not None}
        given["plan"] = {**(draft.get("plan") or {}), **spent}
    campaign = campaign_from(given)
    return campaign if checkup else campaign.spending()


def list_problems(error: InputError) -> list[dict[str, str]]:
    """Return what is wrong with a draft, as JSON types."""
    return [{"what": problem.what, "hint": problem.hint} for problem in error.problems]


def _find_shape_problems(draft: Mapping[str, Any]) -> list[Problem]:
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


def _draft_levels(given: Mapping[str, Any], inspection: CampaignDraft, *, checkup: bool) -> dict[str, Any]:
    """Return the section [levels]; the names of amounts become amounts again."""
    order, known, _ = list_levels(inspection)
    names: Sequence[str] = given.get("names") or (order if known else [])
    section: dict[str, Any] = {w: given[w] for w in LEVEL_WORDS if w != "names" and given.get(w) is not None}
    if inspection.doses is not None:
        doses = {f"{dose:g}": dose for dose in inspection.doses}
        unknown = [name for name in names if name not in doses]
        refuse("levels", [Problem(f"the log has no level {name!r}", suggest(name, doses)) for name in unknown])
        section["doses"] = [doses[name] for name in names]
    else:
        section["names"] = list(names)
    observed = "cost_column" in inspection.guess.roles
    if observed and not section.get("costs"):
        section.pop("costs", None)
    elif checkup and not section.get("costs"):
        section["costs"] = [float(k) for k in range(len(names))]
    elif "costs" not in section:
        section["costs"] = []
    return section
