"""Value of budget pacing on random streams of arriving customers, relative to the offline optimum.

Pacing is compared with a fixed price and with a new plan every day.

A stream is drawn by `largesse.serve.draw_stream`: customers come by drift, season and bursts, and the plan knows only the customers at
the start. The offline optimum is the best plan for the whole stream, made afterwards, by the ledger's own rule: what is spent and
promised never exceeds the total. Streams that pay on redemption are paced once more with promises that hold while the budget lasts;
their offline optimum reserves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from largesse.errors import percent
from largesse.records import Array, Progress
from largesse.serve import (
    PACING_METHODS,
    Stream,
    compare_with_offline_plan,
    draw_stream,
    pace_stream,
    plan_offline,
    plan_stream,
)
from largesse_lab.experiments.experiment_definition import Experiment
from largesse_lab.pages.figures import FigureText, draw_lines
from largesse_lab.pages.markdown import NUMBER_DASH, Section, format_table
from largesse_lab.pages.method_comparison import Summary
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress, select_requested_seeds
from largesse_lab.runner.record_cache import RecordCache

FIRST_SEED, N_STREAMS = 10_000, 1000  # streams that were not used to choose settings
PACING_NAMES = {"pace": "paced", "fixed": "fixed price", "daily": "new plan every day"}
PAYMENT_KINDS = {"paid at once": False, "paid on redemption": True}
LASTING = "paid on redemption while the budget lasts"
REDEMPTION_RATES = (0.0, 0.05, 0.15, 0.4, 1.0)
WORST_QUANTILE = 0.05
GOOD_VALUE = 0.995  # of the offline optimum
VALUE_GRID = np.round(np.arange(0.9, 1.001, 0.005), 3)  # of the figure


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per random stream of arriving customers: each method's value relative to the optimum."""
    keys = [(seed,) for seed in select_requested_seeds(request, FIRST_SEED, N_STREAMS)]
    return RecordCache(request.out, ("seed",)).measure_each(keys, _measure_stream, progress)


def _measure_stream(seed: int) -> dict[str, Any]:
    stream = draw_stream(seed)
    record = {"seed": seed, "customers": len(stream), "traits": stream.traits.as_dict()}
    record |= {"rate": float(stream.redeems.max(axis=1).mean()), **_pace_by_all_methods(stream)}
    if stream.traits.on_redemption:
        record["lasting"] = _pace_by_all_methods(
            replace(stream, terms=replace(stream.terms, promises="while_it_lasts"))
        )
    return record


def _pace_by_all_methods(stream: Stream) -> dict[str, Any]:
    """Return the results of every pacing method on one stream of arriving customers."""
    offline, plan = plan_offline(stream), plan_stream(stream)
    results = {method: pace_stream(stream, method, plan=plan) for method in PACING_METHODS}
    base = results["pace"].base
    ways = {
        method: {
            **compare_with_offline_plan(result, offline),
            "kept": result.within_budget and result.spent <= result.total and result.committed <= result.total,
            "bound": result.value / offline.bound,
        }
        for method, result in results.items()
    }
    return {
        "priced": bool(offline.price > 0),
        "reserved": (offline.value - base) / (offline.unreserved - base),
        "offline_use": offline.spend / results["pace"].total,
        "ways": ways,
    }


# -- the summary -------------------------------------------------------------------------------------------------------


def summarise(records: Records) -> dict[str, Any]:
    """Return the results of pacing methods by kind of payment and by redemption rate."""
    kinds = []
    for title, on_redemption in PAYMENT_KINDS.items():
        streams = [record for record in records if record["traits"]["on_redemption"] == on_redemption]
        if streams:
            kind = _summarise_payment_kind(title, streams)
            kinds.append(kind | ({"rates": _summarise_by_redemption_rate(streams)} if on_redemption else {}))
    lasting = [{**record, **record["lasting"]} for record in records if "lasting" in record]
    if lasting:
        rates = _summarise_by_redemption_rate(lasting, lasting=True)
        kinds.append(
            _summarise_payment_kind(LASTING, lasting) | {"rates": rates, "refusals": _measure_refusals(lasting)}
        )
    values = {name: _list_method_values(records, way, "value") for way, name in PACING_NAMES.items()} if records else {}
    with_lasting = [{**record, **record.get("lasting", {})} for record in records]
    return {
        "streams": len(records),
        "customers": sum(record["customers"] for record in records),
        "overspent": {name: _count_overspent([*records, *lasting], way) for way, name in PACING_NAMES.items()},
        "value": {name: float(way_values.mean()) for name, way_values in values.items()},
        "lasting_value": _average_or_none(_list_method_values(with_lasting, "pace", "value")),
        "kinds": kinds,
    }


def _summarise_payment_kind(title: str, records: Records) -> dict[str, Any]:
    scarce = [record for record in records if record["priced"]]
    ways = {}
    for way, name in PACING_NAMES.items():
        value = _list_method_values(records, way, "value")
        ways[name] = {
            "overspent": _count_overspent(records, way),
            "value": float(value.mean()),
            "worst": float(np.quantile(value, WORST_QUANTILE)),
            "good": float((value >= GOOD_VALUE).mean()),
            "gain": float(_list_method_values(records, way, "gain").mean()),
            "use": _average_or_none(_list_method_values(scarce, way, "use")),
            "used": _average_or_none(_list_method_values(scarce, way, "use") >= GOOD_VALUE),
            "committed": _average_or_none(_list_method_values(scarce, way, "committed")),
            "distribution": _tabulate_value_distribution(value),
        }
    offline = _average_or_none(np.array([record["offline_use"] for record in scarce]))
    reserved = float(np.mean([record["reserved"] for record in records]))
    return {"kind": title, "streams": len(records), "ways": ways, "offline_use": offline, "reserved": reserved}


def _summarise_by_redemption_rate(records: Records, *, lasting: bool = False) -> list[dict[str, Any]]:
    rows = []
    for low, high in pairwise(REDEMPTION_RATES):
        streams = [r for r in records if low <= r["rate"] < high or r["rate"] == high == REDEMPTION_RATES[-1]]
        if streams:
            means = {key: float(_list_method_values(streams, "pace", key).mean()) for key in ("value", "gain", "use")}
            reserved = float(np.mean([record["reserved"] for record in streams]))
            row = {"low": low, "high": high, "streams": len(streams), **means, "reserved": reserved}
            rows.append(row | ({"refused": _measure_refusals(streams)["paced"]["share"]} if lasting else {}))
    return rows


def _measure_refusals(records: Records) -> dict[str, Any]:
    """Return the share of refused redemptions, and of customer streams with a refusal, by pacing method."""
    refusals = {}
    for way, name in PACING_NAMES.items():
        refused, redeemed = (_list_method_values(records, way, key) for key in ("refused", "redeemed"))
        share = float(refused.sum() / redeemed.sum()) if redeemed.sum() else 0.0
        refusals[name] = {"share": share, "streams": float((refused > 0).mean())}
    return refusals


def _list_method_values(records: Sequence[dict[str, Any]], way: str, key: str) -> Array:
    return np.array([record["ways"][way][key] for record in records])


def _count_overspent(records: Records, way: str) -> int:
    return sum(not record["ways"][way]["kept"] for record in records)


def _average_or_none(values: Array) -> float | None:
    return float(values.mean()) if len(values) else None


def _tabulate_value_distribution(values: Array) -> dict[str, list[float]]:
    shares = np.searchsorted(np.sort(values), VALUE_GRID + 1e-12, side="right") / len(values)
    return {"x": VALUE_GRID.tolist(), "share": shares.round(4).tolist()}


# -- the page ----------------------------------------------------------------------------------------------------------


def fill(section: Section, summary: Summary) -> None:
    """Add the tables and the figure of pacing results to the result section."""
    series = []
    for kind in summary["kinds"]:
        section.add(f"## {kind['streams']:,} streams, {kind['kind']}", _tabulate_methods(kind))
        lasting = "refusals" in kind
        if "rates" in kind and not lasting:
            share = percent(kind["reserved"], 1)
            section.add(f"An offline plan that reserves promises has {share} of the gain of one that reserves nothing.")
        if "rates" in kind:
            section.add(_tabulate_redemption_rates(kind["rates"], lasting=lasting))
        panel = "while the budget lasts" if lasting else kind["kind"]
        for name, way in kind["ways"].items():
            curve = way["distribution"]
            series.append({"panel": panel, "label": name, "x": curve["x"], "mean": curve["share"]})
    text = FigureText(
        "Value as a share of the offline optimum",
        "value / value of the offline optimum",
        "share of streams",
        "Share of streams with at most this value. Lower lines are better.",
    )
    section.add_figure(partial(draw_lines, series, text), text.title)


def _tabulate_methods(kind: Summary) -> str:
    body, refusals = [], kind.get("refusals")
    last = ["budget used ≥ 99.5 %", "redemptions refused", "streams with any"] if refusals else ["committed"]
    for name, way in kind["ways"].items():
        cells = [_write_percent(way[key], 2) for key in ("value", "worst")] + [_write_percent(way["good"], 0)]
        cells += [_write_percent(way[key], 2) for key in ("gain", "use")]
        if refusals:
            cells += [
                _write_percent(way["used"], 0),
                _write_percent(refusals[name]["share"], 3),
                _write_percent(refusals[name]["streams"], 0),
            ]
        else:
            cells.append(_write_percent(way["committed"], 2))
        body.append([name, str(way["overspent"]), *cells])
    if "rates" in kind:
        cells = ["", "100 %", "", "", "100 %", _write_percent(kind["offline_use"], 2), *[""] * len(last)]
        body.append(["offline optimum", *cells])
    head = ["", "overspent", "value, mean", "5 % worst", "value ≥ 99.5 %", "gain, mean", "budget used", *last]
    return format_table(head, body)


def _tabulate_redemption_rates(rates: Sequence[Summary], *, lasting: bool) -> str:
    body = [
        [f"{percent(row['low'])} to {percent(row['high'])}", str(row["streams"])]
        + [_write_percent(row[key], 1) for key in ("value", "gain", "use")]
        + [_write_percent(row["refused"], 3) if lasting else _write_percent(row["reserved"], 0)]
        for row in rates
    ]
    last = "redemptions refused" if lasting else "gain with reserved promises"
    return format_table(["customers who redeem", "streams", "value", "gain", "budget used", last], body)


def _write_percent(share: float | None, decimals: int) -> str:
    return NUMBER_DASH if share is None else percent(share, decimals)


PACE_STREAMS_SETUP = """\
Random streams of 20,000 to 100,000 expected customers over 28 to 91 days, each from a random world. The number of customers differs from
the expected one (standard deviation 15 %), and traffic drifts. Weekdays have a season, which the plan knows in half of the streams; bursts
are unexpected. The mix of customers and their responses drift; the model does not know the latter, and is off by 10 % at the
start. If costs are paid on redemption, promises hold for 2 to 14 days and redemptions come late.

- **Value** is a share of that of the *offline optimum*: the best plan for the whole stream, made afterwards, by the ledger's rule that
  spent plus promised money never exceeds the total.
- **Gain** is the value beyond everyone's cheapest level, again as a share.
- **Budget used** and **committed** (spent or promised at the end) are of streams in which the budget binds.
- **While the budget lasts:** the ledger reserves the expected cost of open promises, and refuses a redemption that exceeds the rest of the
  budget. The offline optimum reserves nothing, knows the mean cost of each level, and keeps to the budget in the mean. A refused
  redemption loses the gain of its level, divided by the share who redeem."""
PACE_STREAMS_EXPERIMENT = Experiment(
    "pace_streams",
    "Pacing compared with the offline optimum",
    measure,
    summarise,
    fill,
    setup=PACE_STREAMS_SETUP,
    random_worlds=True,
    one_thread=True,
)
