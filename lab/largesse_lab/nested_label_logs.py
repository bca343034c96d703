"""Logs of incentives made from labelled data: a level assigns a broader or finer nested label.

Labels nest, as animal ⊃ invertebrate ⊃ arthropod ⊃ insect. "Insect" costs nothing and is right for insects alone; "animal"
costs most and is right for every animal. So level 0 is the finest label and the last level the broadest. The response says
whether the label is right: it is 0 or 1, and never falls as the level rises. A log shows one label per row, and whether it
was right.

The logging policy assigns level k with probability s_k / Σ s_j (Lopez et al. 2020), where s holds K fixed projections of the
features, each shifted and scaled to (0, 10]. The paper writes arthropod ⊃ invertebrate, which is the wrong way round, and its
features have zeros where s must be positive. Both are corrected here.

The project reads real data but does not ship them: the environment variable `LARGESSE_DATA` names the folder that holds them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from largesse.data import log_from_arrays
from largesse.errors import InputError, Problem, fail, refuse, suggest
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.stats import draw_levels
from largesse.worlds import KnownTruth

TAXONOMY_LABELS = ("insect", "arthropod", "invertebrate", "animal")  # the finest, and cheapest, first
COSTS = (0.0, 1.0, 2.0, 3.0)
SPLIT_SHARES = (0.6, 0.2, 0.2)  # training, validation, test
PROJECTIONS = ("pca", "random")
MIN_PROJECTION, MAX_PROJECTION = 0.01, 10.0  # every level keeps a positive probability
PROJECTION_SEED = 20  # repeats draw another log, not another policy

NESTED_FILES = {"images": "nested_images_4608.npz", "text": "nested_text_4608.npz"}
DEPTH_COUNTS = (4189, 105, 105, 105, 104)  # rows of each depth: without a label first, the finest label last
N_FEATURES, N_CLUSTERS = 48, 6  # generated features; clusters of rows without a label
CLUSTER_DISTANCE = 4.0  # between a label's centre and that of the label around it, in standard deviations of the noise


@dataclass(frozen=True, eq=False)
class NestedLog(KnownTruth):
    """Log of assigned nested labels, and test customers with known responses."""

    log: Log  # training and validation rows, with propensities
    validation: Array  # (rows of the log,) bool: the validation rows
    propensities: Array  # (rows of the log, K) float64: probability of every level
    features: Array  # (n, p) float32: features of the test customers
    truth: Array  # (n, K) float64, 0 or 1: whether each label is right
    costs: Array  # (K,) float64
    rows: Array  # (rows of the log + n,) int64: positions in the source, the log first

    def __repr__(self) -> str:
        return f"NestedLog({len(self.log):,} rows in the log, {len(self):,} customers, {len(self.costs)} levels)"


def make_bandit(
    features: Any,
    nested_level: Any,
    *,
    costs: Sequence[float] = COSTS,
    labels: Sequence[str] | None = TAXONOMY_LABELS,
    split: Sequence[float] = SPLIT_SHARES,
    projection: str | Array = "pca",
    mix: float = 0.0,
    seed: int = 0,
) -> NestedLog:
    """Convert rows with nested labels to a log of randomly assigned labels and to test customers.

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
        The directions that the logging policy follows: "pca" (the first K principal components), "random" (K fixed random
        directions), or your own directions (p, K).
    mix
        ε: levels are assigned with probabilities (1 − ε) ρ + ε/K instead of ρ.
    seed
        Seed of the split and of the assigned labels.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> nested = make_bandit(rng.normal(size=(500, 6)), rng.integers(0, 5, 500))
    >>> nested
    NestedLog(400 rows in the log, 100 customers, 4 levels)
    >>> nested.uniform_value(budget=1) < nested.oracle_value(budget=1)
    True
    """
    X, depth, K = np.asarray(features), np.asarray(nested_level), len(costs)
    refuse(
        "nested labels",
        _find_row_problems(X, depth, costs, labels) + _find_setting_problems(split, projection, mix, seed),
    )
    X, depth = X.astype(np.float32), depth.astype(np.int64)
    levels = Levels(costs=[float(cost) for cost in costs], names=None if labels is None else list(labels))
    truth = (np.arange(K) >= K - depth[:, None]).astype(np.float64)
    scores = project_features_to_level_scores(X, K, projection)
    propensities = (1 - mix) * scores / scores.sum(axis=1, keepdims=True) + mix / K
    n_train, n_log = (round(len(X) * share) for share in np.cumsum(np.asarray(split) / np.sum(split))[:2])
    if n_train < 1 or n_log >= len(X):
        what = f"{len(X):,} rows split {tuple(split)} leave a part empty"
        fail("nested labels", Problem(what, "give more rows, or another split"))
    order = np.random.default_rng((seed, 0)).permutation(len(X))
    logged, test = order[:n_log], order[n_log:]
    return NestedLog(
        log=_draw_log(X[logged], truth[logged], propensities[logged], levels, seed),
        validation=np.arange(n_log) >= n_train,
        propensities=propensities[logged],
        features=X[test],
        truth=truth[test],
        costs=np.asarray(levels.costs, dtype=np.float64),
        rows=order,
    )


def _draw_log(X: Array, truth: Array, propensities: Array, levels: Levels, seed: int) -> Log:
    level = draw_levels(propensities, np.random.default_rng((seed, 1)))
    rows = np.arange(len(X))
    names = level if levels.names is None else np.array(levels.names)[level]
    return log_from_arrays(X, names, truth[rows, level], levels=levels, propensity=propensities[rows, level])


def project_features_to_level_scores(X: Array, K: int, projection: str | Array = "pca") -> Array:
    """Return scores (n, K) of a logging policy: projections of features (n, p), scaled to (0, 10].

    >>> scores = project_features_to_level_scores(np.random.default_rng(0).normal(size=(50, 6)), 4)
    >>> scores.shape, bool(scores.min() > 0), float(scores.max())
    ((50, 4), True, 10.0)
    """
    centred = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    raw = centred @ _choose_projection_directions(centred, K, projection)
    low, high = raw.min(axis=0), raw.max(axis=0)
    share = np.where(high > low, (raw - low) / np.where(high > low, high - low, 1.0), 1.0)
    return MIN_PROJECTION + (MAX_PROJECTION - MIN_PROJECTION) * share


def _choose_projection_directions(centred: Array, K: int, projection: str | Array) -> Array:
    """Return the projection directions (p, K): principal, random or given ones."""
    p = centred.shape[1]
    if not isinstance(projection, str):
        directions = np.asarray(projection, dtype=np.float64)
        if directions.shape != (p, K) or not np.isfinite(directions).all():
            hint = f"give finite numbers of shape ({p}, {K})"
            fail("projection", Problem(f"directions of shape {directions.shape}", hint))
        return directions
    if projection == "random":
        return np.random.default_rng(PROJECTION_SEED).normal(size=(p, K))
    # The first K principal directions, the largest entry of each positive; with p < K they repeat.
    _, vectors = np.linalg.eigh(centred.T @ centred)
    first = vectors[:, ::-1][:, np.arange(K) % p]
    return first * np.sign(first[np.argmax(np.abs(first), axis=0), np.arange(K)])


def _find_row_problems(X: Array, depth: Array, costs: Sequence[float], labels: Sequence[str] | None) -> list[Problem]:
    problems, K = _find_feature_problems(X), len(costs)
    if depth.ndim != 1 or (X.ndim == 2 and len(depth) != len(X)):
        what = f"nested_level has shape {depth.shape}, features have shape {X.shape}"
        problems.append(Problem(what, "give one depth per row of the features"))
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
    return problems


def _find_feature_problems(X: Array) -> list[Problem]:
    if X.ndim != 2 or 0 in X.shape:
        return [Problem(f"features have shape {X.shape}", "give numbers (n, p): at least one row and one column")]
    if X.dtype.kind not in "iufb":
        return [Problem(f"features are of type {X.dtype}", "give numbers: embed images or text first")]
    n_invalid = int((~np.isfinite(X.astype(np.float32)).all(axis=1)).sum())
    what, hint = f"{n_invalid:,} of {len(X):,} rows hold values that are not finite numbers", "drop or fill them"
    return [Problem(what, hint)] if n_invalid else []


def _find_setting_problems(split: Sequence[float], projection: str | Array, mix: float, seed: int) -> list[Problem]:
    problems = []
    if len(split) != 3 or not all(share >= 0 for share in split) or not abs(sum(split) - 1) < 1e-9:
        hint = "give three shares that sum to one: training, validation, test"
        problems.append(Problem(f"split={tuple(split)}", hint))
    if isinstance(projection, str) and projection not in PROJECTIONS:
        problems.append(Problem(f"unknown projection {projection!r}", suggest(projection, PROJECTIONS)))
    if not 0 <= mix <= 1:
        problems.append(Problem(f"mix = {mix:g}", "mix is a share between 0 and 1"))
    if seed < 0:
        problems.append(Problem(f"seed = {seed}", "seeds are zero or more"))
    return problems


# -- rows with nested labels -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Features and true label depth of labelled rows."""

    features: Array  # (n, p) float32
    nested_level: Array  # (n,) int64: 0 for no label, 1 for the broadest alone, … K for the finest


def find_data_folder() -> Path | None:
    """Return the folder of real data named by the environment variable `LARGESSE_DATA`, or None."""
    place = os.environ.get("LARGESSE_DATA")
    return Path(place) if place and Path(place).is_dir() else None


def has_nested_file(name: str) -> bool:
    """Return True if the data file of "images" or "text" exists."""
    folder = find_data_folder()
    return folder is not None and (folder / NESTED_FILES[name]).is_file()


def read_labelled_rows(source: str | Path = "images") -> LabelledRows:
    """Read labelled rows from a `.npz` file with arrays `X` (n, p) and `level` (n,).

    "images" and "text" stand for the files `nested_images_4608.npz` and `nested_text_4608.npz` of the folder `LARGESSE_DATA`.
    """
    path = Path(source)
    if (file := NESTED_FILES.get(str(source))) is not None:
        folder = find_data_folder()
        if folder is None:
            hint = f"set LARGESSE_DATA to the folder that holds {file}"
            fail("nested labels", Problem(f"the {source} data are missing", hint))
        path = folder / file
    if not path.is_file():
        hint = "name a .npz file that holds X and level, or generate rows: generate_labelled_rows()"
        fail("nested labels", Problem(f"there is no file {str(path)!r}", hint))
    hint = "save them as np.savez(path, X=features, level=depths)"
    try:
        with np.load(path, allow_pickle=False) as arrays:
            missing = [name for name in ("X", "level") if name not in arrays]
            refuse("nested labels", [Problem(f"{path.name} does not hold {name!r}", hint) for name in missing])
            return LabelledRows(arrays["X"].astype(np.float32), arrays["level"].astype(np.int64))
    except InputError:
        raise
    except (BadZipFile, OSError, EOFError, ValueError) as error:
        raise InputError("nested labels", [Problem(f"{path.name} cannot be read: {error}", hint)]) from error


def generate_labelled_rows(n: int = 1000, seed: int = 0) -> LabelledRows:
    """Generate labelled rows from clusters of normal noise.

    The cluster of a label lies one step away from the cluster of the next broader label.

    Depths occur in the proportions of the image set, 4,189 : 105 : 105 : 105 : 104.

    >>> np.bincount(generate_labelled_rows(500).nested_level).tolist()
    [455, 11, 11, 12, 11]
    """
    problems = [Problem(f"n = {n} rows", "generate ten or more")] if n < 10 else []
    problems += [Problem(f"seed = {seed}", "seeds are zero or more")] if seed < 0 else []
    refuse("nested labels", problems)
    rng = np.random.default_rng(seed)
    n_depths = len(DEPTH_COUNTS)
    ends = np.round(n * np.cumsum(DEPTH_COUNTS) / np.sum(DEPTH_COUNTS)).astype(int)
    depth = rng.permutation(np.searchsorted(ends, np.arange(n), side="right"))
    directions = np.linalg.qr(rng.normal(size=(N_FEATURES, N_CLUSTERS + n_depths)))[0].T  # orthonormal
    cluster = directions[rng.integers(0, N_CLUSTERS, n)] * CLUSTER_DISTANCE
    steps = np.tril(np.ones((n_depths, n_depths - 1)), -1)[depth]
    label = steps @ directions[N_CLUSTERS : N_CLUSTERS + n_depths - 1]
    features = np.where(depth[:, None] > 0, label * CLUSTER_DISTANCE, cluster) + rng.normal(size=(n, N_FEATURES))
    return LabelledRows(features.astype(np.float32), depth)
