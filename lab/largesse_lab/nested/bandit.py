"""Nested classification as a log of incentives: a broader label is more often right, and costs more.

Labels nest, as animal ⊃ invertebrate ⊃ arthropod ⊃ insect. "Insect" costs nothing and is right for insects alone; "animal"
costs most and is right for every animal. So level 0 is the finest label and the last level the broadest. The response says
whether the label is right: it is 0 or 1, and never falls as the level rises. A log shows one label per row, and whether it
was right.

The logging policy assigns level k with probability s_k / Σ s_j (Lopez et al. 2020), where s holds K fixed projections of the
features, each shifted and scaled to (0, 10]. The paper writes arthropod ⊃ invertebrate, which is the wrong way round, and its
features have zeros where s must be positive. Both are corrected here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.data import log_from_arrays
from largesse.errors import InputError, Problem, refuse, suggest
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.stats import draw_levels
from largesse.worlds import KnownTruth

LABELS = ("insect", "arthropod", "invertebrate", "animal")  # the finest, and cheapest, first
COSTS = (0.0, 1.0, 2.0, 3.0)
SPLIT = (0.6, 0.2, 0.2)  # training, validation, test
PROJECTIONS = ("pca", "random")
SIDE = 10.0  # projections range over (0, SIDE]
LEAST = 0.01  # smallest projection: every level keeps a positive probability
FIXED = 20  # seed of random projections: repeats draw another log, not another policy


@dataclass(frozen=True, eq=False)
class Nested(KnownTruth):
    """A log of nested labels, and test customers whose truth is known; made by `make_bandit`."""

    log: Log  # training and validation rows, with propensities
    validation: Array  # (rows of the log,) bool: the validation rows
    propensities: Array  # (rows of the log, K) float64: probability of every level
    features: Array  # (n, p) float32: features of the test customers
    truth: Array  # (n, K) float64, 0 or 1: whether each label is right
    costs: Array  # (K,) float64
    rows: Array  # (rows of the log + n,) int64: positions in the source, the log first

    def __repr__(self) -> str:
        return f"Nested({len(self.log):,} rows in the log, {len(self):,} customers, {len(self.costs)} levels)"

    @property
    def train(self) -> Log:
        """The log without its validation rows."""
        return self.log.take(~self.validation)


def make_bandit(
    features: Any,
    nested_level: Any,
    *,
    costs: Sequence[float] = COSTS,
    labels: Sequence[str] | None = LABELS,
    split: Sequence[float] = SPLIT,
    projection: str | Array = "pca",
    mix: float = 0.0,
    seed: int = 0,
) -> Nested:
    """Turn nested labels into a log of assigned labels, and test customers on whom plans are judged.

    Parameters
    ----------
    features
        Numbers (n, p): an embedding of images or text, or anything else.
    nested_level
        Depth (n,) of each row's true label: 0 for no label, 1 for the broadest alone, … K for the finest.
    costs
        Costs of the K levels, finest label first, rising.
    labels
        Names of the levels, in the same order; None numbers them.
    split
        Shares of training, validation and test rows.
    projection
        What the logging policy follows: "pca" (the first K principal components), "random" (K fixed random directions), or
        your own directions (p, K).
    mix
        ε: levels are assigned with probabilities (1 − ε) ρ + ε/K instead of ρ.
    seed
        Seed of the split and of the assigned labels.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> made = make_bandit(rng.normal(size=(500, 6)), rng.integers(0, 5, 500))
    >>> made
    Nested(400 rows in the log, 100 customers, 4 levels)
    >>> made.uniform_value(budget=1) < made.oracle_value(budget=1)
    True
    """
    X, depth = _check_rows(features, nested_level, costs, labels)
    _check_settings(split, projection, mix, seed)
    K = len(costs)
    levels = Levels(costs=[float(cost) for cost in costs], names=None if labels is None else list(labels))
    truth = (np.arange(K) >= K - depth[:, None]).astype(np.float64)
    rho = _mix_uniform(project_features(X, K, projection), mix)
    order, ends = _split(len(X), split, np.random.default_rng((seed, 0)))
    logged, judged = order[: ends[1]], order[ends[1] :]
    return Nested(
        log=_draw_log(X[logged], truth[logged], rho[logged], levels, seed),
        validation=np.arange(len(logged)) >= ends[0],
        propensities=rho[logged],
        features=X[judged],
        truth=truth[judged],
        costs=np.asarray(levels.costs, dtype=np.float64),
        rows=order,
    )


def _draw_log(X: Array, truth: Array, rho: Array, levels: Levels, seed: int) -> Log:
    """Return a log of features X (n, p) whose levels are drawn with probabilities rho (n, K)."""
    level = draw_levels(rho, np.random.default_rng((seed, 1)))
    rows = np.arange(len(X))
    names = level if levels.names is None else np.array(levels.names)[level]
    return log_from_arrays(X, names, truth[rows, level], levels=levels, propensity=rho[rows, level])


# -- the logging policy ------------------------------------------------------------------------------------------------


def project_features(X: Array, K: int, projection: str | Array = "pca") -> Array:
    """Return projections s (n, K) of features (n, p), each shifted and scaled to (0, 10].

    >>> scores = project_features(np.random.default_rng(0).normal(size=(50, 6)), 4)
    >>> scores.shape, bool(scores.min() > 0), float(scores.max())
    ((50, 4), True, 10.0)
    """
    centred = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    raw = centred @ _directions(centred, K, projection)
    low, high = raw.min(axis=0), raw.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    share = np.where(high > low, (raw - low) / span, 1.0)
    return LEAST + (SIDE - LEAST) * share


def _directions(centred: Array, K: int, projection: str | Array) -> Array:
    """Return directions (p, K)."""
    p = centred.shape[1]
    if not isinstance(projection, str):
        given = np.asarray(projection, dtype=np.float64)
        if given.shape != (p, K) or not np.isfinite(given).all():
            problem = Problem(f"directions of shape {given.shape}", f"give finite numbers of shape ({p}, {K})")
            raise InputError("projection", [problem])
        return given
    if projection == "random":
        return np.random.default_rng(FIXED).normal(size=(p, K))
    return _components(centred, K)


def _components(centred: Array, K: int) -> Array:
    """Return the first K principal directions (p, K), the largest entry of each positive; with p < K they repeat."""
    _, vectors = np.linalg.eigh(centred.T @ centred)
    first = vectors[:, ::-1][:, np.arange(K) % centred.shape[1]]
    largest = first[np.argmax(np.abs(first), axis=0), np.arange(K)]
    return first * np.sign(largest)


def _mix_uniform(scores: Array, mix: float) -> Array:
    K = scores.shape[1]
    return (1 - mix) * scores / scores.sum(axis=1, keepdims=True) + mix / K


def _split(n: int, split: Sequence[float], rng: np.random.Generator) -> tuple[Array, tuple[int, int]]:
    """Return rows in random order, and the positions where training and validation end."""
    shares = np.asarray(split, dtype=np.float64) / np.sum(split)
    first, second = (round(n * share) for share in np.cumsum(shares)[:2])
    if first < 1 or second >= n:
        problem = Problem(f"{n:,} rows split {tuple(split)} leave a part empty", "give more rows, or another split")
        raise InputError("nested labels", [problem])
    return rng.permutation(n), (first, second)


# -- checks -------------------------------------------------------------------------------------------------


def _check_rows(features: Any, nested_level: Any, costs: Sequence[float], labels: Sequence[str] | None) -> Any:
    """Return features (n, p) float32 and depths (n,) int64; refuse invalid ones with every problem named."""
    X, depth, K = np.asarray(features), np.asarray(nested_level), len(costs)
    problems = _feature_problems(X)
    if depth.ndim != 1 or (X.ndim == 2 and len(depth) != len(X)):
        got = f"nested_level has shape {depth.shape}, features have shape {X.shape}"
        problems.append(Problem(got, "give one depth per row of the features"))
    elif depth.dtype.kind not in "iufb" or not np.isin(depth, np.arange(K + 1)).all():
        outside = [value for value in np.unique(depth).tolist() if value not in range(K + 1)]
        hint = f"0 stands for no label, 1 for the broadest, {K} for the finest of the {K} labels that have costs"
        problems.append(Problem(f"nested_level holds {outside[:5]}, which are not 0..{K}", hint))
    if K < 2 or not np.all(np.diff(np.asarray(costs, dtype=np.float64)) > 0) or not costs[0] >= 0:
        hint = "give two or more, the finest label's first: costs=(0, 1, 2, 3)"
        problems.append(Problem(f"the costs {tuple(costs)} do not rise from zero or more", hint))
    if labels is not None and len(labels) != K:
        hint = "name every level, the finest label first, or labels=None"
        problems.append(Problem(f"{len(labels)} labels for {K} costs", hint))
    refuse("nested labels", problems)
    return X.astype(np.float32), depth.astype(np.int64)


def _feature_problems(X: Array) -> list[Problem]:
    if X.ndim != 2 or 0 in X.shape:
        return [Problem(f"features have shape {X.shape}", "give numbers (n, p): at least one row and one column")]
    if X.dtype.kind not in "iufb":
        return [Problem(f"features are of type {X.dtype}", "give numbers: embed images or text first")]
    bad = int((~np.isfinite(X.astype(np.float32)).all(axis=1)).sum())
    hint = "drop these rows, or fill in the missing values"
    return [Problem(f"{bad:,} of {len(X):,} rows hold values that are not finite numbers", hint)] if bad else []


def _check_settings(split: Sequence[float], projection: str | Array, mix: float, seed: int) -> None:
    problems = []
    if len(split) != 3 or not all(share >= 0 for share in split) or not abs(sum(split) - 1) < 1e-9:
        hint = "give three shares that sum to one: training, validation, test"
        problems.append(Problem(f"split={tuple(split)}", hint))
    if isinstance(projection, str) and projection not in PROJECTIONS:
        problems.append(Problem(f"there is no projection {projection!r}", suggest(projection, PROJECTIONS)))
    if not 0 <= mix <= 1:
        problems.append(Problem(f"mix = {mix:g}", "mix is a share between 0 and 1"))
    if seed < 0:
        problems.append(Problem(f"seed = {seed}", "seeds are zero or more"))
    refuse("nested labels", problems)
