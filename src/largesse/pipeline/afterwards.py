"""After a campaign: check a new log against the plan of a run folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.campaign import Campaign, read_campaign
from largesse.data import read_table
from largesse.errors import LargesseError, Problem, fail, refuse
from largesse.evaluation import Before, check_campaign, estimate_value, measure_spending, plan_held_out, score_rows
from largesse.pipeline import folder as files
from largesse.pipeline.decided import CUSTOMER, PROPENSITY, REQUEST, come_once, join_ids
from largesse.pipeline.engine import Engine
from largesse.pipeline.kept import key_of, read_kept
from largesse.pipeline.line import LOCAL, silent
from largesse.pipeline.next_log import OLD_ROLES
from largesse.policy import Policy, find_price, promise_anew
from largesse.records import Array, CampaignCheck, Estimate, Log, Progress, Promise, Scores
from largesse.report import describe_check, render_check

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Made:
    """What a run folder knows of its plan."""

    campaign: Campaign
    policy: Policy
    numbers: dict[str, Any]  # of plan.json
    table: pa.Table | None  # plan.parquet; None where it is in parts
    served: bool = False  # the table holds a ledger's decisions

    @property
    def budget(self) -> float | None:
        """Average per customer."""
        found: float | None = self.numbers["budget"]["average"]
        return found


def check(
    folder: str | Path,
    log: Any,
    *,
    decisions: pa.Table | None = None,
    out: str | Path | None = None,
    progress: Progress = silent,
    engine: Engine = LOCAL,
) -> tuple[CampaignCheck, dict[str, Any]]:
    """Check a new log against the plan of a run folder: return the record, and its numbers as JSON types.

    Rows are joined with the plan by the customer's id, or with the `decisions` of a ledger; without ids the policy decides
    anew what each should have got. With `out`, the page is written there.
    """
    with files.look_into_run_folder(folder) as home:
        made = _read_made(home, decisions)
        files.check_file(out, log if isinstance(log, str) else None, made.campaign.log, made.campaign.customers)
        progress("reading the new log", 0.0)
        new = _read_new(made, log, engine)
        progress("reading the old log", 0.0)
        old, scores = _read_old(home, made, engine)
        progress("comparing", 0.0)
        new, promise = _join(made, new)
        promise = _add_errors(made, promise, scores)
        promise = _add_price(made, promise, new)
        before = None if old is None else _look_back(made, old, scores)
        found = check_campaign(new, promise, before, made.campaign.seed)
    shown = describe_check(found, new, title=made.campaign.title, unit=made.campaign.unit)
    if out is not None:
        files.write_text(Path(out), render_check(shown))
    return found, shown


def _read_made(home: Path, decisions: pa.Table | None) -> Made:
    path = home / files.PLAN
    whole = read_table(path, what="plan", plain=[CUSTOMER]) if path.is_file() and decisions is None else None
    table = whole if decisions is None else decisions
    numbers = files.read_part(home, files.PLAN_PART)
    return Made(read_campaign(home), Policy.load(home / files.POLICY), numbers, table, decisions is not None)


def _read_new(made: Made, log: Any, engine: Engine) -> Log:
    """Read the new log with the campaign's columns; how the old log chose its levels does not hold for it."""
    campaign = made.campaign
    parse = campaign.roles.get("parse") or {}
    key = campaign.columns.get("customer", CUSTOMER)
    # Only text must be known as such from the start; the log's own reader parses the rest, once.
    texts = {name: way for name, way in parse.items() if way == "text"}
    table = read_table(log, what="new log", plain=[key, REQUEST], parse=texts)
    if made.served:
        table = _name_rows(made, table, key)
    roles: Any = {
        role: column
        for role, column in campaign.roles.items()
        if role not in OLD_ROLES or (isinstance(column, str) and column in table.column_names)
    }
    drawn = made.table is not None and PROPENSITY in made.table.column_names
    if "propensity" not in roles and PROPENSITY in table.column_names and drawn:
        roles["propensity"] = PROPENSITY
    if made.served:
        roles["customer"] = key
    named = roles.get("customer")
    if named is not None and named not in table.column_names:
        del roles["customer"]
    # A plan need not give every level to somebody.
    roles["absent"] = True
    found = engine.read_log(replace(campaign, levels=made.policy.levels, roles=roles, propensities=None), table).seen
    lost = (name for name in made.policy.model.encoder_.features if name not in found.features.column_names)
    hint = "write it as in the log that the model learnt from"
    refuse(
        "check",
        [
            Problem(f"the feature {name!r} cannot be used: the new log holds it as {table[name].type}", hint)
            for name in lost
            if name in table.column_names
        ],
    )
    return found


def _name_rows(made: Made, table: pa.Table, key: str) -> pa.Table:
    """Return the new log with ids that tell decisions apart, where customers came more than once."""
    assert made.table is not None
    if key not in table.column_names:
        hint = "largesse log RUN --ledger … writes a log with them"
        fail("check", Problem(f"the new log has no column {key!r}, which says whose decisions its rows are", hint))
    repeated = not come_once(made.table)
    if repeated and REQUEST not in table.column_names:
        hint = f"add the column {REQUEST!r}, with the ids of the requests: largesse log RUN --ledger … writes it"
        fail("check", Problem("customers came more than once, and the new log does not say with which request", hint))
    ids = join_ids(table, key, requests=repeated)
    found = table.set_column(table.column_names.index(key), key, ids)
    return found.drop_columns([REQUEST]) if REQUEST in found.column_names else found


def _read_old(home: Path, made: Made, engine: Engine) -> tuple[Log | None, Scores | None]:
    """Return the log that the model learnt from and what models that did not see a row expect of it, if they are there."""
    try:
        old = engine.read_log(made.campaign)
    except (LargesseError, OSError):
        return None, None
    kept = read_kept(home / files.SCORES, key_of(made.campaign, old), old)
    if kept is None or kept[1] is None:
        return old, None
    return old, score_rows(old, kept[0], kept[1])


def _join(made: Made, log: Log) -> tuple[Log, Promise]:
    """Return the rows of the new log that are in the plan, and what it promised them; without ids, the policy decides."""
    promise = promise_anew(made.policy, log, made.budget)
    if log.customer is None or made.table is None or not (made.served or made.campaign.roles.get("customer")):
        return log, promise
    held = join_ids(made.table, CUSTOMER, requests=made.served and not come_once(made.table))
    ids, asked = (np.asarray([str(one) for one in part.to_pylist()]) for part in (held, log.customer))
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids[order], asked), len(ids) - 1)
    found = ids[order][place] == asked
    if not found.any() and made.served:
        hint = "give the ledger and the log of one campaign, with the ids that the service was asked with"
        fail("check", Problem("no customer of the new log is in the ledger", hint))
    if not found.any():
        return log, replace(promise, outside=len(log))
    # By id: in whatever order the log comes, ties are split and folds are drawn alike.
    rows = np.flatnonzero(found)[np.argsort(asked[found], kind="stable")]
    at, log = order[place][rows], log.take(rows)

    def column(name: str) -> Array:
        assert made.table is not None
        return np.asarray(made.table[name].to_numpy())[at]

    drawn = PROPENSITY in made.table.column_names
    return log, replace(
        promise,
        levels=column("level_number").astype(np.int64),
        expected=column("expected_response").astype(np.float64),
        costs=column("expected_cost").astype(np.float64),
        curves=promise.curves[rows],
        likely=None,
        propensity=column(PROPENSITY).astype(np.float64) if drawn else None,
        joined=len(rows),
        outside=int((~found).sum()),
    )


def _add_errors(made: Made, promise: Promise, scores: Scores | None) -> Promise:
    """Add what held-out rows of the old log say about the promise: by how much it is off, and how sure that is."""
    if scores is None or made.budget is None:
        return promise
    how = made.campaign.planning
    plan = plan_held_out(scores, made.budget, measure_spending(scores), how.budget_confidence)
    value, spend = estimate_value(scores, plan.levels)
    told = float(np.average(scores.curves[np.arange(len(scores.level)), plan.levels], weights=scores.weight))
    if made.campaign.customers is None and promise.joined is not None and not made.served:
        # The log's own customers: the model saw them, and its plan for them promises more than held-out models do.
        told = made.numbers["planned"]["value"]
    honest = Estimate(value.estimate - told, value.se, value.low - told, value.high - told)
    error = 0.0
    if not scores.certain:
        error = spend.se / spend.estimate if spend.estimate > 0 and np.isfinite(spend.se) else 0.0
    return replace(promise, honest=honest, spend_error=error)


def _add_price(made: Made, promise: Promise, log: Log) -> Promise:
    """Add the price of the plan's budget, then and now; under constraints there is none to compare."""
    if made.budget is None or made.campaign.planning.constrained or not made.policy.price:
        return promise
    now = find_price(made.policy, log, made.budget, made.numbers["customers"], made.campaign.seed)
    return replace(promise, price=made.policy.price, price_now=now)


def _look_back(made: Made, old: Log, scores: Scores | None) -> Before:
    seen = old.seen
    curves = made.policy.model.predict(seen) if scores is None or old.sample is not None else scores.curves
    residual = seen.response - curves[np.arange(len(seen)), seen.level]
    return Before(seen.features, residual, seen.cluster, seen.binary)
