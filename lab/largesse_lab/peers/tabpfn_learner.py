"""TabPFN v2, a foundation model for tables, as S-learner: features and level in, mean response out."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from largesse.errors import Problem, fail, import_optional_package
from largesse.records import Array
from largesse.response import make_monotone
from largesse_lab.peers.peer_model import PeerModel

WEIGHTS_VARIABLE = "LARGESSE_TABPFN"
MAX_CONTEXT_ROWS = 10_000  # its authors' limit
PREDICTION_ROWS = 2_000


class TabPFNLearner(PeerModel):
    """`TabPFNRegressor` with one estimator; the curve is the running maximum of its predictions over the levels.

    Its authors advise eight estimators and at most 10,000 rows: more rows are sampled, and one estimator is what ten minutes
    of one core allow. On a GPU it uses eight.
    """

    def _learn(self, X: Array, level: Array, response: Array) -> None:
        package = import_optional_package(
            "tabpfn", "", "TabPFN", hint="pip install tabpfn==2.0.9, in an environment of its own"
        )
        weights = Path(os.environ.get(WEIGHTS_VARIABLE, "tabpfn-v2-regressor-2noar4o2.ckpt"))
        if not weights.is_file():
            where = "inside the source distribution of tabpfn_time_series 0.1.3 on PyPI"
            fail(
                "experiment", Problem(f"no weights in {weights}", f"name the .ckpt file by {WEIGHTS_VARIABLE}; {where}")
            )
        torch = import_optional_package("torch", "", "PyTorch", hint="pip install torch")
        gpu = torch.cuda.is_available()
        settings = {"device": "cuda" if gpu else "cpu", "n_estimators": 8 if gpu else 1, "n_jobs": 1}
        self.model = package.TabPFNRegressor(
            model_path=str(weights), random_state=self.seed, ignore_pretraining_limits=True, **settings
        )
        rows = np.arange(len(X))
        if len(rows) > MAX_CONTEXT_ROWS:
            rows = np.random.default_rng(self.seed).choice(rows, MAX_CONTEXT_ROWS, replace=False)
        self.model.fit(np.column_stack([X, level])[rows], response[rows])

    def _predict(self, X: Array) -> Array:
        columns = []
        for k in range(self.K):
            inputs = np.column_stack([X, np.full(len(X), k)])
            blocks = [inputs[i : i + PREDICTION_ROWS] for i in range(0, len(X), PREDICTION_ROWS)]
            columns.append(np.concatenate([self.model.predict(block) for block in blocks]))
        return make_monotone(np.column_stack(columns).astype(np.float64))
