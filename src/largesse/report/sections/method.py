"""Section with the choices of the model, the other estimators, and the facts of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_gain_strip
from largesse.report.number_format import Units, choose_style, finite, parts, write_count
from largesse.report.section import Numbers, Part, Section
from largesse.report.sentences import select_notes

MOST = 5  # decimals of losses
QUESTIONS = {  # what a choice is of → the question that it answers
    "model": "Which model?",
    "increments of the stack": "Does a level add the same for everybody?",
    "Additive: shapes of features": "How much may the effect of a feature bend? (Additive)",
    "Thresholds: penalty": "How much may levels differ in what features do? (Thresholds)",
    "training starts at": "Where does training start?",
    "own increments held by": "How firmly are customers’ own increments held back?",
    "balance": "How firmly is the network kept from telling levels apart?",
    "settings": "Which settings?",
}
CANDIDATES = {"common increments": "yes, the same", "individual increments": "no, each customer’s own"}


def view_method(numbers: Numbers, units: Units) -> Part:
    """Return the candidates of every choice, the estimates, the notes and the size of the log."""
    tried = numbers["method"]["tried"]
    titles = dict.fromkeys(row["of"] for row in tried)
    groups = [(title, [row for row in tried if row["of"] == title]) for title in titles]
    clusters = finite(numbers["log"]["clusters"])
    return {
        "groups": [{"title": _ask(title or "model"), "rows": _view_candidates(rows)} for title, rows in groups],
        "way": numbers["model"]["about"],
        "price": units.rate(price) if (price := finite(numbers["planned"]["price"])) else "",
        "estimates": _view_estimates(numbers, units),
        "notes": select_notes(numbers["answer"]["warnings"]),
        "rows": write_count(numbers["log"]["rows"]),
        "clusters": "" if clusters is None else write_count(clusters),
        "learnt": write_count(numbers["sample"]["rows"]) if numbers["sample"] else "",
    }


def _ask(title: str) -> str:
    """Return the question that a choice answers; what it is of, for one that is not listed.

    >>> _ask("CFRNet: settings"), _ask("increments of the stack"), _ask("strength")
    ('Which settings? (CFRNet)', 'Does a level add the same for everybody?', 'Choice of the strength')
    """
    kind, _, rest = title.partition(": ")
    if title in QUESTIONS or rest not in QUESTIONS:
        return QUESTIONS.get(title, f"Choice of the {title}")
    return f"{QUESTIONS[rest]} ({kind})"


def _view_candidates(tried: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the candidates of one choice: losses written alike, and drawn against the best."""
    losses = choose_style([row["loss"] for row in tried], _smallest_error(tried), digits=1)
    losses = replace(losses, decimals=min(losses.decimals, MOST))
    drawn = [{"estimate": row["difference"], **_find_ends(row)} for row in tried]
    across = fit_axis([0.0, *(number for row in drawn for number in parts(row))], 3)
    return [
        {
            "name": CANDIDATES.get(row["name"], row["name"]),
            "loss": losses.text(row["loss"]),
            "difference": losses.text(row["difference"], signed=True),
            "se": losses.text(row["se"]),
            "strip": draw_gain_strip(
                across, worse, f"{row['name']}: worse than the best by {losses.text(row['difference'])}"
            ),
            "chosen": row["chosen"],
        }
        for row, worse in zip(tried, drawn, strict=True)
    ]


def _find_ends(row: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the ends of one standard error around a difference; missing for the best, which has none."""
    middle, se = finite(row["difference"]), finite(row["se"])
    if middle is None or not se:
        return {"low": None, "high": None}
    return {"low": middle - se, "high": middle + se}


def _smallest_error(tried: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the smallest standard error above zero: the difference in loss that should be visible."""
    return min((se for se in (finite(row["se"]) for row in tried) if se), default=None)


def _view_estimates(numbers: Numbers, units: Units) -> list[dict[str, str]]:
    rows = []
    for row in numbers["method"]["estimates"]:
        style = units.value_style(row)
        used = " (used above)" if row["name"] == numbers["estimator"] else ""
        words = row["about"] + used
        rows.append(
            {"name": row["name"], "words": words, "value": style.text(row["estimate"]), "interval": style.interval(row)}
        )
    return rows


SECTION = Section("method", view_method, "How it was done")
