"""How well curves fit rows, for scikit-learn's searches: R² at rows' own levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from largesse.errors import Problem, refuse
from largesse.records import Array


def split_target(level: Any, response: Any) -> tuple[Any, Any]:
    """Return level and response; without a response, the two columns of a target (n, 2) are they."""
    if level is None or response is not None:
        return level, response
    shape = np.shape(level)
    if len(shape) != 2 or shape[1] != 2:
        return level, response
    target = np.asarray(level)
    return target[:, 0], target[:, 1]


def explain_variance(curves: Array, level: Any, response: Any, weight: Any = None) -> float:
    """Return R²: the share of the variance of responses (n,) that curves (n, K) explain at rows' own levels (n,)."""
    level, response, weight = _check_rows(curves, *split_target(level, response), weight)
    wrong = np.average((response - curves[np.arange(len(curves)), level]) ** 2, weights=weight)
    spread = np.average((response - np.average(response, weights=weight)) ** 2, weights=weight)
    return float(1 - wrong / spread) if spread > 0 else float(wrong == 0)


def _check_rows(curves: Array, level: Any, response: Any, weight: Any) -> tuple[Array, Array, Array]:
    """Return levels, responses and weights (n,) of rows with curves (n, K), or refuse."""
    n, K = curves.shape
    if level is None or response is None:
        hint = "model.score(log), or model.score(X, level, response)"
        refuse("score", [Problem("got features and no level or response", hint)])
    columns = {"level": level, "response": response, "weight": np.ones(n) if weight is None else weight}
    try:
        found = {name: np.asarray(given, dtype=np.float64) for name, given in columns.items()}
    except (TypeError, ValueError):
        refuse("score", [Problem("level, response or weight does not hold numbers", "give numbers, one per row")])
    sizes = [
        Problem(f"{name} has shape {values.shape}, features have {n:,} rows", "give one number per row")
        for name, values in found.items()
        if values.shape != (n,)
    ]
    refuse("score", sizes)
    problems = [
        Problem(f"{name} holds values that are missing or infinite", "leave these rows out")
        for name, values in found.items()
        if not np.isfinite(values).all()
    ]
    refuse("score", problems)
    known = np.isin(found["level"], np.arange(K))
    if not known.all():
        got = f"level holds {found['level'][~known][0]:g}; the model was fitted with the levels 0 to {K - 1}"
        problems.append(Problem(got, "give the numbers of the levels"))
    if not n or (found["weight"] < 0).any() or not found["weight"].any():
        problems.append(Problem("there are no rows with weight", "give rows, and weights of zero or more"))
    refuse("score", problems)
    return found["level"].astype(np.int64), found["response"], found["weight"]
