"""What paced streams show, as one dict of plain numbers and words: records in, JSON types out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from largesse.pacing import Course, Offline, Paced, PacePlan, Stream, as_units, compare_offline, show_time
from largesse.report.formats import finite, name_day
from largesse.report.section import Part
from largesse.version import __version__

NAMES = {"pace": "paced", "fixed": "fixed price", "daily": "new plan every day", "offline": "offline optimum"}


@dataclass(frozen=True)
class PaceStep:
    """Streams that were paced, one after the other; the first one is drawn."""

    title: str
    unit: str
    response: str
    binary: bool
    replayed: bool  # a table, not simulated
    fingerprint: str  # of the log that the model learnt from
    explores_for: str = ""  # what levels are drawn for, if for anything
    at_random: float = 0.0  # share of customers whose levels are drawn for nothing special
    streams: tuple[Part, ...] = ()
    first: Part | None = None

    def add(
        self,
        stream: Stream,
        plan: PacePlan,
        offline: Offline,
        found: Mapping[str, Paced],
        courses: Mapping[str, Course],
    ) -> PaceStep:
        """Return the step with one more stream."""
        base = found["pace"].base
        gain = offline.value - base
        ways = {way: compare_offline(one, offline) for way, one in found.items()}
        shown = {"customers": len(stream), "priced": offline.price > 0, "ways": ways, "lasts": _lasts(stream)}
        shown |= {"reserved": gain / (offline.unreserved - base) if offline.unreserved > base else 1.0}
        shown |= {"offline_use": offline.spend / found["pace"].total if found["pace"].total else 0.0}
        first = self.first or _describe_first(stream, plan, found["pace"], courses)
        return replace(self, streams=(*self.streams, shown), first=first)


def _lasts(stream: Stream) -> bool:
    """Whether anything is promised that holds only while the budget lasts."""
    return not stream.terms.kept and stream.customers.on_redemption


def _describe_first(stream: Stream, plan: PacePlan, paced: Paced, courses: Mapping[str, Course]) -> Part:
    terms, traits = stream.terms, stream.traits
    lines = {
        way: {
            "day": [float(value) for value in course.days],
            **{
                word: [finite(float(value)) for value in getattr(course, word)]
                for word in ("price", "spent", "held", "value")
            },
        }
        for way, course in courses.items()
    }
    facts = {
        "customers": len(stream),
        "foreseen": float(plan.customers),
        "starts": show_time(terms.starts)[:10] if terms.starts else None,  # None: the table does not say
        "days": traits.days,
        "valid_days": None if terms.valid is None else terms.stands,
        "promises": None if terms.valid is None else terms.promises,
        "price": plan.price,
        "total": as_units(terms.total),
        "spent": paced.spent,
    }
    drawn = ("season", "bursts", "volume", "volume_drift", "mix_drift", "response_drift")
    return {"facts": facts, "courses": lines, "drawn": {word: getattr(traits, word) for word in drawn}}


def describe_pace(step: PaceStep) -> Part:
    """Return the numbers that the page is made from."""
    rows = []
    for way in ("pace", "daily", "fixed"):
        got = [one["ways"][way] for one in step.streams]
        means = {word: _mean([one[word] for one in got]) for word in ("value", "gain", "use", "committed", "short")}
        worst = min((one["value"] for one in got if one["value"] is not None), default=None)
        asked, refused = (sum(one[word] for one in got) for word in ("redeemed", "refused"))
        row = {"way": way, "name": NAMES[way], **means, "worst": worst, "over": sum(not one["kept"] for one in got)}
        row |= {"redemptions": asked, "refused": refused / asked if asked else 0.0}
        rows.append(row | {"streams_refused": sum(one["refused"] > 0 for one in got)})
    return {
        "title": step.title,
        "unit": step.unit,
        "response_unit": "",
        "made": name_day(),
        "version": __version__,
        "fingerprint": step.fingerprint,
        "response": {"name": step.response, "kind": "binary" if step.binary else "amount"},
        "levels": [],
        "replayed": step.replayed,
        "explores_for": step.explores_for,
        "at_random": step.at_random,
        "streams": len(step.streams),
        "ways": rows,
        "priced": sum(one["priced"] for one in step.streams),
        "reserved": _mean([one["reserved"] for one in step.streams]),
        "offline_use": _mean([one["offline_use"] for one in step.streams]),
        "lasts": any(one["lasts"] for one in step.streams),
        "later": any(abs(one["reserved"] - 1.0) > 1e-6 for one in step.streams),
        "first": step.first,
        "headline": _write_headline(rows[0], len(step.streams)),
    }


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _write_headline(own: Part, streams: int) -> str:
    if own["over"]:
        return "The budget was not kept."
    share = "–" if own["value"] is None else f"{own['value']:.1%}".replace("%", " %")
    where = {1: "The stream was", 2: "Both streams were"}.get(streams, f"All {streams:,} streams were")
    return f"{where} paced within the budget, at {share} of the offline optimum's value."
