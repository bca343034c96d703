"""The next log: the decisions of a plan or a service, with their features, propensities and responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.campaign import Campaign, read_campaign
from largesse.data import read_table
from largesse.errors import Problem, fail, join_some, plural, refuse, suggest
from largesse.levels import Levels
from largesse.monitoring import CUSTOMER, PROPENSITY, REQUEST, has_unique_ids, join_ids
from largesse.pipeline import folder as files
from largesse.pipeline.write import write_table
from largesse.policy import Policy

if TYPE_CHECKING:
    import pyarrow as pa

OLD_ROLES = ("propensity", "propensity_strata", "logger")  # how the old log chose; the new one says it itself


def write_next_log(
    folder: str | Path,
    out: str | Path,
    *,
    decisions: pa.Table | None = None,
    tables: Sequence[str] = (),
    missing: float | None = None,
    campaign_file: str | Path | None = None,
) -> dict[str, Any]:
    """Write the next log: every decision with the features it was made by, its propensity and its response.

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
    with files.look_into_run_folder(folder) as home:
        campaign, policy = read_campaign(home), Policy.load(home / files.POLICY)
        inputs = (*tables, campaign.customers, campaign.log)
        files.check_table(out, *inputs, own="")
        files.check_file(campaign_file, *inputs)
        served = decisions is not None
        decided = _read_plan(home, campaign) if decisions is None else decisions
    features = list(campaign.roles.get("features") or policy.model.encoder_.features)
    key = campaign.columns.get("customer", CUSTOMER)
    join = _Join(campaign, policy.levels, key, features, decided, served, _read_tables(tables, campaign, key, served))
    table = join.make_log(missing)
    write_table(table, Path(out))
    if campaign_file is not None:
        roles: Any = {role: column for role, column in campaign.roles.items() if role not in OLD_ROLES}
        roles |= {"propensity": join.propensity_column, "features": features}
        after = replace(campaign, log=str(Path(out).absolute()), customers=None, roles=roles, propensities=None)
        files.write_text(Path(campaign_file), after.text)
    return {
        "rows": len(table),
        "customers": len(table[key].unique()),
        "drawn": int((np.asarray(decided[PROPENSITY]) < 1).sum()),
        "others": join.count_others(),
        "columns": table.column_names,
    }


def _read_plan(home: Path, campaign: Campaign) -> pa.Table:
    """Return the plan's decisions, with the propensity 1 if nothing was drawn."""
    import pyarrow as pa

    path = home / files.PLAN
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
class _Source:
    """A table to join."""

    table: pa.Table
    name: str
    outcomes: bool = True  # whether it may hold responses


def _read_tables(tables: Sequence[str], campaign: Campaign, key: str, served: bool) -> list[_Source]:
    """Return the tables to join, and last the table of customers that was planned for, which holds no responses.

    Features stay as they are written: the reader of the next log parses them.
    """
    outcomes = {campaign.columns.get(role) for role in ("response", "cost_column")}
    parse = {
        name: way for name, way in (campaign.roles.get("parse") or {}).items() if way == "text" or name in outcomes
    }
    sources = []
    for name in tables:
        table = read_table(name, what="table", plain=[key, REQUEST])
        ways = {column: way for column, way in parse.items() if column in table.column_names}
        table = read_table(name, what="table", plain=[key, REQUEST], parse=ways) if ways else table
        doubled = sorted({column for column in table.column_names if table.column_names.count(column) > 1})
        refuse("log", [Problem(f"{name} has two columns {column!r}", "rename one of them") for column in doubled])
        sources.append(_Source(table, str(name)))
    if not served:
        planned = campaign.customers or campaign.log
        table = read_table(planned, what="customers", plain=[key], parse=parse)
        sources.append(_Source(table, planned, outcomes=False))
    problems = [
        Problem(
            f"{source.name} has no column {key!r}",
            suggest(key, source.table.column_names) or "each table needs the customers' ids",
        )
        for source in sources
        if key not in source.table.column_names
    ]
    refuse("log", problems)
    return sources


@dataclass(frozen=True, eq=False)
class _Join:
    """Decisions and the tables that hold their features and responses."""

    campaign: Campaign
    levels: Levels
    key: str  # column of the ids
    features: list[str]
    decided: pa.Table
    served: bool  # by a service, with a ledger
    sources: list[_Source]

    @property
    def propensity_column(self) -> str:
        """The column of the propensities, named as in the old log."""
        return str(self.campaign.columns.get("propensity", PROPENSITY))

    def make_log(self, missing: float | None) -> pa.Table:
        """Return the rows of the next log, or name everything that is missing or ambiguous."""
        import pyarrow as pa

        columns = self.campaign.columns
        known = [*self.features, *(self.levels.cost_columns or ())]
        known += [columns[role] for role in ("cluster", "weight") if role in columns]
        outcomes = [columns["response"]]
        if "cost_column" in columns and not self.served:
            outcomes.append(columns["cost_column"])
        refuse("log", self._find_absent(known, outcomes))
        problems: list[Problem] = []
        log: dict[str, Any] = {self.key: self.decided[CUSTOMER]}
        for name in known:
            log[name] = self._find(name, problems)
        names = self.levels.names or self.levels.doses or tuple(range(len(self.levels)))
        log[str(columns["level"])] = pa.array(np.array(names)[np.asarray(self.decided["level_number"])])
        log[self.propensity_column] = self._write(self.propensity_column, self.decided[PROPENSITY])
        for name in outcomes:
            log[name] = self._write(name, self._find_outcome(name, missing, problems))
        if "cost_column" in columns and self.served:
            redeemed = np.nan_to_num(np.asarray(self.decided["redeemed"], dtype=np.float64))
            log[columns["cost_column"]] = pa.array(np.asarray(self.decided["paid_at_once"]) + redeemed)
        refuse("log", problems)
        if REQUEST in self.decided.column_names and not has_unique_ids(self.decided):
            log[REQUEST] = self.decided[REQUEST]
        return pa.table(log)

    def count_others(self) -> int:
        """Count the rows of responses of customers without a decision."""
        import pyarrow.compute as pc

        source = self._source(self.campaign.columns["response"], outcome=True)
        ours = join_ids(self.decided, CUSTOMER, requests=False).combine_chunks()
        theirs = join_ids(source.table, self.key, requests=False)
        return int(pc.sum(pc.invert(pc.is_in(theirs, value_set=ours))).as_py() or 0)

    def _find_absent(self, known: Sequence[str], outcomes: Sequence[str]) -> list[Problem]:
        """Return the columns that no table has."""
        problems = []
        features = "levels were decided by: --join visits.csv"
        responses = "says what came of it: --join orders.csv"
        for names, outcome, hint in ((known, False, features), (outcomes, True, responses)):
            held = {name for s in self.sources if s.outcomes or not outcome for name in s.table.column_names}
            if absent := [repr(name) for name in names if name not in held]:
                problems.append(Problem(f"no table has {join_some(absent)}", f"add the table that {hint}"))
        return problems

    def _source(self, name: str, *, outcome: bool) -> _Source:
        return next(s for s in self.sources if name in s.table.column_names and (s.outcomes or not outcome))

    def _match(self, source: _Source, problems: list[Problem]) -> tuple[Any, Any, bool]:
        """Return the ids of a table, the place of each decision among them, and whether requests are part of the ids."""
        import pyarrow.compute as pc

        requests = REQUEST in source.table.column_names and REQUEST in self.decided.column_names
        ids = join_ids(source.table, self.key, requests=requests)
        counts = pc.value_counts(ids.drop_null())
        twice = counts.filter(pc.greater(counts.field("counts"), 1))
        if len(twice):
            hint = f"put one row for each in it; or add the column {REQUEST!r}, with the ids of the requests"
            whom = f"{plural(len(twice), 'customer')} ({self.key}: {_list_ids(twice.field('values'))})"
            problems.append(Problem(f"{source.name} has more than one row for {whom}", hint))
        wanted = join_ids(self.decided, CUSTOMER, requests=requests)
        return ids, pc.index_in(wanted, value_set=ids.combine_chunks()), requests

    def _find(self, name: str, problems: list[Problem]) -> Any:
        """Return a column that every decision must have."""
        source = self._source(name, outcome=False)
        _, place, _ = self._match(source, problems)
        lost = place.is_null()
        if lost.to_numpy().any():
            got = f"the customers of {self._count(lost)} are not in {source.name} ({_list_ids(self._ids(lost))})"
            problems.append(Problem(got, f"{name!r} is needed of everyone"))
        return source.table[name].take(place)

    def _find_outcome(self, name: str, missing: float | None, problems: list[Problem]) -> Any:
        """Return a column of responses or costs, with `missing` for decisions that have none."""
        import pyarrow.compute as pc

        source = self._source(name, outcome=True)
        ids, place, requests = self._match(source, problems)
        if not requests and not has_unique_ids(self.decided):
            got = (
                f"customers came more than once, and {source.name} does not say which response belongs to which request"
            )
            problems.append(Problem(got, f"add the column {REQUEST!r} to it, with the ids of the requests"))
        values = source.table[name].take(place)
        if len(ids) and place.null_count == len(place):  # with `missing`, all of them would be filled
            theirs, ours = _list_ids(ids.drop_null()), _list_ids(self.decided[CUSTOMER])
            got = f"{source.name} has no row of a customer who was decided for: it has {theirs}, the plan {ours}"
            problems.append(Problem(got, "write ids in both alike; did a spreadsheet take zeros off the front?"))
            return values
        if missing is not None:
            return pc.fill_null(pc.cast(values, "float64"), missing)
        lost = values.is_null()
        if lost.to_numpy().any():
            got = f"{self._count(lost)} have no {name!r} in {source.name} ({_list_ids(self._ids(lost))})"
            hint = "give them one; or, where no response means that nothing happened: --missing 0"
            problems.append(Problem(got, hint))
        return values

    def _write(self, name: str, values: Any) -> Any:
        """Return numbers in the notation of the campaign: a column that is parsed as per cent is written so."""
        import pyarrow.compute as pc

        percent = (self.campaign.roles.get("parse") or {}).get(name) == "percent"
        return pc.multiply(pc.cast(values, "float64"), 100.0) if percent else values

    def _count(self, rows: Any) -> str:
        return f"{int(rows.to_numpy().sum()):,} of {len(self.decided):,} decisions"

    def _ids(self, rows: Any) -> Any:
        return self.decided[CUSTOMER].filter(rows)


def _list_ids(ids: Any) -> str:
    """Return the first three ids; those of requests are followed by the customer's."""
    first = [str(one).replace("\x1f", " ") for one in ids.slice(0, 4).to_pylist()]
    return ", ".join(first[:3]) + (", …" if len(first) > 3 else "")
