"""How many customers a test of a plan against what it replaces needs.

Only customers whose level differs, the switchers, tell the two apart. With a share s of them, a gain δ per customer is δ/s per switcher:
a test among switchers needs

    n = (z_coverage + z_power)² (σ₁²/a + σ₀²/(1 − a)) / (δ/s)²

of them, a share a in the plan's arm, so n/s customers must come by: traffic ∝ 1/s for a given gain per switcher. A test of everybody
needs ∝ 1/s². The gain and the standard deviations come from the log: doubly robust, and by weighted rows that got the level in question.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.errors import InputError, Problem, as_number, refuse, repr_short
from largesse.evaluation.crossfitting import crossfit
from largesse.evaluation.estimates import estimate_difference, find_best_mix, score_log, score_policy
from largesse.evaluation.policy_value import Candidate, as_policy, settle
from largesse.levels import Levels
from largesse.records import Array, Comparison, Estimate, Log, PowerAnalysis, Scores, TestCase, TestSize

BEFORE, UNIFORM = "before", "uniform"
FEWEST = 30  # effective rows from which a standard deviation is taken; else that of all rows is


@dataclass(frozen=True)
class Asked:
    """What a test is to show, and how surely."""

    power: float = 0.8
    coverage: float = 0.95
    gain: float | None = None  # per customer; None: that of the log
    per_day: float | None = None
    share: float = 0.5  # of the customers in the plan's arm

    def reach(self, *, one_sided: bool = False) -> float:
        """Return how many standard errors the gain must lie from what is to be ruled out."""
        from scipy.special import ndtri

        return float(ndtri(self.coverage if one_sided else 0.5 + self.coverage / 2) + ndtri(self.power))


@dataclass(frozen=True, eq=False)
class Rivals:
    """A plan and what it is compared with, as probabilities (n, K) for the rows of a log."""

    plan: Array
    incumbent: Array | None  # None: what was done, whose probabilities are known only of the rows' own levels
    name: str

    def differ(self, scores: Scores) -> Array:
        """Return the probability (n,) that a row's level differs: levels of both are drawn before the test."""
        if self.incumbent is None:
            return 1.0 - self.plan[np.arange(len(self.plan)), scores.level]
        return 1.0 - (self.plan * self.incumbent).sum(axis=1)

    def compare(self, scores: Scores) -> Comparison:
        """Estimate by how much the plan brings more and costs more, paired row by row."""
        if self.incumbent is not None:
            return estimate_difference(scores, self.plan, self.incumbent)
        own, log = score_policy(scores, self.plan), score_log(scores)
        value, spend = ((a - b).estimate(scores.weight, scores.cluster) for a, b in zip(own, log, strict=True))
        return Comparison(value, spend)


def power(
    log: Log,
    policy: Any,
    other: Any = BEFORE,
    *,
    budget: float | None = None,
    gain: float | None = None,
    power: float = 0.8,
    coverage: float = 0.95,
    per_day: float | None = None,
) -> PowerAnalysis:
    """Say how many customers a test of `policy` against `other` needs.

    Parameters
    ----------
    log, policy, budget
        As in `evaluate`.
    other
        "before", what was done in the log; "uniform", the best uniform mix at the same spend; or a policy, as in `evaluate`.
    gain
        What the test is to show, per customer; by default what the log says.
    power, coverage
        The probability that the test shows a gain that is there, and that it shows none where there is none.
    per_day
        Customers who come by in a day: says how long it takes.

    >>> from largesse.worlds import simulate
    >>> log = simulate("averaged", n=1000, seed=1).log
    >>> found = power(log, np.full(1000, 3), np.full(1000, 0))
    >>> found.switchers, found.value.expected.traffic < 200
    (1.0, True)
    """
    asked = check_asked(Asked(power, coverage, gain, per_day))
    candidate = as_policy(log, policy, budget)
    scores = crossfit(log, candidate.model)
    plan = settle(candidate, scores).policy
    assert plan is not None
    own = spread_levels(plan, scores)
    return size_test(scores, _meet(log, scores, own, other), asked, log)


def check_asked(asked: Asked) -> Asked:
    """Refuse probabilities and numbers that are none."""
    problems = []
    for word in ("power", "coverage", "share"):
        number = as_number(getattr(asked, word))
        if number is None or not 0 < number < 1 or (word != "share" and number < 0.5):
            hint = "give a share of customers" if word == "share" else "give a probability from 0.5 to below 1"
            problems.append(Problem(f"{word} is {repr_short(getattr(asked, word))}", hint))
    for word, hint in (
        ("gain", "give a gain per customer above 0"),
        ("per_day", "give the number of customers in a day"),
    ):
        given = getattr(asked, word)
        number = None if given is None else as_number(given)
        if given is not None and (number is None or not 0 < number < np.inf):
            problems.append(Problem(f"{word} is {repr_short(given)}", hint))
    refuse("power", problems)
    return asked


def spread_levels(policy: Array, scores: Scores) -> Array:
    """Return the probabilities (n, K) of levels (n,) or of probabilities (n, K) or (K,)."""
    n, K = scores.curves.shape
    if policy.ndim == 1 and np.issubdtype(policy.dtype, np.integer):
        return np.asarray(np.eye(K)[policy])
    return np.broadcast_to(policy, (n, K)).astype(np.float64)


def _meet(log: Log, scores: Scores, plan: Array, other: Any) -> Rivals:
    if isinstance(other, str):
        return meet_incumbent(scores, plan, other, log.levels)
    candidate: Candidate = as_policy(log, other)
    assert candidate.policy is not None
    return Rivals(plan, spread_levels(candidate.policy, scores), "the other policy")


def meet_incumbent(scores: Scores, plan: Array, other: str, levels: Levels) -> Rivals:
    """Return a plan and what it is compared with by name: what was done before, the best uniform mix, or a level for all."""
    if other == BEFORE:
        return Rivals(plan, None, "what was done before")
    if other == UNIFORM:
        weight = scores.weight / scores.weight.sum()
        mix = find_best_mix(scores, float(weight @ (plan * scores.costs).sum(axis=1)))
        return Rivals(plan, spread_levels(mix, scores), "the best uniform mix")
    check_incumbent(other, levels)
    names = levels.labels if other in levels.labels else levels.titles
    level = np.full(len(scores.level), names.index(other), dtype=np.int64)
    return Rivals(plan, spread_levels(level, scores), f"{other!r} for everybody")


def check_incumbent(other: str, levels: Levels) -> None:
    """Refuse a name that is neither what was done before, nor the best uniform mix, nor a level."""
    if other not in (BEFORE, UNIFORM, *levels.labels, *levels.titles):
        hint = f"give {BEFORE!r}, {UNIFORM!r} or a level: {', '.join(levels.labels)}"
        raise InputError("power", [Problem(f"the incumbent is {repr_short(other)}", hint)])


def size_test(scores: Scores, rivals: Rivals, asked: Asked, log: Log, price: float | None = None) -> PowerAnalysis:
    """Return how many customers tests need, from a log's scores of a plan and of what it is compared with."""
    weight = scores.weight / scores.weight.sum()
    share = min(float(weight @ rivals.differ(scores)), 1.0)
    value, spend = rivals.compare(scores)
    notes = list(_note(value, asked, share, rivals.name))
    if share <= 0:
        return PowerAnalysis(rivals.name, 0.0, (), asked.power, asked.coverage, len(log), asked.per_day, tuple(notes))
    cases = [_make_case("value", "mean response", scores.response, value, rivals, scores, asked, share)]
    worth, rate, name = log.response_value, 1.0, "profit"
    if worth is None and price:
        worth, rate, name = 1.0, price, "value less cost"
    if worth is not None:
        # A gain per customer that is asked for is one of value: profits are judged by the log.
        left = _subtract(scores, rivals, worth, rate)
        outcome = worth * scores.response - rate * scores.paid
        detail = (
            "response × its value − cost" if name == "profit" else f"response − price × cost, at a price of {rate:.4g}"
        )
        free = Asked(asked.power, asked.coverage, None, asked.per_day, asked.share)
        cases.append(_make_case(name, detail, outcome, left, rivals, scores, free, share))
    saved = -spend.estimate
    if price and saved > 0:
        cases.append(_make_not_worse(value, saved * price, cases[0], rivals, scores, asked, share))
    notes += [f"It costs {saved:.4g} less per customer."] if saved > 0 else []
    return PowerAnalysis(
        rivals.name, share, tuple(cases), asked.power, asked.coverage, len(log), asked.per_day, tuple(notes)
    )


def _note(value: Estimate, asked: Asked, share: float, name: str) -> list[str]:
    if share <= 0:
        return [f"The plan gives everybody the same as {name}: there is nothing to test."]
    if asked.gain is not None:
        return []
    if not np.isfinite(value.low) or value.low <= 0 <= value.high:
        return [
            "The log does not show that the plan gains anything: the numbers hold only if the gain is what it seems."
        ]
    if value.high < 0:
        return ["The log says that the plan loses."]
    return []


def _subtract(scores: Scores, rivals: Rivals, worth: float, rate: float) -> Estimate:
    """Return the gain in response × worth − cost × rate."""
    # One outcome instead of two: its score is the same mixture of scores.
    joined = replace(
        scores,
        curves=worth * scores.curves - rate * scores.expected_costs,
        gamma=worth * scores.gamma - rate * scores.costs,
        response=worth * scores.response - rate * scores.paid,
    )
    return rivals.compare(joined).value


def _make_case(
    name: str,
    detail: str,
    outcome: Array,
    gain: Estimate,
    rivals: Rivals,
    scores: Scores,
    asked: Asked,
    share: float,
) -> TestCase:
    """Return the sizes of a test that shows a gain."""
    spreads = _Spreads.of(scores, rivals, outcome)
    meant = gain if asked.gain is None else Estimate(asked.gain, 0.0, asked.gain, asked.gain)
    sizes = [_size(one, spreads, share, asked, asked.reach()) for one in (meant.estimate, meant.low)]
    return TestCase(name, detail, meant, spreads.switchers, spreads.best, *sizes)


def _make_not_worse(
    value: Estimate, margin: float, known: TestCase, rivals: Rivals, scores: Scores, asked: Asked, share: float
) -> TestCase:
    """Return the sizes of a test that the value falls by less than what the savings would buy."""
    spreads = _Spreads.of(scores, rivals, scores.response)
    moved = Estimate(value.estimate + margin, value.se, value.low + margin, value.high + margin)
    reach = asked.reach(one_sided=True)
    sizes = [_size(one, spreads, share, asked, reach) for one in (moved.estimate, moved.low)]
    detail = f"the value falls by less than {margin:.3g} per customer, which the savings would buy"
    return TestCase("not worse", detail, moved, known.sd, known.best_share, *sizes)


@dataclass(frozen=True)
class _Spreads:
    """Standard deviations of an outcome under the plan and under what it is compared with."""

    switchers: tuple[float, float]
    everybody: tuple[float, float]

    @classmethod
    def of(cls, scores: Scores, rivals: Rivals, outcome: Array) -> _Spreads:
        """Return them from rows that got the level in question, weighted."""
        rows = np.arange(len(scores.level))
        own, rho = rivals.plan[rows, scores.level], scores.propensity
        theirs = rho if rivals.incumbent is None else rivals.incumbent[rows, scores.level]
        plan, other = own / rho, theirs / rho
        # Under either policy, the other one's level is drawn apart: it differs from the row's with this probability.
        away = 1 - theirs, 1 - own
        found = [
            _spread(outcome, scores.weight * ratio * differs)
            for ratio, differs in ((plan, away[0]), (other, away[1]), (plan, 1.0), (other, 1.0))
        ]
        return cls((found[0], found[1]), (found[2], found[3]))

    @property
    def best(self) -> float:
        """The share of the customers in the plan's arm with which a test is smallest."""
        one, two = self.switchers
        return one / (one + two) if one + two > 0 else 0.5


def _spread(outcome: Array, weight: Array) -> float:
    whole = float(weight.sum())
    if whole <= 0 or whole**2 / float(weight @ weight) < FEWEST:
        return float(outcome.std())
    mean = float(weight @ outcome) / whole
    return float(np.sqrt(weight @ (outcome - mean) ** 2 / whole))


def _size(gain: float, spreads: _Spreads, share: float, asked: Asked, reach: float) -> TestSize:
    """Return how many customers show a gain per customer."""
    gain = float(gain)
    if not gain > 0:
        none = float("inf")
        return TestSize(gain, none, none, none, None if asked.per_day is None else none)
    a = asked.share

    def need(sd: tuple[float, float], effect: float) -> float:
        return float(reach**2 * (sd[0] ** 2 / a + sd[1] ** 2 / (1 - a)) / effect**2)

    switchers = need(spreads.switchers, gain / share)
    traffic = switchers / share
    days = None if asked.per_day is None else traffic / asked.per_day
    return TestSize(gain, switchers, traffic, need(spreads.everybody, gain), days)
