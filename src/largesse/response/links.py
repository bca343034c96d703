"""The scale on which bases, levels and deviations add up: logits of chances, amounts in units of their spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largesse.records import Array, Log
from largesse.stats import logit, sigmoid


@dataclass(frozen=True)
class Link:
    """How expected responses become scores and back."""

    binary: bool  # scores are logits; else responses in units
    unit: float = 1.0

    def to_scores(self, curves: Array) -> Array:
        """Return scores of expected responses."""
        return logit(curves) if self.binary else curves / self.unit

    def to_responses(self, scores: Array) -> Array:
        """Return expected responses of scores."""
        return sigmoid(scores) if self.binary else self.unit * scores

    def check(self) -> None:
        """Refuse a unit in which nothing can be measured."""
        if not 0 < self.unit < np.inf:
            raise ValueError(f"responses in units of {self.unit}")


def link_of(log: Log) -> Link:
    """Return the link of a log's responses."""
    return Link(True) if log.binary else Link(False, float(np.std(log.response)) or 1.0)
