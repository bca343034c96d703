"""The page of a campaign's check: prediction against result, who followed the plan, and the columns that changed."""

from __future__ import annotations

from largesse.io import to_json
from largesse.records import CampaignCheck, Log, name_response
from largesse.report.number_format import DASH, Units, finite, name_day, write_count, write_percent, write_rate
from largesse.report.section import Numbers, Part
from largesse.report.sections.level_responses import Level, view_levels
from largesse.version import __version__

HEADLINES = {
    "fine": "The campaign went as promised.",
    "careful": "The campaign needs a second look.",
    "no": "The campaign did not go as planned.",
}
MAX_COLUMNS, SHOWN_COLUMNS = 20, 8


def describe_check(found: CampaignCheck, log: Log, *, title: str, unit: str = "", response_unit: str = "") -> Part:
    """Return the numbers of the page; numbers that are not finite are None."""
    numbers: Part = to_json(
        {
            "title": title,
            "unit": unit,
            "response_unit": response_unit,
            "made": name_day(),
            "version": __version__,
            "fingerprint": log.fingerprint,
            "headline": HEADLINES[found.answer],
            "answer": found.answer,
            "code": found.code,
            # Where nobody responded, the prediction says whether the response is yes or no.
            "response": to_json(name_response(log)) | ({"kind": "amount"} if found.value.promised.estimate > 1 else {}),
            "checks": found.findings,
            "rows": found.rows,
            "joined": found.joined,
            "followed": found.followed,
            "value": found.value,
            "spend": found.spend,
            "tenths": found.tenths,
            "levels": found.levels,
            "drifts": found.drifts[:MAX_COLUMNS],
            "columns": len(found.drifts),
            "price": None if found.price is None else {"before": found.price[0], "now": found.price[1]},
            "leaks": found.leaks,
        }
    )
    return numbers


def view_check(numbers: Numbers, units: Units) -> Part:
    """Return what the page shows: words, numbers as text, and a figure."""
    last = len(numbers["tenths"])
    style = units.difference([row["gain"] for row in numbers["tenths"]])
    tenths = [
        Level(
            _name_tenth(place, last),
            f"promised gain {style.text(row['gain'], signed=True)}",
            row["realised"],
            {"estimate": row["promised"]},
        )
        for place, row in enumerate(numbers["tenths"], 1)
    ]
    joined = finite(numbers["joined"])
    return {
        "rows": write_count(numbers["rows"]),
        "joined": "" if joined is None else write_count(joined),
        "followed": write_percent(numbers["followed"]),
        "kept": [_view_kept("value", numbers["value"], units), _view_kept("spend", numbers["spend"], units)],
        "tenths": view_levels(tenths, units),
        "levels": [
            {
                "name": row["name"],
                "planned": write_count(row["planned"]),
                "given": write_count(row["given"]),
                "followed": DASH if finite(row["followed"]) is None else write_percent(row["followed"]),
            }
            for row in numbers["levels"]
        ],
        "drifts": [
            {
                "column": row["column"],
                "psi": DASH if row["psi"] is None else f"{row['psi']:.3f}",
                "p": write_rate(row["p"]),
            }
            for row in numbers["drifts"][:SHOWN_COLUMNS]
        ],
        "price": _view_price(numbers),
        "leaks": [{**leak, "explained": write_percent(leak["explained"])} for leak in numbers["leaks"]],
    }


def _name_tenth(place: int, last: int) -> str:
    return f"{place} (least)" if place == 1 else f"{place} (most)" if place == last else str(place)


def _view_kept(name: str, kept: Numbers, units: Units) -> Part:
    realised, difference = kept["realised"], kept["difference"]
    plain = units.value_style(realised) if name == "value" else units.spend_style(realised)
    apart = units.gain_style(difference) if name == "value" else units.spend_style(difference)
    return {
        "name": name,
        "promised": plain.text(kept["promised"]["estimate"]),
        "realised": plain.text(realised["estimate"]),
        "interval": plain.interval(realised),
        "difference": apart.text(difference["estimate"], signed=True),
        "between": apart.interval(difference, signed=True),
        "p": write_rate(kept["p"]),
    }


def _view_price(numbers: Numbers) -> Part | None:
    found = numbers["price"]
    if found is None:
        return None
    now = found["now"]
    return {
        "before": write_rate(found["before"]),
        "now": write_rate(now["estimate"]),
        "between": f"{write_rate(now['low'])} to {write_rate(now['high'])}",
    }
