"""Competitor models of the comparisons: simple models, baselines, and methods of other packages.

Every model has `fit(log)` and `predict(customers)`, as the models of the catalogue have. None of them knows more than the log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

import numpy as np

from largesse.data import Encoder
from largesse.errors import Problem, fail
from largesse.evaluation import crossfit_scores
from largesse.records import Array, Log
from largesse.response import Boosting, Stack, list_models, make_model, make_monotone
from largesse.stats import compute_loss, compute_loss_curvature, compute_loss_slope, minimise, sigmoid
from largesse_lab.baselines import BART, GANITE, CFRNet, TLearner
from largesse_lab.peers import (
    BoostingLearner,
    CausalForestBCF,
    CausalMLLearner,
    DecisionFocused,
    EconMLLearner,
    EconMLPolicy,
    FunnelProduct,
    TabPFNLearner,
    UpliftForest,
)
from largesse_lab.runner.experiment_request import find_unknown_name_problems, match_names

ORACLE = "oracle"
SIMPLE_PENALTY = 1.0  # on squared coefficients of standardised features, as in scikit-learn's default
RIDGE_PENALTIES = 10.0 ** np.arange(-1, 7)  # among which generalised cross-validation chooses


class CurveModel(Protocol):
    """Interface of a model that learns from a log and predicts response curves (n, K)."""

    def fit(self, log: Log, /) -> Any:
        """Fit the model to a log."""

    def predict(self, customers: Any, /) -> Array:
        """Return the curves (n, K) of a table of features."""


class LogisticModel:
    """Logistic regression on features and level number; linear regression if responses are amounts."""

    def fit(self, log: Log) -> Self:
        """Fit the coefficients to a log."""
        self.encoder, self.K, self.binary = Encoder(), len(log.levels), log.binary
        X = self.encoder.fit_transform(log.features, log.response)
        design = np.column_stack([np.ones(len(log)), X, log.level]).astype(np.float64)
        ridge = np.full(design.shape[1], SIMPLE_PENALTY)
        ridge[0] = 1e-6

        def find_loss(b: Array) -> float:
            return float(compute_loss(design @ b, log.response, self.binary).sum() + 0.5 * ridge @ b**2)

        def find_derivatives(b: Array) -> tuple[Array, Array]:
            score = design @ b
            slope = design.T @ compute_loss_slope(score, log.response, self.binary) + ridge * b
            curvature = compute_loss_curvature(score, self.binary)
            return slope, design.T @ (design * curvature[:, None]) + np.diag(ridge)

        start = np.zeros(design.shape[1])
        start[0] = 0.0 if self.binary else log.response.mean()
        self.coefficients = minimise(find_loss, find_derivatives, start)
        return self

    def predict(self, customers: Any) -> Array:
        """Return the predicted curves (n, K) of customers."""
        b = self.coefficients
        score = (b[0] + self.encoder.transform(customers) @ b[1:-1])[:, None] + b[-1] * np.arange(self.K)
        return sigmoid(score) if self.binary else score


class ConstantCurveModel:
    """Monotone mean response at each level, the same curve for all customers."""

    def fit(self, log: Log) -> Self:
        """Compute the mean response per level of a log; a level without rows is interpolated."""
        K = len(log.levels)
        counts = np.bincount(log.level, minlength=K)
        observed = np.flatnonzero(counts)
        means = np.bincount(log.level, log.response, K)[observed] / counts[observed]
        self.means = make_monotone(np.interp(np.arange(K), observed, means)[None])[0]
        return self

    def predict(self, customers: Any) -> Array:
        """Return the mean curve once per customer."""
        return np.tile(self.means, (len(customers), 1))


class DRLearner:
    """DR-learner: cross-fitted doubly robust scores of every level, regressed on the features.

    The score of the cheapest level and the differences of the others from it each have their own regression, by ridge
    with a penalty of their own (generalised cross-validation) or by boosted trees.
    """

    def __init__(self, seed: int = 0, *, trees: bool = False) -> None:
        self.seed, self.trees = seed, trees

    def fit(self, log: Log) -> Self:
        """Fit the regressions of the doubly robust scores to a log."""
        gamma = crossfit_scores(log, Boosting(seed=self.seed), seed=self.seed).gamma
        self.encoder = Encoder()
        X = self.encoder.fit_transform(log.features, log.response, seed=self.seed)
        targets = np.column_stack([gamma[:, 0], gamma[:, 1:] - gamma[:, :1]])
        self.regressions = self._boost_trees(X, targets) if self.trees else fit_ridges(X, targets)
        return self

    def _boost_trees(self, X: Array, targets: Array) -> Callable[[Array], Array]:
        from sklearn.ensemble import HistGradientBoostingRegressor

        settings: dict[str, Any] = {"learning_rate": 0.05, "max_leaf_nodes": 8, "early_stopping": True}
        models = [
            HistGradientBoostingRegressor(random_state=self.seed, **settings).fit(X, target) for target in targets.T
        ]
        return lambda X_new: np.column_stack([model.predict(X_new) for model in models])

    def predict(self, customers: Any) -> Array:
        """Return the predicted curves (n, K) of customers."""
        scores = self.regressions(self.encoder.transform(customers))
        return np.column_stack([scores[:, 0], scores[:, :1] + scores[:, 1:]])


def fit_ridges(X: Array, targets: Array) -> Callable[[Array], Array]:
    """Fit one ridge regression per target (n, m) on features (n, p), with a penalty chosen by GCV."""
    X_mean, target_means = X.mean(axis=0, dtype=np.float64), targets.mean(axis=0)
    U, singular, V = np.linalg.svd(X - X_mean, full_matrices=False)
    projected = U.T @ (targets - target_means)  # (r, m)
    unexplained = ((targets - target_means) ** 2).sum(axis=0) - (projected**2).sum(axis=0)  # by any penalty
    best, slopes = np.full(targets.shape[1], np.inf), np.zeros((X.shape[1], targets.shape[1]))
    for penalty in RIDGE_PENALTIES:
        keep = singular**2 / (singular**2 + penalty)
        freedom = len(X) - 1 - keep.sum()
        score = (unexplained + (((1 - keep)[:, None] * projected) ** 2).sum(axis=0)) / max(freedom, 1.0) ** 2
        better = score < best
        best = np.where(better, score, best)
        slopes[:, better] = V.T @ ((singular / (singular**2 + penalty))[:, None] * projected)[:, better]
    return lambda X_new: target_means + (X_new - X_mean) @ slopes


PEERS: dict[str, Callable[[int], CurveModel]] = {
    "logistic": lambda _seed: LogisticModel(),
    "boosting": lambda seed: make_model("boosting", seed),
    "per-level boosting": lambda seed: TLearner(model=Boosting(seed=seed), seed=seed),
    "bart": lambda seed: Stack(models=[BART(seed=seed)], seed=seed),
    "cfrnet": lambda seed: CFRNet(way="shared", seed=seed),
    "ganite": lambda seed: GANITE(seed=seed),
    "tlearner": lambda seed: TLearner(seed=seed),
    "DR-learner": DRLearner,
    "DR-learner trees": lambda seed: DRLearner(seed, trees=True),
    "uniform": lambda _seed: ConstantCurveModel(),
    "sklearn S-learner": lambda seed: BoostingLearner("sklearn", seed=seed),
    "sklearn T-learner": lambda seed: BoostingLearner("sklearn", per_level=True, seed=seed),
    "lightgbm": lambda seed: BoostingLearner("lightgbm", seed=seed),
    "perpetual": lambda seed: BoostingLearner("perpetual", seed=seed),
    "xgboost": lambda seed: BoostingLearner("xgboost", seed=seed),
    "econml DRLearner": lambda seed: EconMLLearner("DRLearner", seed),
    "econml LinearDRLearner": lambda seed: EconMLLearner("LinearDRLearner", seed),
    "econml CausalForestDML": lambda seed: EconMLLearner("CausalForestDML", seed),
    "econml DRPolicyForest": lambda seed: EconMLPolicy("PolicyForest", seed),
    "econml DRPolicyTree": lambda seed: EconMLPolicy("PolicyTree", seed),
    "causalml uplift forest": UpliftForest,
    "stochtree BCF": CausalForestBCF,
    "TabPFN v2 S-learner": TabPFNLearner,
    "DFCL": DecisionFocused,
    "funnel product": FunnelProduct,
    "causalml X-learner": lambda seed: CausalMLLearner("BaseXRegressor", seed),
    "causalml R-learner": lambda seed: CausalMLLearner("BaseRRegressor", seed),
}


def list_known_models() -> list[str]:
    """Return the names of all models: the catalogue's, other packages' methods, and the oracle."""
    return list(dict.fromkeys([*list_models(), *PEERS, ORACLE]))


def match_models(names: Sequence[str]) -> list[str]:
    """Return model names in their known spelling, without duplicates; settings may follow a name.

    >>> match_models(["DR learner", "boosting:rounds=50", "boosting", "boosting"])
    ['DR-learner', 'boosting:rounds=50', 'boosting']
    """
    parts = [name.partition(":") for name in names]
    return list(
        dict.fromkeys(match_names([bare], list_known_models())[0] + colon + rest for bare, colon, rest in parts)
    )


def find_model_name_problems(names: Sequence[str]) -> list[Problem]:
    """Return one problem per unknown model or invalid setting."""
    problems = find_unknown_name_problems("model", [name.partition(":")[0] for name in names], list_known_models())
    if not problems:
        for name in names:
            make_competitor(name)
    return problems


def make_competitor(name: str, seed: int = 0) -> CurveModel | None:
    """Return an unfitted model by name, or None for the oracle.

    >>> make_competitor("boosting:rounds=50:rate=0.1", seed=2)
    Boosting(rounds=50, rate=0.1, seed=2)
    """
    bare, *settings = name.split(":")
    if bare == ORACLE:
        return None
    if bare in list_models():
        return make_model(bare, seed).set_params(**dict(_parse_model_setting(name, setting) for setting in settings))
    if settings:
        fail("experiment", Problem(f"model {name!r} has settings", "only the models of the catalogue have any"))
    return PEERS[bare](seed)


def _parse_model_setting(name: str, text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        fail("experiment", Problem(f"{text!r} in model {name!r}", "write settings as boosting:rounds=50:rate=0.1"))
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
