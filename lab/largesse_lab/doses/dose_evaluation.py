"""Kernel-based doubly robust evaluation of a policy of continuous doses on a log.

No logged dose equals the one a policy would give, so rows whose dose is near it stand in for it:
ψ_i = f̂(x_i, π_i) + K_h(π_i − t_i) / ρ(t_i | x_i) · (r_i − f̂(x_i, t_i)), with ρ a density (Kallus and Zhou 2018). Near the
ends of the scale the kernel is divided by its mass inside the range. A narrow kernel is noisy, a wide one biased: the
bandwidth is the largest whose interval still overlaps those of all narrower ones (Lepski's rule), then narrowed a little so
that the bias stays small in comparison with the interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.data import Encoder, make_feature_table
from largesse.errors import Problem, percent, refuse
from largesse.records import MIN_LEVEL_ROWS, Array, Finding
from largesse.response import copy_unfitted
from largesse.stats import (
    effective_sample_size,
    estimate_skewed_mean,
    is_sparse_amount,
    limit_to_one_thread,
    t_estimate,
)

BINS = 10  # of the estimated density
KNOTS = 4  # few: random bends of the curve inside the kernel are an error that intervals do not show
WIDTHS = (0.2, 0.15, 0.11, 0.08, 0.06)  # shares of the range of doses, the widest first
NARROWED = 0.75
MIN_DENSITY = 0.05  # of a density, relative to that of evenly spread doses
POINT = 0.1  # share of rows on one dose that makes it a level of its own
DOSE_RIDGE = 1.0
MIN_EFFECTIVE = 100.0  # equally weighted rows


@dataclass(frozen=True, eq=False)
class DoseLog:
    """Log of n customers with features, a continuous dose and a response."""

    features: Any  # (n, p) array or table
    dose: Any  # (n,) what was given
    response: Any  # (n,) what happened
    density: Any = None  # (n,) density of the logged dose; estimated if not known
    weight: Any = None  # (n,)
    cluster: Any = None  # (n,)


@dataclass(frozen=True)
class DoseEvaluation:
    """Estimated value and spend of a dose policy, with confidence intervals."""

    value: float
    value_interval: tuple[float, float]
    value_se: float
    spend: float
    spend_interval: tuple[float, float]
    spend_se: float
    rows: int
    density: str  # "given" or "estimated"
    bandwidth: float  # half-width of the kernel, in units of the dose
    effective: float  # effective sample size near the policy's doses
    warnings: tuple[Finding, ...] = ()


@dataclass(frozen=True, eq=False)
class DoseScoreTerms:
    """Out-of-fold terms (n,) of the doubly robust score of each row: residual, prediction and dose density."""

    dose: Array  # (n,) as logged
    wanted: Array  # (n,) as the policy would give
    residual: Array  # (n,) response − curve at the logged dose
    direct: Array  # (n,) curve at the wanted dose
    density: Array  # (n,) of the logged dose


def evaluate_doses(
    log: DoseLog,
    wanted: Any,
    *,
    model: Any = None,
    bandwidth: float | str = "auto",
    on_redemption: bool = False,
    folds: int = 5,
    seed: int = 0,
) -> DoseEvaluation:
    """Estimate the value and the spend of a dose policy on a log, with 95 % confidence intervals.

    Parameters
    ----------
    log
        Past doses and their outcomes.
    wanted
        (n,) doses the policy would give, or one dose for all.
    model
        Anything with `fit(X, dose, response)` and `predict(X, doses)` → (n, m), such as `DoseSIRE`; None is a ridge
        regression on features and a piecewise linear curve in the dose. Refitted for every fold.
    bandwidth
        Half-width of the kernel, in units of the dose; "auto" chooses it.
    on_redemption
        A dose is paid only as far as the customer responds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, dose = rng.random((2000, 2)), rng.random(2000)
    >>> found = evaluate_doses(DoseLog(x, dose, x[:, 0] + dose**2, density=np.ones(2000)), 0.5)
    >>> bool(found.value_interval[0] < 0.75 < found.value_interval[1]), found.spend
    (True, 0.5)
    """
    log, wanted = _check_log_and_doses(log, wanted)
    fold = _assign_cluster_folds(log, folds, seed)
    with limit_to_one_thread():
        rows = _crossfit_score_terms(log, wanted, model, fold, seed)
    if isinstance(bandwidth, str):
        bandwidth = _choose_bandwidth(log, rows)
    scores = compute_dose_scores(rows, bandwidth)
    near = _compute_kernel_weights(rows, bandwidth) / rows.density
    tail = near * log.response if is_sparse_amount(log.response) else None
    value = estimate_skewed_mean(scores, log.weight, log.cluster, tail)
    paid = wanted * tail if on_redemption and tail is not None else None
    spend = estimate_skewed_mean(wanted * (scores if on_redemption else 1.0), log.weight, log.cluster, paid)
    effective = effective_sample_size(log.weight * near)
    return DoseEvaluation(
        value=value.estimate,
        value_interval=value.interval,
        value_se=value.se,
        spend=spend.estimate,
        spend_interval=spend.interval,
        spend_se=spend.se,
        rows=len(log.dose),
        density="estimated" if log.density is None else "given",
        bandwidth=bandwidth,
        effective=effective,
        warnings=_find_dose_warnings(rows, bandwidth, effective),
    )


def _find_dose_warnings(rows: DoseScoreTerms, bandwidth: float, effective: float) -> tuple[Finding, ...]:
    """Return warnings if few logged doses lie near the policy's doses, or if these leave the logged range."""
    outside = float(((rows.wanted < rows.dose.min()) | (rows.wanted > rows.dose.max())).mean())
    findings = []
    if outside > 0:
        text = f"{percent(outside)} of the wanted doses lie outside the range of logged doses: nothing is known about them."
        findings.append(Finding("range of doses", "no", text))
    if effective < MIN_EFFECTIVE:
        text = f"Few logged doses lie near the wanted ones (worth {effective:.0f} rows within {bandwidth:.3g})."
        findings.append(Finding("rows near the doses", "no" if effective < MIN_LEVEL_ROWS else "careful", text))
    return tuple(findings)


def compute_dose_scores(rows: DoseScoreTerms, width: float) -> Array:
    """Return the doubly robust score (n,) of each row for a given kernel half-width."""
    return rows.direct + _compute_kernel_weights(rows, width) / rows.density * rows.residual


def _compute_kernel_weights(rows: DoseScoreTerms, width: float) -> Array:
    """Return Epanechnikov kernel weights (n,) between logged doses and the policy's doses.

    Each kernel has mass one inside the range of logged doses.
    """
    apart = (rows.dose - rows.wanted) / width
    low = np.clip((rows.dose.min() - rows.wanted) / width, -1.0, 1.0)
    high = np.clip((rows.dose.max() - rows.wanted) / width, -1.0, 1.0)
    inside = _integrate_kernel(high) - _integrate_kernel(low)
    return np.where(np.abs(apart) < 1, 0.75 * (1 - apart**2), 0.0) / width / np.maximum(inside, 1e-9)


def _integrate_kernel(u: Array) -> Array:
    return 0.75 * (u - u**3 / 3)


def _choose_bandwidth(log: DoseLog, rows: DoseScoreTerms) -> float:
    """Choose the kernel half-width by Lepski's method: the widest with an interval that overlaps all narrower ones.

    The chosen width is narrowed by a constant factor.
    """
    widths = [share * float(np.ptp(log.dose)) for share in WIDTHS]
    low, high, chosen = -np.inf, np.inf, widths[-1]
    for width in reversed(widths):
        estimate = t_estimate(compute_dose_scores(rows, width), log.weight, log.cluster)
        low, high = max(low, estimate.low), min(high, estimate.high)
        if low > high:
            break
        chosen = width
    return NARROWED * chosen


# -- models -----------------------------------------------------------------------------------------------------------


def _crossfit_score_terms(log: DoseLog, wanted: Array, model: Any, fold: Array, seed: int) -> DoseScoreTerms:
    at_logged, direct = np.empty(len(log.dose)), np.empty(len(log.dose))
    density = np.empty(len(log.dose)) if log.density is None else log.density
    fit = _fit_ridge_curve if model is None else lambda *rows: _fit_model_curve(model, *rows)
    for f in np.unique(fold):
        train, test = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        dose, response, encoder = log.dose[train], log.response[train], Encoder()
        X = encoder.fit_transform(log.features.take(train), response, seed=seed).astype(np.float64)
        asked = encoder.transform(log.features.take(test)).astype(np.float64)
        curve = fit(X, dose, response)
        at_logged[test], direct[test] = curve(asked, log.dose[test]), curve(asked, wanted[test])
        if log.density is None:
            density[test] = _estimate_dose_density(X, dose, asked, log.dose[test], log.dose)
    return DoseScoreTerms(log.dose, wanted, log.response - at_logged, direct, density)


def _fit_ridge_curve(X: Array, dose: Array, response: Array) -> Callable[[Array, Array], Array]:
    """Fit a ridge regression of the response on features and dose, and return its prediction function."""
    knots = np.quantile(dose, np.linspace(0, 1, KNOTS)[1:-1])
    centre, scale = float(dose.mean()), float(dose.std()) or 1.0

    def make_design_matrix(X: Array, at: Array) -> Array:
        t = (at - centre) / scale
        hinges = np.maximum(at[:, None] - knots, 0.0) / scale
        return np.column_stack([np.ones(len(X)), t, hinges, X, X * t[:, None]])

    A = make_design_matrix(X, dose)
    ridge = np.full(A.shape[1], DOSE_RIDGE)
    ridge[0] = 0.0
    coefficients = np.linalg.solve(A.T @ A + np.diag(ridge + 1e-9), A.T @ response)
    return lambda asked, at: make_design_matrix(asked, at) @ coefficients


def _fit_model_curve(model: Any, X: Array, dose: Array, response: Array) -> Callable[[Array, Array], Array]:
    """Fit a copy of a dose model, and return a function that predicts each customer's response at one dose."""
    fitted = copy_unfitted(model).fit(X, dose, response)
    grid = np.unique(np.quantile(dose, np.linspace(0, 1, 101)))

    def predict_at_doses(asked: Array, at: Array) -> Array:
        curves = fitted.predict(asked, grid)
        below = np.clip(np.searchsorted(grid, at, side="right") - 1, 0, len(grid) - 2)
        share = np.clip((at - grid[below]) / (grid[below + 1] - grid[below]), 0.0, 1.0)
        rows = np.arange(len(at))
        return (1 - share) * curves[rows, below] + share * curves[rows, below + 1]

    return predict_at_doses


def _estimate_dose_density(X: Array, dose: Array, asked: Array, at: Array, every: Array) -> Array:
    """Estimate the conditional density (m,) of doses given features by a logistic regression on dose bins."""
    from sklearn.linear_model import LogisticRegression

    edges = np.unique(np.quantile(every, np.linspace(0, 1, BINS + 1)))
    code = np.clip(np.searchsorted(edges, dose, side="right") - 1, 0, len(edges) - 2)
    place = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(edges) - 2)
    if X.shape[1] == 0 or len(np.unique(code)) < 2:
        shares = np.bincount(code, minlength=len(edges) - 1)[place] / len(code)
    else:
        model = LogisticRegression(C=0.1, max_iter=300).fit(X, code)
        probabilities = np.zeros((len(asked), len(edges) - 1))
        probabilities[:, model.classes_] = model.predict_proba(asked)
        shares = probabilities[np.arange(len(at)), place]
    return np.maximum(shares / np.diff(edges)[place], MIN_DENSITY / float(np.ptp(every)))


# -- checks -----------------------------------------------------------------------------------------------------------


def _check_log_and_doses(log: DoseLog, wanted: Any) -> tuple[DoseLog, Array]:
    """Return the log and the policy's doses (n,) as checked arrays, or refuse them."""
    dose, response = np.asarray(log.dose, dtype=np.float64), np.asarray(log.response, dtype=np.float64)
    wanted = np.array(np.broadcast_to(np.asarray(wanted, dtype=np.float64), dose.shape))
    weight = np.ones(len(dose)) if log.weight is None else np.asarray(log.weight, dtype=np.float64)
    density = None if log.density is None else np.asarray(log.density, dtype=np.float64)
    columns = {"response": response, "wanted doses": wanted, "weight": weight}
    columns |= {} if density is None else {"density": density}
    problems = [
        Problem(f"{name} has shape {values.shape}, doses {dose.shape}", "give one number per row")
        for name, values in columns.items()
        if values.shape != dose.shape
    ]
    problems += [
        Problem(f"{name} holds missing or infinite numbers", "leave those rows out")
        for name, values in {"dose": dose, **columns}.items()
        if not np.isfinite(values).all()
    ]
    if not problems:
        _, tally = np.unique(dose, return_counts=True)
        if len(tally) < 2 or tally.max() > POINT * len(dose):
            got = f"{percent(tally.max() / len(dose))} of the rows have the very same dose"
            problems.append(Problem(got, "that is a level: evaluate(log, …) judges levels"))
        if density is not None and (density <= 0).any():
            problems.append(Problem("a density is zero or negative", "every logged dose had a positive density"))
    refuse("evaluate", problems)
    cluster = None if log.cluster is None else np.asarray(log.cluster)
    features = make_feature_table(log.features)
    return DoseLog(features, dose, response, density, weight, cluster), wanted


def _assign_cluster_folds(log: DoseLog, folds: int, seed: int) -> Array:
    """Assign every row a random fold (n,) such that all rows of a cluster share a fold."""
    rng = np.random.default_rng(seed)
    if log.cluster is None:
        return rng.permutation(len(log.dose)) % folds
    _, code = np.unique(log.cluster, return_inverse=True)
    return (rng.permutation(int(code.max()) + 1) % folds)[code]
