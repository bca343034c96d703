"""Section on the certainty of the gain: evidence for the verdict, and lower bounds."""

from __future__ import annotations

from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_gain_strip, draw_tick_strip
from largesse.report.comparison_rows import FigureRow, FigureRows, add_decimals_for_nonzero_ends, view_value_and_spend
from largesse.report.number_format import (
    MISSING_DASH,
    Numbers,
    Units,
    View,
    add_interval_label,
    finite_or_none,
    list_estimate_and_ends,
)
from largesse.report.sentences import (
    find_recommended_evidence,
    write_gain_bound,
    write_gain_bounds,
    write_option_name,
    write_probability,
)


def view_gain_bounds(numbers: Numbers, units: Units) -> View:
    """Return the template values of the evidence, the lower bounds and the guaranteed values."""
    safety, evidence = numbers["safety"], find_recommended_evidence(numbers["verdict"])
    rows = [
        view_value_and_spend(row, units)
        | {"gain": units.write_gain(row["gain"]), "bound": write_gain_bound(units, row)}
        for row in safety["options"]
    ]
    rows += [
        view_value_and_spend(row, units) | {"gain": MISSING_DASH, "bound": MISSING_DASH}
        for row in numbers["versus"][:1]
    ]
    return {
        "option": "" if evidence is None else write_option_name(evidence["name"]),
        "evidence": view_gain_evidence(evidence, units),
        "others": [_write_other_option(row, units) for row in numbers["verdict"]["options"] if row is not evidence],
        "reason": numbers["verdict"]["reason"],
        "bound": write_gain_bounds(units, safety),
        "rows": rows,
        "guarantee": _write_guaranteed_values(safety, units),
    }


def view_gain_evidence(evidence: Numbers | None, units: Units) -> FigureRows:
    """Return figure rows of the expected gain by the model, by the log, and by model and log together."""
    if evidence is None:
        return FigureRows()
    sources = [
        ("The model expects", "from all customers’ curves", evidence["model"]),
        ("This log says", "from what customers did", evidence["log"]),
        (
            "Both together",
            f"a gain has a probability of {write_probability(evidence['probability'])}",
            evidence["gain"],
        ),
    ]
    sources = [source for source in sources if source[-1] is not None]
    axis = fit_axis([0.0, *(end for *_, gain in sources for end in list_estimate_and_ends(gain))], 4, snug=True)
    rows = []
    for label, detail, gain in sources:
        style = add_decimals_for_nonzero_ends(units.gain_style(gain), gain)
        number, interval = style.text(gain["estimate"], signed=True), style.interval(gain, signed=True)
        hollow = gain is not evidence["gain"]
        figure = draw_gain_strip(axis, gain, f"{label}: {number}, {add_interval_label(interval)}", hollow=hollow)
        rows.append(FigureRow(label, figure, number, detail, interval))
    return FigureRows(
        rows, draw_tick_strip(axis, units.difference(axis.ticks, axis.step, digits=1, short=True), signed=True)
    )


def _write_other_option(evidence: Numbers, units: Units) -> str:
    """Write the gain of the policy (plan or simple rule) that is not recommended."""
    name, gain = write_option_name(evidence["name"]), units.write_gain(evidence["gain"])
    return f"{name[:1].upper()}{name[1:]}: {gain}; a gain has a probability of {write_probability(evidence['probability'])}."


def _write_guaranteed_values(safety: Numbers, units: Units) -> str:
    """Write the values that plan and simple rule reach with 95 % confidence, or the reason for their absence."""
    if safety["excuse"]:
        return str(safety["excuse"])
    known = [(row["name"], finite_or_none(row["guaranteed"])) for row in safety["options"]]
    bounds = [f"{units.response([bound]).text(bound)} with {name}" for name, bound in known if bound is not None]
    if not bounds:
        return ""
    return (
        f"Guaranteed value: at least {' and '.join(bounds)}, with 95 % confidence. This holds for any number of rows and any "
        "responses between 0 and 1, so it lies well below the interval."
    )
