"""Hurdle response model: the probability of a response times the mean amount of responders."""

from __future__ import annotations

from typing import final

from largesse.records import Array, Log
from largesse.response.additive import Additive
from largesse.response.responder_amounts import (
    ResponderAmounts,
    fit_responder_amounts,
    fit_responder_amounts_by_fold,
    has_zeros_and_amounts,
    mark_responders,
    multiply_by_amounts,
)
from largesse.response.response_model import ResponseModel, check_auto_setting, copy_with_encoder, fit_copy


@final
class Hurdle(ResponseModel):
    """Hurdle model of responses with many zeros and amounts with a long tail.

    Levels change the probability as its model predicts, and the amount by increments that are zero for few responders.
    Responses without two parts (0/1, none of them zero, or some below zero) have one: the first model is then fitted
    to the responses as they are.

    Parameters
    ----------
    chance
        A model of 0/1 responses, which are 1 for amounts above zero; "auto" is ``Additive()``.
    amount
        A model that is fitted to the logarithm of responders' amounts, without levels; "auto" is small boosted trees.
        A slope and an intercept, fitted to held-out rows, turn its exponentials into means (see `responder_amounts`).
    seed
        Seed of these defaults and of the responders' folds.

    Attributes
    ----------
    chance_, amounts_
        The two fitted parts; the second is None where responses have only one.
    choices_
        The candidates of the data-driven choices of the model of 0/1 responses.

    Examples
    --------
    >>> import numpy as np
    >>> from largesse.worlds import draw_world
    >>> world = draw_world(42)
    >>> model = Hurdle().fit(world.draw_log(500).log)
    >>> bool((np.diff(model.predict(world.draw_fresh(50).table), axis=1) >= 0).all())
    True
    """

    chance_: ResponseModel
    amounts_: ResponderAmounts | None

    def __init__(
        self, *, chance: ResponseModel | str = "auto", amount: ResponseModel | str = "auto", seed: int = 0
    ) -> None:
        self.chance = chance
        self.amount = amount
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        two = has_zeros_and_amounts(log)
        self.chance_ = fit_copy(self._make_probability_model(), X, mark_responders(log) if two else log, self.encoder_)
        self.amounts_ = fit_responder_amounts(X, log, self.encoder_, self.amount, self.seed) if two else None
        self.choices_ = self.chance_.choices_

    def fold_models(self, X: Array, log: Log, fold: Array) -> list[ResponseModel]:
        """Return one model per fold, fitted to the encoded features (n, p) of all other folds."""
        two = has_zeros_and_amounts(log)
        chances = mark_responders(log) if two else log
        fitted = copy_with_encoder(self._make_probability_model(), chances, self.encoder_).fold_models(X, chances, fold)
        amounts = (
            fit_responder_amounts_by_fold(X, log, fold, self.encoder_, self.amount, self.seed)
            if two
            else [None] * len(fitted)
        )
        return [
            self._copy_with(chance_=chance, amounts_=mean, choices_=chance.choices_)
            for chance, mean in zip(fitted, amounts, strict=True)
        ]

    def _make_probability_model(self) -> ResponseModel:
        check_auto_setting(self, "chance")
        check_auto_setting(self, "amount")
        return Additive(seed=self.seed) if isinstance(self.chance, str) else self.chance

    def _curves(self, X: Array) -> Array:
        return multiply_by_amounts(self.chance_._curves(X), self.amounts_, X)
