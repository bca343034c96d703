"""SIRE and IRE: response networks with an HSIC-balanced representation (Lopez et al. 2020).

SIRE is monotone in the level; IRE has a free score at every level. Beyond the paper, a customer's own increments are shrunk
towards common ones by an amount chosen on held-out rows, and the networks of all folds are averaged. κ = 0 is always tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, final

import numpy as np

from largesse.errors import Problem, import_optional_package, refuse, suggest
from largesse.records import Array, CandidateLoss, Log
from largesse.response.networks.fitted_networks import FoldNetworkEnsemble, ResponseScale, is_bounded
from largesse.response.networks.network_settings import (
    MONOTONE,
    Balance,
    Network,
    NetworkShape,
    Training,
    find_positive_integer_problems,
    find_setting_problems,
    replace_auto_settings,
)
from largesse.response.networks.network_settings_search import (
    NetworkSearchResult,
    NetworkSearchSettings,
    NetworkSearchTask,
    encode_one_hot_levels,
    search_networks,
)
from largesse.response.responder_amounts import (
    ResponderAmounts,
    fit_responder_amounts_by_fold,
    mark_responders,
    multiply_by_amounts,
    split_off_responder_amounts,
    suits_hurdle_model,
)
from largesse.response.response_model import ResponseModel
from largesse.response.threshold_model import MANY_FEATURES
from largesse.stats import assign_folds

SHRINKAGE_PENALTIES = (np.inf, 0.3, 0.03, 0.003)  # on a customer's own increments; the most shrunk first
KAPPA_CANDIDATES = (0.0, 3.0, 30.0, 100.0)  # on HSIC of z scaled to unit mean square
PLAIN_KAPPAS = (0.0, 1.0, 10.0, 100.0, 1000.0)  # on HSIC of z as it is
KAPPA_RULES = ("auto", "dr", "loggers")
HOLD_OUT = 5  # with folds=1, one row in this many is held out
SHRINKABLE = ("shrunk", "elastic")
SIRE_NETWORK = Network(width=64, depth=2, activation="elu", skip=True)
SIRE_TRAINING = Training(
    rate=3e-3, schedule="cosine", decay=10.0, optimiser="adam", batch=512, epochs=50, patience=50
)  # `start` stays "auto": both starts are tried
BALANCE = Balance(kernel="linear", estimator="biased", normalise=True)


class BalancedNetwork(ResponseModel):
    """Base class of SIRE and IRE: response networks with an HSIC-balanced representation.

    IRE has no settings of monotone heads.
    """

    monotone: ClassVar[bool]
    head: str  # only of monotone networks, like the next two fields
    shrinkage: Any
    orthogonal: bool
    kappa: Any
    balance: Balance
    network: Network
    training: Training
    members: int
    folds: int
    seed: int

    fit_: FoldNetworkEnsemble
    amounts_: ResponderAmounts | None  # for responses that look two-part; `fit_` is then of 0/1 responses

    # -- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, X: Array, log: Log) -> None:
        fold, parts = assign_held_out_folds(log, self.folds, self.seed)
        log, amounts = split_off_responder_amounts(X, log, self.encoder_, self.seed)
        self.train_fold_networks(X, log, fold, parts)
        self.amounts_ = amounts

    def fold_models(self, X: Array, log: Log, fold: Array) -> list[ResponseModel]:
        """Return one model per fold, fitted to the encoded features (n, p) of all other folds.

        Settings are common to all folds.
        """
        two = suits_hurdle_model(log)
        self.train_fold_networks(X, mark_responders(log) if two else log, fold, np.unique(fold))
        amounts = (
            fit_responder_amounts_by_fold(X, log, fold, self.encoder_, "auto", self.seed)
            if two
            else [None] * self.fit_.folds
        )
        return [self._copy_with(fit_=self.fit_.networks_of_fold(j), amounts_=mean) for j, mean in enumerate(amounts)]

    def train_fold_networks(
        self, X: Array, log: Log, fold: Array, parts: Array, level_weight: Array | None = None
    ) -> None:
        """Train one network per fold in `parts`, without the rows of the fold, and store the networks.

        Predictions are the networks' mean.

        `fold` (n,) holds the folds of the rows; `level_weight` (n, K) is that of `NetworkSearchTask`.
        """
        refuse(type(self).__name__, self._find_problems(log))
        import_optional_package("optax", "networks", type(self).__name__)  # which needs JAX
        scale = ResponseScale.choose_scale(log.response)
        weights = encode_one_hot_levels(log) if level_weight is None else level_weight
        learnt = search_networks(
            self._make_search_settings(scale, X.shape[1], len(log.levels)),
            NetworkSearchTask(X, log, fold, parts, weights, scale),
        )
        self.fit_, self.amounts_ = learnt.networks, None
        self.start_choices_, self.shrinkage_choices_ = learnt.start, learnt.shrinkage
        self.kappa_choices_, self.correction_choices_ = learnt.kappa, learnt.correction
        self.choices_ = _list_reported_choices(type(self).__name__, learnt)

    def _make_search_settings(self, scale: ResponseScale, features: int, levels: int) -> NetworkSearchSettings:
        network, head = replace_auto_settings(self.network, SIRE_NETWORK), self._choose_head(scale, features)
        size = (network.width, network.depth, network.activation, network.skip)
        return NetworkSearchSettings(
            head=head,
            penalties=self._list_penalties(head),
            kappas=self._list_kappas(),
            kappa_rule=self.kappa if isinstance(self.kappa, str) else "auto",
            shape=NetworkShape(features, levels, head, *size, scale.bounded),
            training=replace_auto_settings(self.training, SIRE_TRAINING),
            balance=replace_auto_settings(self.balance, BALANCE),
            members=self.members,
            orthogonal=self.monotone and self.orthogonal,
            seed=self.seed,
        )

    def _list_kappas(self) -> tuple[float, ...]:
        if isinstance(self.kappa, str):
            return KAPPA_CANDIDATES if replace_auto_settings(self.balance, BALANCE).normalise else PLAIN_KAPPAS
        if isinstance(self.kappa, Sequence | np.ndarray):
            return (0.0, *(float(k) for k in self.kappa if k > 0))
        return (float(self.kappa),)

    def _choose_head(self, scale: ResponseScale, features: int) -> str:
        """Choose the kind of the network's head, from the scale of responses and the number of features."""
        if not self.monotone:
            return "free"
        if self.head != "auto":
            return self.head
        return "cdf" if scale.bounded and features > MANY_FEATURES else "elastic"

    def _list_penalties(self, head: str) -> tuple[float, ...]:
        """List the candidate penalties on customer-specific level increments, the strongest first."""
        if head not in SHRINKABLE:
            return (0.0,)
        return SHRINKAGE_PENALTIES if isinstance(self.shrinkage, str) else (float(self.shrinkage),)

    def _find_problems(self, log: Log) -> list[Problem]:
        """Return the problems of invalid settings for a log."""
        problems: list[Problem] = []
        if self.monotone:
            if self.head not in ("auto", *MONOTONE):
                problems.append(Problem(f"head={self.head!r}", suggest(str(self.head), ("auto", *MONOTONE))))
            if self.shrinkage != "auto" and (isinstance(self.shrinkage, str) or not self.shrinkage >= 0):
                problems.append(Problem(f"shrinkage={self.shrinkage!r}", "a number, zero or more, or 'auto'"))
            if self.head == "cdf" and not is_bounded(log.response):
                hint = "use 'elastic' or 'increments' for amounts"
                problems.append(Problem("head='cdf' is for responses in [0, 1]", hint))
        for name, default in (("network", SIRE_NETWORK), ("training", SIRE_TRAINING), ("balance", BALANCE)):
            problems += find_setting_problems(name, getattr(self, name), default)
        problems += find_positive_integer_problems(self, ("members", "folds"))
        if isinstance(self.kappa, str):
            if self.kappa not in KAPPA_RULES:
                problems.append(Problem(f"kappa={self.kappa!r}", suggest(self.kappa, KAPPA_RULES)))
        elif not np.all(np.asarray(self.kappa, dtype=float) >= 0):
            problems.append(Problem(f"kappa={self.kappa!r}", "a number, zero or more; several; or how to choose"))
        if self.kappa == "loggers" and (log.logger is None or np.ptp(log.logger) == 0):
            hint = "read_log(…, logger=…), or kappa='auto'"
            problems.append(Problem("kappa='loggers' needs a log that names two or more logging policies", hint))
        return problems

    # -- predicting -------------------------------------------------------------------------------------------------

    @property
    def kappa_(self) -> float:
        """Chosen strength κ of the HSIC penalty."""
        return self.fit_.kappa

    @property
    def penalty_(self) -> float:
        """Chosen penalty on customer-specific level increments, infinite if all customers share the increments."""
        return self.fit_.penalty

    def _curves(self, X: Array) -> Array:
        return multiply_by_amounts(self.fit_.predict_curves(X), self.amounts_, X)

    def _check_learnt(self) -> None:
        self.fit_.check(len(self.encoder_.names), self.levels_)


def assign_held_out_folds(log: Log, folds: int, seed: int) -> tuple[Array, Array]:
    """Assign rows to folds (n,), and list the folds to hold out.

    These are all folds, or only the first for folds=1.
    """
    fold = assign_folds(log, folds if folds > 1 else HOLD_OUT, seed)
    return fold, np.unique(fold) if folds > 1 else np.array([0])


def _list_reported_choices(kind: str, learnt: NetworkSearchResult) -> tuple[CandidateLoss, ...]:
    """List the candidates of each hyperparameter choice for the report, without choices of one candidate."""
    started = [replace(c, of=f"{kind}: training starts at") for c in learnt.start]
    shrunk = [replace(c, of=f"{kind}: own increments held by") for c in learnt.shrinkage]
    balanced = [replace(c, name=f"κ = {c.name}", of=f"{kind}: balance") for c in learnt.kappa]
    return tuple(choice for group in (started, shrunk, balanced) if len(group) > 1 for choice in group)


@final
class SIRE(BalancedNetwork):
    """Structured incentive response estimation: an HSIC-balanced network that is monotone in the level.

    Parameters
    ----------
    kappa
        Strength of the HSIC penalty: a number, several to choose from, or how to choose from 0, 3, 30 and 100 (without
        `normalise`: 0, 1, 10, 100 and 1,000): "auto" (held-out loss, as the paper), "dr" (doubly robust risk of
        increments), "loggers" (leave one logging policy out).
    shrinkage
        Penalty on a customer's own increments: a number (infinite: common increments for all), or "auto": the most shrunk
        within one paired standard error of the best held-out loss.
    head
        "elastic" (common increments × one sensitivity per customer), "shrunk", "increments", "cdf" (where each customer
        begins to respond), "concave" (increments never grow) or "minmax" (the paper's). "auto" is "cdf" for responses in
        [0, 1] and more than a hundred features, as embeddings have them, else "elastic".
    orthogonal
        Whether a doubly robust second stage corrects the curves where held-out rows and propensities contradict them (see
        `networks.curve_correction`); it keeps them non-decreasing, not concave. Not part of `fold_models`.
    balance, network, training
        `Balance`, `Network` and `Training`; a setting at "auto" is SIRE's default.
    members, folds, seed
        The prediction is the mean over the folds' networks, each the mean of several members that start elsewhere;
        with folds=1 one network is trained, and a fifth of the rows is held out.

    Attributes
    ----------
    fit_
        The fitted `FoldNetworkEnsemble`.
    start_choices_, shrinkage_choices_, kappa_choices_, correction_choices_
        The candidates and the choices.
    """

    shrinks = True
    monotone = True

    def __init__(
        self,
        *,
        kappa: Any = "auto",
        shrinkage: Any = "auto",
        head: str = "auto",
        orthogonal: bool = False,
        balance: Balance = Balance(),
        network: Network = Network(),
        training: Training = Training(),
        members: int = 3,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.kappa = kappa
        self.shrinkage = shrinkage
        self.head = head
        self.orthogonal = orthogonal
        self.balance = balance
        self.network = network
        self.training = training
        self.members = members
        self.folds = folds
        self.seed = seed


@final
class IRE(BalancedNetwork):
    """Incentive response estimation: an HSIC-balanced network with a free score at each level.

    `SIRE` without a monotone curve.
    """

    monotone = False

    def __init__(
        self,
        *,
        kappa: Any = "auto",
        balance: Balance = Balance(),
        network: Network = Network(),
        training: Training = Training(),
        members: int = 3,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.kappa = kappa
        self.balance = balance
        self.network = network
        self.training = training
        self.members = members
        self.folds = folds
        self.seed = seed
