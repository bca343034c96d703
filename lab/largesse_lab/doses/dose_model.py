"""SIRE for continuous doses: response curves that are piecewise linear between knots.

Knots stand at quantiles of the logged doses. A row between two knots shares its weight between them, so that its score is
interpolated; the balance penalty sees the same weights. Everything else is SIRE with the knots as its levels.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self, final

import numpy as np

from largesse.data import Encoder, log_from_arrays
from largesse.errors import Problem, fail, fail_not_fitted, refuse
from largesse.levels import Levels
from largesse.records import Array
from largesse.response import SIRE, Configurable, Network, Training, encode_customers
from largesse.response.networks import assign_held_out_folds

DOSE_HEADS = ("shrunk", "elastic", "increments")  # whose increments are free to differ between knots


@final
class DoseSIRE(Configurable):
    """SIRE network that predicts the response of a customer to a continuous dose.

    It is not a response model of levels: `fit` takes doses, `predict` answers at any dose, and it cannot be part of a
    saved policy.

    Parameters
    ----------
    knots
        How many, at quantiles of the logged doses, the least and the greatest among them; equal ones count once.
    kappa, shrinkage, head, network, training, folds, seed
        As in `SIRE`; κ is a number, several, or "auto", and the head "shrunk", "elastic" or "increments".

    Attributes
    ----------
    knots_
        The doses (K,) at which the curve may bend.
    model_
        The `SIRE` whose levels are the knots.
    """

    encoder_: Encoder
    knots_: Array
    model_: SIRE

    def __init__(
        self,
        *,
        knots: int = 6,
        kappa: Any = 0.0,
        shrinkage: Any = "auto",
        head: str = "shrunk",
        network: Network = Network(),
        training: Training = Training(),
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.knots = knots
        self.kappa = kappa
        self.shrinkage = shrinkage
        self.head = head
        self.network = network
        self.training = training
        self.folds = folds
        self.seed = seed

    def fit(self, X: Any, dose: Any, response: Any, *, weight: Any = None) -> Self:
        """Fit the model to features (n, p), doses (n,) and responses (n,)."""
        doses = self._check_doses_and_settings(dose, response)
        self.knots_ = np.unique(np.quantile(doses, np.linspace(0.0, 1.0, self.knots)))
        knot_weight = compute_knot_weights(doses, self.knots_)
        levels = Levels(costs=list(range(len(self.knots_))))  # names for the knots: doses have no costs here
        log = log_from_arrays(X, knot_weight.argmax(axis=1), response, levels=levels, weight=weight)
        self.encoder_ = Encoder()
        encoded = self.encoder_.fit_transform(log.features, log.response, seed=self.seed)
        fold, parts = assign_held_out_folds(log, self.folds, self.seed)
        self.model_ = SIRE(**{name: value for name, value in self.get_params(deep=False).items() if name != "knots"})
        self.model_.train_fold_networks(encoded, log, fold, parts, knot_weight)
        return self

    def _check_doses_and_settings(self, dose: Any, response: Any) -> Array:
        """Return the doses (n,) as a checked array, or refuse the doses or the settings."""
        problems = []
        if self.knots < 2:
            problems.append(Problem(f"knots={self.knots}", "use two or more: a curve needs both ends"))
        if self.head not in DOSE_HEADS:
            problems.append(Problem(f"head={self.head!r}", f"one of {', '.join(DOSE_HEADS)}"))
        if isinstance(self.kappa, str) and self.kappa != "auto":
            problems.append(Problem(f"kappa={self.kappa!r}", "a number, several, or 'auto'"))
        refuse("DoseSIRE", problems)
        doses = _parse_doses(dose, "fit")
        if np.shape(response) != doses.shape:
            got = f"{len(doses):,} doses, and responses of shape {np.shape(response)}"
            problems.append(Problem(got, "give one dose and one response per customer"))
        elif len(doses) == 0 or np.ptp(doses) == 0:
            problems.append(Problem("there are not two different doses", "a curve needs customers at several doses"))
        refuse("fit", problems)
        return doses

    def predict(self, customers: Any, doses: Any = "knots") -> Array:
        """Return the expected responses (n, m) of n customers at m doses, by default at the knots.

        Doses outside the logged range get the response at the nearest end of it: the log says nothing about them.
        """
        if not hasattr(self, "model_"):
            hint = "call DoseSIRE().fit(X, dose, response) first"
            fail_not_fitted("DoseSIRE", Problem("it has not been fitted yet", hint))
        X = encode_customers(self.encoder_, customers)
        at = self.knots_ if isinstance(doses, str) and doses == "knots" else _parse_doses(doses, "predict")
        networks = self.model_.fit_
        scores = networks.scores(X)
        below, share = _locate_between_knots(at, self.knots_)
        low, high = scores[:, below], scores[:, below + 1]
        # The upper knot bounds the line: rounding must not let a curve fall where two pieces meet.
        return networks.scale.convert_scores_to_responses(np.minimum(low + share * (high - low), high))

    def state(self) -> NoReturn:
        """Raise an error, because a dose model cannot be saved."""
        hint = "fit SIRE on the doses you can give as levels, and save its policy"
        fail("DoseSIRE", Problem("a model of doses cannot be saved", hint))


def _parse_doses(values: Any, where: str) -> Array:
    try:
        doses = np.atleast_1d(np.asarray(values, dtype=np.float64))
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


def _locate_between_knots(doses: Array, knots: Array) -> tuple[Array, Array]:
    """Return the index of the knot below each dose (m,) and the relative position (m,) up to the next knot.

    Doses outside the knots are clipped to the nearest knot.
    """
    inside = np.clip(doses, knots[0], knots[-1])
    below = np.clip(np.searchsorted(knots, inside, side="right") - 1, 0, len(knots) - 2)
    return below, (inside - knots[below]) / (knots[below + 1] - knots[below])


def compute_knot_weights(doses: Array, knots: Array) -> Array:
    """Return linear interpolation weights (n, K) of doses (n,) between knots (K,).

    >>> compute_knot_weights(np.array([0.0, 2.5, 9.0]), np.array([0.0, 2.0, 4.0]))
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.75, 0.25],
           [0.  , 0.  , 1.  ]], dtype=float32)
    """
    below, share = _locate_between_knots(doses, knots)
    out = np.zeros((len(doses), len(knots)), dtype=np.float32)
    rows = np.arange(len(doses))
    out[rows, below], out[rows, below + 1] = 1.0 - share, share
    return out
