"""Gradient boosting of scikit-learn, LightGBM, XGBoost and Perpetual, with constraints of monotonicity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from largesse.errors import import_optional_package

HINT = "pip install -e 'lab[peers]' in a checkout of the repository"
Constraints = list[int] | None


def make_sklearn(binary: bool, constraints: Constraints, seed: int) -> Any:
    """Return scikit-learn's histogram boosting with early stopping."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if binary else HistGradientBoostingRegressor
    return kind(monotonic_cst=constraints, early_stopping=True, random_state=seed)


def make_lightgbm(binary: bool, constraints: Constraints, seed: int) -> Any:
    """Return LightGBM with its defaults and many small steps, as its guide to accuracy advises."""
    package = import_optional_package("lightgbm", "", "LightGBM", hint=HINT)
    kind = package.LGBMClassifier if binary else package.LGBMRegressor
    settings = {"learning_rate": 0.05, "n_estimators": 200, "num_leaves": 15, "n_jobs": 1, "verbose": -1}
    return kind(monotone_constraints=constraints, monotone_constraints_method="advanced", random_state=seed, **settings)


def make_xgboost(binary: bool, constraints: Constraints, seed: int) -> Any:
    """Return XGBoost with its defaults and many small steps, as its notes on tuning advise."""
    package = import_optional_package("xgboost", "", "XGBoost", hint=HINT)
    kind = package.XGBClassifier if binary else package.XGBRegressor
    settings = {"learning_rate": 0.05, "n_estimators": 200, "max_depth": 4, "subsample": 0.8, "n_jobs": 1}
    return kind(monotone_constraints=None if constraints is None else tuple(constraints), random_state=seed, **settings)


def make_perpetual(binary: bool, constraints: Constraints, seed: int) -> Any:
    """Return Perpetual with its default budget of 0.5, which needs no tuning according to its documentation."""
    package = import_optional_package("perpetual", "", "Perpetual", hint=HINT)
    kind = package.PerpetualClassifier if binary else package.PerpetualRegressor
    monotone = None if constraints is None else dict(enumerate(constraints))
    return kind(budget=0.5, monotone_constraints=monotone, num_threads=1, seed=seed)


LEVEL_BOOSTERS: dict[str, Callable[[bool, Constraints, int], Any]] = {
    "sklearn": make_sklearn,
    "lightgbm": make_lightgbm,
    "xgboost": make_xgboost,
    "perpetual": make_perpetual,
}
