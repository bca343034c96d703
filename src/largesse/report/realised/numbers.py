"""What the check of a campaign shows, as one dict of plain numbers and words: a record in, JSON types out."""

from __future__ import annotations

import math
from typing import Any

from largesse.records import CampaignCheck, Log, Realised
from largesse.report.formats import name_day
from largesse.report.plain import plain_estimate, plain_finding, plain_response
from largesse.report.section import Part
from largesse.version import __version__

HEADLINES = {
    "fine": "The campaign went as promised.",
    "careful": "The campaign needs a second look.",
    "no": "The campaign did not go as planned.",
}
SHOWN = 20  # columns


def describe_check(found: CampaignCheck, log: Log, *, title: str, unit: str = "", response_unit: str = "") -> Part:
    """Return the numbers that the page is made from; missing ones are None."""
    numbers: Part = {
        "title": title,
        "unit": unit,
        "response_unit": response_unit,
        "made": name_day(),
        "version": __version__,
        "fingerprint": log.fingerprint,
        "headline": HEADLINES[found.answer],
        "answer": found.answer,
        "code": found.code,
        # Where nobody responded, the promise says whether the response is yes or no.
        "response": plain_response(log) | ({"kind": "amount"} if found.value.promised.estimate > 1 else {}),
        "checks": [plain_finding(finding) for finding in found.findings],
        "rows": found.rows,
        "joined": found.joined,
        "followed": found.followed,
        "value": _plain_kept(found.value),
        "spend": _plain_kept(found.spend),
        "tenths": [
            {"gain": one.gain, "promised": one.promised, "realised": plain_estimate(one.realised), "rows": one.rows}
            for one in found.tenths
        ],
        "levels": [
            {"name": one.name, "planned": one.planned, "given": one.given, "followed": one.followed}
            for one in found.levels
        ],
        "drifts": [{"column": one.column, "psi": one.psi, "p": one.p} for one in found.drifts[:SHOWN]],
        "columns": len(found.drifts),
        "price": None if found.price is None else {"before": found.price[0], "now": plain_estimate(found.price[1])},
        "leaks": [{"feature": leak.feature, "of": leak.of, "explained": leak.explained} for leak in found.leaks],
    }
    plain: Part = _finite(numbers)
    return plain


def _plain_kept(kept: Realised) -> Part:
    names = ("promised", "realised", "difference")
    return {**{name: plain_estimate(getattr(kept, name)) for name in names}, "p": kept.p}


def _finite(value: Any) -> Any:
    """Return a copy that JSON can hold: numbers that are not finite become None."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
