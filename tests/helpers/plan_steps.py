"""The summary of a plan, from arrays in memory."""

from typing import Any

import numpy as np
import pyarrow as pa

from largesse.evaluation import choose_features, count_plan, number_groups, summarise_plan
from largesse.records import Array, Plan, PlanSummary


def summarise(
    plan: Plan, features: pa.Table, curves: Array, costs: Array, labels: Any, sample: slice = slice(None)
) -> PlanSummary:
    """Return who gets what; features are chosen on a sample of the customers."""
    rows = range(len(plan))[sample]
    shown = choose_features(features.take(list(rows)), plan.levels[sample])
    batch = (np.arange(len(plan)), curves, np.atleast_2d(costs))
    counts = count_plan(shown, number_groups(shown, features), plan.levels, batch)
    return summarise_plan(plan, labels, counts, shadow=plan.shadow)
