"""BART baseline: Bayesian additive regression trees over features and level.

Chipman, George and McCulloch 2010; for effects, Hill 2011.

The sampler is stochtree's. As Hill: the level is one more column, an ordered one, and the curve is read off by asking at
every level. Beyond Hill: a warm start by growing trees from the root, so that tens of draws suffice instead of thousands; a
probit link for 0/1 responses; optionally, estimated propensities as further columns.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, final

import numpy as np

from largesse.errors import Problem, import_optional_package, refuse, suggest
from largesse.io import ArraySpec
from largesse.propensity import choose_inverse_penalty
from largesse.records import Array, Log
from largesse.response import ResponseModel
from largesse.stats import Trees, limit_to_one_thread, softmax, split_row_blocks

LINKS = ("auto", "probit", "identity")
MIN_NOISE_SCALE = (
    1e-9  # of the noise's prior: where trees fit every row, its variance would be zero, which stochtree refuses
)
NEVER = -1e3  # the score of a level that the log never chose


@dataclass(frozen=True, eq=False)
class PosteriorDraws:
    """S posterior draws of a sum of trees, each with its shift and scale."""

    count: int  # S
    shift: float
    scale: float
    trees: Trees  # those of the first draw first

    def scores(self, X: Array, K: int) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of rows with their scores (rows, S, K) in each of S draws at each of K levels."""
        for rows in split_row_blocks(len(X)):
            block = X[rows]
            out = np.zeros((len(block), self.count, K))
            self.trees.add_predictions(out, block)
            yield rows, self.shift + self.scale * out

    def check(self, features: int) -> None:
        """Raise ValueError if draws have different numbers of trees."""
        self.trees.check(features)
        if self.count < 1 or self.count > max(len(self.trees.roots), 1) or len(self.trees.roots) % self.count:
            raise ValueError(f"{len(self.trees.roots)} trees in {self.count} draws")


@final
class BART(ResponseModel):
    """Response model of Bayesian additive regression trees, which predicts posterior means.

    Parameters
    ----------
    trees, draws
        Trees per draw, and draws that are kept.
    warm, burn
        Sweeps that grow all trees from the root before the first draw, and draws discarded after them.
    link
        "probit" (0/1 responses), "identity", or "auto": probit where every response is 0 or 1.
    propensity
        Whether the estimated probabilities of the levels are given to the trees as columns.
    level_weight
        How many times likelier a tree is to split on the level than on any one feature.
    leaf_rows, deepest
        Fewest rows per leaf, most splits in a row.
    seed
        Of the sampler.

    Attributes
    ----------
    draws_
        The trees.

    Rows that weigh more are repeated, and those that weigh less left out in turn: n rows remain, each as often as its
    weight says. stochtree's own weights are not used: in version 0.4.5 they are turned around, so that a heavy row counts
    for less.

    Needs the extra ``largesse[bart]``; to predict, a fitted or loaded model does not.
    """

    only_base = True  # its deviations are draws of noise often enough to be chosen for nothing

    probit_: bool
    logging_: Annotated[Array, ArraySpec("p+1", "K")] | None  # of the levels on the features
    draws_: PosteriorDraws

    def __init__(
        self,
        *,
        trees: int = 200,
        draws: int = 200,
        warm: int = 10,
        burn: int = 0,
        link: str = "auto",
        propensity: bool = False,
        level_weight: float = 1.0,
        leaf_rows: int = 5,
        deepest: int = 10,
        seed: int = 0,
    ) -> None:
        self.trees = trees
        self.draws = draws
        self.warm = warm
        self.burn = burn
        self.link = link
        self.propensity = propensity
        self.level_weight = level_weight
        self.leaf_rows = leaf_rows
        self.deepest = deepest
        self.seed = seed

    # -- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, X: Array, log: Log) -> None:
        refuse("BART", self._problems(log))
        self.probit_ = log.binary if self.link == "auto" else self.link == "probit"
        self.logging_ = _fit_level_regression(X, log) if self.propensity else None
        rows = np.arange(len(log)) if log.weight is None else _repeat_rows_by_weight(log.weight, self.seed)
        response = log.response[rows]
        # Without differences a probit is infinite, and too few rows make no tree: stochtree refuses them.
        if np.ptp(response) == 0 or len(response) <= 2 * self.leaf_rows:
            self.probit_, self.draws_ = False, make_constant_draw(float(response.mean()))
            return
        columns = np.column_stack([self._append_propensities(X), log.level]).astype(np.float64)
        with limit_to_one_thread():
            self.draws_ = self._sample_posterior(columns[rows], response)

    def _sample_posterior(self, columns: Array, response: Array) -> PosteriorDraws:
        stochtree = import_optional_package("stochtree", "", "BART", hint="pip install stochtree")
        split = np.ones(columns.shape[1])
        split[-1] = self.level_weight
        general: dict[str, Any] = {
            "random_seed": self.seed,
            "variable_weights": split / split.sum(),
            "outcome_model": stochtree.OutcomeModel(outcome="binary", link="probit")
            if self.probit_
            else stochtree.OutcomeModel(),
            "sample_sigma2_global": not self.probit_,
            "sigma2_global_scale": MIN_NOISE_SCALE,
        }
        forest = {"num_trees": self.trees, "min_samples_leaf": self.leaf_rows, "max_depth": self.deepest}
        model = stochtree.BARTModel()
        model.sample(
            columns,
            response,
            num_gfr=self.warm,
            num_burnin=self.burn,
            num_mcmc=self.draws,
            general_params=general,
            mean_forest_params=forest,
        )
        return extract_posterior_draws(model)

    def _append_propensities(self, X: Array) -> Array:
        """Return the features (n, p) with columns of estimated propensities, if the settings ask for them."""
        return X if self.logging_ is None else np.column_stack([X, softmax(X @ self.logging_[:-1] + self.logging_[-1])])

    def _problems(self, log: Log) -> list[Problem]:
        wrong = [
            Problem(f"{name}={getattr(self, name)!r}", f"a whole number, {least} or more")
            for name, least in (("trees", 1), ("draws", 1), ("warm", 0), ("burn", 0), ("leaf_rows", 1))
            if getattr(self, name) < least
        ]
        if self.link not in LINKS:
            wrong.append(Problem(f"link={self.link!r}", suggest(str(self.link), LINKS)))
        elif self.link == "probit" and not log.binary:
            wrong.append(Problem("link='probit' is for responses 0 and 1", "use 'auto' or 'identity' for amounts"))
        if not self.level_weight > 0:
            wrong.append(Problem(f"level_weight={self.level_weight!r}", "a number above zero"))
        return wrong

    # -- predicting -------------------------------------------------------------------------------------------------

    def _curves(self, X: Array) -> Array:
        out = np.empty((len(X), self.levels_))
        for rows, responses in self._yield_responses_by_draw(X):
            out[rows] = responses.mean(axis=1)
        return out

    def _yield_responses_by_draw(self, X: Array) -> Any:
        """Yield blocks of rows with their expected responses (rows, S, K) in each posterior draw."""
        from scipy.special import ndtr

        for rows, scores in self.draws_.scores(self._append_propensities(X), self.levels_):
            # A sum of trees is not held inside [0, 1] by itself.
            yield rows, ndtr(scores) if self.probit_ else np.clip(scores, 0.0, 1.0) if self.binary_ else scores

    def _check_learnt(self) -> None:
        p = len(self.encoder_.names)
        self.draws_.check(p if self.logging_ is None else p + self.levels_)


def _repeat_rows_by_weight(weight: Array, seed: int) -> Array:
    """Return n row numbers in which each row occurs in proportion to its weight (systematic resampling).

    The sampler's own weights, turned around in version 0.4.5, would be no count of rows for a probit's latent noise anyway.
    """
    n = len(weight)
    ends = np.cumsum(weight) / weight.sum()
    rows = np.searchsorted(ends, (np.random.default_rng(seed).random() + np.arange(n)) / n, side="right")
    return np.minimum(rows, n - 1)


def _fit_level_regression(X: Array, log: Log) -> Array:
    """Fit a logistic regression of the logged level on features (n, p), and return its coefficients.

    The last row of (p + 1, K) is the intercepts.
    """
    from sklearn.linear_model import LogisticRegression

    K = len(log.levels)
    weight = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
    params = np.zeros((X.shape[1] + 1, K))
    if X.shape[1] == 0 or len(np.unique(log.level)) < 2:
        params[-1] = np.log(np.maximum(np.bincount(log.level, weight, K) / weight.sum(), np.exp(NEVER / 2)))
        return params
    with limit_to_one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an unfinished fit is still a fit
        model = LogisticRegression(C=choose_inverse_penalty(X, log.level, weight, K), max_iter=200)
        model.fit(X, log.level, sample_weight=weight)
    coef, intercept = model.coef_, model.intercept_
    if len(model.classes_) == 2:  # the first of two classes is what the other is measured from
        coef, intercept = np.concatenate([0 * coef, coef]), np.concatenate([0 * intercept, intercept])
    params[-1] = NEVER
    params[:-1, model.classes_], params[-1, model.classes_] = coef.T, intercept
    return params


# -- conversion from stochtree -----------------------------------------------------------------------------------------


def make_constant_draw(value: float) -> PosteriorDraws:
    """Return one posterior draw without trees that predicts a constant."""
    whole, real = np.zeros(0, np.int32), np.zeros(0)
    return PosteriorDraws(1, value, 0.0, Trees(whole, whole, real, whole, whole, real))


def extract_posterior_draws(model: Any) -> PosteriorDraws:
    """Extract the trees of a fitted stochtree model as posterior draws."""
    forests = json.loads(model.forest_container_mean.dump_json_string())
    nodes: list[_Node] = []
    roots = []
    for s in range(forests["num_samples"]):
        forest = forests[f"forest_{s}"]
        for t in range(forests["num_trees"]):
            roots.append(len(nodes))
            _append_tree(forest[f"tree_{t}"], nodes)
    feature, threshold, left, right, value = zip(*nodes, strict=True)
    trees = Trees(
        roots=np.array(roots, np.int32),
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold, np.float64),
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        value=np.array(value, np.float64),
    )
    return PosteriorDraws(int(forests["num_samples"]), float(model.y_bar), float(model.y_std), trees)


_Node = tuple[int, float, int, int, float]  # a row of `Trees`: feature, threshold, left, right, value


def _append_tree(grown: dict[str, Any], nodes: list[_Node]) -> None:
    """Append one tree's nodes to a list, numbered without gaps from the root downwards.

    Plain lists: a tree has a handful of nodes, and there are tens of thousands of trees.
    """
    to_left, to_right, first = grown["left"], grown["right"], len(nodes)
    order = [0]
    for node in order:
        child = first + len(order)
        if to_left[node] >= 0:
            order += [to_left[node], to_right[node]]
            nodes.append((grown["split_index"][node], grown["threshold"][node], child, child + 1, 0.0))
        else:
            nodes.append((0, 0.0, -1, -1, grown["leaf_value"][node]))
