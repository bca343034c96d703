"""The next log: what a plan or a ledger decided, with the features it was decided by and what came of it."""

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
from largesse.pipeline.planned import Target
from largesse.pipeline.writing import open_writer
from largesse.policy import Policy
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

OLD_ROLES = ("propensity", "propensity_strata", "logger")  # how the old log chose; the new one says it itself


@dataclass(frozen=True)
class Wanted:
    """What the next log is made from.

    Parameters
    ----------
    decisions
        The decisions of a ledger; None: the plan of the run folder.
    tables
        Tables with features and responses, one row for each customer. The first that has a column gives it.
    missing
        The response of customers who are in no table that has it; None: there must be none.
    """

    decisions: pa.Table | None = None
    tables: Sequence[str] = ()
    missing: float | None = None


def write_log(
    folder: str | Path, wanted: Wanted, out: str | Path, *, campaign_file: str | Path | None = None
) -> dict[str, Any]:
    """Write the next log: every decision with the features it was made by, its propensity and the response that came.

    With `campaign_file`, a campaign file that reads it is written, too.
    """
    if campaign_file is not None and Path(campaign_file).absolute() == Path(out).absolute():
        fail("log", Problem(f"{out} is to be both the log and its campaign file", "give two names"))
    if campaign_file is not None and Path(campaign_file).exists():
        fail("log", Problem(f"{campaign_file} already exists", "give another name for the campaign file, or remove it"))
    with files.look_into_run_folder(folder) as home:
        campaign, policy = read_campaign(home), Policy.load(home / files.POLICY)
        inputs = (*wanted.tables, campaign.customers, campaign.log)
        files.check_table(out, *inputs, own="")
        files.check_file(campaign_file, *inputs)
        decided = _read_plan(home, campaign) if wanted.decisions is None else wanted.decisions
    key = campaign.columns.get("customer", CUSTOMER)
    features = list(campaign.roles.get("features") or policy.model.encoder_.features)
    sources, needs = _read_tables(wanted, campaign, key), _Needs(campaign, policy.levels, key, features, wanted)
    table = _attach(decided, sources, needs)
    write_table(table, Path(out))
    propensity = str(campaign.columns.get("propensity", PROPENSITY))
    if campaign_file is not None:
        _write_campaign(campaign, Path(out), Path(campaign_file), propensity, features)
    drawn = int((np.asarray(decided[PROPENSITY]) < 1).sum())
    counts = {"rows": len(table), "customers": len(table[key].unique()), "drawn": drawn}
    return {**counts, "others": _count_others(decided, sources, needs), "columns": table.column_names}


def _read_plan(home: Path, campaign: Campaign) -> pa.Table:
    """Return the plan's decisions; what it gives surely has the propensity 1."""
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
class _Needs:
    """The columns that the next log must have, and where they may come from."""

    campaign: Campaign
    levels: Levels
    key: str
    features: list[str]
    wanted: Wanted

    @property
    def known(self) -> list[str]:
        """Columns that are known when levels are chosen."""
        roles = [self.campaign.columns[role] for role in ("cluster", "weight") if role in self.campaign.columns]
        return list(dict.fromkeys((*self.features, *(self.levels.cost_columns or ()), *roles)))

    @property
    def outcomes(self) -> list[str]:
        """Columns that are known afterwards."""
        columns = self.campaign.columns
        paid = [columns["cost_column"]] if "cost_column" in columns and self.wanted.decisions is None else []
        return [columns["response"], *paid]

    def write(self, name: str, values: Any) -> Any:
        """Return numbers as the campaign says that the column is written: what is read as per cent is written so."""
        import pyarrow.compute as pc

        percent = (self.campaign.roles.get("parse") or {}).get(name) == "percent"
        return pc.multiply(pc.cast(values, "float64"), 100.0) if percent else values


@dataclass(frozen=True, eq=False)
class _Source:
    """A table to join, what it is called, and whether it may say what came of a decision."""

    table: pa.Table
    name: str
    outcomes: bool = True


def _read_tables(wanted: Wanted, campaign: Campaign, key: str) -> list[_Source]:
    """Return the tables to join; those that were planned for come last, and say nothing about what came of it.

    Features stay as they are written: whoever reads the next log parses them, and must not find them parsed already.
    """
    after = {campaign.columns.get(role) for role in ("response", "cost_column")}
    parse = {name: way for name, way in (campaign.roles.get("parse") or {}).items() if way == "text" or name in after}
    found = []
    for name in wanted.tables:
        table = read_table(name, what="table", plain=[key, REQUEST])
        own = {word: way for word, way in parse.items() if word in table.column_names}
        table = read_table(name, what="table", plain=[key, REQUEST], parse=own) if own else table
        doubled = sorted({word for word in table.column_names if table.column_names.count(word) > 1})
        refuse("log", [Problem(f"{name} has two columns {word!r}", "rename one of them") for word in doubled])
        found.append(_Source(table, str(name)))
    if wanted.decisions is None:
        source = campaign.customers or campaign.log
        found.append(_Source(read_table(source, what="customers", plain=[key], parse=parse), source, outcomes=False))
    lacking = [one for one in found if key not in one.table.column_names]
    hint = "each table needs the customers' ids"
    refuse(
        "log",
        [Problem(f"{one.name} has no column {key!r}", suggest(key, one.table.column_names) or hint) for one in lacking],
    )
    return found


def _attach(decided: pa.Table, sources: list[_Source], needs: _Needs) -> pa.Table:
    """Return the rows of the next log."""
    import pyarrow as pa

    columns: dict[str, Any] = {needs.key: decided[CUSTOMER]}
    problems = _name_absent(sources, needs)
    refuse("log", problems)
    for name in needs.known:
        columns[name] = _find(name, decided, sources, needs, problems)
    number = np.asarray(decided["level_number"])
    columns[str(needs.campaign.columns["level"])] = pa.array(np.array(_write_levels(needs.levels))[number])
    name = str(needs.campaign.columns.get("propensity", PROPENSITY))
    columns[name] = needs.write(name, decided[PROPENSITY])
    for name in needs.outcomes:
        columns[name] = needs.write(name, _find(name, decided, sources, needs, problems, outcome=True))
    if "cost_column" in needs.campaign.columns and needs.wanted.decisions is not None:
        redeemed = np.nan_to_num(np.asarray(decided["redeemed"], dtype=np.float64))
        columns[needs.campaign.columns["cost_column"]] = pa.array(np.asarray(decided["paid_at_once"]) + redeemed)
    refuse("log", problems)
    if REQUEST in decided.column_names and not has_unique_ids(decided):
        columns[REQUEST] = decided[REQUEST]
    return pa.table(columns)


def _name_absent(sources: list[_Source], needs: _Needs) -> list[Problem]:
    """Return which columns no table has."""
    known, came = (
        {name for one in sources if one.outcomes or not after for name in one.table.column_names}
        for after in (False, True)
    )
    lost = [name for name in needs.known if name not in known]
    found = []
    if lost:
        hint = "add the table that levels were decided by: --join visits.csv"
        found.append(Problem(f"no table has {join_some([repr(name) for name in lost])}", hint))
    lost = [name for name in needs.outcomes if name not in came]
    if lost:
        hint = "add the table that says what came of it: --join orders.csv"
        found.append(Problem(f"no table has {join_some([repr(name) for name in lost])}", hint))
    return found


def _find(
    name: str,
    decided: pa.Table,
    sources: list[_Source],
    needs: _Needs,
    problems: list[Problem],
    *,
    outcome: bool = False,
) -> Any:
    """Return a column for the decided customers, from the first table that has it."""
    import pyarrow.compute as pc

    source = next(one for one in sources if name in one.table.column_names and (one.outcomes or not outcome))
    requests = REQUEST in source.table.column_names and REQUEST in decided.column_names
    held = join_ids(source.table, needs.key, requests=requests)
    problems += _doubt_ids(held, source, needs.key)
    if outcome and not requests and not has_unique_ids(decided):
        got = f"customers came more than once, and {source.name} does not say which response belongs to which request"
        problems.append(Problem(got, f"add the column {REQUEST!r} to it, with the ids of the requests"))
    place = pc.index_in(join_ids(decided, CUSTOMER, requests=requests), value_set=held.combine_chunks())
    values = source.table[name].take(place)
    if outcome and len(held) and place.null_count == len(place):
        problems.append(_name_strangers(held, decided, source))
        return values
    lost = (pc.is_null(values) if outcome else pc.is_null(place)).to_numpy()
    if outcome and needs.wanted.missing is not None:
        return pc.fill_null(pc.cast(values, "float64"), needs.wanted.missing)
    if lost.any():
        problems.append(_name_lost(name, decided, np.flatnonzero(lost), source, outcome=outcome))
    return values


def _count_others(decided: pa.Table, sources: list[_Source], needs: _Needs) -> int:
    """Return how many rows of the responses are of customers who were not decided for."""
    import pyarrow.compute as pc

    name = needs.outcomes[0]
    source = next(one for one in sources if one.outcomes and name in one.table.column_names)
    ours = join_ids(decided, CUSTOMER, requests=False).combine_chunks()
    return int(
        pc.sum(pc.invert(pc.is_in(join_ids(source.table, needs.key, requests=False), value_set=ours))).as_py() or 0
    )


def _name_strangers(held: pa.ChunkedArray, decided: pa.Table, source: _Source) -> Problem:
    """Say that a table of responses speaks of nobody who was decided for, so that missing ones would all be zeros."""
    theirs, ours = (
        [one.replace("\x1f", " ") for one in ids[:4].to_pylist() if one] for ids in (held, decided[CUSTOMER])
    )
    got = f"{source.name} has no row of a customer who was decided for: it has {_name_few(theirs)}, the plan {_name_few(ours)}"
    return Problem(got, "write ids in both alike; did a spreadsheet take zeros off the front?")


def _name_lost(name: str, decided: pa.Table, lost: Array, source: _Source, *, outcome: bool) -> Problem:
    whom = _name_few(decided[CUSTOMER].take(lost[:4]).to_pylist())
    many = f"{len(lost):,} of {len(decided):,} decisions"
    if outcome:
        hint = "give them one; or, where no response means that nothing happened: --missing 0"
        return Problem(f"{many} have no {name!r} in {source.name} ({whom})", hint)
    return Problem(f"the customers of {many} are not in {source.name} ({whom})", f"{name!r} is needed of everyone")


def _doubt_ids(held: pa.ChunkedArray, source: _Source, key: str) -> list[Problem]:
    """Return whether a customer has two rows in a table."""
    import pyarrow.compute as pc

    counts = pc.value_counts(held.drop_null())
    twice = counts.filter(pc.greater(counts.field("counts"), 1))
    if not len(twice):
        return []
    whom = _name_few([one.replace("\x1f", " ") for one in twice.field("values").slice(0, 4).to_pylist()])
    hint = f"put one row for each in it; or add the column {REQUEST!r}, with the ids of the requests"
    return [Problem(f"{source.name} has more than one row for {plural(len(twice), 'customer')} ({key}: {whom})", hint)]


def _name_few(ids: list[Any]) -> str:
    return ", ".join(map(str, ids[:3])) + (", …" if len(ids) > 3 else "")


def _write_levels(levels: Levels) -> tuple[Any, ...]:
    """Return the levels as a log writes them."""
    if levels.names is not None:
        return levels.names
    return levels.doses if levels.doses is not None else tuple(range(len(levels)))


def _write_campaign(campaign: Campaign, log: Path, out: Path, propensity: str, features: list[str]) -> None:
    """Write the campaign file of the next log: as before, with its propensities."""
    roles: Any = {role: column for role, column in campaign.roles.items() if role not in OLD_ROLES}
    roles |= {"propensity": propensity, "features": features}
    after = replace(campaign, log=str(log.absolute()), customers=None, roles=roles, propensities=None)
    files.write_text(out, after.text)


def write_table(table: pa.Table, out: Path) -> None:
    """Write a table to a file, in the format of its suffix."""
    with open_writer(Target(out)) as writer:
        writer.write(table)
