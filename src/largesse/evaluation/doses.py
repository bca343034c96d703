"""What doses on a continuous scale would bring: kernel doubly robust scores.

No logged dose equals the one a policy would give, so rows whose dose is near it speak for it:
ψ_i = f̂(x_i, π_i) + K_h(π_i − t_i) / ρ(t_i | x_i) · (r_i − f̂(x_i, t_i)), with ρ a density (Kallus and Zhou 2018). Near the
ends of the scale the kernel is divided by the part of it that lies inside. A narrow kernel is noisy, a wide one blurs:
the width is the largest whose interval still meets those of all narrower ones (Lepski's rule), then narrowed a little so
that the blur stays small beside the interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.data import Encoder, feature_table
from largesse.errors import Problem, refuse
from largesse.evaluation.findings import FEW_EFFECTIVE, FEW_ROWS
from largesse.records import Array, DoseEvaluation, Estimate, Finding
from largesse.stats import mean_estimate, one_thread

BINS = 10  # of the estimated density
KNOTS = 4  # few: chance bends of the curve inside the kernel are an error that intervals do not see
WIDTHS = (0.2, 0.15, 0.11, 0.08, 0.06)  # shares of the range of doses, the widest first
NARROWED = 0.75
FLOOR = 0.05  # of a density, times that of doses spread evenly
POINT = 0.1  # share of rows on one dose that makes it a level of its own
RIDGE = 1.0


@dataclass(frozen=True, eq=False)
class Doses:
    """What a log of doses says about a policy, per row, made without letting a row judge itself."""

    dose: Array  # (n,) as logged
    wanted: Array  # (n,) as the policy would give
    residual: Array  # (n,) response − curve at the logged dose
    direct: Array  # (n,) curve at the wanted dose
    density: Array  # (n,) of the logged dose


def evaluate_doses(
    features: Any,
    dose: Any,
    response: Any,
    wanted: Any,
    *,
    density: Any = None,
    model: Any = None,
    bandwidth: float | None = None,
    on_redemption: bool = False,
    weight: Any = None,
    cluster: Any = None,
    folds: int = 5,
    seed: int = 0,
) -> DoseEvaluation:
    """Estimate what a policy of doses brings and costs, each with a 95 % interval.

    Parameters
    ----------
    features
        (n, p) array or table.
    dose, response
        (n,) what was given, on a continuous scale, and what came of it.
    wanted
        (n,) doses the policy would give, or one dose for all.
    density
        (n,) density of the logged dose, where it is known; else it is estimated, cross-fitted.
    model
        Anything with `fit(X, dose, response)` and `predict(X, doses)` → (n, m), such as `DoseSIRE`; None is a ridge
        regression on features and a piecewise linear curve in the dose. Refitted for every fold.
    bandwidth
        Half-width of the kernel, in units of the dose; None chooses it.
    on_redemption
        A dose is paid only as far as the customer responds.

    >>> rng = np.random.default_rng(0)
    >>> x, dose = rng.random((2000, 2)), rng.random(2000)
    >>> found = evaluate_doses(x, dose, x[:, 0] + dose**2, 0.5, density=np.ones(2000))
    >>> bool(found.value.low < 0.75 < found.value.high), found.spend.estimate
    (True, 0.5)
    """
    dose, response, wanted, weight = _checked(dose, response, wanted, density, weight)
    fold = (
        np.random.default_rng(seed).permutation(len(dose)) % folds if cluster is None else _dealt(cluster, folds, seed)
    )
    table = feature_table(features)
    with one_thread():
        found = _crossfitted(table, dose, response, wanted, density, model, fold, seed)
    groups = None if cluster is None else np.asarray(cluster)

    def judged(width: float) -> Estimate:
        return mean_estimate(score_doses(found, width), weight, groups)

    width = _chosen_width(float(np.ptp(dose)), judged) if bandwidth is None else float(bandwidth)
    scores = score_doses(found, width)
    near = weight * _kernel(found, width) / found.density
    paid = wanted * (scores if on_redemption else 1.0)
    return DoseEvaluation(
        value=mean_estimate(scores, weight, groups),
        spend=mean_estimate(paid, weight, groups),
        bandwidth=width,
        effective=float(near.sum() ** 2 / (near @ near)) if near.any() else 0.0,
        density="given" if density is not None else "estimated",
        rows=len(dose),
        warnings=_warned(found, width, near),
    )


def _warned(found: Doses, width: float, near: Array) -> tuple[Finding, ...]:
    """Say when too few logged doses lie near the wanted ones, or when these leave the range of the log."""
    effective = near.sum() ** 2 / (near @ near) if near.any() else 0.0
    outside = float(((found.wanted < found.dose.min()) | (found.wanted > found.dose.max())).mean())
    warned = []
    if outside > 0:
        text = f"{outside:.0%} of the wanted doses lie outside what was ever given: nothing is known about them."
        warned.append(Finding("no", text))
    if effective < FEW_EFFECTIVE:
        text = f"Few logged doses lie near the wanted ones (worth {effective:.0f} rows within {width:.3g})."
        warned.append(Finding("no" if effective < FEW_ROWS else "careful", text))
    return tuple(warned)


def score_doses(found: Doses, width: float) -> Array:
    """Return the doubly robust scores (n,) at a half-width of the kernel."""
    return found.direct + _kernel(found, width) / found.density * found.residual


def _kernel(found: Doses, width: float) -> Array:
    """Return Epanechnikov's kernel (n,) between logged and wanted doses, whole inside the range of doses."""
    apart = (found.dose - found.wanted) / width
    low = np.clip((found.dose.min() - found.wanted) / width, -1.0, 1.0)
    high = np.clip((found.dose.max() - found.wanted) / width, -1.0, 1.0)
    inside = _area(high) - _area(low)
    return np.where(np.abs(apart) < 1, 0.75 * (1 - apart**2), 0.0) / width / np.maximum(inside, 1e-9)


def _area(u: Array) -> Array:
    return 0.75 * (u - u**3 / 3)


def _chosen_width(stretch: float, judged: Callable[[float], Estimate]) -> float:
    """Return the largest width whose interval meets those of all narrower ones, narrowed a little."""
    widths = [share * stretch for share in WIDTHS]
    low, high, chosen = -np.inf, np.inf, widths[-1]
    for width in reversed(widths):
        found = judged(width)
        low, high = max(low, found.low), min(high, found.high)
        if low > high:
            break
        chosen = width
    return NARROWED * chosen


# -- what is fitted ---------------------------------------------------------------------------------------------------


def _crossfitted(
    table: Any, dose: Array, response: Array, wanted: Array, density: Any, model: Any, fold: Array, seed: int
) -> Doses:
    own, direct = np.empty(len(dose)), np.empty(len(dose))
    dense = np.empty(len(dose)) if density is None else np.asarray(density, dtype=np.float64)
    for f in np.unique(fold):
        train, test = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        encoder = Encoder()
        X = encoder.fit_transform(table.take(train), response[train], seed=seed).astype(np.float64)
        asked = encoder.transform(table.take(test)).astype(np.float64)
        curve = (
            _plain_curve(X, dose[train], response[train])
            if model is None
            else _given_curve(model, X, dose[train], response[train])
        )
        own[test], direct[test] = curve(asked, dose[test]), curve(asked, wanted[test])
        if density is None:
            dense[test] = _density(X, dose[train], asked, dose[test], dose)
    return Doses(dose, wanted, response - own, direct, dense)


def _plain_curve(X: Array, dose: Array, response: Array) -> Callable[[Array, Array], Array]:
    """Return a ridge regression on features, their products with the dose, and hinges in the dose."""
    knots = np.quantile(dose, np.linspace(0, 1, KNOTS)[1:-1])
    centre, scale = float(dose.mean()), float(dose.std()) or 1.0

    def design(X: Array, at: Array) -> Array:
        t = (at - centre) / scale
        hinges = np.maximum(at[:, None] - knots, 0.0) / scale
        return np.column_stack([np.ones(len(X)), t, hinges, X, X * t[:, None]])

    A = design(X, dose)
    ridge = np.full(A.shape[1], RIDGE)
    ridge[0] = 0.0
    found = np.linalg.solve(A.T @ A + np.diag(ridge + 1e-9), A.T @ response)
    return lambda asked, at: design(asked, at) @ found


def _given_curve(model: Any, X: Array, dose: Array, response: Array) -> Callable[[Array, Array], Array]:
    """Return a fresh copy of a model, fitted, asked at each customer's own dose by interpolation between many."""
    from largesse.response import fresh

    fitted = fresh(model).fit(X, dose, response)
    grid = np.unique(np.quantile(dose, np.linspace(0, 1, 101)))

    def curve(asked: Array, at: Array) -> Array:
        curves = fitted.predict(asked, grid)
        below = np.clip(np.searchsorted(grid, at, side="right") - 1, 0, len(grid) - 2)
        share = np.clip((at - grid[below]) / (grid[below + 1] - grid[below]), 0.0, 1.0)
        rows = np.arange(len(at))
        return (1 - share) * curves[rows, below] + share * curves[rows, below + 1]

    return curve


def _density(X: Array, dose: Array, asked: Array, at: Array, every: Array) -> Array:
    """Return the density (m,) of doses `at` given features `asked`: a logistic regression on bins of the dose."""
    from sklearn.linear_model import LogisticRegression

    edges = np.unique(np.quantile(every, np.linspace(0, 1, BINS + 1)))
    code = np.clip(np.searchsorted(edges, dose, side="right") - 1, 0, len(edges) - 2)
    place = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(edges) - 2)
    if X.shape[1] == 0 or len(np.unique(code)) < 2:
        shares = np.bincount(code, minlength=len(edges) - 1)[place] / len(code)
    else:
        model = LogisticRegression(C=0.1, max_iter=300).fit(X, code)
        chances = np.zeros((len(asked), len(edges) - 1))
        chances[:, model.classes_] = model.predict_proba(asked)
        shares = chances[np.arange(len(at)), place]
    return np.maximum(shares / np.diff(edges)[place], FLOOR / float(np.ptp(every)))


# -- checks -----------------------------------------------------------------------------------------------------------


def _checked(dose: Any, response: Any, wanted: Any, density: Any, weight: Any) -> tuple[Array, Array, Array, Array]:
    dose, response = np.asarray(dose, dtype=np.float64), np.asarray(response, dtype=np.float64)
    wanted = np.broadcast_to(np.asarray(wanted, dtype=np.float64), dose.shape)
    own = np.ones(len(dose)) if weight is None else np.asarray(weight, dtype=np.float64)
    named = {"response": response, "wanted doses": wanted, "weight": own}
    named |= {} if density is None else {"density": np.asarray(density, dtype=np.float64)}
    problems = [
        Problem(f"{name} has shape {values.shape}, doses {dose.shape}", "give one number per row")
        for name, values in named.items()
        if values.shape != dose.shape
    ]
    problems += [
        Problem(f"{name} holds missing or infinite numbers", "leave those rows out")
        for name, values in {"dose": dose, **named}.items()
        if not np.isfinite(values).all()
    ]
    if not problems:
        _, tally = np.unique(dose, return_counts=True)
        if len(tally) < 2 or tally.max() > POINT * len(dose):
            got = f"{tally.max() / len(dose):.0%} of the rows have the very same dose"
            problems.append(Problem(got, "that is a level: evaluate(log, …) judges levels"))
        if density is not None and (np.asarray(density) <= 0).any():
            problems.append(Problem("a density is zero or negative", "every logged dose had some chance"))
    refuse("evaluate", problems)
    return dose, response, np.array(wanted), own


def _dealt(cluster: Any, folds: int, seed: int) -> Array:
    _, own = np.unique(np.asarray(cluster), return_inverse=True)
    return (np.random.default_rng(seed).permutation(int(own.max()) + 1) % folds)[own]
