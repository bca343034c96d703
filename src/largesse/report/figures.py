"""Records as drawings: what `.plot()` gives in a notebook, with the pens and papers of the report."""

from __future__ import annotations

import numpy as np

from largesse.records import Evaluation, Explanation, Frontier, Log, Plan, Study
from largesse.report.charts.dots import draw_dots
from largesse.report.charts.lines import Look, draw_lines
from largesse.report.charts.sheet import Caption
from largesse.report.drawing import draws

POINTS = 25  # of a frontier that are drawn, if it has more breakpoints
MOVERS = 15  # features that are drawn
CURVES = 6  # customers whose curves are drawn


@draws(Frontier)
def draw_frontier_line(front: Frontier) -> str:
    """Return the best value at every budget."""
    spend = front.spend
    if len(front) > POINTS:
        spend = np.linspace(float(spend[0]), float(spend[-1]), POINTS)
    value = np.interp(spend, front.spend, front.value)
    row = {"panel": "", "label": "best plan", "x": spend.tolist(), "mean": value.tolist(), "sd": [None] * len(spend)}
    caption = Caption("The best value at every budget", "budget per customer", "value per customer")
    return draw_lines([row], caption)


@draws(Study)
def draw_study(study: Study) -> str:
    """Return honest values with their intervals beside what models promise, at every budget."""
    points = study.frontier
    budgets = [point.budget for point in points]
    reach = [(point.value.high - point.value.low) / 2 for point in points]
    rows = [
        ("honest value", [point.value.estimate for point in points], reach),
        ("promise of the model", [point.promise for point in points], [None] * len(points)),
    ]
    series = [{"panel": "", "label": label, "x": budgets, "mean": mean, "sd": sd} for label, mean, sd in rows]
    note = (
        "Honest: judged on held-out rows. The band is the 95 % interval at each budget, drawn as wide above as below."
    )
    caption = Caption("What policies bring at every budget", "budget per customer", "value per customer", note)
    return draw_lines(series, caption, Look(references=("promise of the model",)))


@draws(Evaluation)
def draw_evaluation(found: Evaluation) -> str:
    """Return by how much the policy is better than each of its references, with 95 % intervals."""
    rows = [
        {"panel": "", "label": other.name, "estimate": gain.estimate, "low": gain.low, "high": gain.high}
        for other in (*found.references, *found.uniform)
        for gain in (other.difference,)
    ]
    own = {"panel": "", "label": "value", "estimate": found.value}
    own |= dict(zip(("low", "high"), found.value_interval, strict=True))
    if not rows:
        return draw_dots([own], Caption("What the policy brings", "value per customer, 95 % interval"))
    note = "Right of zero the policy is better; a hollow dot has an interval that holds zero."
    return draw_dots(rows, Caption("By how much the policy brings more than …", "value per customer", note=note))


@draws(Plan)
def draw_plan(plan: Plan) -> str:
    """Return how many customers get each level."""
    numbers, counts = np.unique(plan.levels, return_counts=True)
    rows = [
        {"panel": "", "label": f"level {k}", "estimate": share, "low": share, "high": share}
        for k, share in zip(numbers, (100 * counts / len(plan)).tolist(), strict=True)
    ]
    note = f"{len(plan):,} customers, spend {plan.spend:.4g} of {plan.budget:.4g}, value {plan.value:.4g} per customer."
    return draw_dots(rows, Caption("Who gets what", "per cent of customers", note=note))


@draws(Log)
def draw_log(log: Log) -> str:
    """Return the mean response at each level, as logged."""
    rows = []
    for k, label in enumerate(log.levels.titles):
        own = log.response[log.level == k]
        reach = 1.96 * float(own.std(ddof=1)) / len(own) ** 0.5 if len(own) > 1 else None
        mean = float(own.mean()) if len(own) else None
        ends = (None, None) if mean is None or reach is None else (mean - reach, mean + reach)
        rows.append({"panel": "", "label": label, "estimate": mean, "low": ends[0], "high": ends[1]})
    note = "As logged, not corrected for who got which level; 95 % intervals of independent rows."
    return draw_dots(rows, Caption("Mean response by level", f"mean {log.response_name}", note=note))


@draws(Explanation)
def draw_explanation(why: Explanation) -> str:
    """Return what is lost without each feature; where that was not measured, what levels are worth to the first customers."""
    if why.movers:
        rows = [
            {
                "panel": "",
                "label": mover.feature,
                "estimate": mover.loss.estimate,
                "low": mover.loss.low,
                "high": mover.loss.high,
            }
            for mover in why.movers[:MOVERS]
        ]
        note = f"Each feature shuffled among {why.rows:,} held-out rows; value − price × spend per customer, 95 % intervals."
        return draw_dots(rows, Caption("What is lost without each feature", "loss per customer", note=note))
    numbers = list(range(len(why.labels)))
    names = np.arange(len(why)).tolist() if why.customer is None else why.customer.slice(0, CURVES).to_pylist()
    series = [
        {
            "panel": "",
            "label": f"customer {name}: {why.labels[why.levels[row]]}",
            "x": numbers,
            "mean": why.worth[row].tolist(),
        }
        | {"sd": [None] * len(numbers)}
        for row, name in enumerate(names[:CURVES])
    ]
    note = f"Response − {why.price:.3g} × cost: the level with the most is given."
    return draw_lines(series, Caption("What each level is worth", "level", "worth", note))
