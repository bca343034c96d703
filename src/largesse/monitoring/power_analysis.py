"""Power analysis of a randomised test of a plan against another policy.

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
class PowerSettings:
    """Gain, power and confidence level of a randomised test."""

    power: float = 0.8
    coverage: float = 0.95
    gain: float | None = None  # per customer; None: that of the log
    per_day: float | None = None
    share: float = 0.5  # of the customers in the plan's arm

    def refuse_invalid_settings(self) -> None:
        """Raise one error that names all invalid settings."""
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

    def find_detectable_gain(self, *, one_sided: bool = False) -> float:
        """Return the gain, in standard errors, that the test detects with the required power."""
        from scipy.special import ndtri

        return float(ndtri(self.coverage if one_sided else 0.5 + self.coverage / 2) + ndtri(self.power))


@dataclass(frozen=True, eq=False)
class TestArms:
    """Two arms of a test, as level probabilities (n, K): the plan and the policy that it replaces."""

    plan: Array
    incumbent: Array | None  # None: the log's own policy, whose probabilities are known only of the rows' own levels
    name: str

    def compute_difference_probabilities(self, scores: Scores) -> Array:
        """Return each row's probability (n,) that the two arms give different levels."""
        if self.incumbent is None:
            return 1.0 - self.plan[np.arange(len(self.plan)), scores.level]
        return 1.0 - (self.plan * self.incumbent).sum(axis=1)

    def compare(self, scores: Scores) -> Comparison:
        """Estimate the plan's paired differences in value and spend from the other arm."""
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
    """Estimate the number of customers that a randomised test of `policy` against `other` needs.

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
    spec = PowerSettings(power, coverage, gain, per_day)
    spec.refuse_invalid_settings()
    candidate = recognise_policy(log, policy, budget)
    scores = crossfit_scores(log, candidate.model)
    settled = learn_policy_at_budget(candidate, scores).policy
    assert settled is not None
    plan = broadcast_probabilities(settled, scores)
    if isinstance(other, str):
        return compute_test_sizes(scores, make_test_arms(scores, plan, other, log.levels), spec, log)
    alternative = recognise_policy(log, other).policy
    assert alternative is not None
    return compute_test_sizes(
        scores, TestArms(plan, broadcast_probabilities(alternative, scores), "the other policy"), spec, log
    )


def broadcast_probabilities(policy: Array, scores: Scores) -> Array:
    """Convert levels (n,) or probabilities (K,) to level probabilities (n, K)."""
    n, K = scores.curves.shape
    if policy.ndim == 1 and np.issubdtype(policy.dtype, np.integer):
        return np.asarray(np.eye(K)[policy])
    return np.broadcast_to(policy, (n, K)).astype(np.float64)


def make_test_arms(scores: Scores, plan: Array, other: str, levels: Levels) -> TestArms:
    """Return the two arms of a test: the plan, and a named other policy, such as the logged policy."""
    if other == BEFORE:
        return TestArms(plan, None, "what was done before")
    if other == UNIFORM:
        mixes = find_best_mixes(scores, (plan * scores.costs).sum(axis=1))
        return TestArms(plan, broadcast_probabilities(mixes.policy, scores), "the best uniform mix")
    check_incumbent(other, levels)
    names = levels.labels if other in levels.labels else levels.titles
    level = np.full(len(scores.level), names.index(other), dtype=np.int64)
    return TestArms(plan, broadcast_probabilities(level, scores), f"{other!r} for everybody")


def check_incumbent(other: str, levels: Levels) -> None:
    """Refuse an unknown name of the other policy in a test of the plan."""
    if other not in (BEFORE, UNIFORM, *levels.labels, *levels.titles):
        hint = f"give {BEFORE!r}, {UNIFORM!r} or a level: {', '.join(levels.labels)}"
        raise InputError("power", [Problem(f"the incumbent is {repr_short(other)}", hint)])


def compute_test_sizes(
    scores: Scores, arms: TestArms, spec: PowerSettings, log: Log, price: float | None = None
) -> PowerAnalysis:
    """Compute the sizes of tests of the mean response, of profit and of non-inferiority."""
    weight = scores.weight / scores.weight.sum()
    share = min(float(weight @ arms.compute_difference_probabilities(scores)), 1.0)
    value, spend = arms.compare(scores)
    cases: list[TestedOutcome] = []
    saved = -spend.estimate
    if share <= 0:
        notes = [f"The plan gives everybody the same as {arms.name}: there is nothing to test."]
        share = 0.0
    else:
        notes = [] if spec.gain is not None else _warn_of_uncertain_gain(value)
        notes += [f"It costs {saved:.4g} less per customer."] if saved > 0 else []
        outcome = _TestOutcome(scores, arms, scores.response, share, spec)
        cases.append(outcome.size_gain_test("value", "mean response", value, spec.gain))
        if log.response_value is not None:
            detail = "response × its value − cost"
            cases.append(_size_profit_test("profit", detail, log.response_value, 1.0, outcome))
        elif price:
            detail = f"response − price × cost, at a price of {price:.4g}"
            cases.append(_size_profit_test("value less cost", detail, 1.0, price, outcome))
        if price and saved > 0:
            cases.append(outcome.size_non_inferiority_test(value, saved * price))
    return PowerAnalysis(
        arms.name, share, tuple(cases), spec.power, spec.coverage, len(log), spec.per_day, tuple(notes)
    )


def _warn_of_uncertain_gain(value: Estimate) -> list[str]:
    if not np.isfinite(value.low) or value.low <= 0 <= value.high:
        text = "The log does not show that the plan gains anything: the numbers hold only if the gain is what it seems."
        return [text]
    return ["The log says that the plan loses."] if value.high < 0 else []


def _size_profit_test(name: str, detail: str, worth: float, rate: float, value: _TestOutcome) -> TestedOutcome:
    """Compute the size of a test of profit: response × `worth` − cost × `rate` (price of a unit of cost).

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
    return outcome.size_gain_test(name, detail, value.arms.compare(profit).value, None)


@dataclass(frozen=True, eq=False)
class _TestOutcome:
    """Outcome (n,) of a test, with the methods that compute the required numbers of customers."""

    scores: Scores
    arms: TestArms
    outcome: Array
    share: float  # of switchers
    spec: PowerSettings

    def size_gain_test(self, name: str, detail: str, gain: Estimate, required: float | None) -> TestedOutcome:
        """Compute the size of a test that shows the estimated gain or a required gain."""
        gain = gain if required is None else Estimate(required, 0.0, required, required)
        return self._size_test(name, detail, gain, self.spec.find_detectable_gain())

    def size_non_inferiority_test(self, value: Estimate, margin: float) -> TestedOutcome:
        """Compute the size of a non-inferiority test with a given margin."""
        gain = Estimate(value.estimate + margin, value.se, value.low + margin, value.high + margin)
        detail = f"the value falls by less than {margin:.3g} per customer, which the savings would buy"
        return self._size_test("not worse", detail, gain, self.spec.find_detectable_gain(one_sided=True))

    def _size_test(self, name: str, detail: str, gain: Estimate, reach: float) -> TestedOutcome:
        switchers, everybody = self._measure_deviations()
        plan, other = switchers
        best = plan / (plan + other) if plan + other > 0 else 0.5
        sizes = [self._count_needed_customers(size, switchers, everybody, reach) for size in (gain.estimate, gain.low)]
        return TestedOutcome(name, detail, gain, switchers, best, *sizes)

    def _measure_deviations(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the outcome's deviations in both arms, among customers with different levels and among all customers."""
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

    def _count_needed_customers(
        self, gain: float, switchers: tuple[float, float], everybody: tuple[float, float], reach: float
    ) -> TestSize:
        """Return the number of customers that a test needs to detect a gain."""
        gain, per_day, a = float(gain), self.spec.per_day, self.spec.share
        if not gain > 0:
            never = float("inf")
            return TestSize(gain, never, never, never, None if per_day is None else never)

        def need(sd: tuple[float, float], effect: float) -> float:
            return float(reach**2 * (sd[0] ** 2 / a + sd[1] ** 2 / (1 - a)) / effect**2)

        n = need(switchers, gain / self.share)
        traffic = n / self.share
        return TestSize(gain, n, traffic, need(everybody, gain), None if per_day is None else traffic / per_day)
