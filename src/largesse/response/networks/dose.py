"""SIRE for amounts on a continuous scale: a curve in the dose that never falls, straight on the score scale between knots.

Knots stand at quantiles of the logged doses. A row between two knots shares its place between them, so that its score is
interpolated, and the balance penalty sees the same soft place. Everything else is SIRE with the knots as its levels.
"""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np

from largesse.data import Encoder, log_from_arrays
from largesse.errors import Problem, fail, refuse
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.response.base import ResponseModel
from largesse.response.networks.sire import HOLD_OUT, SIRE
from largesse.stats import assign_folds

HEADS = ("shrunk", "elastic", "increments")  # those whose steps are free to differ between knots


@final
class DoseSIRE(ResponseModel):
    """Response curves over a real-valued dose.

    Parameters
    ----------
    knots
        How many, at quantiles of the logged doses, the least and the greatest among them; equal ones count once.
    kappa, shrinkage, head, width, depth, rate, decay, batch, epochs, patience, folds, seed
        As in `SIRE`; κ is a number, several, or "cv", and the head "shrunk", "elastic" or "increments".

    Attributes
    ----------
    knots_
        The doses (K,) at which the curve may bend.
    model_
        The `SIRE` whose levels are the knots.
    """

    def __init__(
        self,
        *,
        knots: int = 6,
        kappa: Any = 0.0,
        shrinkage: Any = "cv",
        head: str = "shrunk",
        width: int = 64,
        depth: int = 2,
        rate: float = 3e-3,
        decay: float = 10.0,
        batch: int = 512,
        epochs: int = 50,
        patience: int = 50,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.knots = knots
        self.kappa = kappa
        self.shrinkage = shrinkage
        self.head = head
        self.width = width
        self.depth = depth
        self.rate = rate
        self.decay = decay
        self.batch = batch
        self.epochs = epochs
        self.patience = patience
        self.folds = folds
        self.seed = seed

    def fit(self, X: Any, dose: Any = None, response: Any = None, *, weight: Any = None) -> Self:
        """Learn from features (n, p), doses (n,) and responses (n,)."""
        dose = self._checked(dose, response)
        self.knots_ = np.unique(np.quantile(dose, np.linspace(0.0, 1.0, self.knots)))
        place = places(dose, self.knots_)
        levels = Levels(costs=list(range(len(self.knots_))))  # in name only: doses have no costs yet
        log = log_from_arrays(X, place.argmax(axis=1), response, levels=levels, weight=weight)
        self.encoder_ = Encoder()
        encoded = self.encoder_.fit_transform(log.features, log.response, seed=self.seed)
        self.levels_, self.binary_, self.fingerprint_ = len(self.knots_), log.binary, log.fingerprint
        fold = assign_folds(log, self.folds if self.folds > 1 else HOLD_OUT, self.seed)
        parts = np.unique(fold) if self.folds > 1 else np.array([0])
        self.model_ = SIRE(**{name: getattr(self, name) for name in self.parameter_names() if name != "knots"})
        self.model_._learn_parts(encoded, log, fold, parts, place)
        return self

    def _checked(self, dose: Any, response: Any) -> Array:
        """Return the doses (n,), or refuse them and the settings in words."""
        problems = []
        if self.knots < 2:
            problems.append(Problem(f"knots={self.knots}", "two or more: a curve needs both ends"))
        if self.head not in HEADS:
            problems.append(Problem(f"head={self.head!r}", f"one of {', '.join(HEADS)}"))
        if isinstance(self.kappa, str) and self.kappa != "cv":
            problems.append(Problem(f"kappa={self.kappa!r}", "a number, several, or 'cv'"))
        if dose is None or response is None:
            problems.append(Problem("no dose or no response was given", "model.fit(X, dose, response)"))
        refuse("DoseSIRE", problems)
        doses = _doses(dose, "fit")
        if np.shape(response) != doses.shape:
            got = f"{len(doses):,} doses, and responses of shape {np.shape(response)}"
            problems.append(Problem(got, "give one dose and one response per customer"))
        elif len(doses) == 0 or np.ptp(doses) == 0:
            problems.append(Problem("there are not two different doses", "a curve needs customers at several doses"))
        refuse("fit", problems)
        return doses

    def predict(self, customers: Any, doses: Any = None) -> Array:
        """Return the expected response (n, m) of customers at m doses; None is the knots.

        Doses outside the logged range get the response at its nearest end: the log says nothing about them.
        """
        X = self.encode(customers)
        asked = self.knots_ if doses is None else _doses(doses, "predict")
        scores = self.model_.scores(X)
        below, share = _between(asked, self.knots_)
        low, high = scores[:, below], scores[:, below + 1]
        # The upper knot bounds the line: rounding must not let a curve fall where two pieces meet.
        return self.model_._responses(np.minimum(low + share * (high - low), high))

    def _curves(self, X: Array) -> Array:
        return self.model_._responses(self.model_.scores(X))

    def _learn(self, X: Array, log: Log) -> None:
        raise NotImplementedError  # `fit` takes doses instead of a log of levels

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Refuse: a policy chooses between levels, and is saved with a model of levels."""
        self._check_fitted()
        hint = "fit SIRE on the doses you can give as levels, and save its policy"
        fail("DoseSIRE", Problem("a model of doses cannot be saved", hint))

    def _keep(self) -> tuple[dict[str, Any], dict[str, Array]]:
        raise NotImplementedError

    def _recall(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        raise NotImplementedError


def _doses(given: Any, where: str) -> Array:
    try:
        doses = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        doses = np.full((1, 1), np.nan)
    if doses.ndim != 1:
        refuse(where, [Problem("doses are not a list of numbers", "give one number per dose")])
    wrong = int((~np.isfinite(doses)).sum())
    if wrong:
        refuse(
            where, [Problem(f"{wrong:,} doses are missing or infinite", "give a number for each, or leave rows out")]
        )
    return doses


def _between(doses: Array, knots: Array) -> tuple[Array, Array]:
    """Return the knot below each dose (m,) and how far (m,) it lies towards the next: 0 to 1; the ends hold beyond them."""
    inside = np.clip(doses, knots[0], knots[-1])
    below = np.clip(np.searchsorted(knots, inside, side="right") - 1, 0, len(knots) - 2)
    return below, (inside - knots[below]) / (knots[below + 1] - knots[below])


def places(doses: Array, knots: Array) -> Array:
    """Return where doses (n,) stand between knots (K,): float32 (n, K), each row's two neighbours sharing one.

    >>> places(np.array([0.0, 2.5, 9.0]), np.array([0.0, 2.0, 4.0]))
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.75, 0.25],
           [0.  , 0.  , 1.  ]], dtype=float32)
    """
    below, share = _between(doses, knots)
    out = np.zeros((len(doses), len(knots)), dtype=np.float32)
    rows = np.arange(len(doses))
    out[rows, below], out[rows, below + 1] = 1.0 - share, share
    return out
