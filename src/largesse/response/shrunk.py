"""Any model with its customers' own increments held to the common ones, as strongly as held-out rows advise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, final

import numpy as np

from largesse.errors import Problem, refuse
from largesse.records import Array, Choice, Log
from largesse.response.base import ResponseModel, fresh
from largesse.response.boosting import Boosting
from largesse.response.catalogue import keep_models, recall_models
from largesse.response.fold_ensemble import fit_folds, held_out_scores, mean_scores
from largesse.response.steps import Blend, blend, unlinked
from largesse.stats import assign_folds


@final
class Shrunk(ResponseModel):
    """A model's base, common steps fitted anew, and a share of its deviations from them.

    The model is fitted once per fold. Its held-out curves, on the logit scale for 0/1 responses, are split into base +
    common steps + deviations; the smallest share of the deviations is kept that is worse than the best share by no more
    than one standard error of the rows' paired losses. New customers get the mean of the fold models, treated alike.

    Parameters
    ----------
    model
        What is shrunk; None is ``Boosting()``.
    weights
        The shares that are tried; 0 (the same steps for all) is always among them.
    folds, seed
        How the log is cut.

    Attributes
    ----------
    choices_
        What was tried, with its held-out loss and its difference from the best.
    models_
        The fold models.
    blend_
        The common steps, the share that was chosen, and what deviations are measured from.

    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=500)
    >>> model = Shrunk(model=Boosting(rounds=20)).fit(sim.log)
    >>> model.blend_.share, model.predict(sim.features[:2]).shape
    (0.0, (2, 5))
    """

    def __init__(
        self,
        *,
        model: ResponseModel | None = None,
        weights: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.weights = weights
        self.folds = folds
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        check_shares("Shrunk", self.weights)
        model = self.model if self.model is not None else Boosting(seed=self.seed)
        fold = assign_folds(log, self.folds, self.seed)
        self.models_ = fit_folds(model, X, log, fold, self)
        held = held_out_scores(self.models_, X, fold, self.binary_)[None]
        together = mean_scores(self.models_, X, self.binary_).mean(axis=1)[None]
        self.blend_, self.choices_ = blend(held, together, [type(model).__name__], log, fold, [self.weights], self.seed)

    def _curves(self, X: Array) -> Array:
        scores = mean_scores(self.models_, X, self.binary_)[None]
        return unlinked(self.blend_.scores(scores), self.binary_)

    def _keep(self) -> tuple[dict[str, Any], dict[str, Array]]:
        states, arrays = keep_models(self.models_)
        facts, own = keep_blend(self.blend_, self.choices_)
        return {"models": states, **facts}, arrays | own

    def _recall(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.models_ = recall_models(facts["models"], arrays, self)
        self.blend_, self.choices_ = recall_blend(facts, arrays, 1, self.levels_)
        self.weights = tuple(self.weights)
        self.model = fresh(self.models_[0])


def check_shares(what: str, shares: Sequence[float]) -> None:
    """Refuse shares of deviations outside [0, 1]."""
    outside = [share for share in shares if not 0 <= share <= 1]
    problem = Problem(f"the weights {outside} of deviations are outside [0, 1]", "0 is common steps, 1 the model's own")
    refuse(what, [problem] if outside else [])


def keep_blend(made: Blend, choices: tuple[Choice, ...]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return a blend and what was tried as JSON and arrays."""
    facts = {"leader": made.leader, "share": made.share, "choices": [asdict(choice) for choice in choices]}
    return facts, {"weights": made.weights, "ladder": made.ladder, "centre": made.centre}


def recall_blend(facts: dict[str, Any], arrays: dict[str, Array], M: int, K: int) -> tuple[Blend, tuple[Choice, ...]]:
    """Return what `keep_blend` kept, of M members and K levels."""
    weights, ladder, centre = (np.asarray(arrays[name], np.float64) for name in ("weights", "ladder", "centre"))
    leader, share = int(facts["leader"]), float(facts["share"])
    if weights.shape != (M,) or ladder.shape != (K,) or centre.shape != (K,) or not 0 <= leader < M:
        raise ValueError(f"weights {weights.shape} and steps {ladder.shape} do not fit members and levels")
    return Blend(weights, ladder, leader, share, centre), tuple(Choice(**choice) for choice in facts["choices"])
