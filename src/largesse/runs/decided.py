"""What was decided, by a ledger or by a plan: as a table, and as the next log, beside what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data import read_table
from largesse.errors import LedgerError, Problem, count, fail, nearest, refuse, some
from largesse.levels import Levels
from largesse.pacing import ENTRY, KEPT, MICROS, Ledger, Reason, open_ledger, show_money, show_time
from largesse.policy import Policy
from largesse.records import Array
from largesse.runs import folder as files
from largesse.runs.campaign import Campaign, read_campaign
from largesse.runs.planned import Target
from largesse.runs.writing import open_writer

if TYPE_CHECKING:
    import pyarrow as pa

PROPENSITY, REQUEST, CUSTOMER = "propensity", "request", "customer"
OLD_ROLES = ("propensity", "propensity_strata", "logger")  # how the old log chose; the new one says it itself
MONEY = {"at_once": "paid_at_once", "face": "promised", "paid": "redeemed"}
TIMES = ("decided_at", "expires_at", "redeemed_at")


@dataclass(frozen=True)
class Wanted:
    """What the next log is made from.

    Parameters
    ----------
    ledger
        Where decisions were booked; None: the plan of the run folder.
    tables
        Tables with features and responses, one row for each customer. The first that has a column gives it.
    missing
        The response of customers who are in no table that has it; None: there must be none.
    """

    ledger: str | None = None
    tables: Sequence[str] = ()
    missing: float | None = None


def read_standing(address: str, total: Any = None, out: str | Path | None = None) -> dict[str, Any]:
    """Return where the budget of a ledger stands, after its decisions were added up again; `total` changes the budget.

    With `out`, all decisions are written there as a table.
    """
    _check_out(out)
    with open_ledger(address) as ledger:
        _refuse_wrong_sums(ledger)
        if total is not None:
            ledger.change_total(total)
        standing = ledger.standing()
        if out is not None:
            _write(tabulate(ledger), Path(out))
    period = {"starts": show_time(standing.terms.starts), "ends": show_time(standing.terms.ends)}
    words = {"ledger": repr(ledger)[len("Ledger(") : -1], "unit": standing.plan.get("unit", "")}
    return {**words, **standing.as_dict(), **period, "now": show_time(standing.now)}


def _refuse_wrong_sums(ledger: Ledger) -> None:
    """Refuse a ledger whose sums are not those of its decisions, before anything is changed or written."""
    told = [
        Problem(f"{name} is {kept:,} in the ledger, but {added:,} by its decisions")
        for name, (kept, added) in ledger.audit().differences.items()
    ]
    if told:
        raise LedgerError("ledger", [*told, Problem("something else changed the ledger", "restore a copy of it")])


def describe_standing(shown: Mapping[str, Any]) -> str:
    """Say in a few lines where the budget of a ledger stands."""
    words = {"total": "budget", "spent": "spent", "promised": "promised, not yet redeemed", "room": "left"}
    if shown["promises"] != KEPT:
        words |= {"promised": "promised while it lasts", "held": "of that will probably be redeemed"}
        words = {name: words[name] for name in ("total", "spent", "promised", "held", "room")}
    amounts = {word: show_money(round(shown[name] * MICROS)) for name, word in words.items()}
    wide, long = (max(map(len, part)) for part in (amounts, amounts.values()))
    lines = [f"  {word:<{wide}}  {amount:>{long}} {shown['unit']}".rstrip() for word, amount in amounts.items()]
    told = f"{count(shown['decisions'], 'decision')} in {count(shown['requests'], 'request')}"
    told += f", {shown['redemptions']:,} redeemed, {shown['expired']:,} expired; the sums are right"
    return "\n".join([f"{shown['ledger']}, from {shown['starts']} until {shown['ends']}", *lines, f"  {told}"])


def tabulate(ledger: Ledger) -> pa.Table:
    """Return the decisions of a ledger as a table with a row for each; its columns begin as those of a plan."""
    import pyarrow as pa

    try:
        return _tabulate(ledger)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, LedgerError):
            raise
        problem = Problem("the ledger is damaged: its decisions hold odd values", "restore it from a copy")
        raise LedgerError("ledger", [problem]) from error


def _tabulate(ledger: Ledger) -> pa.Table:
    import pyarrow as pa

    rows = list(ledger.decisions())
    found = dict(zip(ENTRY, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(ENTRY, ())
    names = ledger.standing().plan.get("levels")
    level = np.array(found["level"], dtype=np.int32)
    money = {name: np.array(found[name], dtype=np.float64) / MICROS for name in ("at_once", "face", "expected", "paid")}
    columns: dict[str, Any] = {REQUEST: pa.array(found[REQUEST], pa.string())}
    columns[CUSTOMER] = pa.array(found[CUSTOMER], pa.string())
    if isinstance(names, list) and (not len(level) or level.max() < len(names)):
        columns["level"] = pa.array([str(names[k]) for k in level], pa.string())
    columns["level_number"] = pa.array(level)
    columns["expected_response"] = pa.array(found["response"], pa.float64())
    columns["expected_cost"] = pa.array(money["at_once"] + money["expected"])
    columns[PROPENSITY] = pa.array(found[PROPENSITY], pa.float64())
    columns["price"] = pa.array(found["price"], pa.float64())
    columns["reason"] = pa.array([Reason(one).name.lower() for one in found["reason"]], pa.string())
    columns |= {word: pa.array(money[name], from_pandas=True) for name, word in MONEY.items()}
    columns["policy"] = pa.array(found["policy"], pa.string())
    columns |= {name: pa.array(found[name], pa.timestamp("us", tz="UTC")) for name in TIMES}
    return pa.table(columns)


def read_decided(address: str) -> pa.Table:
    """Return the decisions of a ledger; refuse one that has none."""
    with open_ledger(address) as ledger:
        found = tabulate(ledger)
    if not len(found):
        fail("ledger", Problem(f"{address} holds no decisions yet", "give the ledger that decisions were booked in"))
    return found


def join_ids(table: pa.Table, key: str, *, requests: bool) -> pa.ChunkedArray:
    """Return the ids of a table as text; with `requests`, each begins with the id of the request."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def as_text(name: str) -> pa.ChunkedArray:
        try:
            return pc.cast(table[name], pa.string())
        except pa.ArrowException:
            hint = "give ids as text or whole numbers"
            fail("tables", Problem(f"the column {name!r} holds no ids, but {table[name].type}", hint))

    ids = as_text(key)
    return pc.binary_join_element_wise(as_text(REQUEST), ids, "\x1f") if requests else ids


def come_once(table: pa.Table, key: str = CUSTOMER) -> bool:
    """Whether no customer has two rows."""
    import pyarrow.compute as pc

    return int(pc.count_distinct(table[key]).as_py()) == len(table)


def write_log(
    folder: str | Path, wanted: Wanted, out: str | Path, *, campaign_file: str | Path | None = None
) -> dict[str, Any]:
    """Write the next log: every decision with the features it was made by, its propensity and the response that came.

    With `campaign_file`, a campaign file that reads it is written, too.
    """
    _check_out(out, *wanted.tables)
    files.check_file(campaign_file, *wanted.tables, str(out))
    if campaign_file is not None and Path(campaign_file).exists():
        fail("log", Problem(f"{campaign_file} already exists", "give another name for the campaign file, or remove it"))
    with files.look_into_run_folder(folder) as home:
        campaign, policy = read_campaign(home), Policy.load(home / files.POLICY)
        decided = _read_plan(home, campaign) if wanted.ledger is None else read_decided(wanted.ledger)
    key = campaign.columns.get("customer", CUSTOMER)
    features = list(campaign.roles.get("features") or policy.model.encoder_.features)
    table = _attach(
        decided, _read_tables(wanted, campaign, key), _Needs(campaign, policy.levels, key, features, wanted)
    )
    _write(table, Path(out))
    propensity = str(campaign.columns.get("propensity", PROPENSITY))
    if campaign_file is not None:
        _write_campaign(campaign, Path(out), Path(campaign_file), propensity, features)
    drawn = int((np.asarray(table[propensity]) < 1).sum())
    return {"rows": len(table), "customers": len(table[key].unique()), "drawn": drawn, "columns": table.column_names}


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
        paid = [columns["cost_column"]] if "cost_column" in columns and self.wanted.ledger is None else []
        return [columns["response"], *paid]


@dataclass(frozen=True, eq=False)
class _Source:
    """A table to join, what it is called, and whether it may say what came of a decision."""

    table: pa.Table
    name: str
    outcomes: bool = True


def _read_tables(wanted: Wanted, campaign: Campaign, key: str) -> list[_Source]:
    """Return the tables to join; those that were planned for come last, and say nothing about what came of it."""
    parse = campaign.roles.get("parse") or {}
    found = []
    for name in wanted.tables:
        table = read_table(name, what="table", plain=[key, REQUEST])
        own = {word: way for word, way in parse.items() if word in table.column_names}
        table = read_table(name, what="table", plain=[key, REQUEST], parse=own) if own else table
        doubled = sorted({word for word in table.column_names if table.column_names.count(word) > 1})
        refuse("log", [Problem(f"{name} has two columns {word!r}", "rename one of them") for word in doubled])
        found.append(_Source(table, str(name)))
    if wanted.ledger is None:
        source = campaign.customers or campaign.log
        found.append(_Source(read_table(source, what="customers", plain=[key], parse=parse), source, outcomes=False))
    lacking = [one for one in found if key not in one.table.column_names]
    hint = "each table needs the customers' ids"
    refuse(
        "log",
        [Problem(f"{one.name} has no column {key!r}", nearest(key, one.table.column_names) or hint) for one in lacking],
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
    columns[str(needs.campaign.columns.get("propensity", PROPENSITY))] = decided[PROPENSITY]
    for name in needs.outcomes:
        columns[name] = _find(name, decided, sources, needs, problems, outcome=True)
    if "cost_column" in needs.campaign.columns and needs.wanted.ledger is not None:
        redeemed = np.nan_to_num(np.asarray(decided["redeemed"], dtype=np.float64))
        columns[needs.campaign.columns["cost_column"]] = pa.array(np.asarray(decided["paid_at_once"]) + redeemed)
    refuse("log", problems)
    if REQUEST in decided.column_names and not come_once(decided):
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
        found.append(Problem(f"no table has {some([repr(name) for name in lost])}", hint))
    lost = [name for name in needs.outcomes if name not in came]
    if lost:
        hint = "add the table that says what came of it: --join orders.csv"
        found.append(Problem(f"no table has {some([repr(name) for name in lost])}", hint))
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
    if outcome and not requests and not come_once(decided):
        got = f"customers came more than once, and {source.name} does not say which response belongs to which request"
        problems.append(Problem(got, f"add the column {REQUEST!r} to it, with the ids of the requests"))
    place = pc.index_in(join_ids(decided, CUSTOMER, requests=requests), value_set=held.combine_chunks())
    values = source.table[name].take(place)
    lost = (pc.is_null(values) if outcome else pc.is_null(place)).to_numpy()
    if outcome and needs.wanted.missing is not None:
        return pc.fill_null(pc.cast(values, "float64"), needs.wanted.missing)
    if lost.any():
        problems.append(_name_lost(name, decided, np.flatnonzero(lost), source, outcome=outcome))
    return values


def _name_lost(name: str, decided: pa.Table, lost: Array, source: _Source, *, outcome: bool) -> Problem:
    whom = _name_few(decided[CUSTOMER].take(lost[:4]).to_pylist())
    many = f"{len(lost):,} of {len(decided):,} decisions"
    if outcome:
        hint = "give them one; or say what those count as that have none: --missing 0"
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
    return [Problem(f"{source.name} has more than one row for {count(len(twice), 'customer')} ({key}: {whom})", hint)]


def _name_few(ids: list[str]) -> str:
    return ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")


def _write_levels(levels: Levels) -> tuple[Any, ...]:
    """Return the levels as a log writes them."""
    if levels.names is not None:
        return levels.names
    return levels.doses if levels.doses is not None else tuple(range(len(levels)))


def _check_out(out: str | Path | None, *inputs: str) -> None:
    files.check_table(out, *inputs)
    files.check_file(out, *inputs)  # a plan, too, stays what it is


def _write(table: pa.Table, out: Path) -> None:
    with open_writer(Target(out)) as writer:
        writer.write(table)


def _write_campaign(campaign: Campaign, log: Path, out: Path, propensity: str, features: list[str]) -> None:
    """Write the campaign file of the next log: as before, with its propensities."""
    roles: Any = {role: column for role, column in campaign.roles.items() if role not in OLD_ROLES}
    roles |= {"propensity": propensity, "features": features}
    after = replace(campaign, log=str(log.absolute()), customers=None, roles=roles, propensities=None)
    files.write_text(out, after.text)
