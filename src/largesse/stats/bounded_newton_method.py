"""Newton's method for smooth convex functions, with lower bounds on some parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from largesse.records import Array

MAX_STEP_HALVINGS = 30  # of a step that leads uphill, before giving up


def minimise(
    objective: Callable[[Array], float],
    derivatives: Callable[[Array], tuple[Array, Array]],
    start: Array,
    *,
    lower: Array | None = None,
    steps: int = 50,
    tolerance: float = 1e-10,
) -> Array:
    """Minimise a smooth convex function by Newton's method, and return its parameters (q,).

    Parameters that lie on their bound and are pushed against it are held there for the step; the others take a Newton
    step, cut off at the bounds and halved until it does not lead uphill (projected Newton, Bertsekas 1982).

    Parameters
    ----------
    objective
        Its value at parameters (q,).
    derivatives
        Its slope (q,) and curvature (q, q), which must be positive definite.
    start
        Where to begin (q,), within the bounds.
    lower
        Lower bounds (q,), −∞ without one.
    steps, tolerance
        The most steps, and the gain of the objective below which to stop.

    Examples
    --------
    >>> here = minimise(
    ...     lambda z: float((z - 1) @ (z - 1)) / 2, lambda z: (z - 1, np.eye(2)), np.zeros(2), lower=np.array([-np.inf, 2.0])
    ... )
    >>> here.tolist()
    [1.0, 2.0]
    """
    bound = np.full(len(start), -np.inf) if lower is None else lower
    here = np.maximum(start, bound)
    value = objective(here)
    for _ in range(steps):
        slope, curvature = derivatives(here)
        free = np.flatnonzero(~((here <= bound) & (slope > 0)))
        move = np.zeros(len(here))
        move[free] = np.linalg.solve(curvature[np.ix_(free, free)], -slope[free])
        before = value
        for halved in range(MAX_STEP_HALVINGS):
            there = np.maximum(here + 0.5**halved * move, bound)
            with np.errstate(over="ignore"):
                value = objective(there)
            if value <= before:
                here = there
                break
        if not value < before - tolerance:
            break
    return here
