"""Doubly robust estimates of the spend of plans at each shadow price, if costs depend on responses.

At each of a range of spends every row gets the level that its out-of-fold curves and costs choose. The model's expected cost of
such a plan and its doubly robust estimate from the log are two means over the same rows. Their ratio is not one: a
plan pays where the model is wrong in its favour. To plan a fold, the ratio comes from the other folds alone, so the
estimate for the fold is as unbiased as for new customers.

Every fold has a price of its own for a spend. At a common price, folds whose customers responded much by chance would get less
than others, because only the others' models have seen them: the plan would seem 3 to 8 % cheaper than it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.allocation import CostCorrection, correct_expected_costs, decide_at_price, frontier
from largesse.evaluation.policy_estimates import estimate_from_influence, measure_policy_influence
from largesse.records import Array, Scores, SpendingCurve
from largesse.stats import t_estimate, t_quantile

N_PRICES = 31
MAX_UNSAMPLED_ROWS, PRICE_SAMPLE_ROWS = (
    5_000_000,
    1_000_000,
)  # of larger logs, a sample decides at which prices to measure


@dataclass(frozen=True, eq=False)
class FoldSpending:
    """Costs of plans at each shadow price, summed by fold: by the model and by doubly robust estimates."""

    price: Array  # (m,) falling
    expected: Array  # (m, folds)
    honest: Array  # (m, folds)
    weight: Array  # (folds,)
    reach: Array  # (m,) standard error over all folds
    noise: float  # standard error of the mean of what all rows cost, as a share of it

    @property
    def curve_of_all_folds(self) -> SpendingCurve:
        """Expected and actual costs of plans (spending curve) over all folds."""
        return self._make_curve(np.ones(len(self.weight), dtype=bool))

    def make_curve_without_fold(self, fold: int) -> SpendingCurve:
        """Return the expected and actual costs of plans (spending curve) over all folds except one."""
        others = np.arange(len(self.weight)) != fold
        return self._make_curve(others) if others.any() else self.curve_of_all_folds

    def correct_expected_costs(self, fold: int, budget: float, confidence: float) -> CostCorrection:
        """Return the cost correction for a fold's plan at a budget, estimated on the other folds."""
        expected = self.curve_of_all_folds.expected
        return correct_expected_costs(
            np.array([expected[0], *expected]), budget, self.make_curve_without_fold(fold), confidence
        )

    def _make_curve(self, folds: Array) -> SpendingCurve:
        mass = float(self.weight[folds].sum())
        expected, honest = (sums[:, folds].sum(axis=1) / mass for sums in (self.expected, self.honest))
        price, expected, honest, reach = (
            tuple(map(float, column)) for column in (self.price, expected, honest, self.reach)
        )
        return SpendingCurve(price, expected, honest, reach, self.noise)


def measure_spend_by_price(scores: Scores) -> FoldSpending | None:
    """Measure the actual spend of plans at each shadow price on held-out rows; None if costs are certain.

    >>> from dataclasses import replace
    >>> from largesse.evaluation import crossfit_scores
    >>> from largesse.levels import Levels
    >>> from largesse.worlds import simulate
    >>> log = simulate("averaged", n=500, seed=1).log
    >>> measure_spend_by_price(crossfit_scores(log)) is None
    True
    >>> redeemed = replace(log, levels=Levels(costs=[0, 1, 2, 3, 4], on_redemption=True))
    >>> curve = measure_spend_by_price(crossfit_scores(redeemed)).curve_of_all_folds
    >>> curve.honest[0], curve.honest[-1] > 1
    (0.0, True)
    """
    if scores.certain:
        return None
    curves, costs, rows = scores.curves, scores.expected_costs, np.arange(len(scores.level))
    _, fold = np.unique(scores.fold, return_inverse=True)
    prices, shares = _make_price_grid(curves, costs)
    fold_rows = [np.flatnonzero(fold == f) for f in range(fold.max(initial=0) + 1)]
    fold_prices = [_find_prices_at_spends(curves[part], costs[part], shares) for part in fold_rows]
    sums = []
    levels = np.empty(len(rows), dtype=np.int64)
    for j in range(len(prices)):
        for part, own in zip(fold_rows, fold_prices, strict=True):
            levels[part] = decide_at_price(curves[part], costs[part], own[j])
        spend = measure_policy_influence(scores, levels).spend
        estimate = estimate_from_influence(scores, spend)
        wide = (estimate.high - estimate.estimate) / t_quantile(1e9)
        by_fold = [np.bincount(fold, weights=scores.weight * cost) for cost in (costs[rows, levels], spend.values)]
        sums.append((*by_fold, np.nanmax([estimate.se, wide, 0.0])))
    expected, honest, reach = (np.array(column) for column in zip(*sums, strict=True))
    cost, mass = t_estimate(scores.paid, scores.weight, scores.cluster), np.bincount(fold, weights=scores.weight)
    noise = cost.se / cost.estimate if cost.estimate > 0 and np.isfinite(cost.se) else 1.0
    return FoldSpending(prices, expected, honest, mass, reach, noise)


def _make_price_grid(curves: Array, costs: Array) -> tuple[Array, Array]:
    """Return decreasing shadow prices (m,) of plans with evenly spaced costs, and the plans' positions from 0 to 1."""
    prices, first = np.unique(
        -_find_prices_at_spends(curves, costs, shares := np.linspace(0.0, 1.0, N_PRICES)), return_index=True
    )
    return -prices, shares[first]


def _find_prices_at_spends(curves: Array, costs: Array, shares: Array) -> Array:
    """Return shadow prices (m,) of plans with costs at given positions between the cheapest and the best plan."""
    step = -(-len(curves) // PRICE_SAMPLE_ROWS) if len(curves) > MAX_UNSAMPLED_ROWS else 1
    front = frontier(curves[::step], costs[::step])
    if len(front) == 1:
        return np.ones(len(shares))
    low, high = float(front.spend[0]), float(front.spend[-1])
    prices = [front.price_at(low + float(share) * (high - low)) for share in shares]
    return np.where(shares == 0, 2 * front.price[1], np.where(shares == 1, 0.0, prices))
