"""Rules that no plan can keep, named, with the smallest change that would help."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import combinations

import numpy as np

from largesse.allocation.constraints import Rules
from largesse.allocation.exact.milp import Rule, broken_by, modelled
from largesse.allocation.rules import multipliers as constrained
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
            problems.append(Problem(got, f"lower its share to {_rounded(able / n, down=True)}"))
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
            f"raise it to {_rounded(cost)}",
        )
        for name, limit, cost in zip(rules.names, rules.limits, per, strict=True)
        if cost > limit * (1 + SLACK)
    ]
    if per.sum() > rules.limit * (1 + SLACK):
        got = f"the budget is {rules.limit:g} in total, but the cheapest levels cost {per.sum():g}"
        problems.append(
            Problem(got, f"raise it to {_rounded(per.sum())} ({_rounded(per.sum() / shape[0])} per customer)")
        )
    return problems


def smallest_changes(problem: constrained.Problem) -> BudgetError:
    """Return the error for a small problem that is proven to have no plan.

    It names the smallest change of each rule that would help alone; if none would, the changes that would together.
    """
    from largesse.allocation.exact.under_rules import allowed

    model = modelled(problem, problem.levels, allowed(problem))
    rules, n = model.rules, len(problem.levels)
    hints, helping, names = [], [], [_named(rule, problem.rules) for rule in rules]
    for r, rule in enumerate(rules):
        over = broken_by(model, np.where(np.arange(len(rules)) == r, 1.0, math.inf))
        if over is not None:
            hints.append(_mended(rule, names[r], over[r], problem.rules, n))
            helping.append(names[r])
    if hints:
        others = " together with the other rules" if len(helping) < len(rules) else " at once"
        what = f"no plan keeps {_listed(helping, 'and')}{others}"
        return BudgetError("constraints", [Problem(what, _listed(hints, "or"))])
    what = f"no plan keeps {_listed(names, 'and')} at once"
    size = [max(rule.high if rule.kind != "share" else rule.low, 1.0) for rule in rules]
    over = broken_by(model, 1.0 / np.array(size)) or [0.0] * len(rules)
    hints = [
        _mended(rule, name, by, problem.rules, n) for rule, name, by in zip(rules, names, over, strict=True) if by > 0
    ]
    return BudgetError("constraints", [Problem(what, _listed(hints, "and"))])


def _named(rule: Rule, rules: Rules) -> str:
    if rule.kind in ("budget", "segment"):
        return "the budget" if rule.kind == "budget" else f"the budget of segment {rules.names[rule.which]!r}"
    return f"the {rule.kind} of level {rule.which}"


def _mended(rule: Rule, name: str, by: float, rules: Rules, n: int) -> str:
    """Say what a rule that is broken by so much must become."""
    if rule.kind == "share":
        return f"lower {name} to {_rounded((rules.least[rule.which] - by) / n, down=True)}"
    if rule.kind == "cap":
        return f"raise {name} to {rules.most[rule.which] + by:,.0f}"
    limit = [*rules.limits.tolist(), rules.limit][rule.which] + by
    each = f" ({_rounded(limit / n)} per customer)" if rule.kind == "budget" else ""
    return f"raise {name} to {_rounded(limit)}{each}"


def _rounded(value: float, down: bool = False) -> str:
    """Write a number in six digits that is no less than the value, so that it is enough; or no more than it."""
    written = Decimal(repr(float(value)))
    digits = Context(prec=6, rounding=ROUND_FLOOR if down else ROUND_CEILING)
    return f"{float(digits.create_decimal(written)):.10g}"


def _listed(parts: list[str], last: str) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def not_found(rules: Rules, room: Array, count: Array, needed: float, n: int) -> BudgetError:
    """Return the error for rules that no plan was found for: what is still broken, by how much; proven where it is."""
    if needed > rules.limit * (1 + SLACK):
        got = f"the budget is {rules.limit:g} in total, but under the other rules every plan costs {needed:g} or more"
        return BudgetError(
            "constraints", [Problem(got, f"raise it to {_rounded(needed)} ({_rounded(needed / n)} per customer)")]
        )
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
