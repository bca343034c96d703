"""Section on the method: model choices, other estimators, and facts of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_gain_strip
from largesse.report.number_format import (
    Numbers,
    Units,
    View,
    choose_style,
    finite_or_none,
    list_estimate_and_ends,
    write_count,
)
from largesse.report.sentences import select_note_warnings

MAX_LOSS_DECIMALS = 5
QUESTIONS = {  # by the name of a choice
    "model": "Which model?",
    "increments of the stack": "Does a level add the same for everybody?",
    "Additive: shapes of features": "How much may the effect of a feature bend? (Additive)",
    "Thresholds: penalty": "How much may the effect of a feature differ between levels? (Thresholds)",
    "training starts at": "Where does training start?",
    "own increments held by": "How strongly are customers’ own increments shrunk?",
    "balance": "How strongly is the network kept from telling levels apart?",
    "settings": "Which settings?",
}
CANDIDATE_NAMES = {"common increments": "yes, the same", "individual increments": "no, each customer’s own"}


def view_method_details(numbers: Numbers, units: Units) -> View:
    """Return the template values of model choices, estimates, notes and log size."""
    tried, log = numbers["method"]["tried"], numbers["log"]
    choices = dict.fromkeys(row["of"] for row in tried)
    price, clusters = finite_or_none(numbers["planned"]["price"]), finite_or_none(log["clusters"])
    return {
        "groups": [
            {
                "title": write_choice_question(choice or "model"),
                "rows": _view_choice_candidates([row for row in tried if row["of"] == choice]),
            }
            for choice in choices
        ],
        "model": numbers["model"]["about"],
        "price": units.write_price(price) if price else "",
        "estimates": [_view_estimate(row, numbers["estimator"], units) for row in numbers["method"]["estimates"]],
        "notes": select_note_warnings(numbers["answer"]["warnings"]),
        "rows": write_count(log["rows"]),
        "customers": write_count(log["customers"]) if log["customers"] else "",
        "clusters": "" if clusters is None else write_count(clusters),
        "sample": write_count(numbers["sample"]["rows"]) if numbers["sample"] else "",
    }


def write_choice_question(choice: str) -> str:
    """Return the question that a model choice answers, or the name of an unknown choice.

    >>> write_choice_question("CFRNet: settings"), write_choice_question("increments of the stack"), write_choice_question("strength")
    ('Which settings? (CFRNet)', 'Does a level add the same for everybody?', 'Choice of the strength')
    """
    model, _, rest = choice.partition(": ")
    if choice in QUESTIONS or rest not in QUESTIONS:
        return QUESTIONS.get(choice, f"Choice of the {choice}")
    return f"{QUESTIONS[rest]} ({model})"


def _view_choice_candidates(tried: Sequence[Numbers]) -> list[View]:
    """Return the template rows of a model choice's candidates with their losses."""
    # The smallest standard error above zero is the difference in loss that should be visible.
    smallest = min((se for se in (finite_or_none(row["se"]) for row in tried) if se), default=None)
    style = choose_style([row["loss"] for row in tried], smallest, digits=1)
    style = replace(style, decimals=min(style.decimals, MAX_LOSS_DECIMALS))
    intervals = []  # of one standard error around the difference; the best has none
    for row in tried:
        middle, se = finite_or_none(row["difference"]), finite_or_none(row["se"])
        low, high = (None, None) if middle is None or not se else (middle - se, middle + se)
        intervals.append({"estimate": row["difference"], "low": low, "high": high})
    axis = fit_axis([0.0, *(number for interval in intervals for number in list_estimate_and_ends(interval))], 3)
    views = []
    for row, interval in zip(tried, intervals, strict=True):
        label = f"{row['name']}: worse than the best by {style.text(row['difference'])}"
        views.append(
            {
                "name": CANDIDATE_NAMES.get(row["name"], row["name"]),
                "loss": style.text(row["loss"]),
                "difference": style.text(row["difference"], signed=True),
                "se": style.text(row["se"]),
                "strip": draw_gain_strip(axis, interval, label),
                "chosen": row["chosen"],
            }
        )
    return views


def _view_estimate(row: Numbers, estimator: str, units: Units) -> dict[str, str]:
    style, used = units.value_style(row), " (used above)" if row["name"] == estimator else ""
    value, interval = style.text(row["estimate"]), style.interval(row)
    return {"name": row["name"], "words": row["about"] + used, "value": value, "interval": interval}
