"""A plan under a budget and further rules: multipliers, repair, and a certificate; proven the best on request."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from largesse.allocation.constraints.dual import Multipliers, certify, solve_dual
from largesse.allocation.constraints.infeasible import explain_failure, explain_infeasible, refuse_impossible
from largesse.allocation.constraints.problem import Instance, Rows, pose
from largesse.allocation.constraints.repair import repair
from largesse.allocation.exact import Proof, find_any_plan, is_small, prove_under_rules
from largesse.allocation.price.hull import as_rows
from largesse.records import Array, Plan


@dataclass(frozen=True, eq=False)
class CheapStart:
    """What is left of each limit (R,) after a start from cheap plans, and a cost below which no plan keeps the other rules."""

    slack: Array
    needed: float


def plan_under_rules(curves: Array, costs: Array, rules: Rows, average: float, exact: bool = False) -> Plan:
    """Return the plan for checked curves (n, K), cost rows and rules; refuse rules that no plan can keep.

    With `exact`, the best whole plan, proven as far as a core of choices can be solved.
    """
    instance = pose(curves, costs, rules)
    refuse_impossible(instance)
    found = solve_dual(instance)
    bound, needed = certify(instance, found), 0.0
    slack = repair(instance, found)
    if (slack < 0).any():
        start = _start_cheaply(instance, found)
        slack, needed = start.slack, start.needed
    kept = not (slack < 0).any()
    if not kept and is_small(instance):
        answer = find_any_plan(instance)
        if answer.levels is not None:
            kept, bound, instance.levels[:] = True, min(bound, answer.bound), answer.levels
        elif answer.proven:
            raise explain_infeasible(instance)
    proof = Proof(kept, found, bound)
    if exact:
        proof = prove_under_rules(instance, proof)
    if not proof.kept:
        raise explain_failure(instance, slack, needed)
    return _make_plan(instance, proof, average)


def _start_cheaply(instance: Instance, found: Multipliers) -> CheapStart:
    """Repair again from cheap plans: first one with the budgets in mind, then one without."""
    rules = instance.rules
    saving = as_rows(-np.ascontiguousarray(np.broadcast_to(instance.costs, instance.curves.shape)), instance.costs)
    needed = math.inf
    for kept in (replace(rules, floor=0.0), rules.without_money()):
        cheap = pose(*saving, kept)
        low = solve_dual(cheap)
        needed = -certify(cheap, low)
        repair(cheap, low)
        instance.levels[:] = cheap.levels
        slack = repair(instance, found)
        if not (slack < 0).any():
            break
    return CheapStart(slack, needed)


def _make_plan(instance: Instance, proof: Proof, average: float) -> Plan:
    n, rules = len(instance.levels), instance.rules
    rows = np.arange(n)
    value = float(instance.curves[rows, instance.levels].sum(dtype=np.float64))
    spend = float(instance.paid(rows, instance.levels).sum(dtype=np.float64))
    gap = max(proof.bound - (value - rules.floor * spend), 0.0)
    price, bound = rules.floor + float(proof.multipliers.of_row[0]), (value + gap) / n
    spent = min(spend / n, average)
    return Plan(instance.levels, value / n, spent, price, bound, average, shadow=proof.multipliers.shadow)
