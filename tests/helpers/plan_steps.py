"""The summary of a plan, from arrays in memory."""

from typing import Any

import pyarrow as pa

from largesse.evaluation import choose_shown, summarise_plan, tally_plan
from largesse.records import Array, Plan, PlanSummary


def summarise(
    plan: Plan, features: pa.Table, curves: Array, costs: Array, labels: Any, sample: slice = slice(None)
) -> PlanSummary:
    """Return who gets what; features are chosen on a sample of the customers."""
    rows = range(len(plan))[sample]
    shown = choose_shown(features.take(list(rows)), plan.levels[sample])
    tally = tally_plan(shown, features, plan.levels, curves, costs)
    return summarise_plan(plan, labels, shown, tally, shadow=plan.shadow)
