"""Results of an evaluation: estimates, propensities, doubly robust scores, findings and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from largesse.records.array_type import Array
from largesse.records.display import Card, DisplayMixin
from largesse.records.unsupported_cells import UnsupportedCells

if TYPE_CHECKING:
    import pyarrow as pa


ANSWER_ORDER = ("no", "careful", "note", "fine")


class Progress(Protocol):
    """Progress callback: receives the current stage and its completed share (0 to 1)."""

    def __call__(self, stage: str, done: float, /) -> None:
        """Report the completed share `done` of a stage."""


@dataclass(frozen=True)
class Estimate:
    """An estimate with its standard error and 95 % interval.

    The ends are NaN if there are too few rows for an interval.
    """

    estimate: float
    se: float
    low: float
    high: float

    @property
    def interval(self) -> tuple[float, float]:
        """The lower and the upper end of the 95 % interval."""
        return (self.low, self.high)

    def __str__(self) -> str:
        return f"{self.estimate:.4g} {format_interval_ends(self.interval)}"

    def __repr__(self) -> str:
        return f"Estimate({self})"


@dataclass(frozen=True, eq=False)
class Propensities:
    """Propensities of the logged levels, with their source."""

    own: Array  # (n,) of the logged levels; estimates are raised to a floor
    source: str  # "given" or "estimated"
    model: str = ""  # model that estimated them: "logistic", "boosting" or "shares"
    clipped: int = 0  # rows that were raised to the floor
    clipped_weight: float = 0.0  # share of all weight 1 / propensity that this removed
    unsupported: UnsupportedCells | None = None  # cells that the estimates allow for; None if they were not searched


@dataclass(frozen=True, eq=False)
class ShuffledPredictions:
    """Out-of-fold response predictions after shuffling one feature, for each feature."""

    features: tuple[str, ...]
    rows: Array  # (m,) int64, rising: some rows of the log
    curves: Array  # (features, m, K) float32


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Out-of-fold predictions of responses and costs for the rows of a log."""

    curves: Array  # (n, K) of the response
    fold: Array  # (n,) int64: rows of one fold are predicted by the same models
    costs: Array | None = None  # (n, K) costs of the levels, where costs are observed
    shuffled: ShuffledPredictions | None = None  # predictions for some rows after features were shuffled


@dataclass(frozen=True, eq=False)
class Scores:
    """Cross-fitted curves, costs and doubly robust scores of every row and level of a log.

    ``gamma[i, k]`` is the doubly robust score of giving level k to row i: averaged over rows it estimates the mean
    response at that level. The value of any policy is a weighted mean of these.

    Where the log does not support a level for a row, its curve, score and costs are those of the supported level that
    replaces it: see `allocation.map_to_supported_levels`.
    """

    curves: Array  # (n, K) out-of-fold predictions of the response
    gamma: Array  # (n, K) doubly robust scores of the response
    costs: Array  # (n, K) scores of the cost: known, or doubly robust like gamma when it depends on what customers do
    expected_costs: Array  # (n, K) costs as the model expects them, for plans made from the curves
    propensity: Array  # (n,) of the logged level, as used
    fold: Array  # (n,) int64
    level: Array  # (n,)
    response: Array  # (n,)
    paid: Array  # (n,) cost of the logged level
    weight: Array  # (n,) float64, mean one
    cluster: Array | None
    face: Array | None = None  # (n,) cost of the logged level if redeemed; None: costs are always paid
    paid_as: str = "listed"  # or "redeemed" (face value × response) or "observed"
    allowed: Array | None = None  # (n, K) bool: the levels that the log supports for each row; None: all

    @property
    def certain(self) -> bool:
        """True if the cost of a level is known before the customer responds."""
        return self.paid_as == "listed"


@dataclass(frozen=True)
class Finding:
    """Result of one check of a log or campaign, as an answer and a sentence."""

    topic: str
    answer: str  # "fine", "note", "careful" or "no"
    text: str

    def __str__(self) -> str:
        return self.text


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings of checks by severity."""
    return tuple(sorted(findings, key=lambda finding: ANSWER_ORDER.index(finding.answer)))


@dataclass(frozen=True)
class Reference:
    """Estimated value and spend of a reference policy, and the plan's paired difference from this policy."""

    name: str
    detail: str
    value: Estimate
    spend: Estimate
    difference: Estimate
    profit: Estimate | None = None  # profit after costs, where a response has a value
    profit_difference: Estimate | None = None  # profit of the plan less that of the reference (paired)
    spend_difference: Estimate | None = None  # spend of the plan less that of the reference (paired)
    cost_per_extra: Estimate | None = None  # of one more unit of response than the reference; NaN ends: cannot say

    def __repr__(self) -> str:
        named = f"{self.name!r}, {self.detail!r}" if self.detail else repr(self.name)
        numbers = f"value={self.value}, spend={self.spend}, difference={_format_gain(self.difference)}"
        return f"Reference({named}, {numbers})"


@dataclass(frozen=True)
class Profit:
    """Estimated profit of a policy per customer: value of the responses minus spend."""

    response_value: float  # value of one unit of response, in the unit of costs
    own: Estimate
    gain: Estimate  # over giving everyone the cheapest level (paired)
    returned: Estimate  # return of each unit spent beyond the cheapest level; a loss below one


@dataclass(frozen=True)
class BestBudget:
    """Most profitable budget on held-out rows, and the confidence set of most profitable budgets."""

    budget: float
    profit: Estimate  # its interval holds after choosing: it is as wide as all budgets together need
    low: float  # lower end of the 95 % confidence set of the best of all compared budgets
    high: float  # upper end of this set
    may_be_this: bool  # True if the budget of the plan lies in this set: it is not clearly worse


@dataclass(frozen=True)
class PolicyOption:
    """Policy that may be recommended, with its gain over the best mix of levels for all customers."""

    name: str
    detail: str
    value: Estimate
    spend: Estimate
    gain: Estimate
    at_least: float | None  # the gain is larger, with 95 % confidence for all options together; None: no interval
    guaranteed: float | None  # finite-sample lower bound of the value; None if the log gives none
    profit: Estimate | None = None

    def __repr__(self) -> str:
        bound = "" if self.at_least is None else f", at_least={self.at_least:+.4g}"
        return f"Option({self.name!r}, value={self.value}, spend={self.spend}, gain={_format_gain(self.gain)}{bound})"


@dataclass(frozen=True)
class RuleTable:
    """Level probabilities of a simple rule for each group of one column."""

    column: str
    groups: tuple[str, ...]
    shares: tuple[tuple[float, ...], ...]  # (groups, K)


@dataclass(frozen=True)
class PolicyGainBounds:
    """Lower confidence bounds, from the log alone, of the gains of the plan and of a simple rule."""

    options: tuple[PolicyOption, ...]  # the policy itself comes first
    reach: float  # standard errors from a gain to its bound, for all options together
    excuse: str = ""  # reason for the absence of guaranteed values
    rule: RuleTable | None = None  # the simple rule among the options


GRADES = ("proved", "best bet", "slightly better", "no difference", "rather not", "cannot say")


@dataclass(frozen=True)
class GainEvidence:
    """A policy's gain over the best mix of levels for all customers: by the model, by the log, and by both."""

    name: str  # "plan", "rule" or "before"
    gain: Estimate  # expected from both
    probability: float  # that the gain is above zero; never 0 or 1
    model: Estimate | None  # calibrated expectation of the model; None if the curves have no uncertainty
    log: Estimate  # doubly robust, for the model of all rows
    contradiction: bool = False  # True if model and log exclude each other; the gain is then that of the log

    def __repr__(self) -> str:
        return f"GainEvidence({self.name!r}, gain={_format_gain(self.gain)}, probability={self.probability:.2f})"


@dataclass(frozen=True)
class Verdict:
    """Recommended policy (plan, simple rule or one mix of levels for all customers), with its evidence."""

    recommended: str | None  # "plan", "rule", "mix" or "before"; None if the log cannot say
    grade: str  # one of GRADES: of the recommended rule, else of the plan
    options: tuple[GainEvidence, ...] = ()  # the plan first; empty if the log cannot say
    at_least: float | None = None  # lower bound of the plan's gain by the log alone; see `PolicyOption.at_least`
    needed_rows: float | None = None  # rows of a log that alone would show the expected gain; None without a gain
    reason: str = ""  # why the log cannot say, or what model and log disagree about

    @property
    def plan(self) -> GainEvidence | None:
        """Evidence for the plan's gain; None if the log cannot support a verdict."""
        return self.options[0] if self.options else None

    @property
    def probability(self) -> float | None:
        """Probability that the plan is better than the best mix of levels for all customers at the same spend."""
        return None if self.plan is None else self.plan.probability

    @property
    def gain(self) -> Estimate | None:
        """Expected gain of the plan over the best mix of levels for all customers at the same spend."""
        return None if self.plan is None else self.plan.gain

    @property
    def contradiction(self) -> bool:
        """True if the model's and the log's intervals for the plan's gain do not overlap."""
        return self.plan is not None and self.plan.contradiction

    def __str__(self) -> str:
        option = next((option for option in self.options if option.name == self.recommended), self.plan)
        if option is None:
            return f"{self.grade}: {self.reason}"
        gain = f"{option.name} gains {_format_gain(option.gain)} with probability {option.probability:.2f}"
        return f"{self.grade}, recommended: {self.recommended}; {gain}"


@dataclass(frozen=True)
class Comparison(DisplayMixin):
    """Paired differences in value and spend between two policies."""

    value: Estimate
    spend: Estimate

    def card(self) -> Card:
        """Return a notebook table of the differences with their intervals."""
        rows = [
            (name, getattr(self, name).estimate, format_interval_ends(getattr(self, name).interval))
            for name in ("value", "spend")
        ]
        return Card("First policy less the second", ("", "difference", "95 %"), rows)

    def to_arrow(self) -> pa.Table:
        """Return the differences in value and spend between two policies as a table of two rows."""
        import pyarrow as pa

        return pa.Table.from_pylist(
            [{"of": name, **list_estimate_cells("difference", getattr(self, name))} for name in ("value", "spend")]
        )

    def __iter__(self) -> Iterator[Estimate]:
        return iter((self.value, self.spend))


@dataclass(frozen=True)
class Evaluation(DisplayMixin):
    """Off-policy estimates of a policy's value and spend, with 95 % confidence intervals."""

    value: float
    value_interval: tuple[float, float]
    value_se: float
    spend: float
    spend_interval: tuple[float, float]
    spend_se: float
    estimator: str
    rows: int
    clusters: int | None
    propensity: str  # "given" or "estimated"
    clipped: int  # rows whose estimated propensity was raised to the floor
    budget: float | None = None
    promise: float | None = None  # the model's own prediction of the policy's value, not corrected by the log
    references: tuple[Reference, ...] = ()
    warnings: tuple[Finding, ...] = ()
    uniform: tuple[Reference, ...] = ()  # each level for all customers, compared with the policy
    clipped_weight: float = 0.0  # share of all weight that raising propensities to the floor removed
    interval: str = "influence"  # method of the intervals of value and spend: "influence" or "bootstrap"
    profit: Profit | None = None  # if the log has the value of a response
    verdict: Verdict | None = None

    def __repr__(self) -> str:
        value, spend = format_interval_ends(self.value_interval), format_interval_ends(self.spend_interval)
        other = self.references[0] if self.references else None
        against = "" if other is None else f"; against {other.name}: {_format_gain(other.difference)}"
        verdict = "" if self.verdict is None else f"; {self.verdict}"
        numbers = f"value={self.value:.4g} {value}, spend={self.spend:.4g} {spend}, {self.rows:,} rows"
        return f"Evaluation({numbers}{against}{verdict})"

    def card(self) -> Card:
        """Return a notebook table of the policy's value and spend, of comparisons and of warnings."""
        rows: list[tuple[Any, ...]] = [
            (
                "this policy",
                self.value,
                format_interval_ends(self.value_interval),
                self.spend,
                format_interval_ends(self.spend_interval),
            )
        ]
        for other in (*self.references, *self.uniform):
            ends = (
                format_interval_ends(estimate.interval) for estimate in (other.value, other.spend, other.difference)
            )
            value, spend, gain = ends
            rows.append((other.name, other.value.estimate, value, other.spend.estimate, spend))
            rows[-1] += (other.difference.estimate, gain)
        head = ("", "value", "95 %", "spend", "95 %", "this policy brings more", "95 %")
        title = f"Evaluation on {self.rows:,} rows ({self.estimator})"
        lines = [f"{finding.answer}: {finding.text}" for finding in self.warnings]
        if self.profit is not None:
            lines.insert(
                0,
                f"Profit after costs: {self.profit.own.estimate:.4g} {format_interval_ends(self.profit.own.interval)}",
            )
        if self.verdict is not None:
            lines.insert(0, f"Verdict: {self.verdict}")
        return Card(title, head, rows, lines)

    def to_arrow(self) -> pa.Table:
        """Return a table of value and spend of the policy and its references, with paired differences.

        Where a response has a value, profit after costs, too.
        """
        import pyarrow as pa

        value = Estimate(self.value, self.value_se, *self.value_interval)
        spent = Estimate(self.spend, self.spend_se, *self.spend_interval)
        parts = {**list_estimate_cells("value", value), **list_estimate_cells("spend", spent)}
        rows = [{"policy": "this policy", **parts, **list_estimate_cells("gain", None)}]
        left: list[tuple[Estimate | None, Estimate | None]] = [] if self.profit is None else [(self.profit.own, None)]
        for other in (*self.references, *self.uniform):
            parts = {**list_estimate_cells("value", other.value), **list_estimate_cells("spend", other.spend)}
            rows.append({"policy": other.name, **parts, **list_estimate_cells("gain", other.difference)})
            left += [] if self.profit is None else [(other.profit, other.profit_difference)]
        for row, (profit, more) in zip(rows, left, strict=False):
            row |= {**list_estimate_cells("profit", profit), **list_estimate_cells("profit_gain", more)}
        return pa.Table.from_pylist(rows)


def _format_gain(gain: Estimate) -> str:
    """Format an estimated difference with its sign and its confidence interval."""
    return f"{gain.estimate:+.4g} {format_interval_ends(gain.interval)}"


def format_interval_ends(interval: tuple[float, float]) -> str:
    """Format the lower and the upper end of a confidence interval as text."""
    low, high = interval
    return "(no interval)" if low != low or high != high else f"[{low:.4g}, {high:.4g}]"


def list_estimate_cells(name: str, estimate: Estimate | None) -> dict[str, Any]:
    """Return three table cells for an estimate: its value and both ends of its confidence interval."""
    ends = (None, None, None) if estimate is None else (estimate.estimate, estimate.low, estimate.high)
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


@dataclass(frozen=True, eq=False)
class HeldOutPlan:
    """Plan for the rows of a log at one budget, made for each fold by a model fitted to the other folds.

    The levels of each fold come from models and a price that were fitted without it.
    """

    budget: float  # average per customer
    policy: Array  # levels (n,) of the smallest integer type, or probabilities (n, K) of a plan that draws them
    prices: Array  # (folds,) infinite where a fold's cheapest plan costs more than the budget
    scales: Array | None = None  # (folds,) factors of the expected costs, where costs are not certain

    @property
    def levels(self) -> Array:
        """Planned levels (n,); for a randomised plan, the most probable levels."""
        return self.policy if self.policy.ndim == 1 else np.argmax(self.policy, axis=1)


@dataclass(frozen=True)
class FrontierPoint:
    """Estimated value and spend, and predicted value, of the cross-fitted plan at one budget."""

    budget: float
    value: Estimate
    spend: Estimate
    promise: float
    price: float
    band: tuple[float, float] = (float("nan"), float("nan"))  # 95 % band that holds for all budgets together
    profit: Estimate | None = None  # after costs, if the log has the value of a response


@dataclass(frozen=True)
class QiniPoint:
    """Gains of the plan and of the best mix of levels for all customers over the cheapest plan, at one spend."""

    budget: float
    spend: float
    gain: Estimate
    uniform: float
    difference: Estimate  # learnt − uniform at the same spend, paired


@dataclass(frozen=True)
class UniformMixValue:
    """Estimated value of the best mix of levels for all customers at one spend."""

    spend: float
    value: float


@dataclass(frozen=True)
class QiniCurve:
    """Qini curve: the plan's gain by spend, and its mean advantage over the best mix of levels for all customers."""

    points: tuple[QiniPoint, ...]
    area: Estimate
    mixes: tuple[UniformMixValue, ...] = ()  # at the mean cost of every level, rising; linear in between


@dataclass(frozen=True)
class CandidateLoss:
    """Held-out loss of one candidate model, and its paired difference from the best candidate."""

    name: str
    loss: float
    difference: float
    se: float
    chosen: bool = False
    of: str = ""  # the choice that the candidate belongs to
