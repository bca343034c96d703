"""Conversion of inspected tables and campaign drafts from and to the JSON of the studio's page.

The rules of a campaign file also check a draft.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from largesse.campaign import (
    MAX_LEVELS,
    Campaign,
    CampaignDraft,
    RoleGuesses,
    TableProfile,
    find_unknown_columns,
    parse_campaign,
)
from largesse.data import decode_dictionary, find_skip_reason, list_example_values
from largesse.errors import Problem, join_some, refuse, repr_short, suggest
from largesse.records import ROLES

if TYPE_CHECKING:
    pass

MAX_FORM_SEGMENTS = 20
FEATURE, PROTECTED, IGNORED = "feature", "protected", "ignore"
SINGLE_ROLES = tuple(role for role in ROLES if role != "features")
ROLE_LABELS = {"cost_column": "Cost of the row", "propensity_strata": "Strata", "customer": "Customer id"}
REQUIRED_ROLES = {"level": "what each customer got", "response": "what happened"}

TEXT_KEYS = ("title", "unit", "response_unit")
OBJECT_KEYS = ("roles", "levels", "plan", "parse", "labels")
DRAFT_KEYS = ("table", "customers", "budget", "total", "response_value", "model", "seed", *OBJECT_KEYS, *TEXT_KEYS)
LEVEL_KEYS = ("names", "costs", "dose_unit", "on_redemption", "contact_cost", "propensities")


def list_roles() -> list[dict[str, Any]]:
    """Return the column roles in the order of the page's drop-down list."""
    first, second, *others = dict.fromkeys(("level", "response", "customer", *SINGLE_ROLES))
    known = "known before the level was chosen: to learn from"
    rows = [
        *((role, ROLE_LABELS.get(role, role.capitalize()), ROLES[role], False) for role in (first, second)),
        (FEATURE, "Feature", known, True),
        (
            PROTECTED,
            "Protected",
            "such as sex or religion: not learnt from; the report shows spend and gain by group",
            True,
        ),
        (IGNORED, "Ignore", "not used", True),
        *((role, ROLE_LABELS.get(role, role.capitalize()), ROLES[role], False) for role in others),
    ]
    return [dict(zip(("role", "label", "help", "many"), row, strict=True)) for row in rows]


def assign_roles(profile: TableProfile, roles: Mapping[str, Any]) -> tuple[CampaignDraft, list[str]]:
    """Assign the page's column roles to a table profile; return the inspected table and its features."""
    single = {role: str(name) for role, name in roles.items() if role in SINGLE_ROLES and name is not None}
    names, features = profile.table.column_names, roles.get("features")
    hint = f"known: {join_some([*SINGLE_ROLES, 'features'])}"
    unknown = [Problem(f"{role!r} is not a role", hint) for role in roles if role not in (*ROLES, PROTECTED)]
    refuse("roles", [*unknown, *find_unknown_columns(single, names)])
    inspection = profile.make_draft_with_roles(RoleGuesses(single, {}, profile.make_draft(single).guess.left_out))
    if features is None:
        return inspection, inspection.features
    protected = roles.get(PROTECTED) or []
    for word, listed in (("features", features), (PROTECTED, protected)):
        if not _is_list_of_text(listed):
            refuse("roles", [Problem(f"{word} is {repr_short(listed)}", "give a list of column names")])
        refuse("roles", find_unknown_columns({f"{word} {k}": name for k, name in enumerate(listed)}, names))
    return inspection, [name for name in features if name not in (*single.values(), *protected)]


def describe_inspected_table(
    inspection: CampaignDraft, features: Sequence[str], protected: Sequence[str] = ()
) -> dict[str, Any]:
    """Return an inspected table as JSON types: columns, roles, levels, suggestions and problems."""
    roles, few_levels = inspection.guess.roles, _has_few_levels(inspection)
    by_column = {column: role for role, column in roles.items()} | dict.fromkeys(features, FEATURE)
    by_column |= dict.fromkeys(protected, PROTECTED)
    return {
        "rows": inspection.table.num_rows,
        "columns": [
            _describe_column(name, inspection, by_column.get(name, IGNORED)) for name in inspection.table.column_names
        ],
        "roles": {**{role: roles.get(role) for role in SINGLE_ROLES}, "features": list(features)},
        "role_names": list_roles(),
        **describe_draft_levels(inspection),
        "suggested_budget": inspection.suggest_budget() if few_levels else None,
        "suggested_on_redemption": False,
        "suggested_unit": "",
        "suggested_title": "",
        "notes": _list_role_notes(inspection),
        "problems": describe_problems(_find_draft_problems(inspection, features)),
        "parse": [
            {"column": name, "example": notation.example, "ways": list(notation.ways)}
            for name, notation in inspection.written.items()
            if len(notation.ways) > 1 and by_column.get(name, IGNORED) != IGNORED
        ],
    }


def _describe_column(name: str, inspection: CampaignDraft, role: str) -> dict[str, Any]:
    column, values = inspection.columns[name], inspection.table.column(name)
    reason = None
    if role == IGNORED:
        reason = inspection.guess.left_out.get(name) or find_skip_reason(name, values) or None
    elif role in inspection.guess.roles:
        reason = f"{column.distinct:,} distinct values" if role in REQUIRED_ROLES else "by its name and values"
    elif role == FEATURE and column.looks_protected:
        reason = "looks like a protected attribute: choose Protected if the plan must not follow it"
    return {
        "name": name,
        "kind": "yes/no" if column.is_zero_or_one else column.kind,
        "missing": values.null_count,
        "distinct": column.distinct if column.kind not in ("nothing", "other") else None,
        "examples": list_example_values(values),
        "role": role,
        "reason": reason,
    }


# -- levels ----------------------------------------------------------------------------------------------------------


def order_draft_levels(inspection: CampaignDraft) -> tuple[list[str], bool, str]:
    """Order a table's levels by cost; return the levels, a flag for a certain order, and the order's source."""
    if inspection.level is None:
        return [], False, ""
    if inspection.doses is not None:
        return [f"{dose:g}" for dose in inspection.doses], True, "by their amounts"
    if inspection.order is not None:
        return list(inspection.order.names), True, "by their names"
    by_response = inspection.measure_mean_responses()
    if by_response is not None:
        return list(by_response), False, "by mean response only: put them in order, the cheapest first"
    return list(inspection.level.words), False, "in no order: put them in order, the cheapest first"


def _has_few_levels(inspection: CampaignDraft) -> bool:
    return inspection.level is not None and 0 < inspection.level.distinct <= MAX_LEVELS


def describe_draft_levels(inspection: CampaignDraft) -> dict[str, Any]:
    """Return the levels of a table as JSON types: rows, mean response and suggested cost of each level."""
    if not _has_few_levels(inspection):
        return {"levels": None, "order_known": False, "order_reason": "", "suggested_costs": None}
    names, known, reason = order_draft_levels(inspection)
    tally = inspection.summarise_rows_by_level()
    rows = [{"name": name, "rows": tally[name][0], "mean_response": tally[name][1]} for name in names if name in tally]
    return {"levels": rows, "order_known": known, "order_reason": reason, "suggested_costs": inspection.suggest_costs()}


# -- notes and problems ------------------------------------------------------------------------------------------------


def _list_role_notes(inspection: CampaignDraft) -> list[str]:
    notes = []
    others = inspection.guess.others.get("cost_column", ())
    if others:
        notes.append(f"{join_some([repr(name) for name in others])} may be the real cost of each row.")
    notes += [
        f"The {role} may also be {join_some([repr(name) for name in more])}."
        for role in REQUIRED_ROLES
        if role in inspection.guess.roles and (more := inspection.guess.others.get(role))
    ]
    return notes


def _find_draft_problems(inspection: CampaignDraft, features: Sequence[str]) -> list[Problem]:
    problems = [
        Problem(f"no column is the {role} ({meaning})", "choose it in the list of columns")
        for role, meaning in REQUIRED_ROLES.items()
        if role not in inspection.guess.roles
    ]
    if inspection.level is not None and not _has_few_levels(inspection):
        got = f"the level {inspection.level.name!r} has {inspection.level.distinct:,} distinct values"
        problems.append(Problem(got, f"choose a column with at most {MAX_LEVELS}, or group its values first"))
    if not features:
        problems.append(Problem("no column is left to learn from", "make at least one column a feature"))
    return problems


def describe_problems(problems: Sequence[Problem]) -> list[dict[str, str]]:
    """Convert problems to their JSON form."""
    return [{"what": problem.what, "hint": problem.hint} for problem in problems]


def list_segments(profile: TableProfile, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns that can define customer segments, each with its values by frequency."""
    segments = {}
    for name in names:
        column, values = profile.columns[name], profile.table.column(name)
        if column.kind not in ("text", "number") or not 2 <= column.distinct <= MAX_FORM_SEGMENTS or values.null_count:
            continue
        counts = decode_dictionary(values).value_counts().to_pylist()
        segments[name] = [str(row["values"]) for row in sorted(counts, key=lambda row: -row["counts"])]
    return segments


# -- drafts --------------------------------------------------------------------------------------------------------------


def convert_draft_to_campaign(
    draft: Mapping[str, Any], profile: TableProfile, log: str, *, checkup: bool = False
) -> Campaign:
    """Convert a draft from the page to a campaign, without costs and budget for a `checkup`."""
    refuse("draft", _find_shape_problems(draft))
    inspection, features = assign_roles(profile, draft.get("roles") or {})
    roles = inspection.guess.roles
    columns: dict[str, Any] = {role: roles[role] for role in SINGLE_ROLES if role in roles}
    parse = {**inspection.find_number_notations(features), **(draft.get("parse") or {})}
    columns |= ({"features": features} if features else {}) | ({"parse": parse} if parse else {})
    columns |= {PROTECTED: list(given)} if (given := (draft.get("roles") or {}).get(PROTECTED)) else {}
    settings = {key: draft[key] for key in TEXT_KEYS if draft.get(key)}
    settings |= {key: draft[key] for key in ("response_value", "labels", "customers") if draft.get(key)}
    settings |= {
        "log": log,
        "columns": columns,
        "levels": _make_levels_section(draft.get("levels") or {}, inspection, checkup=checkup),
        "model": {"name": draft.get("model") or "auto", "seed": draft.get("seed") or 0},
    }
    if checkup:
        return parse_campaign(settings)
    spent = {key: draft[key] for key in ("budget", "total") if draft.get(key) is not None}
    return parse_campaign({**settings, "plan": {**(draft.get("plan") or {}), **spent}}).spending()


def _find_shape_problems(draft: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of a draft's shape: unknown keys and values of a wrong type."""
    problems = [
        Problem(f"{key!r} is not a part of a draft", suggest(key, DRAFT_KEYS)) for key in draft if key not in DRAFT_KEYS
    ]
    problems += [
        Problem(f"{key} is {repr_short(draft[key])}", "give an object")
        for key in OBJECT_KEYS
        if draft.get(key) is not None and not isinstance(draft[key], dict)
    ]
    levels, roles = ({} if not isinstance(draft.get(key), dict) else draft[key] for key in ("levels", "roles"))
    problems += [
        Problem(f"levels.{key} is not a setting", suggest(key, LEVEL_KEYS)) for key in levels if key not in LEVEL_KEYS
    ]
    names = levels.get("names")
    if names is not None and not _is_list_of_text(names):
        problems.append(Problem(f"levels.names is {repr_short(names)}", "give a list of names, the cheapest first"))
    for role, name in roles.items():
        if role in SINGLE_ROLES and name is not None and not isinstance(name, str):
            problems.append(Problem(f"the role {role} is {repr_short(name)}", "give the name of a column"))
    return problems


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _make_levels_section(levels: Mapping[str, Any], inspection: CampaignDraft, *, checkup: bool) -> dict[str, Any]:
    """Convert a draft's levels to the section [levels] of a campaign; doses become numbers."""
    order, known, _ = order_draft_levels(inspection)
    names: Sequence[str] = levels.get("names") or (order if known else [])
    section: dict[str, Any] = {key: levels[key] for key in LEVEL_KEYS if key != "names" and levels.get(key) is not None}
    if inspection.doses is None:
        section["names"] = list(names)
    else:
        doses = {f"{dose:g}": dose for dose in inspection.doses}
        unknown = [name for name in names if name not in doses]
        refuse("levels", [Problem(f"the log has no level {name!r}", suggest(name, doses)) for name in unknown])
        section["doses"] = [doses[name] for name in names]
    if not section.get("costs"):
        section["costs"] = [float(k) for k in range(len(names))] if checkup else []
        if "cost_column" in inspection.guess.roles:
            del section["costs"]
    return section
