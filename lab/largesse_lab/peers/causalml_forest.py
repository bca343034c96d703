"""causalml: uplift random forest with several treatments."""

from __future__ import annotations

import numpy as np

from largesse.errors import Problem, fail, import_optional_package
from largesse.records import Array
from largesse_lab.peers.boosting_packages import HINT
from largesse_lab.peers.peer_model import EffectModel


class UpliftForest(EffectModel):
    """`UpliftRandomForestClassifier`: all levels in one forest, split by the divergence of their response rates.

    100 trees instead of 10, since its authors' comparison uses 100; the other settings are its defaults. It learns 0/1 responses.
    """

    def _learn_effects(self, X: Array, level: Array, response: Array) -> None:
        if not self.binary:
            fail("experiment", Problem("the uplift forest learns 0/1 responses", "these responses are amounts"))
        package = import_optional_package("causalml.inference.tree", "", "causalml", hint=HINT)
        names = np.array([f"level {k:02d}" for k in range(self.K)])
        settings = {"n_estimators": 100, "random_state": self.seed, "n_jobs": 1}
        self.forest = package.UpliftRandomForestClassifier(control_name=names[0], **settings)
        self.forest.fit(X, names[level], response.astype(int))
        self.columns = [list(self.forest.classes_).index(name) - 1 for name in names[1:]]

    def _predict_effects(self, X: Array) -> Array:
        return np.asarray(self.forest.predict(X), dtype=np.float64)[:, self.columns]
