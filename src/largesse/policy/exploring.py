"""The next log of a policy: who gets what with which probability, so that it can be judged well at a small cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.allocation import AIMS, Aim, Constraints, Design, design_log, find_aimed, set_aim
from largesse.errors import InputError, Problem, as_number, fail, refuse, repr_short, suggest, whole_problems
from largesse.evaluation import Noise
from largesse.policy.aimed import Aimed
from largesse.records import Array, Decisions, Exploration, Log, Precision
from largesse.stats import draw_levels, sample_rows

THIS, RANDOM, NONE = "this exploration", "levels at random", "no exploration"
STEPS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the rate
ENOUGH = 20_000  # customers that tell what more or less exploring would do
DRAWS = 100
RANDOM_AIM = "random"  # no purpose: levels at random for a share of the customers
USUAL_RATE = 0.05  # of exploring, where only its purpose is given


@dataclass(frozen=True, eq=False)
class Expected:
    """What is expected of customers, and how much responses vary."""

    curves: Array  # (n, K)
    costs: Array  # (K,) or (n, K)
    noise: Noise

    @property
    def wide(self) -> Array:
        """Costs (n, K)."""
        return np.ascontiguousarray(np.broadcast_to(self.costs, self.curves.shape), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Exploring:
    """How to explore."""

    for_: str = AIMS[0]
    rate: float = USUAL_RATE
    incumbent: Array | None = None  # (n, K); None: the best uniform mix
    constraints: Constraints | None = None
    seed: int = 0


def check_exploring(for_: Any, rate: Any, seed: Any, log: Any = None, constraints: Any = None) -> None:
    """Refuse an aim that is not known, a rate that is none, an odd seed, a log that was not read, and rules that are none."""
    problems = whole_problems(seed, "the seed")
    if not isinstance(log, Log | None):
        problems.append(Problem(f"the log is {repr_short(log)}", "read it first: read_log(…)"))
    if not isinstance(constraints, Constraints | None):
        problems.append(Problem(f"the constraints are {repr_short(constraints)}", "give Constraints(…)"))
    if not isinstance(for_, str) or for_ not in AIMS:
        problems.append(Problem(f"for_ is {repr_short(for_)}", suggest(str(for_), AIMS)))
    number = as_number(rate)
    if number is None or not 0 < number <= 1:
        hint = "give the share of customers whose random levels would cost as much: above 0, at most 1"
        problems.append(Problem(f"the rate is {repr_short(rate)}", hint))
    refuse("explore", problems)


def as_probabilities(policy: Any, customers: Any, shape: tuple[int, ...]) -> Array:
    """Return the probabilities (n, K) of a policy in any of its forms, or refuse it."""
    given = policy.probabilities(customers) if hasattr(policy, "probabilities") else np.asarray(policy)
    n, K = shape
    whole = given.shape == (n,) and given.dtype.kind in "iu" and given.min() >= 0 and given.max() < K
    shares = given.shape == (n, K) and given.dtype.kind in "iuf" and given.min() >= 0
    if not whole and not (shares and np.allclose(given.sum(axis=1), 1)):
        hint = f"give levels ({n},) from 0 to {K - 1}, probabilities ({n}, {K}) or a policy"
        fail("explore", Problem(f"the incumbent has shape {given.shape} and type {given.dtype}", hint))
    return np.asarray(np.eye(K)[given]) if whole else given.astype(np.float64)


def choose_aim(rate: float | None, purpose: str | None, now: Any) -> Exploring | None:
    """Return what a policy that is calibrated explores for, None if for nothing: as it is told, else as it does now."""
    if purpose is None:
        if rate is not None or now.aimed is None:
            return None
        return Exploring(now.aimed.rule.for_, now.aimed.rule.rate)
    return None if purpose == RANDOM_AIM else Exploring(purpose, USUAL_RATE if rate is None else rate)


def find_rule(expected: Expected, budget: float, how: Exploring) -> Aimed:
    """Return the rule that explores around the plan of some customers, for customers like them."""
    found = _design(expected, budget, how)
    rule = find_aimed(*found, how.rate, how.for_)
    assert rule is not None  # there are no constraints
    return Aimed(rule, expected.noise)


def explore_by_rule(expected: Expected, budget: float, how: Exploring) -> tuple[Exploration, Aimed | None]:
    """Explore as `explore` does, and return the rule for other customers, too; None where there is none."""
    aim, found = _design(expected, budget, how)
    # Rules that bar none of these customers from any level may bar others.
    rule = find_aimed(aim, found, how.rate, how.for_) if how.constraints is None else None
    return _describe(expected, how, aim, found), None if rule is None else Aimed(rule, expected.noise)


def explore(expected: Expected, budget: float, how: Exploring) -> Exploration:
    """Plan within the budget, explore around the plan, and draw the levels."""
    return _describe(expected, how, *_design(expected, budget, how))


def _design(expected: Expected, budget: float, how: Exploring) -> tuple[Aim, Design]:
    curves = expected.curves
    aim = set_aim(curves, expected.wide, expected.noise.of(curves), budget, how.incumbent, how.constraints)
    return aim, design_log(aim, how.rate, how.for_)


def _describe(expected: Expected, how: Exploring, aim: Aim, found: Design) -> Exploration:
    """Draw the levels of a design, and say what it costs and how precise it is."""
    levels = _draw(aim, found.probabilities, how.seed)
    own = found.probabilities[np.arange(len(levels)), levels]
    this = _measure(THIS, aim, found.probabilities)
    return Exploration(
        found.probabilities,
        Decisions(levels, own),
        aim.plan.levels,
        how.for_,
        float(how.rate),
        aim.plan.budget,
        aim.plan.price,
        (
            # Levels that all cost the budget come to the budget up to rounding.
            replace(this, spend=min(this.spend, aim.plan.budget)),
            _measure(RANDOM, aim, found.random),
            _measure(NONE, aim, aim.planned),
        ),
        _step(expected, aim.plan.budget, how),
    )


def _measure(name: str, aim: Aim, probabilities: Array, times: float = 1.0) -> Precision:
    """Return what probabilities (n, K) cost and how precise they are; standard errors are multiplied."""
    value = aim.value(probabilities)
    lost = max(aim.plan.value - value, 0.0)
    money = lost / aim.plan.price if aim.plan.price > 0 else float("nan")
    errors = [times * aim.predict_se(part, probabilities) for part in (aim.planned, aim.planned - aim.incumbent)]
    return Precision(name, value, aim.spend(probabilities), lost, money, *errors)


def _step(expected: Expected, budget: float, how: Exploring) -> tuple[Precision, ...]:
    """Return what more or less exploring would do; nothing where constraints hold for all customers together."""
    if how.constraints is not None:
        return ()
    n = len(expected.curves)
    rows = sample_rows(n, ENOUGH, how.seed)
    curves, costs = expected.curves[rows], expected.wide[rows]
    before = None if how.incumbent is None else how.incumbent[rows]
    budget = max(budget, float(costs.min(axis=1).mean()))
    aim, found = set_aim(curves, costs, expected.noise.of(curves), budget, before, None), []
    for times in STEPS:
        rate = min(times * how.rate, 1.0)
        design = _try(aim, rate, how.for_)
        if design is None:
            break
        found.append(_measure(f"at a rate of {rate:.3g}", aim, design.probabilities, float(np.sqrt(len(rows) / n))))
    return tuple(found)


def _try(aim: Aim, rate: float, for_: str) -> Design | None:
    from largesse.errors import BudgetError

    try:
        return design_log(aim, rate, for_)
    except BudgetError:  # the budget does not pay for so much
        return None


def _draw(aim: Aim, probabilities: Array, seed: int) -> Array:
    """Draw levels (n,); again, with another seed, where what was drawn breaks a cap or a least share."""
    streams = np.random.SeedSequence(seed).spawn(DRAWS)
    for draw in range(DRAWS):
        levels = draw_levels(probabilities, seed if draw == 0 else np.random.default_rng(streams[draw]))
        if not any(aim.breaks(limit, levels) for limit in aim.limits if not limit.money):
            return levels
    raise InputError(
        "explore", [Problem("the drawn levels break a cap or a least share again and again", "leave more room")]
    )
