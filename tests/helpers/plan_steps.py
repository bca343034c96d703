"""The plan's step of a report, from arrays in memory."""

from typing import Any

import pyarrow as pa

from largesse.records import Array, Plan
from largesse.report import PlanStep, choose_shown, tally_plan


def make_plan_step(plan: Plan, features: pa.Table, curves: Array, costs: Array, labels: Any) -> PlanStep:
    shown = choose_shown(features, plan.levels)
    return PlanStep(plan, labels, shown, tally_plan(shown, features, plan.levels, curves, costs), None, plan.shadow)
