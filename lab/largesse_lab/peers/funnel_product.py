"""Funnel product for amounts: probability of any response × mean amount of responders; re-implemented.

FunnelCausalNet (arXiv 2608.11675) learns both factors with a network; here, boosting learns them, monotone in the level.
"""

from __future__ import annotations

import numpy as np

from largesse.errors import Problem, fail
from largesse.records import Array
from largesse.response import make_monotone
from largesse_lab.peers.boosting_packages import make_sklearn
from largesse_lab.peers.peer_model import PeerModel


class FunnelProduct(PeerModel):
    """Product of two monotone S-learners: the probability of any response, and the mean amount of responders."""

    def _learn(self, X: Array, level: Array, response: Array) -> None:
        paid = response != 0
        if self.binary or paid.all():
            fail(
                "experiment",
                Problem("every customer responds, or responses are 0/1", "a funnel needs amounts and zeros"),
            )
        inputs, constraints = np.column_stack([X, level]), [0] * X.shape[1] + [1]
        self.any = make_sklearn(True, constraints, self.seed).fit(inputs, paid)
        self.amount = make_sklearn(False, constraints, self.seed).fit(inputs[paid], response[paid])

    def _predict(self, X: Array) -> Array:
        inputs = [np.column_stack([X, np.full(len(X), k)]) for k in range(self.K)]
        columns = [self.any.predict_proba(X_k)[:, 1] * self.amount.predict(X_k) for X_k in inputs]
        return make_monotone(np.column_stack(columns))
