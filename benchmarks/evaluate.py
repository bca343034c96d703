"""Time of evaluating a policy: python benchmarks/evaluate.py [rows].

All seven estimators with intervals, against the plain NumPy formula of the doubly robust one alone, measured side by
side; the memory they take at their peak; and a bootstrap of 1,000 replicates over clusters of two to three rows.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from largesse.evaluation.bootstrap import bootstrap_estimate
from largesse.evaluation.estimators import ESTIMATORS, make_estimator_rows
from largesse.evaluation.influence_functions import estimate_with_every_estimator

LEVELS, REPEATS = 5, 7


def evaluate_by_plain_formula(
    curves: np.ndarray, level: np.ndarray, response: np.ndarray, propensity: np.ndarray, policy: np.ndarray
) -> tuple[float, float]:
    """Return the doubly robust value and its standard error by the textbook formula."""
    rows = np.arange(len(level))
    if policy.ndim == 1:
        weight, direct = (policy == level) / propensity, curves[rows, policy]
    else:
        weight, direct = policy[rows, level] / propensity, (policy * curves).sum(axis=1)
    score = direct + weight * (response - curves[rows, level])
    return float(score.mean()), float(score.std(ddof=1) / np.sqrt(len(score)))


def measure_fastest_seconds(*works: Callable[[], Any]) -> list[float]:
    """Return the smallest number of seconds of several functions that run in alternation."""
    taken = np.full((REPEATS, len(works)), np.inf)
    for i in range(REPEATS):
        for j, work in enumerate(works):
            start = time.perf_counter()
            work()
            taken[i, j] = time.perf_counter() - start
    return taken.min(axis=0).tolist()


def main(rows: int = 1_000_000) -> None:
    rng = np.random.default_rng(0)
    curves, policy = rng.random((rows, LEVELS)), rng.dirichlet(np.ones(LEVELS), rows)
    level, propensity = rng.integers(0, LEVELS, rows), rng.uniform(0.1, 0.4, rows)
    response = (rng.random(rows) < curves[np.arange(rows), level]).astype(float)
    print(f"{rows:,} rows, {LEVELS} levels; a policy of")
    for name, judge in (("probabilities", policy), ("levels", rng.integers(0, LEVELS, rows))):
        log = (curves, level, response, propensity, judge)
        books, seven = measure_fastest_seconds(
            lambda log=log: evaluate_by_plain_formula(*log),
            lambda log=log: estimate_with_every_estimator(make_estimator_rows(*log)),
        )
        print(f"{name}: plain formula of dr {books:.3f} s; seven estimators {seven:.3f} s, {seven / books:.2f} ×")
    log = (curves, level, response, propensity, policy)
    tracemalloc.start()
    found = estimate_with_every_estimator(make_estimator_rows(*log))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.allclose((found["dr"].estimate, found["dr"].se), evaluate_by_plain_formula(*log))
    print(f"peak memory of the seven: {peak / 2**20:.0f} MiB, {peak / curves.nbytes:.2f} × the curves")
    cluster = rng.integers(0, rows * 2 // 5, rows)
    one = make_estimator_rows(*log)
    terms = ESTIMATORS["dr"].terms(one)
    for name, groups in (("rows", None), ("clusters", cluster)):
        start = time.perf_counter()
        bootstrap_estimate(terms, one.weight, groups)
        print(f"1,000 replicates over {name}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main(*(int(word.replace("_", "")) for word in sys.argv[1:]))
