"""Next log: decisions of a plan or a service joined with features, propensities and responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.campaign import Campaign, read_campaign
from largesse.data import read_table
from largesse.errors import Problem, fail, join_some, plural, refuse, suggest
from largesse.levels import Levels
from largesse.monitoring import CUSTOMER, PROPENSITY, REQUEST, has_unique_ids, make_text_ids
from largesse.pipeline import run_folder as files
from largesse.pipeline.table_writer import write_table
from largesse.policy import Policy
from largesse.records import find_last_row_per_id

if TYPE_CHECKING:
    import pyarrow as pa

OLD_ROLES = ("propensity", "propensity_strata", "logger")  # of the old log's policy; the new log has propensities


def write_next_log(
    folder: str | Path,
    out: str | Path,
    *,
    decisions: pa.Table | None = None,
    tables: Sequence[str] = (),
    missing: float | None = None,
    campaign_file: str | Path | None = None,
) -> dict[str, Any]:
    """Write the next log: each decision with its features, propensity and response.

    Parameters
    ----------
    decisions
        The decisions of a service; None: the plan of the run folder.
    tables
        Tables with features and responses, one row for each customer. The first that has a column gives it.
    missing
        The response of customers who are in no table of responses; None: there must be none.
    campaign_file
        Where to write a campaign file that reads the log.
    """
    if campaign_file is not None and Path(campaign_file).absolute() == Path(out).absolute():
        fail("log", Problem(f"{out} is to be both the log and its campaign file", "give two names"))
    if campaign_file is not None and Path(campaign_file).exists():
        fail("log", Problem(f"{campaign_file} already exists", "give another name for the campaign file, or remove it"))
    with files.read_run_folder(folder) as home:
        campaign, policy = read_campaign(home), Policy.load(home / files.POLICY_FILE)
        inputs = (*tables, campaign.customers, campaign.log)
        files.check_table_path(out, *inputs, own="")
        files.check_output_file(campaign_file, *inputs)
        served = decisions is not None
        decided = _read_plan(home, campaign) if decisions is None else decisions
    features = list(campaign.roles.get("features") or policy.model.encoder_.features)
    key = campaign.columns.get("customer", CUSTOMER)
    join = DecisionJoin(decided, key, _read_tables(tables, campaign, key, served))
    log = _make_next_log_table(join, campaign, policy.levels, features, served, missing)
    write_table(log, Path(out))
    if campaign_file is not None:
        roles: Any = {role: column for role, column in campaign.roles.items() if role not in OLD_ROLES}
        roles |= {"propensity": campaign.columns.get("propensity", PROPENSITY), "features": features}
        after = replace(
            campaign.with_log(str(Path(out).absolute())),
            customers=None,
            customers_query="",
            roles=roles,
            propensities=None,
        )
        files.write_text(Path(campaign_file), after.text)
    return {
        "rows": len(log),
        "customers": len(log[key].unique()),
        "drawn": int((np.asarray(decided[PROPENSITY]) < 1).sum()),
        "others": join.count_responses_without_decision(campaign.columns["response"]),
        "columns": log.column_names,
    }


def _read_plan(home: Path, campaign: Campaign) -> pa.Table:
    """Return the decisions of a plan with propensities, which are 1 without exploration."""
    import pyarrow as pa

    path = home / files.PLAN_FILE
    if not path.is_file():
        fail("log", Problem(f"{home} holds no plan", "plan first: largesse plan; or name the ledger: --ledger"))
    if "customer" not in campaign.columns:
        hint = 'add customer = "…" under [columns] and plan again; or name the ledger: --ledger'
        fail("log", Problem("the plan does not say who its customers are", hint))
    table = read_table(path, what="plan", plain=[CUSTOMER])
    if PROPENSITY in table.column_names:
        return table
    return table.append_column(PROPENSITY, pa.array(np.ones(len(table))))


@dataclass(frozen=True, eq=False)
class JoinTable:
    """Table of features or responses to join with decisions."""

    table: pa.Table
    name: str
    outcomes: bool = True  # whether it may hold responses


def _read_tables(tables: Sequence[str], campaign: Campaign, key: str, served: bool) -> list[JoinTable]:
    """Read the tables to join, with the planned customer table last.

    Features stay as they are written: the reader of the next log parses them.
    """
    import pyarrow.compute as pc

    outcomes = {campaign.columns.get(role) for role in ("response", "cost_column")}
    parse = campaign.roles.get("parse") or {}
    parse = {name: way for name, way in parse.items() if way == "text" or name in outcomes}
    sources = []
    for name in tables:
        table = read_table(name, what="table", plain=[key, REQUEST])
        ways = {column: way for column, way in parse.items() if column in table.column_names}
        table = read_table(name, what="table", plain=[key, REQUEST], parse=ways) if ways else table
        doubled = sorted({column for column in table.column_names if table.column_names.count(column) > 1})
        refuse("log", [Problem(f"{name} has two columns {column!r}", "rename one of them") for column in doubled])
        sources.append(JoinTable(table, str(name)))
    if not served:
        planned = campaign.customers or campaign.log
        table = read_table(campaign.customers_source or campaign.source, what="customers", plain=[key], parse=parse)
        response = campaign.columns["response"]
        if campaign.customers is None and {key, response}.issubset(table.column_names):
            # A customer with several rows was planned by the last one with a response.
            table = table.filter(pc.invert(pc.is_null(table[response], nan_is_null=True)))
            table = table.take(find_last_row_per_id(table[key].combine_chunks()))
        sources.append(JoinTable(table, planned, outcomes=False))
    without = [source for source in sources if key not in source.table.column_names]
    refuse("log", [Problem(f"{s.name} has no column {key!r}", suggest(key, s.table.column_names)) for s in without])
    return sources


def _make_next_log_table(
    join: DecisionJoin, campaign: Campaign, levels: Levels, features: list[str], served: bool, missing: float | None
) -> pa.Table:
    """Return the table of the next log, or raise an error about missing or ambiguous rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns, decisions, parse = campaign.columns, join.decisions, campaign.roles.get("parse") or {}

    def convert_to_notation(name: str, values: Any) -> Any:
        """Convert numbers to the campaign's notation, such as per cent."""
        return pc.multiply(pc.cast(values, "float64"), 100.0) if parse.get(name) == "percent" else values

    known = [*features, *(levels.cost_columns or ())]
    known += campaign.roles.get("protected") or []
    known += [columns[role] for role in ("cluster", "weight") if role in columns]
    outcomes = [columns["response"]]
    cost, propensity = columns.get("cost_column"), columns.get("propensity", PROPENSITY)
    if cost is not None and not served:
        outcomes.append(cost)
    join.check_columns(known, outcomes)
    log: dict[str, Any] = {join.key: decisions[CUSTOMER]} | {name: join.take_feature(name) for name in known}
    names = levels.names or levels.doses or tuple(range(len(levels)))
    log[columns["level"]] = pa.array(np.array(names)[np.asarray(decisions["level_number"])])
    log[propensity] = convert_to_notation(propensity, decisions[PROPENSITY])
    for name in outcomes:
        log[name] = convert_to_notation(name, join.take_outcome(name, missing))
    if cost is not None and served:
        redeemed = np.nan_to_num(np.asarray(decisions["redeemed"], dtype=np.float64))
        log[cost] = pa.array(np.asarray(decisions["paid_at_once"]) + redeemed)
    refuse("log", join.problems)
    if REQUEST in decisions.column_names and not has_unique_ids(decisions):
        log[REQUEST] = decisions[REQUEST]
    return pa.table(log)


@dataclass(frozen=True, eq=False)
class DecisionJoin:
    """Join of decisions with tables of features and responses."""

    decisions: pa.Table
    key: str  # column of the ids
    tables: list[JoinTable]
    problems: list[Problem] = field(default_factory=list)
    matches: dict[JoinTable, tuple[Any, Any]] = field(
        default_factory=dict
    )  # ids, and the place of each decision in them

    def check_columns(self, known: Sequence[str], outcomes: Sequence[str]) -> None:
        """Raise an error for columns that no table has."""
        problems = []
        features = "levels were decided by: --join visits.csv"
        responses = "says what came of it: --join orders.csv"
        for names, outcome, hint in ((known, False, features), (outcomes, True, responses)):
            present = {name for t in self.tables if t.outcomes or not outcome for name in t.table.column_names}
            if absent := [repr(name) for name in names if name not in present]:
                problems.append(Problem(f"no table has {join_some(absent)}", f"add the table that {hint}"))
        refuse("log", problems)

    def count_responses_without_decision(self, response: str) -> int:
        """Count the response rows of customers without a decision."""
        import pyarrow.compute as pc

        ours = make_text_ids(self.decisions, CUSTOMER, requests=False).combine_chunks()
        theirs = make_text_ids(self._find_table(response, outcome=True).table, self.key, requests=False)
        return int(pc.sum(pc.invert(pc.is_in(theirs, value_set=ours))).as_py() or 0)

    def take_feature(self, name: str) -> Any:
        """Return a feature column for all decisions, and note decisions without a value as a problem."""
        source = self._find_table(name, outcome=False)
        _, places = self._match_decisions(source)
        self._add_missing(
            places.is_null(), "the customers of ", "are not in", source, f"{name!r} is needed of everyone"
        )
        return source.table[name].take(places)

    def take_outcome(self, name: str, missing: float | None) -> Any:
        """Return a column of responses or costs for all decisions, with `missing` for missing values."""
        import pyarrow.compute as pc

        source = self._find_table(name, outcome=True)
        ids, places = self._match_decisions(source)
        if not self._has_requests(source) and not has_unique_ids(self.decisions):
            got = f"{source.name} does not say which response belongs to which request"
            hint = f"add the column {REQUEST!r} to it, with the ids of the requests"
            self.problems.append(Problem(f"customers came more than once, and {got}", hint))
        values = source.table[name].take(places)
        if len(ids) and places.null_count == len(places):  # with `missing`, all of them would be filled
            theirs, ours = _list_ids(ids.drop_null()), _list_ids(self.decisions[CUSTOMER])
            got = f"{source.name} has no row of a customer who was decided for: it has {theirs}, the plan {ours}"
            hint = "write ids in the same way in both tables; a spreadsheet may have removed leading zeros"
            self.problems.append(Problem(got, hint))
        elif missing is not None:
            return pc.fill_null(pc.cast(values, "float64"), missing)
        else:
            hint = "give them one; or, where no response means that nothing happened: --missing 0"
            self._add_missing(values.is_null(), "", f"have no {name!r} in", source, hint)
        return values

    def _find_table(self, name: str, *, outcome: bool) -> JoinTable:
        return next(t for t in self.tables if name in t.table.column_names and (t.outcomes or not outcome))

    def _has_requests(self, source: JoinTable) -> bool:
        return REQUEST in source.table.column_names and REQUEST in self.decisions.column_names

    def _match_decisions(self, source: JoinTable) -> tuple[Any, Any]:
        """Return a table's ids, and the position of each decision's id in the ids."""
        import pyarrow.compute as pc

        if source in self.matches:
            return self.matches[source]
        requests = self._has_requests(source)
        ids = make_text_ids(source.table, self.key, requests=requests)
        counts = pc.value_counts(ids.drop_null())
        repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
        if len(repeated):
            customers = f"{plural(len(repeated), 'customer')} ({self.key}: {_list_ids(repeated)})"
            hint = f"put one row for each in it; or add the column {REQUEST!r}, with the ids of the requests"
            self.problems.append(Problem(f"{source.name} has more than one row for {customers}", hint))
        wanted = make_text_ids(self.decisions, CUSTOMER, requests=requests)
        self.matches[source] = ids, pc.index_in(wanted, value_set=ids.combine_chunks())
        return self.matches[source]

    def _add_missing(self, rows: Any, subject: str, verb: str, source: JoinTable, hint: str) -> None:
        """Add a problem about decisions without a value."""
        if count := int(rows.to_numpy().sum()):
            ids = _list_ids(self.decisions[CUSTOMER].filter(rows))
            decisions = f"{subject}{count:,} of {len(self.decisions):,} decisions"
            self.problems.append(Problem(f"{decisions} {verb} {source.name} ({ids})", hint))


def _list_ids(ids: Any) -> str:
    """Format the first three ids as text; an id may consist of a request's id and a customer's id."""
    first = [str(value).replace("\x1f", " ") for value in ids.slice(0, 4).to_pylist()]
    return ", ".join(first[:3]) + (", …" if len(first) > 3 else "")
