"""SIRE and IRE: response curves by a network whose representation is balanced by HSIC (Lopez et al. 2020).

SIRE never falls in the level; IRE has free heads. Beyond the paper: increments are held to common ones as strongly as
held-out rows advise (decisions live on increments), and the models of all folds are averaged. κ = 0 is always tried.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from largesse.errors import Problem, nearest, refuse
from largesse.records import Array, Choice, Log
from largesse.response.base import ResponseModel
from largesse.response.calibration import Calibration
from largesse.response.fold_ensemble import bounds, check_coverage
from largesse.response.monotone import isotonic
from largesse.response.networks.search import Tried, by_fold
from largesse.response.networks.second_stage import keep_correction, recall_correction
from largesse.response.thresholds import MANY
from largesse.stats import assign_folds, least_loss, one_standard_error, one_thread, sigmoid

PENALTIES = (np.inf, 0.3, 0.03, 0.003)  # on a customer's own increments; the most shrunk first
KAPPAS = (0.0, 3.0, 30.0, 100.0)  # on HSIC of z scaled to unit mean square
HOLD_OUT = 5  # with folds=1, one row in this many is held out
SHRINKABLE = ("shrunk", "elastic")
ROWS_AT_ONCE = 65_536  # for which the scores of all fold models are held
KAPPA_RULES = ("cv", "dr", "loggers")
OPTIMISERS = ("adam", "sgd")
STARTS = ("guess", "regression")
SCHEDULES = ("constant", "cosine")
ACTIVATIONS = ("elu", "relu")
KERNELS = ("linear", "rbf", "rff")
ESTIMATORS = ("biased", "unbiased", "variance")


class _Balanced(ResponseModel):
    """What SIRE and IRE share: the network's settings, the grid they are chosen from, and the ensemble they become."""

    width: int
    depth: int
    activation: str
    skip: bool
    optimiser: str
    rate: float
    schedule: str
    decay: float
    batch: int
    epochs: int
    patience: int
    kernel: str
    estimator: str
    kappa: Any
    start: str | None
    members: int
    folds: int
    seed: int
    orthogonal: bool = False

    def _head(self) -> str:
        return "free"

    def _settle_head(self, features: int) -> None:
        """Decide what can be decided about the head only once the log is seen."""

    def _penalties(self) -> tuple[float, ...]:
        return (0.0,)

    # -- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, X: Array, log: Log) -> None:
        fold = assign_folds(log, self.folds if self.folds > 1 else HOLD_OUT, self.seed)
        parts = np.unique(fold) if self.folds > 1 else np.array([0])
        self._learn_parts(X, log, fold, parts)

    def fold_models(self, X: Array, log: Log, fold: Array) -> list[ResponseModel]:
        """Return one fitted model per fold of encoded features (n, p), each trained without it; settings chosen for all."""
        self._learn_parts(X, log, fold, np.unique(fold))
        return [self._single(j) for j in range(self.parts_)]

    def _single(self, j: int) -> ResponseModel:
        """Return a copy of this fitted model that is its j-th fold's alone."""
        one = copy.copy(self)
        one.params_ = {name: value[j :: self.parts_] for name, value in self.params_.items()}
        one.gate_, one.parts_ = self.gate_[j :: self.parts_], 1
        one.calibration_ = Calibration()  # what is true of the mean is not of one
        one.correction_ = None  # it was learnt from the very rows that this model is to be honest about
        return one

    def _learn_parts(self, X: Array, log: Log, fold: Array, parts: Array, place: Array | None = None) -> None:
        from largesse.response.networks.network import Shape

        self._check_settings(log)
        self.bounded_ = bool(log.response.min() >= 0 and log.response.max() <= 1)
        self.scale_ = (0.0, 1.0) if self.bounded_ else (float(log.response.mean()), float(log.response.std()) or 1.0)
        self._settle_head(X.shape[1])
        self.network_ = Shape(
            X.shape[1], len(log.levels), self._head(), self.width, self.depth, self.activation, self.skip, self.bounded_
        )
        penalty, kappas = self._penalties(), self._kappas()
        starts = STARTS if self.start == "cv" else (self.start,)
        with one_thread(X.size * len(parts) * len(penalty)):
            made = [Tried(self, X, log, fold, parts, place, start) for start in starts]
            for one in made:
                one.add([(p, kappas[0]) for p in penalty])
            found = [self._chosen_penalty(one, penalty, kappas[0]) for one in made]
            losses = np.array([one.losses[best, kappas[0]] for one, (best, _) in zip(made, found, strict=True)])
            self.start_choices_ = least_loss(
                [str(start) for start in starts], losses, made[0].held.weight, made[0].held.cluster
            )
            kept = next(i for i, choice in enumerate(self.start_choices_) if choice.chosen)
            models, (best, self.shrinkage_choices_) = made[kept], found[kept]
            models.add([(best, kappa) for kappa in kappas[1:]])
            self.kappa_choices_ = self._chosen_kappa(models, best, kappas)
            self.penalty_ = best
            self.kappa_ = next(k for k, choice in zip(kappas, self.kappa_choices_, strict=True) if choice.chosen)
            models.add_members(best, self.kappa_, self.members)
        self.params_, self.gate_ = models.ensemble(best, self.kappa_)
        self.parts_ = len(parts)
        self.correction_, self.correction_choices_ = (
            models.correction(best, self.kappa_) if self.orthogonal else (None, ())
        )
        # A second stage corrects what is, and a stretched logit need not be concave as a share.
        asis = self.correction_ is not None or (self._head() == "concave" and self.bounded_)
        self.calibration_ = Calibration() if asis else models.calibrate(best, self.kappa_)
        self.spread_ = models.spread_factor(best, self.kappa_)
        self.choices_ = self._all_choices()

    def _all_choices(self) -> tuple[Choice, ...]:
        """Return every choice that was made among two or more, named so that a reader of the report knows what it is."""
        kind = type(self).__name__
        held = [replace(c, of=f"{kind}: own increments held by") for c in self.shrinkage_choices_]
        balance = [replace(c, name=f"κ = {c.name}", of=f"{kind}: balance") for c in self.kappa_choices_]
        began = [replace(c, of=f"{kind}: training starts at") for c in self.start_choices_]
        return tuple(choice for group in (began, held, balance) if len(group) > 1 for choice in group)

    def _kappas(self) -> tuple[float, ...]:
        if isinstance(self.kappa, str):
            return KAPPAS
        if isinstance(self.kappa, Sequence | np.ndarray):
            return (0.0, *(float(k) for k in self.kappa if k > 0))
        return (float(self.kappa),)

    def _chosen_penalty(
        self, models: Tried, penalties: tuple[float, ...], kappa: float
    ) -> tuple[float, tuple[Choice, ...]]:
        names = [f"{p:g}" for p in penalties]
        losses = np.array([models.losses[p, kappa] for p in penalties])
        choices = one_standard_error(names, losses, models.held.weight, models.held.cluster)
        return next(p for p, choice in zip(penalties, choices, strict=True) if choice.chosen), choices

    def _chosen_kappa(self, models: Tried, penalty: float, kappas: tuple[float, ...]) -> tuple[Choice, ...]:
        """Return what was tried; the least held-out loss is chosen, as in the paper (or the least risk of increments)."""
        if self.kappa == "dr":
            risks = np.array([models.increment_risk(penalty, k) for k in kappas])
        elif self.kappa == "loggers" and models.log.logger is not None:
            risks = models.loggers_risk(penalty, kappas)
        else:
            risks = np.array([models.losses[penalty, k] for k in kappas])
        names = [f"{k:g}" for k in kappas]
        if risks.ndim == 2:
            return least_loss(names, risks, models.held.weight, models.held.cluster)
        best = int(np.argmin(risks))  # one number per κ: its standard error is not known
        return tuple(
            Choice(name, float(risk), float(risk - risks[best]), 0.0, i == best)
            for i, (name, risk) in enumerate(zip(names, risks, strict=True))
        )

    def _check_settings(self, log: Log) -> None:
        refuse(type(self).__name__, self._problems(log))

    def _problems(self, log: Log) -> list[Problem]:
        """Return everything that is wrong with the settings, for this log."""
        named = {
            "activation": ACTIVATIONS,
            "optimiser": OPTIMISERS,
            "schedule": SCHEDULES,
            "kernel": KERNELS,
            "estimator": ESTIMATORS,
        }
        named |= {"kappa": KAPPA_RULES} if isinstance(self.kappa, str) else {}
        named |= {"start": ("cv", *STARTS)} if self.start is not None else {}
        problems = [
            Problem(f"{name}={value!r}", nearest(str(value), known))
            for name, known in named.items()
            if (value := getattr(self, name)) not in known
        ]
        problems += [
            Problem(f"{name}={getattr(self, name)!r}", "a whole number, 1 or more")
            for name in ("width", "depth", "batch", "epochs", "patience", "members", "folds")
            if getattr(self, name) < 1
        ]
        if not isinstance(self.kappa, str) and not np.all(np.asarray(self.kappa, dtype=float) >= 0):
            problems.append(Problem(f"kappa={self.kappa!r}", "a number, zero or more; several; or how to choose"))
        if self.kappa == "loggers" and (log.logger is None or np.ptp(log.logger) == 0):
            hint = "read_log(…, logger=…), or kappa='cv'"
            problems.append(Problem("kappa='loggers' needs a log that names two logging policies or more", hint))
        return problems

    # -- predicting and keeping -------------------------------------------------------------------------------------

    def scores(self, X: Array) -> Array:
        """Return the ensemble's mean scores (n, K) of encoded features: logits for bounded responses."""
        from largesse.response.networks.train import mean_scores

        return self.calibration_(mean_scores(self.params_, X, self.network_, self.gate_))

    def _curves(self, X: Array) -> Array:
        return self._second_stage(self._responses(self.scores(X)), X)

    def _second_stage(self, curves: Array, X: Array) -> Array:
        """Return curves (n, K) with the doubly robust correction, never falling and inside [0, 1] where responses are."""
        if self.correction_ is None:
            return curves
        from largesse.response.networks.second_stage import corrected

        first = {name: value[: self.parts_] for name, value in self.params_.items()}  # what it was learnt with
        moved = corrected(self.correction_, curves, first, X, self.network_)
        return isotonic(np.clip(moved, 0.0, 1.0) if self.bounded_ else moved)

    def _responses(self, score: Array) -> Array:
        return sigmoid(score) if self.bounded_ else self.scale_[0] + self.scale_[1] * score

    def predict_interval(self, customers: Any, coverage: float = 0.9) -> tuple[Array, Array]:
        """Return the ends (n, K), (n, K) of intervals around `predict` that hold the true response with a probability.

        They are the spread of the fold models × `spread_`, a factor learnt from held-out rows; see `response.fold_ensemble`.
        """
        from largesse.response.networks.train import predict

        X = self.encode(customers)
        self._check_interval(coverage)
        rising = self._head() != "free"
        low, high = np.empty((2, len(X), self.levels_))
        for first in range(0, len(X), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            scores = self.calibration_(predict(self.params_, X[part], self.network_, self.gate_))
            low[part], high[part] = bounds(by_fold(scores, self.parts_), self.spread_, coverage, rising=rising)
        low, high = self._second_stage(self._responses(low), X), self._second_stage(self._responses(high), X)
        if self.correction_ is None:
            return low, high
        point = self._curves(X)  # rounding inside the isotonic step may put an end on its wrong side
        return np.minimum(low, point), np.maximum(high, point)

    def mean_interval(self, customers: Any, coverage: float = 0.9) -> tuple[Array, Array] | None:
        """Return the ends (K,), (K,) of intervals around the mean curve of customers; None for a single fold."""
        from largesse.response.networks.train import predict

        X = self.encode(customers)
        if self.parts_ < 2 or not len(X):
            return None
        X = X[:: -(-len(X) // ROWS_AT_ONCE)]
        scores = by_fold(self.calibration_(predict(self.params_, X, self.network_, self.gate_)), self.parts_)
        return bounds(self._responses(scores).mean(axis=1), self.spread_, coverage)

    def _check_interval(self, coverage: float) -> None:
        problems = check_coverage(coverage)
        if self.parts_ < 2:
            problems.append(Problem("a single model has no spread", "fit with folds=2 or more"))
        refuse("predict_interval", problems)

    def _keep(self) -> tuple[dict[str, Any], dict[str, Array]]:
        facts = {
            "bounded": self.bounded_,
            "scale": list(self.scale_),
            "kappa": self.kappa_,
            "penalty": _plain(self.penalty_),
            "gate": self.gate_.tolist(),
            "parts": self.parts_,
            "spread": self.spread_,
            "calibration": [self.calibration_.slope, self.calibration_.middle],
            "correction": None if self.correction_ is None else self.correction_.terms,
        }
        params = {name: np.asarray(value, dtype=np.float32) for name, value in self.params_.items()}
        return facts, params | keep_correction(self.correction_)

    def _recall(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        from largesse.response.networks.network import Shape, shapes

        self.bounded_, self.scale_, self.kappa_ = bool(facts["bounded"]), tuple(facts["scale"]), float(facts["kappa"])
        self.penalty_, self.gate_ = float(facts["penalty"]), np.asarray(facts["gate"], dtype=np.float32)
        self.parts_ = int(facts.get("parts", len(self.gate_)))
        if self.parts_ < 1 or len(self.gate_) % self.parts_:
            raise ValueError(f"{len(self.gate_)} models of {self.parts_} folds")
        self.correction_, self.params_ = recall_correction(facts.get("correction"), arrays)
        self.spread_ = float(facts.get("spread", 1.0))
        self.calibration_ = Calibration(*(float(number) for number in facts.get("calibration", (1.0, 0.0))))
        self._settle_head(len(self.encoder_.names))
        self.network_ = Shape(
            len(self.encoder_.names),
            self.levels_,
            self._head(),
            self.width,
            self.depth,
            self.activation,
            self.skip,
            self.bounded_,
        )
        _check_arrays(self.params_, shapes(self.network_), len(self.gate_))


def _check_arrays(arrays: dict[str, Array], wanted: dict[str, tuple[int, ...]], models: int) -> None:
    """Refuse parameters that the network does not have: some of other shapes would pass by broadcasting."""
    found = {name: array.shape for name, array in arrays.items()}
    if found != {name: (models, *shape) for name, shape in wanted.items()}:
        raise ValueError(f"parameters of shapes {found}")


def _plain(number: float) -> float | str:
    return "inf" if np.isinf(number) else number


@final
class SIRE(_Balanced):
    """Structured incentive response estimation: a network that never falls in the level, balanced by HSIC.

    Parameters
    ----------
    kappa
        Strength of the HSIC penalty: a number, several to choose from, or how to choose from 0, 3, 30 and 100: "cv" (held-out
        loss, as the paper), "dr" (doubly robust risk of increments), "loggers" (leave one logging policy out).
    shrinkage
        Penalty on a customer's own increments: a number (infinite: common increments for all), or "cv": the most shrunk
        within one paired standard error of the best held-out loss.
    head
        "elastic" (common steps × one sensitivity per customer), "shrunk", "increments", "cdf" (where each customer begins to
        respond) or "minmax" (the paper's). "auto" is "cdf" for responses in [0, 1] and more than a hundred features, as
        embeddings have them, else "elastic".
    shape
        "monotone", or "concave": increments never grow.
    orthogonal
        Whether a doubly robust second stage corrects the curves where held-out rows and propensities say that they are
        wrong (see `response.orthogonal`); it keeps them rising, not concave. Not part of `fold_models`.
    width, depth, activation, skip
        The network: hidden layers, and whether a straight line runs past them.
    optimiser, rate, schedule, decay, batch, epochs, patience
        How it is trained; each fold's model stops by the rows it does not train on.
    start
        Where the ladder of levels starts: at a "guess" (small equal steps around the mean response), at that of a plain
        "regression", "cv": whichever ends with less held-out loss, or None: at zero.
    kernel, estimator
        Of HSIC: "linear", "rbf" or "rff"; "biased" (as the paper), "unbiased" or "variance".
    members, folds, seed
        The prediction is the mean over the folds' models, each of them the mean of several that start elsewhere;
        one fold is one hold-out.

    Attributes
    ----------
    start_choices_, shrinkage_choices_, kappa_choices_, correction_choices_
        What was tried and chosen.
    calibration_
        How the mean of the fold models is stretched (see `response.calibration`).
    head_
        What "auto" came to.
    spread_
        What the spread of the fold models is multiplied by in `predict_interval`.
    """

    shrinks = True

    def __init__(
        self,
        *,
        kappa: Any = "cv",
        shrinkage: Any = "cv",
        head: str = "auto",
        shape: str = "monotone",
        orthogonal: bool = False,
        width: int = 64,
        depth: int = 2,
        activation: str = "elu",
        skip: bool = True,
        optimiser: str = "adam",
        rate: float = 3e-3,
        schedule: str = "cosine",
        decay: float = 10.0,
        batch: int = 512,
        epochs: int = 50,
        patience: int = 50,
        kernel: str = "linear",
        estimator: str = "biased",
        start: str | None = "cv",
        members: int = 3,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.kappa = kappa
        self.shrinkage = shrinkage
        self.head = head
        self.shape = shape
        self.orthogonal = orthogonal
        self.width = width
        self.depth = depth
        self.activation = activation
        self.skip = skip
        self.optimiser = optimiser
        self.rate = rate
        self.schedule = schedule
        self.decay = decay
        self.batch = batch
        self.epochs = epochs
        self.patience = patience
        self.kernel = kernel
        self.estimator = estimator
        self.start = start
        self.members = members
        self.folds = folds
        self.seed = seed

    def _head(self) -> str:
        if self.shape == "concave":
            return "concave"
        return getattr(self, "head_", "elastic") if self.head == "auto" else self.head

    def _settle_head(self, features: int) -> None:
        self.head_ = "cdf" if self.bounded_ and features > MANY else "elastic"

    def _penalties(self) -> tuple[float, ...]:
        if self._head() not in SHRINKABLE:
            return (0.0,)
        return PENALTIES if isinstance(self.shrinkage, str) else (float(self.shrinkage),)

    def _problems(self, log: Log) -> list[Problem]:
        from largesse.response.networks.heads import MONOTONE

        problems = super()._problems(log)
        if self.head not in ("auto", *MONOTONE):
            problems.append(Problem(f"head={self.head!r}", nearest(str(self.head), ("auto", *MONOTONE))))
        if self.shape not in ("monotone", "concave"):
            problems.append(Problem(f"shape={self.shape!r}", "'monotone' or 'concave'; IRE has no shape"))
        if self.shrinkage != "cv" and (isinstance(self.shrinkage, str) or not self.shrinkage >= 0):
            problems.append(Problem(f"shrinkage={self.shrinkage!r}", "a number, zero or more, or 'cv'"))
        if self.head == "cdf" and not (log.response.min() >= 0 and log.response.max() <= 1):
            problems.append(
                Problem("head='cdf' is for responses in [0, 1]", "use 'elastic' or 'increments' for amounts")
            )
        return problems


@final
class IRE(_Balanced):
    """Incentive response estimation: SIRE without the monotone head. Parameters as there."""

    def __init__(
        self,
        *,
        kappa: Any = "cv",
        width: int = 64,
        depth: int = 2,
        activation: str = "elu",
        skip: bool = True,
        optimiser: str = "adam",
        rate: float = 3e-3,
        schedule: str = "cosine",
        decay: float = 10.0,
        batch: int = 512,
        epochs: int = 50,
        patience: int = 50,
        kernel: str = "linear",
        estimator: str = "biased",
        start: str | None = "cv",
        members: int = 3,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.kappa = kappa
        self.width = width
        self.depth = depth
        self.activation = activation
        self.skip = skip
        self.optimiser = optimiser
        self.rate = rate
        self.schedule = schedule
        self.decay = decay
        self.batch = batch
        self.epochs = epochs
        self.patience = patience
        self.kernel = kernel
        self.estimator = estimator
        self.start = start
        self.members = members
        self.folds = folds
        self.seed = seed
