"""How close does pacing come to the offline optimum? Random streams, beside a fixed price and a new plan every day.

A stream is drawn by `largesse.serve.draw_stream`: customers come by drift, season and bursts, and the plan knows only how they are at
the start. The offline optimum is the best plan for the whole stream, made afterwards, by the ledger's own rule: what is spent and
promised never exceeds the total. Streams that pay on redemption are paced once more with promises that hold while the budget lasts;
their offline optimum reserves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from largesse.records import Array, Progress
from largesse.serve import WAYS, Stream, compare_offline, draw_stream, make_plan, pace_stream, plan_offline
from largesse_lab.experiments.base import Experiment
from largesse_lab.page.sections import Chapter
from largesse_lab.page.streams import fill_streams, tabulate_streams
from largesse_lab.runner.cache import Kept
from largesse_lab.runner.request import Records, Request, ignore_progress, take_seeds

FIRST, STREAMS = 10_000, 1000  # streams that nobody looked at while settings were chosen
NAMES = {"pace": "paced", "fixed": "fixed price", "daily": "new plan every day"}
KINDS = {"paid at once": False, "paid on redemption": True}
LASTING = "paid on redemption while the budget lasts"
RATES = (0.0, 0.05, 0.15, 0.4, 1.0)  # customers who redeem
WORST = 0.05
GOOD = 0.995  # of the offline optimum
GRID = np.round(np.arange(0.9, 1.001, 0.005), 3)  # where the distribution of values is drawn


def measure(request: Request, progress: Progress = ignore_progress) -> Records:
    """Return one record per stream: what each way brings, as a share of the offline optimum, and whether it kept the budget."""
    seeds = take_seeds(request, FIRST, STREAMS)
    kept = Kept(request.out, ("seed",))
    kept.complete([[(seed,)] for seed in seeds], lambda keys: [_measure_stream(keys[0][0])], progress)
    return kept.take((seed,) for seed in seeds)


def _measure_stream(seed: int) -> dict[str, Any]:
    stream = draw_stream(seed)
    found = {"seed": seed, "customers": len(stream), "traits": stream.traits.as_dict()}
    found |= {"rate": float(stream.redeems.max(axis=1).mean()), **_pace(stream)}
    if stream.traits.on_redemption:
        found["lasting"] = _pace(replace(stream, terms=replace(stream.terms, promises="while_it_lasts")))
    return found


def _pace(stream: Stream) -> dict[str, Any]:
    """Return what each way brings by the rule of the stream's terms."""
    offline, plan = plan_offline(stream), make_plan(stream)
    found = {way: pace_stream(stream, way, plan=plan) for way in WAYS}
    base = found["pace"].base
    ways = {
        way: {
            **compare_offline(one, offline),
            "kept": one.kept and one.spent <= one.total and one.committed <= one.total,
            "bound": one.value / offline.bound,
        }
        for way, one in found.items()
    }
    return {
        "priced": bool(offline.price > 0),
        "reserved": (offline.value - base) / (offline.unreserved - base),
        "offline_use": offline.spend / found["pace"].total,
        "ways": ways,
    }


# -- the summary -------------------------------------------------------------------------------------------------------


def summarise(records: Records) -> dict[str, Any]:
    """Return the ways by how customers are paid, and what reserving promises costs by how many redeem."""
    kinds = []
    for title, later in KINDS.items():
        some = [one for one in records if one["traits"]["on_redemption"] == later]
        kinds += [_summarise_kind(title, some) | ({"rates": _by_rate(some)} if later else {})] if some else []
    lasting = [{**one, **one["lasting"]} for one in records if "lasting" in one]
    if lasting:
        kinds.append(
            _summarise_kind(LASTING, lasting)
            | {"rates": _by_rate(lasting, lasts=True), "refusals": _count_refusals(lasting)}
        )
    everything = {name: _list_values(records, way, "value") for way, name in NAMES.items()} if records else {}
    return {
        "streams": len(records),
        "customers": sum(record["customers"] for record in records),
        "overspent": {name: _count_overspent([*records, *lasting], way) for way, name in NAMES.items()},
        "value": {name: float(values.mean()) for name, values in everything.items()},
        "lasting_value": _average(
            _list_values([{**one, **one.get("lasting", {})} for one in records], "pace", "value")
        ),
        "kinds": kinds,
    }


def _summarise_kind(title: str, records: Records) -> dict[str, Any]:
    scarce = [one for one in records if one["priced"]]
    ways = {}
    for way, name in NAMES.items():
        value = _list_values(records, way, "value")
        ways[name] = {
            "overspent": _count_overspent(records, way),
            "value": float(value.mean()),
            "worst": float(np.quantile(value, WORST)),
            "good": float((value >= GOOD).mean()),
            "gain": float(_list_values(records, way, "gain").mean()),
            "use": _average(_list_values(scarce, way, "use")),
            "used": _average(_list_values(scarce, way, "use") >= GOOD),
            "committed": _average(_list_values(scarce, way, "committed")),
            "distribution": _distribute(value),
        }
    offline = _average(np.array([one["offline_use"] for one in scarce]))
    reserved = float(np.mean([one["reserved"] for one in records]))
    return {"kind": title, "streams": len(records), "ways": ways, "offline_use": offline, "reserved": reserved}


def _by_rate(records: Records, *, lasts: bool = False) -> list[dict[str, Any]]:
    rows = []
    for low, high in pairwise(RATES):
        part = [one for one in records if low <= one["rate"] < high or one["rate"] == high == RATES[-1]]
        if part:
            own = {word: float(_list_values(part, "pace", word).mean()) for word in ("value", "gain", "use")}
            kept = float(np.mean([one["reserved"] for one in part]))
            row = {"low": low, "high": high, "streams": len(part), **own, "reserved": kept}
            rows.append(row | ({"refused": _count_refusals(part)["paced"]["share"]} if lasts else {}))
    return rows


def _count_refusals(records: Records) -> dict[str, Any]:
    """Return the share of redemptions that were refused, and of streams in which any was, for each way."""
    found = {}
    for way, name in NAMES.items():
        refused, redeemed = (_list_values(records, way, word) for word in ("refused", "redeemed"))
        share = float(refused.sum() / redeemed.sum()) if redeemed.sum() else 0.0
        found[name] = {"share": share, "streams": float((refused > 0).mean())}
    return found


def _list_values(records: Sequence[dict[str, Any]], way: str, word: str) -> Array:
    return np.array([record["ways"][way][word] for record in records])


def _count_overspent(records: Records, way: str) -> int:
    return sum(not record["ways"][way]["kept"] for record in records)


def _average(values: Array) -> float | None:
    return float(values.mean()) if len(values) else None


def _distribute(values: Array) -> dict[str, list[float]]:
    share = np.searchsorted(np.sort(values), GRID + 1e-12, side="right") / len(values)
    return {"x": GRID.tolist(), "share": share.round(4).tolist()}


def tabulate(records: Records) -> str:
    """Return the ways by how customers are paid, as Markdown."""
    return tabulate_streams(summarise(records))


SETUP = """\
Random streams of 20,000 to 100,000 foreseen customers over 28 to 91 days, each from a random world. More or fewer customers come than
were foreseen (standard deviation 15 %), traffic drifts, days of the week are busy by a season that the plan knows in half of the streams,
and bursts come unforeseen. The mix of customers and their responses drift; the model does not see the latter, and is off by 10 % at the
start. Where costs are paid on redemption, promises stand for 2 to 14 days and redemptions come late.

- **Value** is a share of that of the *offline optimum*: the best plan for the whole stream, made afterwards, by the ledger's rule that
  what is spent and promised never exceeds the total.
- **Gain** is the value beyond everyone's cheapest level, again as a share.
- **Budget used** and **committed** (spent or promised at the end) are of streams in which the budget binds.
- **While the budget lasts:** the ledger reserves what open promises will probably cost, and refuses a redemption that no longer fits. The
  offline optimum reserves nothing, knows what each level costs in the mean, and keeps to the budget in the mean. A refused redemption
  loses the gain of its level, divided by the share who redeem."""
EXPERIMENT = Experiment(
    "pace_streams",
    measure,
    tabulate,
    Chapter("Pacing against the offline optimum", SETUP, fill=fill_streams),
    summarise,
    drawn=True,
    one_thread=True,
)
