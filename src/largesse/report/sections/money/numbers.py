"""Where the money goes: customers, spend and extra response at each level."""

from __future__ import annotations

import numpy as np

from largesse.report.section import Part, PlanStep


def describe_money(step: PlanStep) -> Part:
    """Return what each level costs and brings in all, against giving its customers the cheapest level."""
    levels, rows = step.plan.levels, np.arange(len(step.plan))
    spend, value = step.costs[rows, levels], step.curves[rows, levels]
    more, extra = spend - step.costs[:, 0], value - step.curves[:, 0]
    total = float(spend.sum())
    found = []
    for k, label in enumerate(step.labels):
        here = levels == k
        gained, paid = float(extra[here].sum()), float(spend[here].sum())
        found.append(
            {
                "name": label,
                "customers": int(here.sum()),
                "share": float(here.mean()),
                "spend": paid,
                "spend_share": paid / total if total > 0 else 0.0,
                "extra": gained,
                "cost_per_extra": float(more[here].sum()) / gained if gained > 0 and k > 0 else None,
            }
        )
    return {"levels": found}
