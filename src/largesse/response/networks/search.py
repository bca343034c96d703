"""The fold models of every setting that SIRE tries: trained together, scored on the rows they did not see."""

from __future__ import annotations

from typing import Any

import numpy as np

from largesse.propensity import correct_curves, estimate_propensities
from largesse.records import Array, Choice, Log
from largesse.response.calibration import Calibration, HeldOutScores, calibrate
from largesse.response.fold_ensemble import out_of_fold_curves, spread_factor
from largesse.response.linear import STIFFNESSES, Linear, Rows, fit_regression_folds
from largesse.response.networks.second_stage import Correction
from largesse.stats import assign_folds, chosen, one_standard_error, sigmoid

DR_FOLDS = 5
LADDER_ROWS = 20_000  # tell where to start
RIDGE = 0.03  # of that regression
LEAST_STEPS = 3  # in one of the epochs that are asked for
ROWS = 50_000  # tell how far apart customers lie


class Tried:
    """The fold models of every setting tried so far, and their held-out losses.

    `settings` is the SIRE or IRE that tries them: it says how to train, and how scores become responses.
    """

    def __init__(
        self,
        settings: Any,
        X: Array,
        log: Log,
        fold: Array,
        parts: Array,
        place: Array | None = None,
        start: str | None = None,
    ) -> None:
        self.start = start
        self.settings, self.X, self.log, self.fold, self.parts = settings, X, log, fold, parts
        # (n, K) where on the ladder each row stood: on its own level, or, with doses, between two knots.
        self.place = np.eye(len(log.levels), dtype=np.float32)[log.level] if place is None else place
        self.rows = np.flatnonzero(np.isin(fold, parts))  # rows that are held out by some model
        self.held = log.take(self.rows)
        self.params: dict[tuple[float, float], dict[str, Array]] = {}
        self.losses: dict[tuple[float, float], Array] = {}  # (held rows,)
        self.curves: dict[tuple[float, float], Array] = {}  # (held rows, K) scores

    def add(self, tried: list[tuple[float, float]]) -> None:
        """Train the fold models of some (penalty, κ) in one program."""
        if not tried:
            return
        found, grid = self._train(tried, self.fold, self.parts)
        size = len(self.parts)
        for i, setting in enumerate(tried):
            mine = slice(i * size, (i + 1) * size)
            self.params[setting] = {name: value[mine] for name, value in found.params.items()}
            self.curves[setting] = self._held_scores(self.params[setting], grid.gate[mine], self.fold, self.parts)
            self.losses[setting] = self._loss(self.curves[setting])

    def add_members(self, penalty: float, kappa: float, members: int) -> None:
        """Train a setting's fold models again from other starts: each fold's model is then the mean of its members."""
        if members < 2:
            return
        more, size = members - 1, len(self.parts)
        found, grid = self._train([(penalty, kappa)] * more, self.fold, self.parts, np.arange(1, members))
        mine, curves = self.params[penalty, kappa], self.curves[penalty, kappa]
        for i in range(more):
            one = slice(i * size, (i + 1) * size)
            params = {name: value[one] for name, value in found.params.items()}
            curves = curves + self._held_scores(params, grid.gate[one], self.fold, self.parts)
        self.curves[penalty, kappa] = curves / members
        self.params[penalty, kappa] = {name: np.concatenate([mine[name], found.params[name]]) for name in mine}

    def _train(self, tried: list[tuple[float, float]], fold: Array, parts: Array, member: Array | None = None) -> Any:
        from largesse.response.networks.train import Recipe, train

        s = self.settings
        grid = _grid(tried, fold, parts, self.log.weight, s.seed, member, self._ladders(fold, parts))
        balance = any(kappa > 0 for kappa in s._kappas())  # of all that is ever tried: then one program does it all
        more = max(1, LEAST_STEPS // max(1, grid.train.shape[1] // s.batch))  # small logs are seen more often
        recipe = Recipe(
            optimiser=s.optimiser,
            rate=s.rate,
            schedule=s.schedule,
            decay=s.decay,
            batch=s.batch,
            epochs=s.epochs * more,
            patience=s.patience * more,
            kernel=s.kernel,
            estimator=s.estimator,
            balance=balance,
        )
        response = (self.log.response - s.scale_[0]) / s.scale_[1]
        return train(self.X, self.place, response, grid, s.network_, recipe), grid

    def _ladders(self, fold: Array, parts: Array) -> Array | None:
        """Return the scores (parts, K) that training starts from: of a guess, or the means of a plain regression."""
        if self.start is None:
            return None
        return self._regressions(fold, parts) if self.start == "regression" else np.tile(self._guess(), (len(parts), 1))

    def _guess(self) -> Array:
        """Return small equal steps (K,) around the mean response."""
        from largesse.response.networks.heads import START

        s, K = self.settings, len(self.log.levels)
        mean = (np.average(self.log.response, weights=self.log.weight) - s.scale_[0]) / s.scale_[1]
        middle = np.log(mean / (1.0 - mean)) if s.bounded_ and 0 < mean < 1 else 0.0 if s.bounded_ else mean
        return middle + START * (np.arange(K) - (K - 1) / 2)

    def _regressions(self, fold: Array, parts: Array) -> Array:
        s, log = self.settings, self.log
        some = np.arange(len(log))[:: -(-len(log) // LADDER_ROWS)]
        response = (log.response[some] - s.scale_[0]) / s.scale_[1]
        weight = log.weights[some]
        rows = Rows(self.X[some], log.level[some], response, weight, len(log.levels), s.bounded_)
        settings = [(RIDGE, stiffness) for stiffness in STIFFNESSES]
        fits, losses = fit_regression_folds(rows, fold[some], settings)
        cluster = None if log.cluster is None else log.cluster[some]
        choices = one_standard_error([f"{stiffness:g}" for _, stiffness in settings], losses, weight, cluster)
        kept = fits[chosen(choices)]
        share = weight / weight.sum()
        middle = share @ self.X[some]
        all_parts = np.unique(fold[some]).tolist()
        climbs = []
        for part in parts.tolist():
            fit = kept[all_parts.index(part)]
            climbs.append(fit.intercept + middle @ fit.coef + fit.level_effects)
        return np.array(climbs)

    def _held_scores(self, params: dict[str, Array], gate: Array, fold: Array, parts: Array) -> Array:
        from largesse.response.networks.train import predict

        out = np.empty((len(self.log), self.settings.network_.levels))
        for j, part in enumerate(parts):
            one = {name: value[j : j + 1] for name, value in params.items()}
            out[fold == part] = predict(one, self.X[fold == part], self.settings.network_, gate[j : j + 1])[0]
        return out[np.isin(fold, parts)]

    def _loss(self, scores: Array) -> Array:
        place = self.place if self.held is self.log else self.place[self.rows]
        own = (scores * place).sum(axis=1)
        if self.settings.bounded_:
            return np.logaddexp(0.0, own) - self.held.response * own
        return 0.5 * (own - (self.held.response - self.settings.scale_[0]) / self.settings.scale_[1]) ** 2

    def increment_risk(self, penalty: float, kappa: float) -> Array:
        """Return each held row's squared distance (rows,) from doubly robust increments between adjacent levels."""
        if not hasattr(self, "_gamma"):
            self._gamma = np.diff(self._doubly_robust(), axis=1)[self.rows]
        scores = self.curves[penalty, kappa]
        curves = sigmoid(scores) if self.settings.bounded_ else scores * self.settings.scale_[1]
        return ((self._gamma - np.diff(curves, axis=1)) ** 2).sum(axis=1)

    def _doubly_robust(self) -> Array:
        """Return doubly robust scores (n, K) of the log under a cross-fitted `Linear`."""
        log, seed = self.log, self.settings.seed
        fold = assign_folds(log, DR_FOLDS, seed)
        curves = out_of_fold_curves(Linear(seed=seed), log, fold)
        return correct_curves(curves, log.level, log.response, estimate_propensities(log, fold, seed).own)

    def loggers_risk(self, penalty: float, kappas: tuple[float, ...]) -> Array:
        """Return the loss (κ,) on each logging policy's rows of models that never saw that policy."""
        assert self.log.logger is not None
        parts = np.unique(self.log.logger)
        found, grid = self._train([(penalty, k) for k in kappas], self.log.logger, parts)
        losses = []
        whole, self.held = self.held, self.log
        for i in range(len(kappas)):
            mine = slice(i * len(parts), (i + 1) * len(parts))
            params = {name: value[mine] for name, value in found.params.items()}
            losses.append(
                np.average(
                    self._loss(self._held_scores(params, grid.gate[mine], self.log.logger, parts)),
                    weights=self.log.weight,
                )
            )
        self.held = whole
        return np.array(losses)

    def spread_factor(self, penalty: float, kappa: float) -> float:
        """Return by how much the spread of a setting's fold models falls short of their error on held-out rows."""
        from largesse.response.networks.train import predict

        if len(self.parts) < 2:
            return 1.0
        params, gate = self.ensemble(penalty, kappa)
        s, place = self.settings, self.place[self.rows]
        models = by_fold(predict(params, self.X[self.rows], s.network_, gate), len(self.parts))
        expected = s._responses((models * place).sum(axis=2))
        residual = self.held.response - s._responses((self.curves[penalty, kappa] * place).sum(axis=1))
        both = np.concatenate([self.X[self.rows], place], axis=1)
        return spread_factor(both, residual, expected, self.fold[self.rows], self.held.weights)

    def calibrate(self, penalty: float, kappa: float) -> Calibration:
        """Return how the mean of a setting's fold models is to be stretched; a single model is left as it is."""
        from largesse.response.networks.train import mean_scores

        if len(self.parts) < 2:
            return Calibration()
        some = np.arange(len(self.rows))[:: -(-len(self.rows) // ROWS)]
        rows, s = self.rows[some], self.settings
        params, gate = self.ensemble(penalty, kappa)
        response = (self.log.response[rows] - s.scale_[0]) / s.scale_[1]
        held = HeldOutScores(
            self.curves[penalty, kappa][some], self.place[rows], response, s.bounded_, self.log.weights[rows]
        )
        return calibrate(held, mean_scores(params, self.X[rows], s.network_, gate))

    def correction(self, penalty: float, kappa: float) -> tuple[Correction | None, tuple[Choice, ...]]:
        """Return the second stage of a setting: each fold model's, from the rows that it was not trained on."""
        from largesse.response.networks.second_stage import correction, representations

        s, params = self.settings, self.params[penalty, kappa]
        rho = estimate_propensities(self.log, self.fold, s.seed).own
        curves = np.empty((len(self.log), len(self.log.levels)))
        curves[self.rows] = s._responses(self.curves[penalty, kappa])
        held = [self.fold == part for part in self.parts]
        z = [
            representations({name: value[j : j + 1] for name, value in params.items()}, self.X[rows], s.network_)[0]
            for j, rows in enumerate(held)
        ]
        return correction(z, [curves[r] for r in held], [self.log.take(r) for r in held], [rho[r] for r in held])

    def ensemble(self, penalty: float, kappa: float) -> tuple[dict[str, Array], Array]:
        """Return the fold models of a setting: their mean score is the prediction."""
        params = self.params[penalty, kappa]
        many = len(next(iter(params.values())))
        return params, np.full(many, 0.0 if np.isinf(penalty) else 1.0, dtype=np.float32)


def by_fold(scores: Array, folds: int) -> Array:
    """Return each fold's scores (folds, n, K), the mean over its members, from those of all models (members·folds, n, K)."""
    return scores.reshape(-1, folds, *scores.shape[1:]).mean(axis=0)


def _grid(
    tried: list[tuple[float, float]],
    fold: Array,
    parts: Array,
    weight: Array | None,
    seed: int,
    member: Array | None = None,
    ladder: Array | None = None,
) -> Any:
    """Return the models of every setting and fold; each trains on the other folds and stops by its own."""
    from largesse.response.networks.train import Grid, rounded

    weight = np.ones(len(fold)) if weight is None else weight / weight.mean()
    train = [_padded(np.flatnonzero(fold != part), weight) for part in parts]
    stop = [_padded(np.flatnonzero(fold == part), weight) for part in parts]
    longest, widest = (rounded(max(len(rows) for rows, _ in part)) for part in (train, stop))
    train, stop = (
        [_padded(rows, weight, longest) for rows, _ in train],
        [_padded(rows, weight, widest) for rows, _ in stop],
    )
    many = len(tried)
    return Grid(
        train=np.tile(np.array([rows for rows, _ in train], np.int32), (many, 1)),
        train_weight=np.tile(np.array([w for _, w in train], np.float32), (many, 1)),
        stop=np.tile(np.array([rows for rows, _ in stop], np.int32), (many, 1)),
        stop_weight=np.tile(np.array([w for _, w in stop], np.float32), (many, 1)),
        kappa=np.repeat([k for _, k in tried], len(parts)),
        penalty=np.repeat([0.0 if np.isinf(p) else p for p, _ in tried], len(parts)),
        gate=np.repeat([0.0 if np.isinf(p) else 1.0 for p, _ in tried], len(parts)).astype(np.float32),
        # The same start for every setting: they then differ by the setting alone. Members differ by the start alone.
        seed=np.tile(seed * 1009 + np.arange(len(parts)), many)
        + np.repeat(np.zeros(many, np.int64) if member is None else member, len(parts)) * 7919,
        ladder=None if ladder is None else np.tile(ladder, (many, 1)),
    )


def _padded(rows: Array, weight: Array, length: int = 0) -> tuple[Array, Array]:
    """Return rows and weights, filled up to a length with rows that weigh nothing."""
    more = max(length - len(rows), 0)
    return np.concatenate([rows, np.resize(rows, more)]), np.concatenate([weight[rows], np.zeros(more)])
