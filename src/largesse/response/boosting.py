"""Response model by scikit-learn's histogram gradient boosting, monotone in the level."""

from __future__ import annotations

from typing import final

import numpy as np

from largesse.records import Array, Log
from largesse.response.response_model import ResponseModel
from largesse.stats import BoostedTrees, extract_boosted_trees, limit_to_one_thread, sigmoid

MIN_STOPPING_ROWS = 200  # with fewer rows, none are held out for early stopping
MIN_RARE_ROWS = 10  # with fewer rows of the rarer response, the held-out rows might not contain both


@final
class Boosting(ResponseModel):
    """Response model by scikit-learn's histogram gradient boosting on features and level, monotone in the level.

    Parameters
    ----------
    rounds
        Maximum number of trees; training stops early when the held-out loss no longer falls.
    rate, leaves, leaf_rows, penalty
        Learning rate, leaves per tree, fewest rows per leaf, L2 penalty on leaf values.
    seed
        Seed of the rows that are held out for early stopping.

    Examples
    --------
    >>> from largesse.worlds import simulate
    >>> sim = simulate("averaged", n=500)
    >>> curves = Boosting(rounds=20).fit(sim.log).predict(sim.features)
    >>> bool((np.diff(curves, axis=1) >= 0).all())
    True
    """

    threads = True
    trees_: BoostedTrees

    def __init__(
        self,
        *,
        rounds: int = 300,
        rate: float = 0.05,
        leaves: int = 15,
        leaf_rows: int = 20,
        penalty: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.rounds = rounds
        self.rate = rate
        self.leaves = leaves
        self.leaf_rows = leaf_rows
        self.penalty = penalty
        self.seed = seed

    def _learn(self, X: Array, log: Log) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        kind = HistGradientBoostingClassifier if log.binary else HistGradientBoostingRegressor
        rare = min(np.bincount(log.response.astype(np.int64), minlength=2)) if log.binary else len(log)
        early = len(log) >= MIN_STOPPING_ROWS and rare >= MIN_RARE_ROWS
        model = kind(
            max_iter=self.rounds,
            learning_rate=self.rate,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.leaf_rows,
            l2_regularization=self.penalty,
            monotonic_cst=[0] * X.shape[1] + [1],
            early_stopping=early,
            validation_fraction=0.15 if early else None,
            n_iter_no_change=20,
            random_state=self.seed,
        )
        # Training stops by an absolute tolerance: amounts are fitted in units of their standard deviation.
        unit = 1.0 if log.binary else float(log.response.std()) or 1.0
        with limit_to_one_thread(X.size):
            rows = np.column_stack([X, log.level.astype(np.float32)])
            model.fit(rows, log.response / unit, sample_weight=log.weight)
        self.trees_ = extract_boosted_trees(model, unit)

    def _curves(self, X: Array) -> Array:
        score = self.trees_.scores(X, self.levels_)
        return sigmoid(score) if self.binary_ else score

    def _check_learnt(self) -> None:
        self.trees_.trees.check(len(self.encoder_.names))
