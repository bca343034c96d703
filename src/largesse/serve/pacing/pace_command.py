"""Command `pace`: simulation of budget pacing with a run's policy, on random or replayed customer arrivals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from largesse.campaign import BUDGET_KEYS, Campaign, parse_number_list, read_campaign
from largesse.data import read_table
from largesse.errors import (
    Problem,
    fail,
    find_budget_problems,
    find_integer_problems,
    number_or_none,
    percent,
    refuse,
    repr_short,
    suggest,
)
from largesse.pipeline import POLICY_FILE, check_output_file, read_run_folder, write_text
from largesse.policy import Policy
from largesse.records import Array, Progress
from largesse.report import finite_or_none, render_pacing_page, write_report_date
from largesse.serve.ledger.amounts_and_times import (
    DAY_MICROS,
    MICROS,
    convert_days_to_micros,
    convert_to_units,
    format_time,
    read_money,
)
from largesse.serve.ledger.ledger_records import KEPT_PROMISES, PROMISES, LedgerTerms
from largesse.serve.pacing.controller import PacingPlan
from largesse.serve.pacing.population import Population, make_population
from largesse.serve.pacing.stream_simulation import (
    PACING_METHODS,
    OfflinePlan,
    PacedStream,
    Stream,
    compare_with_offline_plan,
    draw_stream_from_pool,
    draw_traits,
    pace_stream,
    plan_offline,
    plan_stream,
    trace_course,
)
from largesse.serve.served_policy import read_customer_features, sample_population
from largesse.version import __version__

SIMULATED_STREAM = "simulated"
PACING_METHOD_TITLES = {"pace": "paced", "daily": "new plan every day", "fixed": "fixed price"}
MAX_STREAMS = 1000
MAX_STREAM_CUSTOMERS = 10_000_000
MAX_PERIOD_DAYS = 3660
MIN_REPLAY_TIME, MAX_REPLAY_TIME = (
    -62_135_596_800_000_000,
    253_402_300_799_999_999,
)  # microseconds since 1970: the years 1 to 9999


@dataclass(frozen=True)
class PacingSimulationSettings:
    """Settings of a pacing simulation: arriving customers, period, expected number of customers and promises."""

    stream: str = SIMULATED_STREAM  # or a table to replay
    time: str | None = None  # the column of a table with the times of customers
    streams: int = 20  # simulated ones
    customers: int | None = None  # expected; default: those of the run
    days: int = 30
    valid_days: float | None = None  # that a promise stands; default: a quarter of the period
    promises: str = KEPT_PROMISES  # or: while_it_lasts
    max_costs: Sequence[float] | None = None  # of each level
    seed: int = 0

    @property
    def promise_days(self) -> float:
        """Days until a promise expires; default: a quarter of the period."""
        return self.days / 4 if self.valid_days is None else self.valid_days


def parse_pace_options(stream: str, options: Mapping[str, Any]) -> PacingSimulationSettings:
    """Convert command-line options to the settings of a pacing simulation."""
    settings = dict(options)
    max_costs = settings.pop("most", None)
    if isinstance(max_costs, str):
        max_costs = parse_number_list(max_costs, "--most")
    return PacingSimulationSettings(stream, **settings, max_costs=max_costs)


def pace(
    folder: str | Path,
    settings: PacingSimulationSettings,
    progress: Progress,
    *,
    budget: float | None = None,
    total: float | None = None,
    out: str | Path | None = None,
) -> dict[str, Any]:
    """Simulate budget pacing with a run's policy; return the figures, and write an HTML page to `out` if given."""
    refuse("pace", _find_settings_problems(settings, budget, total))
    progress("reading", 0.0)
    replayed = settings.stream != SIMULATED_STREAM
    with read_run_folder(folder) as home:
        campaign, policy = read_campaign(home, optional=BUDGET_KEYS), Policy.load(home / POLICY_FILE)
        check_output_file(out, settings.stream if replayed else None, campaign.log, campaign.customers)
        population, n_customers = sample_population(campaign, policy, settings.max_costs, settings.seed)
    if replayed:
        stream = _replay_table(campaign, policy, population, settings)
        total_micros = _find_total(campaign, budget, total, len(stream))
        streams = [replace(stream, terms=replace(stream.terms, total=total_micros))]
    else:
        expected = settings.customers or n_customers
        streams = _draw_streams(population, settings, expected, _find_total(campaign, budget, total, expected))
    streams = [replace(stream, terms=replace(stream.terms, promises=settings.promises)) for stream in streams]
    rule = policy.exploration
    rows: list[dict[str, Any]] = []
    first: dict[str, Any] = {}
    for i, stream in enumerate(streams):
        progress("pacing", i / len(streams))
        plan, offline = plan_stream(stream, rule, policy.exploration_rate), plan_offline(stream)
        paced = {method: pace_stream(stream, method, plan=plan) for method in PACING_METHODS}
        rows.append(_describe_stream(stream, offline, paced))
        first = first or _describe_stream_course(stream, plan, offline, paced)
    numbers = {
        "title": campaign.title,
        "unit": campaign.unit,
        "response_unit": "",
        "made": write_report_date(),
        "version": __version__,
        "fingerprint": policy.model.fingerprint_,
        "response": {"name": campaign.roles["response"], "kind": "binary" if policy.model.binary_ else "amount"},
        "levels": [],
        "replayed": replayed,
        "explores_for": "" if rule is None else rule.goal,
        "at_random": policy.exploration_rate,
        **_average_streams(rows),
        "first": first,
    }
    if out is not None:
        write_text(Path(out), render_pacing_page(numbers))
    return numbers


def _find_settings_problems(
    settings: PacingSimulationSettings, budget: float | None, total: float | None
) -> list[Problem]:
    problems = find_integer_problems(settings.streams, "--streams", 1, MAX_STREAMS) + find_integer_problems(
        settings.seed, "--seed"
    )
    problems += find_integer_problems(settings.days, "--days", 1, MAX_PERIOD_DAYS)
    if settings.customers is not None:
        problems += find_integer_problems(settings.customers, "--customers", 1, MAX_STREAM_CUSTOMERS)
    valid = number_or_none(settings.valid_days)
    if settings.valid_days is not None and (valid is None or not 0 < valid <= MAX_PERIOD_DAYS):
        problem = f"--valid-days is {repr_short(settings.valid_days)}"
        problems.append(Problem(problem, "give a number of days above 0"))
    if settings.promises not in PROMISES:
        problem = f"--promises is {repr_short(settings.promises)}"
        problems.append(Problem(problem, f"choose one: {', '.join(PROMISES)}"))
    if budget is not None and total is not None:
        problems.append(Problem("both --budget and --total are given", "give the average per customer, or the total"))
    for option, value in (("--budget", budget), ("--total", total)):
        problems += [] if value is None else find_budget_problems(value, option)
    return problems


def _find_total(campaign: Campaign, budget: float | None, total: float | None, n_customers: int) -> int:
    """Return the total budget in millionths: as given, or by the campaign's average per customer."""
    if total is None and budget is None:
        budget, total = campaign.planning.budget, campaign.planning.total
        if total is None and budget is None:
            fail("pace", Problem("no budget is given", "give --total, or --budget for each customer"))
    amount = total if total is not None else float(budget or 0.0) * n_customers
    return read_money(amount, "the budget of the whole period", up=False)


def _draw_streams(
    population: Population, settings: PacingSimulationSettings, expected: int, total: int
) -> list[Stream]:
    """Draw random streams of arriving customers for a simulation from a run's population."""
    valid, streams = settings.promise_days, []
    for seed in range(settings.seed, settings.seed + settings.streams):
        drawn = draw_traits(seed, population.on_redemption)
        delay = min(drawn.delay, valid / 3)
        traits = replace(drawn, days=settings.days, foreseen=float(expected), valid=valid, delay=delay)
        streams.append(draw_stream_from_pool(population, traits, seed, total / MICROS))
    return streams


# -- a table that is replayed --------------------------------------------------------------------------------------------


def _replay_table(
    campaign: Campaign, policy: Policy, population: Population, settings: PacingSimulationSettings
) -> Stream:
    """Return a table's customers as a stream in the order of arrival, with expected responses as true responses."""
    starts, times = _read_times(settings.stream, settings)
    rows = np.argsort(times, kind="stable")
    table = make_population(
        policy, read_customer_features(campaign, policy, settings.stream), max_costs=settings.max_costs
    )
    customers, times = table.take(rows), times[rows]
    days = max(math.floor(float(times[-1])) + 1, 1)
    later = population.on_redemption
    valid = replace(settings, days=days).promise_days if later else None
    rng = np.random.default_rng(settings.seed)
    traits = replace(
        draw_traits(0, later), days=days, foreseen=float(len(times)), volume=1.0, volume_drift=0.0,
        season=0.0, season_known=False, bursts=0, mix_drift=0.0, response_drift=0.0, model_error=0.0,
    )  # fmt: skip
    return Stream(
        traits=traits,
        terms=LedgerTerms(
            0, starts, starts + days * DAY_MICROS, None if valid is None else convert_days_to_micros(valid)
        ),
        population=population,
        season=None,
        times=times,
        customers=customers,
        truth=customers.responses,
        redeems=customers.redeemed_share,
        chance=rng.random(len(times)),
        delay=np.minimum(rng.exponential((valid or 1.0) / 4, len(times)), 0.999 * (valid or 1.0)),
    )


def _read_times(source: str, settings: PacingSimulationSettings) -> tuple[int, Array]:
    """Read customers' arrival times from a table; return the period's start and the days (n,) since the start."""
    table, name = read_table(source, what="stream"), settings.time
    if not len(table):
        fail("pace", Problem(f"{source} has no rows", "give a table with a row for each customer who came"))
    if name is None:  # rows come one after the other, evenly
        return 0, (np.arange(len(table)) + 0.5) / len(table) * settings.days
    if name not in table.column_names:
        fail("pace", Problem(f"the stream has no column {name!r}", suggest(name, table.column_names)))
    if table.column_names.count(name) > 1:
        fail("pace", Problem(f"the stream has two columns {name!r}", "rename one of them"))
    return _convert_to_days(table.column(name), name)


def _convert_to_days(column: Any, name: str) -> tuple[int, Array]:
    hint = "give a column of dates or times, each row with one: 2027-01-31, 2027-01-31T18:00:00"
    if column.null_count:
        fail("pace", Problem(f"the column {name!r} has no time in {column.null_count:,} rows", hint))
    times = _convert_to_micros(column)
    if times is None:  # Python cannot show a timestamp beyond its range
        content = column.type if str(column.type).startswith("timestamp") else repr_short(column[0].as_py())
        fail("pace", Problem(f"the column {name!r} holds {content}, which is not a time", hint))
    if times.min() < MIN_REPLAY_TIME or times.max() > MAX_REPLAY_TIME:
        fail("pace", Problem(f"the column {name!r} holds times beyond the years 1 to 9999", hint))
    if np.ptp(times) > MAX_PERIOD_DAYS * DAY_MICROS:
        problem = f"the column {name!r} spans more than {MAX_PERIOD_DAYS:,} days"
        fail("pace", Problem(problem, "replay a part of the table"))
    starts = int(times.min() // DAY_MICROS * DAY_MICROS)
    return starts, (times - starts) / DAY_MICROS


def _convert_to_micros(column: Any) -> Array | None:
    """Convert a date or time column to microseconds (n,) since 1970 UTC; None if it holds no times."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = pa.types
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    text = any(kind(column.type) for kind in (kinds.is_string, kinds.is_large_string, kinds.is_string_view))
    column = column.cast(pa.string()) if text else column
    if not (text or kinds.is_timestamp(column.type) or kinds.is_date(column.type)):
        return None
    # Either all texts have a zone, or none.
    for zone in (None, "UTC") if text else (getattr(column.type, "tz", None),):
        options = pc.CastOptions(target_type=pa.timestamp("us", zone), allow_time_truncate=True)
        try:
            return np.asarray(pc.cast(column, options=options).cast(pa.int64()))
        except pa.ArrowException:
            continue
    return None


# -- the numbers of the page ---------------------------------------------------------------------------------------------


def _describe_stream(stream: Stream, offline: OfflinePlan, paced: Mapping[str, PacedStream]) -> dict[str, Any]:
    """Compare each pacing method's result on a customer stream with the offline optimum, as JSON types."""
    base, total = paced["pace"].base, paced["pace"].total
    unreserved = offline.unreserved - base
    return {
        "customers": len(stream),
        "priced": offline.price > 0,
        "ways": {method: compare_with_offline_plan(result, offline) for method, result in paced.items()},
        "lasts": not stream.terms.keeps_promises and stream.customers.on_redemption,
        "reserved": (offline.value - base) / unreserved if unreserved > 0 else 1.0,
        "offline_use": offline.spend / total if total else 0.0,
    }


def _describe_stream_course(
    stream: Stream, plan: PacingPlan, offline: OfflinePlan, paced: Mapping[str, PacedStream]
) -> dict[str, Any]:
    """Return a customer stream's facts, and its shadow price, spend and value over time, as JSON types."""
    terms, traits = stream.terms, stream.traits
    courses = {
        method: trace_course(stream, result.levels, result.prices, refused=result.refused)
        for method, result in paced.items()
    }
    courses["offline"] = trace_course(stream, offline.levels)
    facts = {
        "customers": len(stream),
        "foreseen": float(plan.customers),
        "starts": format_time(terms.starts)[:10] if terms.starts else None,  # None: the table has no times
        "days": traits.days,
        "valid_days": None if terms.valid is None else terms.promise_days,
        "promises": None if terms.valid is None else terms.promises,
        "price": plan.price,
        "total": convert_to_units(terms.total),
        "spent": paced["pace"].spent,
    }
    lines = {
        method: {"day": course.days.tolist()}
        | {
            name: [finite_or_none(v) for v in getattr(course, name).tolist()]
            for name in ("price", "spent", "held", "value")
        }
        for method, course in courses.items()
    }
    drawn = ("season", "bursts", "volume", "volume_drift", "mix_drift", "response_drift")
    return {"facts": facts, "courses": lines, "drawn": {name: getattr(traits, name) for name in drawn}}


def _average_streams(streams: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Average the results of each pacing method over customer streams; return the averages with a headline."""
    ways = []
    for method, name in PACING_METHOD_TITLES.items():
        results = [stream["ways"][method] for stream in streams]
        redeemed, refused = (sum(result[count] for result in results) for count in ("redeemed", "refused"))
        ways.append(
            {"way": method, "name": name}
            | {
                share: _average_known([r[share] for r in results])
                for share in ("value", "gain", "use", "committed", "short")
            }
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
        "reserved": _average_known([stream["reserved"] for stream in streams]),
        "offline_use": _average_known([stream["offline_use"] for stream in streams]),
        "lasts": any(stream["lasts"] for stream in streams),
        "later": any(abs(stream["reserved"] - 1.0) > 1e-6 for stream in streams),
        "headline": _write_headline(ways[0], len(streams)),
    }


def _average_known(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return float(np.mean(present)) if present else None


def _write_headline(paced: Mapping[str, Any], n_streams: int) -> str:
    if paced["over"]:
        return "The budget was not kept."
    share = "–" if paced["value"] is None else percent(paced["value"], 1)
    subject = {1: "The stream was", 2: "Both streams were"}.get(n_streams, f"All {n_streams:,} streams were")
    return f"{subject} paced within the budget, at {share} of the offline optimum's value."
