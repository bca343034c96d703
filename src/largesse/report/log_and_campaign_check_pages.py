"""Pages of the checkup of a log (before a campaign) and of the check of a campaign (after it)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from largesse.io import to_json
from largesse.records import CampaignCheck, Checkup, Log, describe_log_response, summarise_checkup
from largesse.report.number_format import (
    MISSING_DASH,
    Numbers,
    Units,
    View,
    finite_or_none,
    write_count,
    write_percent,
    write_report_date,
    write_two_digits,
)
from largesse.report.sections.level_responses import LevelMean, view_level_means
from largesse.report.sections.overlap_balance import view_overlap_and_balance
from largesse.version import __version__

CHECKUP_HEADLINES = {
    "fine": "This log can answer the question.",
    "careful": "This log can answer the question, with care.",
    "no": "This log cannot answer the whole question as it is.",
}
CHECK_HEADLINES = {
    "fine": "The campaign went as promised.",
    "careful": "The campaign needs a second look.",
    "no": "The campaign did not go as planned.",
}
MAX_KEPT_COLUMNS, MAX_SHOWN_COLUMNS = 20, 8


def _describe_log(log: Log, title: str, unit: str, response_unit: str) -> dict[str, Any]:
    return {
        "title": title,
        "unit": unit,
        "response_unit": response_unit,
        "made": write_report_date(),
        "version": __version__,
        "fingerprint": log.fingerprint,
        "response": describe_log_response(log),
    }


# -- the checkup of a log ----------------------------------------------------------------------------------------------


def make_log_checkup_numbers(
    checkup: Checkup, log: Log, *, title: str, unit: str = "", response_unit: str = "", notes: Sequence[str] = ()
) -> View:
    """Return the numbers of the page of a log checkup as JSON types."""
    rows = zip(checkup.labels, checkup.overlap.rows, checkup.weighted, checkup.raw, strict=True)
    propensity = checkup.propensity
    numbers: View = to_json(
        {
            **_describe_log(log, title, unit, response_unit),
            "headline": CHECKUP_HEADLINES[checkup.answer],
            "answer": checkup.answer,
            "randomised": checkup.randomised,
            "dependence": checkup.dependence,
            "levels": [{"name": label} for label in checkup.labels],
            "log": {
                "rows": checkup.rows,
                "clusters": checkup.clusters,
                "customers": checkup.customers,
                "propensity": propensity.source,
                "model": propensity.model,
                "clipped": propensity.clipped,
                "clipped_weight": propensity.clipped_weight,
            },
            "curve": {
                "levels": [{"name": name, "rows": int(n), "value": value, "raw": raw} for name, n, value, raw in rows]
            },
            "support": summarise_checkup(checkup),
            "within": checkup.within,
            "leaks": checkup.leaks,
            "heavy": checkup.heavy,
            "notes": [note[:1].upper() + note[1:] for note in notes],
        }
    )
    return numbers


def view_log_checkup(numbers: Numbers, units: Units) -> View:
    """Return the template values of the page of a log checkup: texts and figures."""
    levels = [
        LevelMean(row["name"], f"{write_count(row['rows'])} rows", row["value"], row["raw"])
        for row in numbers["curve"]["levels"]
    ]
    clusters, customers = (finite_or_none(numbers["log"][key]) for key in ("clusters", "customers"))
    return {
        "rows": write_count(numbers["log"]["rows"]),
        "customers": "" if customers is None else write_count(customers),
        "clusters": "" if clusters is None else write_count(clusters),
        "levels": view_level_means(levels, units),
        "support": view_overlap_and_balance(numbers, units),
        "within": _view_within_customers(numbers, units),
        "leaks": _view_leaks(numbers),
        "heavy": [
            {
                "row": f"{row['row']:,}",
                "level": row["level"],
                "propensity": write_two_digits(row["propensity"]),
                "share": write_percent(row["share"]),
            }
            for row in numbers["heavy"]
        ],
    }


def _view_within_customers(numbers: Numbers, units: Units) -> View | None:
    within = numbers["within"]
    if within is None:
        return None
    first, *others = (numbers["levels"][level]["name"] for level in within["levels"])
    rows = [
        {"name": name, "among": units.write_gain(among), "within": units.write_gain(inside)}
        for name, among, inside in zip(others, within["among"], within["within"], strict=True)
    ]
    return {"of": within["of"], "groups": write_count(within["groups"]), "first": first, "rows": rows}


def _view_leaks(numbers: Numbers) -> list[View]:
    return [{**leak, "explained": write_percent(leak["explained"])} for leak in numbers["leaks"]]


# -- the check of a campaign -------------------------------------------------------------------------------------------


def make_campaign_check_numbers(
    check: CampaignCheck, log: Log, *, title: str, unit: str = "", response_unit: str = ""
) -> View:
    """Return the numbers of the page of a campaign check as JSON types."""
    numbers: View = to_json(
        {
            **_describe_log(log, title, unit, response_unit),
            "headline": CHECK_HEADLINES[check.answer],
            "answer": check.answer,
            "code": check.code,
            "checks": check.findings,
            "rows": check.rows,
            "joined": check.joined,
            "followed": check.followed,
            "value": check.value,
            "spend": check.spend,
            "tenths": check.tenths,
            "levels": check.levels,
            "drifts": check.drifts[:MAX_KEPT_COLUMNS],
            "columns": len(check.drifts),
            "price": None if check.price is None else {"before": check.price[0], "now": check.price[1]},
            "leaks": check.leaks,
        }
    )
    if check.value.promised.estimate > 1:  # it is an amount, even if the new log has no response
        numbers["response"]["kind"] = "amount"
    return numbers


def view_campaign_check(numbers: Numbers, units: Units) -> View:
    """Return the template values of the page of a campaign check: texts and figures."""
    last, joined = len(numbers["tenths"]), finite_or_none(numbers["joined"])
    gains, labels = (
        units.difference([row["gain"] for row in numbers["tenths"]]),
        {1: "1 (least)", last: f"{last} (most)"},
    )
    tenths = [
        LevelMean(
            labels.get(place, str(place)),
            f"promised gain {gains.text(row['gain'], signed=True)}",
            row["realised"],
            {"estimate": row["promised"]},
        )
        for place, row in enumerate(numbers["tenths"], 1)
    ]
    return {
        "rows": write_count(numbers["rows"]),
        "joined": "" if joined is None else write_count(joined),
        "followed": write_percent(numbers["followed"]),
        "kept": [_view_promise_and_result(key, numbers[key], units) for key in ("value", "spend")],
        "tenths": view_level_means(tenths, units),
        "levels": [
            {
                "name": row["name"],
                "planned": write_count(row["planned"]),
                "given": write_count(row["given"]),
                "followed": write_percent(row["followed"]),
            }
            for row in numbers["levels"]
        ],
        "drifts": [
            {
                "column": row["column"],
                "psi": MISSING_DASH if row["psi"] is None else f"{row['psi']:.3f}",
                "p": write_two_digits(row["p"]),
            }
            for row in numbers["drifts"][:MAX_SHOWN_COLUMNS]
        ],
        "price": _view_redemption_price(numbers["price"]),
        "leaks": _view_leaks(numbers),
    }


def _view_promise_and_result(name: str, result: Numbers, units: Units) -> View:
    realised, difference = result["realised"], result["difference"]
    style = units.value_style(realised) if name == "value" else units.spend_style(realised)
    gap = units.gain_style(difference) if name == "value" else units.spend_style(difference)
    return {
        "name": name,
        "promised": style.text(result["promised"]["estimate"]),
        "realised": style.text(realised["estimate"]),
        "interval": style.interval(realised),
        "difference": gap.text(difference["estimate"], signed=True),
        "difference_interval": gap.interval(difference, signed=True),
        "p": write_two_digits(result["p"]),
    }


def _view_redemption_price(price: Numbers | None) -> View | None:
    if price is None:
        return None
    now, low, high = (write_two_digits(price["now"][end]) for end in ("estimate", "low", "high"))
    return {"before": write_two_digits(price["before"]), "now": now, "interval": f"{low} to {high}"}
