"""Rules that no plan can keep, named, with the smallest change that would help."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from largesse.allocate.constraints import Rules
from largesse.errors import BudgetError, Problem
from largesse.records import Array

MOST_SETS = 4096  # of capped levels that are looked at together
SLACK = 1e-12  # relative; sums are rounded


def impossible(costs: Array, rules: Rules, shape: tuple[int, ...]) -> None:
    """Refuse rules of which a count or a sum alone shows that no plan keeps them."""
    n, K = shape
    problems = [*_too_few(rules, n), *_too_many(rules, n, K)]
    if not problems:
        problems = _too_dear(costs, rules, shape)
    if problems:
        raise BudgetError("constraints", problems)


def _too_few(rules: Rules, n: int) -> list[Problem]:
    problems = []
    if len(rules.eligible):
        without = int((~rules.eligible.any(axis=1)).sum())
        if without:
            problems.append(Problem(f"{without:,} customers may get no level at all", "let each have at least one"))
    for k in np.flatnonzero(rules.least > 0):
        able = int(rules.eligible[:, k].sum()) if len(rules.eligible) else n
        able = min(able, int(min(rules.most[k], n)))
        if rules.least[k] > able:
            got = f"{rules.least[k]:,.0f} customers must get level {k}, but only {able:,} may"
            problems.append(Problem(got, f"lower its share to {able / n:.4g}"))
    must = int(rules.least.sum())
    if must > n:
        problems.append(Problem(f"the shares add up to {must / n:.4g}", f"lower them by {(must - n) / n:.4g} together"))
    return problems


def _too_many(rules: Rules, n: int, K: int) -> list[Problem]:
    """Name sets of capped levels outside which too many customers may get nothing (Hall's condition)."""
    capped = np.flatnonzero(rules.most < math.inf)
    if not len(rules.eligible):
        over = n - rules.most.sum()
        return [_raise(capped, n, rules, over)] if len(capped) == K and over > 0 else []
    sets = (
        [part for size in range(1, len(capped) + 1) for part in combinations(capped, size)] if len(capped) <= 12 else []
    )
    for part in sets[:MOST_SETS]:
        outside = np.setdiff1d(np.arange(K), part)
        only = int((~rules.eligible[:, outside].any(axis=1)).sum())
        over = only - rules.most[list(part)].sum()
        if over > 0:
            return [_raise(np.array(part), only, rules, over)]
    return []


def _raise(levels: Array, customers: int, rules: Rules, over: float) -> Problem:
    names = " and ".join(f"level {k}" for k in levels)
    got = f"{customers:,} customers may get nothing but {names}, capped at {rules.most[levels].sum():,.0f}"
    return Problem(got, f"raise the caps by {over:,.0f} together")


def _too_dear(costs: Array, rules: Rules, shape: tuple[int, ...]) -> list[Problem]:
    wide = np.broadcast_to(costs, shape)
    least = (np.where(rules.eligible, wide, math.inf) if len(rules.eligible) else wide).min(axis=1)
    per = np.bincount(rules.segment, least, minlength=len(rules.names))
    problems = [
        Problem(
            f"the budget of segment {name!r} is {limit:g}, but its cheapest levels cost {cost:g}",
            f"raise it to {cost:g}",
        )
        for name, limit, cost in zip(rules.names, rules.limits, per, strict=True)
        if cost > limit * (1 + SLACK)
    ]
    if per.sum() > rules.limit * (1 + SLACK):
        got = f"the budget is {rules.limit:g} in total, but the cheapest levels cost {per.sum():g}"
        problems.append(Problem(got, f"raise it to {per.sum():g} ({per.sum() / shape[0]:g} per customer)"))
    return problems


def not_found(rules: Rules, room: Array, count: Array, needed: float, n: int) -> BudgetError:
    """Return the error for rules that no plan was found for: what is still broken, by how much; proven where it is."""
    if needed > rules.limit * (1 + SLACK):
        got = f"the budget is {rules.limit:g} in total, but under the other rules every plan costs {needed:g} or more"
        return BudgetError("constraints", [Problem(got, f"raise it to {needed:g} ({needed / n:g} per customer)")])
    names = [f"the budget of segment {name!r}" for name in rules.names] + ["the budget"]
    problems = [
        Problem(f"no plan was found within {name}", f"raise it by {-left:g}")
        for name, left in zip(names, room, strict=True)
        if left < 0
    ]
    for k in rules.ruled:
        if count[k] > rules.most[k]:
            got = f"no plan was found within the cap of level {k}"
            problems.append(Problem(got, f"raise it by {count[k] - rules.most[k]:,.0f}"))
        if count[k] < rules.least[k]:
            got = f"no plan was found that gives level {k} to {rules.least[k]:,.0f} customers"
            problems.append(Problem(got, f"lower its share to {count[k] / n:.4g}"))
    return BudgetError("constraints", problems)
