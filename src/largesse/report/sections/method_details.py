"""Section with the choices of the model, the other estimators, and the facts of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_gain_strip
from largesse.report.number_format import Numbers, Units, View, choose_style, finite, list_ends, write_count
from largesse.report.sentences import select_notes

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


def view_method(numbers: Numbers, units: Units) -> View:
    """Return the candidates of every choice, the estimates, the notes and the size of the log."""
    tried, log = numbers["method"]["tried"], numbers["log"]
    choices = dict.fromkeys(row["of"] for row in tried)
    price, clusters = finite(numbers["planned"]["price"]), finite(log["clusters"])
    return {
        "groups": [
            {
                "title": ask_question(choice or "model"),
                "rows": _view_candidates([row for row in tried if row["of"] == choice]),
            }
            for choice in choices
        ],
        "model": numbers["model"]["about"],
        "price": units.write_price(price) if price else "",
        "estimates": [_view_estimate(row, numbers["estimator"], units) for row in numbers["method"]["estimates"]],
        "notes": select_notes(numbers["answer"]["warnings"]),
        "rows": write_count(log["rows"]),
        "customers": write_count(log["customers"]) if log["customers"] else "",
        "clusters": "" if clusters is None else write_count(clusters),
        "sample": write_count(numbers["sample"]["rows"]) if numbers["sample"] else "",
    }


def ask_question(choice: str) -> str:
    """Return the question that a choice answers, or the name of an unlisted choice.

    >>> ask_question("CFRNet: settings"), ask_question("increments of the stack"), ask_question("strength")
    ('Which settings? (CFRNet)', 'Does a level add the same for everybody?', 'Choice of the strength')
    """
    model, _, rest = choice.partition(": ")
    if choice in QUESTIONS or rest not in QUESTIONS:
        return QUESTIONS.get(choice, f"Choice of the {choice}")
    return f"{QUESTIONS[rest]} ({model})"


def _view_candidates(tried: Sequence[Numbers]) -> list[View]:
    """Return the candidates of one choice: losses in one style, and drawn against the best."""
    # The smallest standard error above zero is the difference in loss that should be visible.
    smallest = min((se for se in (finite(row["se"]) for row in tried) if se), default=None)
    style = choose_style([row["loss"] for row in tried], smallest, digits=1)
    style = replace(style, decimals=min(style.decimals, MAX_LOSS_DECIMALS))
    intervals = []  # of one standard error around the difference; the best has none
    for row in tried:
        middle, se = finite(row["difference"]), finite(row["se"])
        low, high = (None, None) if middle is None or not se else (middle - se, middle + se)
        intervals.append({"estimate": row["difference"], "low": low, "high": high})
    axis = fit_axis([0.0, *(number for interval in intervals for number in list_ends(interval))], 3)
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
