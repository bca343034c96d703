"""How close pacing comes to the offline optimum of random streams, beside a fixed price and a new plan every day.

    python benchmarks/pacing.py --seeds 10000-10999 --jobs 16 --out pacing.jsonl
    python benchmarks/pacing.py --out pacing.jsonl --table

Streams are drawn by `largesse.pacing.draw_stream`. Records are one line of JSON per stream; a stream that is there already is
not measured again.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from largesse.pacing import WAYS, draw_stream, make_plan, pace_stream, plan_offline

NAMES = {"pace": "paced", "fixed": "fixed price", "daily": "new plan every day"}


def measure(seed: int) -> dict[str, Any]:
    stream = draw_stream(seed)
    offline, plan = plan_offline(stream), make_plan(stream)
    found = {way: pace_stream(stream, way, plan=plan) for way in WAYS}
    base = found["pace"].base
    ways = {
        way: {
            "kept": bool(one.kept and one.spent <= one.total and one.committed <= one.total),
            "value": one.value / offline.value,
            "gain": (one.value - base) / (offline.value - base),
            "bound": one.value / offline.bound,
            "use": one.use,
            "committed": one.committed / one.total,
            "short": float(np.mean(one.reasons == 1)),
        }
        for way, one in found.items()
    }
    return {
        "seed": seed,
        "customers": len(stream),
        "traits": stream.traits.as_dict(),
        "rate": float(stream.redeems.max(axis=1).mean()),
        "priced": offline.price > 0,
        "reserved": (offline.value - base) / (offline.unreserved - base),
        "offline_use": offline.spend / found["pace"].total,
        "ways": ways,
    }


def tabulate(records: list[dict[str, Any]]) -> str:
    """Return the summary as Markdown."""
    lines = []
    kinds = {"paid at once": False, "paid on redemption": True}
    for title, later in kinds.items():
        some = [one for one in records if one["traits"]["on_redemption"] == later]
        if not some:
            continue
        lines += [f"### {len(some)} streams, {title}", ""]
        lines += ["| | overspent | value, mean | 5 % worst | value ≥ 99.5 % | gain, mean | budget used | committed |"]
        lines += ["|---|---|---|---|---|---|---|---|"]
        for way, name in NAMES.items():
            got = {word: np.array([one["ways"][way][word] for one in some]) for word in some[0]["ways"][way]}
            scarce = np.array([one["priced"] for one in some])
            cells = (
                f"{int((~got['kept'].astype(bool)).sum())}",
                f"{got['value'].mean():.2%}",
                f"{np.quantile(got['value'], 0.05):.2%}",
                f"{(got['value'] >= 0.995).mean():.0%}",
                f"{got['gain'].mean():.2%}",
                f"{got['use'][scarce].mean():.2%}",
                f"{got['committed'][scarce].mean():.2%}",
            )
            lines.append(f"| {name} | {' | '.join(cells)} |")
        if later:
            spent = np.mean([one["offline_use"] for one in some if one["priced"]])
            lines.append(f"| offline optimum | | 100% | | | 100% | {spent:.2%} | |")
            kept = np.mean([one["reserved"] for one in some])
            lines += [
                "",
                f"Of the gain of an offline plan that reserves nothing, one that reserves promises keeps {kept:.1%}.",
            ]
            lines += [
                "",
                "| customers who redeem | streams | value | gain | budget used | gain kept by reserving |",
                "|---|---|---|---|---|---|",
            ]
            for low, high in ((0.0, 0.05), (0.05, 0.15), (0.15, 0.4), (0.4, 1.01)):
                part = [one for one in some if low <= one["rate"] < high]
                if part:
                    own = {
                        word: np.mean([one["ways"]["pace"][word] for one in part]) for word in ("value", "gain", "use")
                    }
                    kept = np.mean([one["reserved"] for one in part])
                    name = f"{low:.0%} to {min(high, 1.0):.0%}"
                    cells = (len(part), *(f"{own[word]:.1%}" for word in ("value", "gain", "use")), f"{kept:.0%}")
                    lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="10000-10999")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    kept = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    if not given.table:
        first, last = map(int, given.seeds.split("-"))
        known = {one["seed"] for one in kept}
        seeds = [seed for seed in range(first, last + 1) if seed not in known]
        with ProcessPoolExecutor(given.jobs) as pool, given.out.open("a") as file:
            for i, one in enumerate(pool.map(measure, seeds, chunksize=1)):
                kept.append(one)
                file.write(json.dumps(one) + "\n")
                file.flush()
                if (i + 1) % 50 == 0:
                    print(f"{i + 1} of {len(seeds)}", flush=True)
    print(tabulate(kept))


if __name__ == "__main__":
    main()
