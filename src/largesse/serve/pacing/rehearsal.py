"""A stream of customers, simulated or replayed, paced by the policy of a run folder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from largesse.campaign import Campaign, read_campaign, read_list
from largesse.data import read_table
from largesse.errors import Problem, as_number, budget_problems, fail, refuse, repr_short, suggest, whole_problems
from largesse.pipeline import POLICY, check_file, look_into_run_folder, write_text
from largesse.policy import Policy
from largesse.records import Array, Progress
from largesse.report import finite, name_day, render_pace
from largesse.serve.ledger.money import MICROS, as_units, read_money
from largesse.serve.ledger.terms import DAY, KEPT, PROMISES, Terms, count_time, show_time
from largesse.serve.pacing.controller import PacePlan
from largesse.serve.pacing.customers import Population, make_population
from largesse.serve.pacing.simulation import (
    WAYS,
    Offline,
    Paced,
    compare_offline,
    make_plan,
    pace_stream,
    plan_offline,
    trace_course,
)
from largesse.serve.pacing.streams import Stream, draw_traits, fill_stream
from largesse.serve.policy_store import read_features, sample_population
from largesse.version import __version__

SIMULATED = "simulated"
MOST_STREAMS = 1000
LONGEST = 3660  # days
EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999  # microseconds since 1970: the years 1 to 9999


@dataclass(frozen=True)
class Streaming:
    """How customers are to come, where the stream does not say it."""

    stream: str = SIMULATED  # or a table to replay
    time: str | None = None  # the column of a table that says when customers came
    streams: int = 20  # simulated ones
    customers: int | None = None  # foreseen; default: as many as the run has
    days: int = 30
    valid_days: float | None = None  # that a promise stands; default: a quarter of the period
    promises: str = KEPT  # or: while_it_lasts
    most: Sequence[float] | None = None  # that each level may cost
    seed: int = 0


def pace(
    folder: str | Path,
    how: Streaming,
    progress: Progress,
    *,
    budget: float | None = None,
    total: float | None = None,
    out: str | Path | None = None,
) -> dict[str, Any]:
    """Pace streams of customers by the policy of a run folder; return the numbers, and write a page to `out`, if given."""
    refuse("pace", _problems(how, budget, total))
    progress("reading", 0.0)
    with look_into_run_folder(folder) as home:
        campaign, policy = read_campaign(home, blank_budget=True), Policy.load(home / POLICY)
        check_file(out, None if how.stream == SIMULATED else how.stream, campaign.log, campaign.customers)
        population, many = sample_population(campaign, policy, how.most, how.seed)
    how = how if how.customers else replace(how, customers=many)
    made = _make_streams(campaign, policy, population, how, budget, total)
    streams = [replace(one, terms=replace(one.terms, promises=how.promises)) for one in made]
    rule = policy.exploration
    rows: list[dict[str, Any]] = []
    first: dict[str, Any] = {}
    for i, stream in enumerate(streams):
        progress("pacing", i / len(streams))
        plan, offline = make_plan(stream, rule, policy.exploration_rate), plan_offline(stream)
        paced = {way: pace_stream(stream, way, plan=plan) for way in WAYS}
        rows.append(_describe_stream(stream, offline, paced))
        first = first or _describe_first(stream, plan, offline, paced)
    shown = {
        "title": campaign.title,
        "unit": campaign.unit,
        "response_unit": "",
        "made": name_day(),
        "version": __version__,
        "fingerprint": policy.model.fingerprint_,
        "response": {"name": campaign.roles["response"], "kind": "binary" if policy.model.binary_ else "amount"},
        "levels": [],
        "replayed": how.stream != SIMULATED,
        "explores_for": "" if rule is None else rule.goal,
        "at_random": policy.exploration_rate,
        **_summarise(rows),
        "first": first,
    }
    if out is not None:
        write_text(Path(out), render_pace(shown))
    return shown


def read_streaming(stream: str, given: Mapping[str, Any]) -> Streaming:
    """Return how customers come, from the options that are given."""
    options = dict(given)
    if isinstance(options.get("most"), str):
        options["most"] = read_list(options["most"], "--most")
    return Streaming(stream, **options)


def _problems(how: Streaming, budget: float | None, total: float | None) -> list[Problem]:
    found = whole_problems(how.streams, "--streams", 1, MOST_STREAMS) + whole_problems(how.seed, "--seed")
    found += whole_problems(how.days, "--days", 1, LONGEST)
    if how.customers is not None:
        found += whole_problems(how.customers, "--customers", 1, 10_000_000)
    valid = None if how.valid_days is None else as_number(how.valid_days)
    if how.valid_days is not None and (valid is None or not 0 < valid <= LONGEST):
        found.append(Problem(f"--valid-days is {repr_short(how.valid_days)}", "give a number of days above 0"))
    if how.promises not in PROMISES:
        found.append(Problem(f"--promises is {repr_short(how.promises)}", f"choose one: {', '.join(PROMISES)}"))
    if budget is not None and total is not None:
        found.append(Problem("both --budget and --total are given", "give the average per customer, or the total"))
    for word, value in (("--budget", budget), ("--total", total)):
        found += [] if value is None else budget_problems(value, word)
    return found


def _make_streams(
    campaign: Campaign,
    policy: Policy,
    population: Population,
    how: Streaming,
    budget: float | None,
    total: float | None,
) -> list[Stream]:
    if how.stream != SIMULATED:
        came = _replay(campaign, policy, population, how)
        whole = _find_total(campaign, budget, total, len(came.times))
        return [replace(came, terms=replace(came.terms, total=whole))]
    foreseen = int(how.customers or len(population))
    whole = _find_total(campaign, budget, total, foreseen)
    streams = []
    for seed in range(how.seed, how.seed + how.streams):
        drawn = draw_traits(seed, population.on_redemption)
        valid = how.days / 4 if how.valid_days is None else how.valid_days
        traits = replace(drawn, days=how.days, foreseen=float(foreseen), valid=valid, delay=min(drawn.delay, valid / 3))
        streams.append(fill_stream(population, traits, seed, whole / MICROS))
    return streams


def _find_total(campaign: Campaign, budget: float | None, total: float | None, customers: int) -> int:
    """Return the budget of the whole period in millionths: as given, else the campaign's average for each customer."""
    if total is None and budget is None:
        planning = campaign.planning
        if planning.budget is None and planning.total is None:
            fail("pace", Problem("nothing says what may be spent", "give --total, or --budget for each customer"))
        budget, total = planning.budget, planning.total
    whole = total if total is not None else float(budget or 0.0) * customers
    return read_money(whole, "the budget of the whole period", up=False)


# -- a table that is replayed --------------------------------------------------------------------------------------------


def _replay(campaign: Campaign, policy: Policy, population: Population, how: Streaming) -> Stream:
    """Return the customers of a table in the order in which they came; responses are those that the model expects."""
    starts, times = _read_times(how.stream, how)
    rows = np.argsort(times, kind="stable")
    came = make_population(policy, read_features(campaign, policy, how.stream), most=how.most)
    customers, times = came.take(rows), times[rows]
    days = max(math.floor(float(times[-1])) + 1, 1)
    later = population.on_redemption
    valid = (days / 4 if how.valid_days is None else how.valid_days) if later else None
    rng = np.random.default_rng(how.seed)
    shape = customers.face.shape
    share = np.divide(customers.expected, customers.face, out=np.zeros(shape), where=customers.face > 0)
    traits = replace(
        draw_traits(0, later), days=days, foreseen=float(len(times)), volume=1.0, volume_drift=0.0,
        season=0.0, season_known=False, bursts=0, mix_drift=0.0, response_drift=0.0, model_error=0.0,
    )  # fmt: skip
    return Stream(
        traits=traits,
        terms=Terms(0, starts, starts + days * DAY, None if valid is None else count_time(valid)),
        population=population,
        season=None,
        times=times,
        customers=customers,
        truth=customers.responses,
        redeems=share,
        chance=rng.random(len(times)),
        delay=np.minimum(rng.exponential((valid or 1.0) / 4, len(times)), 0.999 * (valid or 1.0)),
    )


def _read_times(source: str, how: Streaming) -> tuple[int, Array]:
    """Return when the period starts, in microseconds, and when each row came, in days since."""
    table = read_table(source, what="stream")
    if not len(table):
        fail("pace", Problem(f"{source} has no rows", "give a table with a row for each customer who came"))
    if how.time is None:
        # No column says when: rows come one after the other, evenly.
        return 0, (np.arange(len(table)) + 0.5) / max(len(table), 1) * how.days
    if how.time not in table.column_names:
        got = f"the stream has no column {how.time!r}"
        fail("pace", Problem(got, suggest(how.time, table.column_names)))
    if table.column_names.count(how.time) > 1:
        fail("pace", Problem(f"the stream has two columns {how.time!r}", "rename one of them"))
    return _as_days(table.column(how.time), how.time)


def _as_days(column: Any, name: str) -> tuple[int, Array]:
    hint = "give a column of dates or times, each row with one: 2027-01-31, 2027-01-31T18:00:00"
    if column.null_count:
        fail("pace", Problem(f"the column {name!r} has no time in {column.null_count:,} rows", hint))
    found = _as_micros(column)
    if found is None:
        # A timestamp that is none is too far away for Python, too.
        shown = column.type if str(column.type).startswith("timestamp") else repr_short(column[0].as_py())
        fail("pace", Problem(f"the column {name!r} holds {shown}, which is no time", hint))
    if found.min() < EARLIEST or found.max() > LATEST:
        fail("pace", Problem(f"the column {name!r} holds times beyond the years 1 to 9999", hint))
    if np.ptp(found) > LONGEST * DAY:
        fail("pace", Problem(f"the column {name!r} spans more than {LONGEST:,} days", "replay a part of the table"))
    starts = int(found.min() // DAY * DAY)
    return starts, (found - starts) / DAY


def _as_micros(column: Any) -> Array | None:
    """Return times (n,) in microseconds since 1970, UTC, whatever their zone; those without one are in UTC. None: no times."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = pa.types
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    text = any(kind(column.type) for kind in (kinds.is_string, kinds.is_large_string, kinds.is_string_view))
    column = column.cast(pa.string()) if text else column
    if not (text or kinds.is_timestamp(column.type) or kinds.is_date(column.type)):
        return None
    # Texts have a zone each, or none has one.
    for zone in (None, "UTC") if text else (getattr(column.type, "tz", None),):
        options = pc.CastOptions(target_type=pa.timestamp("us", zone), allow_time_truncate=True)
        try:
            return np.asarray(pc.cast(column, options=options).cast(pa.int64()))
        except pa.ArrowException:
            continue
    return None


# -- the numbers of the page ---------------------------------------------------------------------------------------------


def _describe_stream(stream: Stream, offline: Offline, paced: Mapping[str, Paced]) -> dict[str, Any]:
    """Return how each way of pacing a stream compares with its offline optimum."""
    own = paced["pace"]
    gain, unreserved = offline.value - own.base, offline.unreserved - own.base
    return {
        "customers": len(stream),
        "priced": offline.price > 0,
        "ways": {way: compare_offline(one, offline) for way, one in paced.items()},
        "lasts": not stream.terms.kept and stream.customers.on_redemption,
        "reserved": gain / unreserved if unreserved > 0 else 1.0,
        "offline_use": offline.spend / own.total if own.total else 0.0,
    }


def _describe_first(stream: Stream, plan: PacePlan, offline: Offline, paced: Mapping[str, Paced]) -> dict[str, Any]:
    """Return the facts of a stream, and price, spend and value over time."""
    terms, traits = stream.terms, stream.traits
    courses = {way: trace_course(stream, one.levels, one.prices, refused=one.refused) for way, one in paced.items()}
    courses["offline"] = trace_course(stream, offline.levels)
    facts = {
        "customers": len(stream),
        "foreseen": float(plan.customers),
        "starts": show_time(terms.starts)[:10] if terms.starts else None,  # None: the table does not say
        "days": traits.days,
        "valid_days": None if terms.valid is None else terms.stands,
        "promises": None if terms.valid is None else terms.promises,
        "price": plan.price,
        "total": as_units(terms.total),
        "spent": paced["pace"].spent,
    }
    lines = {
        way: {"day": course.days.tolist()}
        | {word: [finite(v) for v in getattr(course, word).tolist()] for word in ("price", "spent", "held", "value")}
        for way, course in courses.items()
    }
    drawn = ("season", "bursts", "volume", "volume_drift", "mix_drift", "response_drift")
    return {"facts": facts, "courses": lines, "drawn": {word: getattr(traits, word) for word in drawn}}


def _summarise(streams: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the ways of pacing, averaged over streams, and a headline."""
    ways = []
    for way, name in (("pace", "paced"), ("daily", "new plan every day"), ("fixed", "fixed price")):
        results = [stream["ways"][way] for stream in streams]
        redeemed, refused = (sum(result[word] for result in results) for word in ("redeemed", "refused"))
        ways.append(
            {"way": way, "name": name}
            | {word: _mean([r[word] for r in results]) for word in ("value", "gain", "use", "committed", "short")}
            | {
                "worst": min((r["value"] for r in results if r["value"] is not None), default=None),
                "over": sum(not r["kept"] for r in results),
                "redemptions": redeemed,
                "refused": refused / redeemed if redeemed else 0.0,
                "streams_refused": sum(r["refused"] > 0 for r in results),
            }
        )
    return {
        "streams": len(streams),
        "ways": ways,
        "priced": sum(stream["priced"] for stream in streams),
        "reserved": _mean([stream["reserved"] for stream in streams]),
        "offline_use": _mean([stream["offline_use"] for stream in streams]),
        "lasts": any(stream["lasts"] for stream in streams),
        "later": any(abs(stream["reserved"] - 1.0) > 1e-6 for stream in streams),
        "headline": _write_headline(ways[0], len(streams)),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _write_headline(paced: Mapping[str, Any], streams: int) -> str:
    if paced["over"]:
        return "The budget was not kept."
    share = "–" if paced["value"] is None else f"{paced['value']:.1%}".replace("%", " %")
    where = {1: "The stream was", 2: "Both streams were"}.get(streams, f"All {streams:,} streams were")
    return f"{where} paced within the budget, at {share} of the offline optimum's value."
