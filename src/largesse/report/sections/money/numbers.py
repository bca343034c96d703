"""Where the money goes: customers, spend and extra response at each level."""

from __future__ import annotations

from largesse.report.section import Part, PlanStep


def describe_money(step: PlanStep) -> Part:
    """Return what each level costs and brings in all, against giving its customers the cheapest level."""
    tally = step.tally
    spend, more, extra = tally.totals.tolist()
    total = sum(spend)
    return {
        "levels": [
            {
                "name": label,
                "customers": int(tally.counts[k]),
                "share": float(tally.counts[k] / tally.n),
                "spend": spend[k],
                "spend_share": spend[k] / total if total > 0 else 0.0,
                "extra": extra[k],
                "cost_per_extra": more[k] / extra[k] if extra[k] > 0 and k > 0 else None,
            }
            for k, label in enumerate(step.labels)
        ]
    }
