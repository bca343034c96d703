"""Size of a test of a plan against its alternative.

Only customers whose level differs, the switchers, distinguish the two. With a share s of them, a gain δ per customer is δ/s per switcher:
a test among switchers needs

    n = (z_coverage + z_power)² (σ₁²/a + σ₀²/(1 − a)) / (δ/s)²

of them, a share a in the plan's arm, so n/s customers must come by: traffic ∝ 1/s for a given gain per switcher. A test of everybody
needs ∝ 1/s². The gain and the standard deviations come from the log: doubly robust, and from weighted rows that received the level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from largesse.errors import InputError, Problem, number_or_none, refuse, repr_short
from largesse.evaluation import (
    crossfit_scores,
    estimate_policy_difference,
    find_best_mixes,
    learn_policy_at_budget,
    measure_logged_influence,
    measure_policy_influence,
    recognise_policy,
)
from largesse.levels import Levels
from largesse.records import Array, Comparison, Estimate, Log, PowerAnalysis, Scores, TestedOutcome, TestSize

BEFORE, UNIFORM = "before", "uniform"
MIN_EFFECTIVE_ROWS = 30  # for a weighted standard deviation; below it is that of all rows


@dataclass(frozen=True)
class PowerSpec:
    """Gain that a test should show, and its error rates."""

    power: float = 0.8
    coverage: float = 0.95
    gain: float | None = None  # per customer; None: that of the log
    per_day: float | None = None
    share: float = 0.5  # of the customers in the plan's arm

    def check(self) -> None:
        """Raise an error that names every invalid setting."""
        problems = []
        for word in ("power", "coverage", "share"):
            number = number_or_none(getattr(self, word))
            if number is None or not 0 < number < 1 or (word != "share" and number < 0.5):
                hint = "give a share of customers" if word == "share" else "give a probability from 0.5 to below 1"
                problems.append(Problem(f"{word} is {repr_short(getattr(self, word))}", hint))
        for word, meaning in (("gain", "a gain per customer above 0"), ("per_day", "the number of customers in a day")):
            value = getattr(self, word)
            number = None if value is None else number_or_none(value)
            if value is not None and (number is None or not 0 < number < np.inf):
                problems.append(Problem(f"{word} is {repr_short(value)}", f"give {meaning}"))
        refuse("power", problems)

    def reach(self, *, one_sided: bool = False) -> float:
        """Return the distance, in standard errors, of the gain from the value to be ruled out."""
        from scipy.special import ndtri

        return float(ndtri(self.coverage if one_sided else 0.5 + self.coverage / 2) + ndtri(self.power))


@dataclass(frozen=True, eq=False)
class Arms:
    """A plan and its alternative, as probabilities (n, K) for the rows of a log."""

    plan: Array
    incumbent: Array | None  # None: the log's own policy, whose probabilities are known only of the rows' own levels
    name: str

    def differ(self, scores: Scores) -> Array:
        """Return the probability (n,) that the levels of the two differ: both are drawn before the test."""
        if self.incumbent is None:
            return 1.0 - self.plan[np.arange(len(self.plan)), scores.level]
        return 1.0 - (self.plan * self.incumbent).sum(axis=1)

    def compare(self, scores: Scores) -> Comparison:
        """Estimate the plan's gain in value and in spend, paired row by row."""
        if self.incumbent is not None:
            return estimate_policy_difference(scores, self.plan, self.incumbent)
        plan, log = measure_policy_influence(scores, self.plan), measure_logged_influence(scores)
        value, spend = ((a - b).estimate(scores.weight, scores.cluster) for a, b in zip(plan, log, strict=True))
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
    """Estimate the number of customers that a test of `policy` against `other` needs.

    Parameters
    ----------
    log, policy, budget
        As in `evaluate`.
    other
        "before", the log's own levels; "uniform", the best uniform mix at the same spend; or a policy, as in `evaluate`.
    gain
        The gain per customer that the test is to show; default: the log's estimate.
    power, coverage
        The probability that the test shows a gain that exists, and that it shows no gain where no gain exists.
    per_day
        Customers per day: adds the duration.

    Examples
    --------
    >>> from largesse.worlds import simulate
    >>> log = simulate("averaged", n=1000, seed=1).log
    >>> analysis = power(log, np.full(1000, 3), np.full(1000, 0))
    >>> analysis.switchers, analysis.value.expected.traffic < 200
    (1.0, True)
    """
    spec = PowerSpec(power, coverage, gain, per_day)
    spec.check()
    candidate = recognise_policy(log, policy, budget)
    scores = crossfit_scores(log, candidate.model)
    settled = learn_policy_at_budget(candidate, scores).policy
    assert settled is not None
    plan = broadcast_probabilities(settled, scores)
    if isinstance(other, str):
        return size_test(scores, find_arms(scores, plan, other, log.levels), spec, log)
    alternative = recognise_policy(log, other).policy
    assert alternative is not None
    return size_test(scores, Arms(plan, broadcast_probabilities(alternative, scores), "the other policy"), spec, log)


def broadcast_probabilities(policy: Array, scores: Scores) -> Array:
    """Return the probabilities (n, K) of levels (n,) or of probabilities (n, K) or (K,)."""
    n, K = scores.curves.shape
    if policy.ndim == 1 and np.issubdtype(policy.dtype, np.integer):
        return np.asarray(np.eye(K)[policy])
    return np.broadcast_to(policy, (n, K)).astype(np.float64)


def find_arms(scores: Scores, plan: Array, other: str, levels: Levels) -> Arms:
    """Return a plan and its alternative by name: the log's policy, the best uniform mix, or one level for all."""
    if other == BEFORE:
        return Arms(plan, None, "what was done before")
    if other == UNIFORM:
        mixes = find_best_mixes(scores, (plan * scores.costs).sum(axis=1))
        return Arms(plan, broadcast_probabilities(mixes.policy, scores), "the best uniform mix")
    check_incumbent(other, levels)
    names = levels.labels if other in levels.labels else levels.titles
    level = np.full(len(scores.level), names.index(other), dtype=np.int64)
    return Arms(plan, broadcast_probabilities(level, scores), f"{other!r} for everybody")


def check_incumbent(other: str, levels: Levels) -> None:
    """Raise an error for an unknown name of an alternative."""
    if other not in (BEFORE, UNIFORM, *levels.labels, *levels.titles):
        hint = f"give {BEFORE!r}, {UNIFORM!r} or a level: {', '.join(levels.labels)}"
        raise InputError("power", [Problem(f"the incumbent is {repr_short(other)}", hint)])


def size_test(scores: Scores, arms: Arms, spec: PowerSpec, log: Log, price: float | None = None) -> PowerAnalysis:
    """Return the sizes of tests of value, of profit (or value minus cost) and of non-inferiority."""
    weight = scores.weight / scores.weight.sum()
    share = min(float(weight @ arms.differ(scores)), 1.0)
    value, spend = arms.compare(scores)
    cases: list[TestedOutcome] = []
    saved = -spend.estimate
    if share <= 0:
        notes = [f"The plan gives everybody the same as {arms.name}: there is nothing to test."]
        share = 0.0
    else:
        notes = [] if spec.gain is not None else _note_gain(value)
        notes += [f"It costs {saved:.4g} less per customer."] if saved > 0 else []
        outcome = _Outcome(scores, arms, scores.response, share, spec)
        cases.append(outcome.show_gain("value", "mean response", value, spec.gain))
        if log.response_value is not None:
            detail = "response × its value − cost"
            cases.append(_show_profit("profit", detail, log.response_value, 1.0, outcome))
        elif price:
            detail = f"response − price × cost, at a price of {price:.4g}"
            cases.append(_show_profit("value less cost", detail, 1.0, price, outcome))
        if price and saved > 0:
            cases.append(outcome.show_not_worse(value, saved * price))
    return PowerAnalysis(
        arms.name, share, tuple(cases), spec.power, spec.coverage, len(log), spec.per_day, tuple(notes)
    )


def _note_gain(value: Estimate) -> list[str]:
    if not np.isfinite(value.low) or value.low <= 0 <= value.high:
        text = "The log does not show that the plan gains anything: the numbers hold only if the gain is what it seems."
        return [text]
    return ["The log says that the plan loses."] if value.high < 0 else []


def _show_profit(name: str, detail: str, worth: float, rate: float, value: _Outcome) -> TestedOutcome:
    """Return the sizes of a test that shows a gain in response × worth − cost × rate.

    A required gain is one of value; the gain in profit always comes from the log.
    """
    scores = value.scores
    # One outcome instead of two: its score is the same mixture of scores.
    profit = replace(
        scores,
        curves=worth * scores.curves - rate * scores.expected_costs,
        gamma=worth * scores.gamma - rate * scores.costs,
        response=worth * scores.response - rate * scores.paid,
    )
    outcome = replace(value, outcome=profit.response)
    return outcome.show_gain(name, detail, value.arms.compare(profit).value, None)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """An outcome (n,) of a test: its standard deviations in both arms, among switchers and among everybody."""

    scores: Scores
    arms: Arms
    outcome: Array
    share: float  # of switchers
    spec: PowerSpec

    def show_gain(self, name: str, detail: str, gain: Estimate, required: float | None) -> TestedOutcome:
        """Return the sizes of a test that shows a gain, the log's or a required one."""
        gain = gain if required is None else Estimate(required, 0.0, required, required)
        return self._size(name, detail, gain, self.spec.reach())

    def show_not_worse(self, value: Estimate, margin: float) -> TestedOutcome:
        """Return the sizes of a non-inferiority test: the value falls by less than the savings would buy."""
        gain = Estimate(value.estimate + margin, value.se, value.low + margin, value.high + margin)
        detail = f"the value falls by less than {margin:.3g} per customer, which the savings would buy"
        return self._size("not worse", detail, gain, self.spec.reach(one_sided=True))

    def _size(self, name: str, detail: str, gain: Estimate, reach: float) -> TestedOutcome:
        switchers, everybody = self._deviations()
        plan, other = switchers
        best = plan / (plan + other) if plan + other > 0 else 0.5
        sizes = [self._count(size, switchers, everybody, reach) for size in (gain.estimate, gain.low)]
        return TestedOutcome(name, detail, gain, switchers, best, *sizes)

    def _deviations(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the standard deviations (plan, other) of switchers and of everybody, from rows that got the level."""
        scores, rows = self.scores, np.arange(len(self.scores.level))
        plan, rho = self.arms.plan[rows, scores.level], scores.propensity
        other = rho if self.arms.incumbent is None else self.arms.incumbent[rows, scores.level]

        def deviation(weight: Array) -> float:
            weight = scores.weight * weight
            total = float(weight.sum())
            if total <= 0 or total**2 / float(weight @ weight) < MIN_EFFECTIVE_ROWS:
                return float(self.outcome.std())
            mean = float(weight @ self.outcome) / total
            return float(np.sqrt(weight @ (self.outcome - mean) ** 2 / total))

        # Under either policy the other one's level is drawn independently: it differs from the row's with 1 − its probability.
        switchers = deviation(plan / rho * (1 - other)), deviation(other / rho * (1 - plan))
        return switchers, (deviation(plan / rho), deviation(other / rho))

    def _count(
        self, gain: float, switchers: tuple[float, float], everybody: tuple[float, float], reach: float
    ) -> TestSize:
        """Return the number of customers that show a gain per customer."""
        gain, per_day, a = float(gain), self.spec.per_day, self.spec.share
        if not gain > 0:
            never = float("inf")
            return TestSize(gain, never, never, never, None if per_day is None else never)

        def need(sd: tuple[float, float], effect: float) -> float:
            return float(reach**2 * (sd[0] ** 2 / a + sd[1] ** 2 / (1 - a)) / effect**2)

        n = need(switchers, gain / self.share)
        traffic = n / self.share
        return TestSize(gain, n, traffic, need(everybody, gain), None if per_day is None else traffic / per_day)
