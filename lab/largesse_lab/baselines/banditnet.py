"""BanditNet baseline: a policy network trained on the log under a budget, without a response model.

A network gives every level a score, and the policy is their softmax π. With rewards δ in [0, 1] and propensities ρ, it
maximises the mean of (δ − λ) π(y|x)/ρ(y|x) − η Σ_y c(y) π(y|x) (Joachims, Swaminathan and de Rijke 2018, with a price η on
cost). The translation λ shifts the rewards; it stands for the self-normaliser S = mean of π/ρ, which cannot be optimised
directly. For each λ, η is searched so that the policy spends what the budget allows. The λ whose policy has the best
self-normalised estimate (SNIPS) on held-out rows is kept. A policy whose S is far from one has learnt to avoid rows rather
than to be good; it is only kept if no other is there.

η ≥ 0 removes cost from a policy; it never adds any. A policy that learnt to spend less than the budget ("up to") stays there,
and loses to plans that use their budget. With "all", η may be negative: spending is then rewarded until the budget is spent.

Where the paper leaves things open: λ runs over 0, .1 … .9 and the mean reward, then more finely around the best.
Propensities are cross-fitted logistic regressions unless the log gives them, and 1/ρ is clipped. S should lie within three
standard errors of one, since a Chernoff bound with such weights would allow anything. The network is SIRE's with a free
head, trained by Adam, its best weights on held-out rows kept. Algorithm 1 trains again for every η ("retrain"); "posthoc"
trains once for each λ and subtracts η × cost from the scores. For the customers it is applied to, η is searched again, so
that the budget holds there.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, final

import jax
import jax.numpy as jnp
import numpy as np
import optax

from largesse.allocation import allocate, expected_costs
from largesse.errors import Problem, fail, find_budget_problems, make_below_cheapest_error, refuse
from largesse.io import ArraySpec, convert_content_errors, read_archive, write_archive
from largesse.levels import Levels
from largesse.propensity import estimate_propensities
from largesse.records import Array, Customers, Log
from largesse.response import Learner, Network, Training
from largesse.response.networks import (
    NetworkShape,
    TrainingJob,
    TrainingLoop,
    TrainingProgram,
    batched_training,
    check_parameter_shapes,
    check_saved_layers,
    find_setting_problems,
    layers,
    replace_auto_settings,
    train_networks,
)
from largesse.stats import assign_folds, limit_to_one_thread, mark_held_out_rows, softmax
from largesse_lab.baselines.network_helpers import (
    draw_batches,
    draw_batches_by_interval,
    find_held_out_share_problems,
    find_unknown_option_problems,
    initialise_models_by_seed,
    make_training_loop,
    make_zero_moments,
)

BANDITNET_FORMAT = "largesse-banditnet"
TRANSLATIONS = tuple(j / 10 for j in range(10))  # λ; the mean reward is added
FINER = 0.01  # between the λ of the second round, which lie around the best of the first
MOST_COST = 1e150  # squares of larger ones have no floats
RETRAININGS = 10  # in the search for η
MOST_STEPS = 200  # in the search for η on given scores
UNSPENT = 1e-10  # of the budget: what the search for η may leave
MAX_ETA = 1e12  # η
SHORT_OF_ALL = 1e-6  # of the most that can be spent
SPENDS = ("up to", "all")  # of the budget
ERRORS = 3.0  # standard errors that S may lie away from one
LEAST_BAND = 0.05
PROPENSITY_FOLDS = 5  # over which propensities are cross-fitted
BANDITNET_CHECK_STEPS = 100  # steps between two looks at held-out rows
BANDITNET_NETWORK = Network(width=128, depth=2, activation="elu", skip=True)
BANDITNET_TRAINING = Training(rate=1e-3, decay=0.1, batch=128, steps=2000, patience=5)
BANDITNET_OPTIONS = {"spend": SPENDS, "search": ("posthoc", "retrain")}


@final
class BanditNet(Learner):
    """Policy network that keeps its expected cost within a budget (Algorithm 1 of the incentive paper).

    Parameters
    ----------
    budget
        Average cost per customer that may not be exceeded.
    spend
        "up to" the budget, as Algorithm 1 (η ≥ 0: money that the policy does not use is left over); or "all" of it
        (η may be negative: the rest of the budget goes where the scores lose least).
    search
        How η is found: "posthoc" (on the scores of one training for each λ) or "retrain" (Algorithm 1 to the letter).
    translations
        The λ that are tried, on the scale of rewards shifted into [0, 1]; "auto" is 0, .1 … .9 and the mean reward.
    clip
        Most that 1/ρ counts.
    network, training
        `Network` and `Training`; a setting at "auto" is BanditNet's default. A look of `patience` is 100 steps.
    hold_out
        Share of rows that are held out, to stop by and to choose λ.
    seed
        For the rows held out, first weights and batches.

    Attributes
    ----------
    translations_
        The candidates: a `TranslationResult` for each λ.
    price_
        η subtracted from the scores × cost. With "retrain" the scores already contain η; this is the remainder still
        needed to meet the budget.
    networks_
        The one network that was kept.
    levels_known_
        The `Levels` of the log.
    """

    networks_: PolicyNetworks
    price_: float
    translations_: tuple[TranslationResult, ...]

    def __init__(
        self,
        *,
        budget: float = 1.0,
        spend: str = "up to",
        search: str = "posthoc",
        translations: Any = "auto",
        clip: float = 100.0,
        network: Network = Network(),
        training: Training = Training(),
        hold_out: float = 0.3,
        seed: int = 0,
    ) -> None:
        self.budget = budget
        self.spend = spend
        self.search = search
        self.translations = translations
        self.clip = clip
        self.network = network
        self.training = training
        self.hold_out = hold_out
        self.seed = seed

    # -- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, X: Array, log: Log) -> None:
        refuse("BanditNet", self._problems(log.levels))
        self.levels_known_ = log.levels
        costs = self._broadcast_costs(log.costs, len(log))
        if costs.min(axis=1).mean() > self.budget:
            raise make_below_cheapest_error("BanditNet", self.budget, float(costs.min(axis=1).mean()))
        trainer = BanditNetTrainer(self._gather_settings(), X, log, costs)
        with limit_to_one_thread(X.size):
            shifts = self._list_translations(trainer.rows.reward)
            trained = trainer.train(shifts)
            if isinstance(self.translations, str):
                best = trained.translations[choose_translation(trained.translations)].shift
                finer = best + FINER * (np.arange(len(shifts)) - len(shifts) // 2)
                trained = trained.append(trainer.train(finer))
        best_place = choose_translation(trained.translations)
        self.translations_ = tuple(
            replace(translation, chosen=i == best_place) for i, translation in enumerate(trained.translations)
        )
        self.networks_ = trained.networks.select_networks(np.array([best_place]))
        self.price_ = self._find_price(self.scores(X), costs, self.budget, trainer.rows.weight)

    def _gather_settings(self) -> BanditNetSettings:
        names = (field.name for field in fields(BanditNetSettings))
        return BanditNetSettings(**{name: getattr(self, name) for name in names})

    def _list_translations(self, reward: Array) -> Array:
        auto = isinstance(self.translations, str)
        return np.asarray((*TRANSLATIONS, float(reward.mean())) if auto else self.translations, dtype=np.float64)

    def _broadcast_costs(self, costs: Array | None, n: int) -> Array:
        """Return the cost of each level for each customer (n, K)."""
        face = costs if costs is not None else self.levels_known_.common_costs
        if face is None:
            hint = f"read the table with levels=…, so that {self.levels_known_.cost_columns} are found"
            fail("BanditNet", Problem("costs are per customer, but this table was read without them", hint))
        K = len(self.levels_known_)
        # Nothing is paid on redemption here, so no curve is needed to know what is paid.
        paid = expected_costs(self.levels_known_, np.zeros((1, K)), face)
        if not paid.max(initial=0.0) <= MOST_COST:
            fail("BanditNet", Problem(f"a level costs {paid.max():g}", f"costs are at most {MOST_COST:g}"))
        return np.broadcast_to(paid, (n, K))

    def _problems(self, levels: Levels) -> list[Problem]:
        wrong = find_unknown_option_problems(self, BANDITNET_OPTIONS) + find_policy_network_problems(
            self.network, self.training
        )
        wrong += find_budget_problems(self.budget)
        if not self.clip >= 1:
            wrong.append(Problem(f"clip={self.clip!r}", "1/ρ is never below one: give a number above it"))
        if not _are_valid_translations(self.translations):
            wrong.append(Problem(f"translations={self.translations!r}", "numbers, as [0, 0.3, 0.6], or 'auto'"))
        if not levels.certain:
            words = "observed" if levels.observed else "paid on redemption"
            hint = "plan with a response model instead: it foresees what customers do"
            wrong.append(Problem(f"costs are {words}, which a policy alone cannot foresee", hint))
        return wrong + find_held_out_share_problems(self.hold_out)

    # -- deciding ---------------------------------------------------------------------------------------------------

    def scores(self, X: Array) -> Array:
        """Return the network's scores (n, K) for encoded features (n, p), without the costs' shadow price."""
        return self.networks_.scores(X)[0]

    def probabilities_at_price(self, customers: Any) -> Array:
        """Return the level probabilities (n, K) of customers at the shadow price learnt on the log.

        The probabilities of a customer do not depend on the other customers.
        """
        X = self.encode(customers)
        return softmax(self.scores(X) - self.price_ * self._broadcast_costs(getattr(customers, "costs", None), len(X)))

    def probabilities(self, customers: Any, budget: float | None = None) -> Array:
        """Return level probabilities (n, K) of customers whose expected cost is within the budget."""
        X, costs, budget = self._encode_with_costs(customers, budget)
        scores = self.scores(X)
        return softmax(scores - self._find_price(scores, costs, budget) * costs)

    def decide(self, customers: Any, budget: float | None = None) -> Array:
        """Return one level (n,) per customer: the highest total score within the budget."""
        X, costs, budget = self._encode_with_costs(customers, budget)
        if not len(X):
            return np.zeros(0, dtype=np.int64)
        scores = self.scores(X)
        if self.spend == "all":  # cost is worth more than any score, so the budget alone holds it back
            scores = scores + _find_dominating_cost_bonus(scores, costs) * costs
        return allocate(scores, costs, budget).levels

    def _find_price(self, scores: Array, costs: Array, budget: float, weight: Array | None = None) -> float:
        return find_softmax_price(scores, costs, budget, weight, self.spend)

    def _encode_with_costs(self, customers: Any, budget: float | None) -> tuple[Array, Array, float]:
        X = self.encode(customers)
        costs = self._broadcast_costs(customers.costs if isinstance(customers, Customers | Log) else None, len(X))
        budget = self.budget if budget is None else float(budget)
        refuse("BanditNet", find_budget_problems(budget, unlimited=True))
        least = float(costs.min(axis=1).mean()) if len(X) else 0.0
        if budget < least:
            raise make_below_cheapest_error("BanditNet", budget, least)
        return X, costs, budget

    # -- saving -----------------------------------------------------------------------------------------------------

    def _check_learnt(self) -> None:
        self.networks_.check(len(self.encoder_.names), self.levels_, models=1)
        least = -math.inf if self.spend == "all" else 0.0
        if not (math.isfinite(self.price_) and self.price_ >= least):
            raise ValueError(f"price_: {self.price_}")

    def _check_loaded_policy(self) -> None:
        """Raise ValueError unless a loaded policy's settings, levels and network fit together."""
        if problems := self._problems(self.levels_known_):
            raise ValueError(problems[0].what)
        if len(self.levels_known_) != self.levels_:
            raise ValueError(f"{len(self.levels_known_)} levels in a network of {self.levels_}")
        costs = self.levels_known_.common_costs
        with np.errstate(all="ignore"):
            scores = self.scores(np.zeros((1, len(self.encoder_.names)), dtype=np.float32))
            priced = scores if costs is None else scores - self.price_ * self._broadcast_costs(None, 1)
        if scores.shape != (1, self.levels_) or not np.isfinite(priced).all():
            raise ValueError("the network has no finite scores at its price")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file with reproducible bytes."""
        write_archive(path, BANDITNET_FORMAT, *self._state())

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        state, arrays = self.state()
        return {"levels": asdict(self.levels_known_), "model": state}, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BanditNet:
        """Read a saved policy from a file, and refuse a file with unknown or missing content."""
        manifest, arrays = read_archive(path, BANDITNET_FORMAT)
        with convert_content_errors(path):
            net = cls.from_state(manifest["model"], arrays)
            net.levels_known_ = Levels(**manifest["levels"])
            net._check_loaded_policy()
            return net


def _are_valid_translations(value: Any) -> bool:
    if isinstance(value, str):
        return value == "auto"
    return np.size(value) > 0 and bool(np.isfinite(np.asarray(value, dtype=float)).all())


def _find_dominating_cost_bonus(scores: Array, costs: Array) -> float:
    """Return a bonus per unit of cost with which every costlier level outscores every cheaper level."""
    gaps = np.diff(np.sort(costs, axis=1), axis=1)
    gaps = gaps[gaps > 1e-9 * costs.max(initial=0.0)]
    return float(2 * np.ptp(scores, axis=1).max() / gaps.min()) if len(gaps) else 0.0


@dataclass(frozen=True)
class TranslationResult:
    """Result of training with one reward translation λ: its shadow price η and the evaluation of its policy."""

    shift: float  # λ
    price: float  # η
    spend: float  # expected, per customer of the log
    normaliser: float  # S on the rows trained on
    expected: tuple[float, float]  # range of S
    snips: float  # on held-out rows
    chosen: bool = False

    @property
    def has_valid_normaliser(self) -> bool:
        """True if the SNIPS normaliser S of the policy is close enough to 1."""
        return self.expected[0] <= self.normaliser <= self.expected[1]


@dataclass(frozen=True, eq=False)
class TrainedPolicies:
    """Policies trained with several reward translations λ, and their networks."""

    translations: tuple[TranslationResult, ...]
    networks: PolicyNetworks

    def append(self, others: TrainedPolicies) -> TrainedPolicies:
        """Return the policies of two `TrainedPolicies` in one object."""
        return TrainedPolicies(self.translations + others.translations, self.networks.append(others.networks))


@dataclass(frozen=True)
class BanditNetSettings:
    """Settings for the training of a `BanditNet`."""

    budget: float
    spend: str
    search: str
    clip: float
    network: Network
    training: Training
    hold_out: float
    seed: int


class BanditNetTrainer:
    """Trainer of policy networks on one log, for given reward translations λ and shadow prices η of the budget."""

    def __init__(self, settings: BanditNetSettings, X: Array, log: Log, costs: Array) -> None:
        self.settings = settings
        low, high = log.response.min(), log.response.max()
        known = log.propensity is not None
        fold = np.zeros(len(log), int) if known else assign_folds(log, min(PROPENSITY_FOLDS, len(log)), settings.seed)
        rho = estimate_propensities(log, fold, settings.seed).own
        self.rows = PolicyTrainingRows(
            X=X,
            level=log.level,
            reward=(log.response - low) / (high - low if high > low else 1.0),
            inverse=np.minimum(1.0 / rho, settings.clip),
            costs=costs,
            weight=np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean(),
            held=mark_held_out_rows(log, settings.hold_out, settings.seed),
        )

    def train(self, shifts: Array) -> TrainedPolicies:
        """Train one policy per reward translation λ, with the shadow price η at which it spends the budget."""
        s, costs = self.settings, self.rows.costs
        if s.search == "retrain":
            prices, networks = self._search_by_training(shifts)
        else:
            prices, networks = np.zeros(len(shifts)), self._train_networks(shifts, np.zeros(len(shifts)))
        scores = networks.scores(self.rows.X)
        # After "retrain" too: where even the largest η left the policy over budget, the rest is taken off the scores.
        rest = np.array([find_softmax_price(score, costs, s.budget, self.rows.weight, s.spend) for score in scores])
        policies = [softmax(score - price * costs) for score, price in zip(scores, rest, strict=True)]
        results = zip(shifts, prices + rest, policies, strict=True)
        return TrainedPolicies(
            tuple(self._evaluate_translation(float(a), float(b), policy) for a, b, policy in results), networks
        )

    def _train_networks(self, shifts: Array, prices: Array) -> PolicyNetworks:
        s = self.settings
        return train_policy_networks(self.rows, shifts, prices, network=s.network, training=s.training, seed=s.seed)

    def _search_by_training(self, shifts: Array) -> tuple[Array, PolicyNetworks]:
        """Search the smallest shadow price η within the budget for each translation λ, by repeated training."""
        over, within = np.zeros(len(shifts)), np.full(len(shifts), np.inf)
        prices = np.zeros(len(shifts))
        best: PolicyNetworks | None = None
        first = 1.0 / max(float(np.ptp(self.rows.costs, axis=1).mean()), 1e-9)
        for _ in range(RETRAININGS):
            networks = self._train_networks(shifts, prices)
            spend = np.array([self._measure_spend(softmax(score)) for score in networks.scores(self.rows.X)])
            fits = spend <= self.settings.budget
            better = fits & (prices <= within)
            within, over = np.where(fits, np.minimum(prices, within), within), np.where(fits, over, prices)
            has_price = np.isfinite(within)
            # Until a λ has a policy within budget its latest one stands in, the cheapest so far.
            best = networks if best is None else networks.where(better | ~has_price, best)
            if (within == 0).all():
                break
            prices = np.where(has_price, (over + np.where(has_price, within, 0)) / 2, np.maximum(2 * over, first))
        assert best is not None
        return np.where(np.isfinite(within), within, over), best

    def _measure_spend(self, policy: Array) -> float:
        return float(np.average((policy * self.rows.costs).sum(axis=1), weights=self.rows.weight))

    def _evaluate_translation(self, shift: float, price: float, policy: Array) -> TranslationResult:
        """Compute the normaliser S of a policy (n, K) on training rows and its SNIPS value on held-out rows."""
        rows, held = self.rows, self.rows.held
        ratio = policy[np.arange(len(rows.level)), rows.level] * rows.inverse
        mine, w = ratio[~held], rows.weight[~held]
        S = float(np.average(mine, weights=w))
        se = float(np.sqrt(np.sum(w**2 * (mine - S) ** 2)) / w.sum())
        band = max(ERRORS * se, LEAST_BAND)
        theirs, v = ratio[held], rows.weight[held]
        snips = float((v * theirs) @ rows.reward[held] / max(v @ theirs, 1e-12))
        return TranslationResult(shift, price, self._measure_spend(policy), S, (1 - band, 1 + band), snips)


def choose_translation(tried: Sequence[TranslationResult]) -> int:
    """Return the index of the policy with the best SNIPS value among those with a valid normaliser.

    If no policy has a valid normaliser, all policies are compared.
    """
    sound = [i for i, translation in enumerate(tried) if translation.has_valid_normaliser] or list(range(len(tried)))
    return max(sound, key=lambda i: tried[i].snips)


def find_softmax_price(
    scores: Array, costs: Array, budget: float, weight: Array | None = None, spend: str = SPENDS[0]
) -> float:
    """Return the smallest shadow price η at which the policy softmax(scores − η costs) keeps the budget.

    The cost is the weighted mean of expected costs.

    η is negative only if all of the budget is to be spent; the dearest levels get a budget that they do not use up.
    """
    share = np.full(len(scores), 1.0 / max(len(scores), 1)) if weight is None else weight / weight.sum()

    def measure_expected_spend(price: float) -> tuple[float, float]:
        """Return the expected cost at a shadow price, and the derivative by which the cost falls with the price."""
        policy = softmax(scores - price * costs)
        each = np.einsum("nk,nk->n", policy, costs)
        return float(share @ each), float(share @ (np.einsum("nk,nk,nk->n", policy, costs, costs) - each**2))

    now, _ = measure_expected_spend(0.0)
    if now > budget:
        return _find_budget_price_crossing(measure_expected_spend, budget, 1.0)
    most = float(share @ costs.max(axis=1))
    if spend == "up to" or not now < most:
        return 0.0
    # The most is spent only at η = −∞: almost all of it will do.
    return _find_budget_price_crossing(measure_expected_spend, min(budget, (1 - SHORT_OF_ALL) * most), -1.0)


def _find_budget_price_crossing(spent: Callable[[float], tuple[float, float]], budget: float, far: float) -> float:
    """Return the smallest shadow price that keeps the budget, first searched between 0 and `far`.

    Newton steps, kept inside the bracket known to hold it, with a bisection every fifth step.
    """
    near, over = 0.0, far > 0
    while (spent(far)[0] > budget) == over and abs(far) < MAX_ETA:
        near, far = far, 2 * far
    low, high = min(near, far), max(near, far)
    left, price = UNSPENT * max(1.0, abs(budget)), (low + high) / 2
    for turn in range(MOST_STEPS):
        now, slope = spent(price)
        if budget - left <= now <= budget:
            return price
        low, high = (price, high) if now > budget else (low, price)
        if high - low <= 1e-15 * max(abs(low), abs(high)):
            break
        # Slightly past the crossing of the tangent, so that the budget is approached from within.
        step = price + (now - budget + left / 2) / slope if slope > 0 and turn % 5 < 4 else low
        price = step if low < step < high else (low + high) / 2
    return high


@dataclass(frozen=True, eq=False)
class PolicyNetworks:
    """Parameters of M trained policy networks of the same shape."""

    shape: NetworkShape
    params: dict[str, Annotated[Array, ArraySpec(..., dtype="float32")]]  # each (M, …)

    def scores(self, X: Array) -> Array:
        """Return the scores (M, n, K) of all networks for encoded features (n, p)."""
        from largesse.response.networks import sire_training

        return sire_training.predict_scores(self.params, X, self.shape).astype(np.float64)

    def select_networks(self, models: Array) -> PolicyNetworks:
        """Return the networks at the given positions."""
        return PolicyNetworks(self.shape, {name: value[models] for name, value in self.params.items()})

    def append(self, others: PolicyNetworks) -> PolicyNetworks:
        """Return the networks of two `PolicyNetworks` in one object."""
        both = {name: np.concatenate([value, others.params[name]]) for name, value in self.params.items()}
        return PolicyNetworks(self.shape, both)

    def where(self, take: Array, others: PolicyNetworks) -> PolicyNetworks:
        """Return these networks where the mask (M,) is true, and elsewhere those of another object."""
        mixed = {
            name: np.where(take.reshape(-1, *[1] * (value.ndim - 1)), value, others.params[name])
            for name, value in self.params.items()
        }
        return PolicyNetworks(self.shape, mixed)

    def check(self, features: int, levels: int, models: int) -> None:
        """Raise ValueError unless the arrays have the given numbers of networks, features and levels."""
        from largesse.response.networks import layers

        if (self.shape.features, self.shape.levels) != (features, levels):
            raise ValueError(f"a network of {self.shape.features} features and {self.shape.levels} levels")
        check_saved_layers(self.params, self.shape.depth)
        check_parameter_shapes(
            self.params, {name: (models, *size) for name, size in layers.parameter_shapes(self.shape).items()}
        )


@dataclass(frozen=True, eq=False)
class PolicyTrainingRows:
    """Rows of a log as training data of policy networks."""

    X: Array  # (n, p) encoded features
    level: Array  # (n,)
    reward: Array  # (n,) in [0, 1]
    inverse: Array  # (n,) 1/ρ
    costs: Array  # (n, K)
    weight: Array  # (n,)
    held: Array  # (n,) whether a row is held out, to stop by


def find_policy_network_problems(network: Network, training: Training) -> list[Problem]:
    """List invalid settings of policy networks."""
    return find_setting_problems("network", network, BANDITNET_NETWORK) + find_setting_problems(
        "training", training, BANDITNET_TRAINING
    )


def train_policy_networks(
    rows: PolicyTrainingRows, shifts: Array, prices: Array, *, network: Network, training: Training, seed: int
) -> PolicyNetworks:
    """Train one policy network for each pair of translation λ (M,) and shadow price η (M,), with one seed."""
    network, training = (
        replace_auto_settings(network, BANDITNET_NETWORK),
        replace_auto_settings(training, BANDITNET_TRAINING),
    )
    size = (network.width, network.depth, network.activation, network.skip)
    shape = NetworkShape(rows.X.shape[1], rows.costs.shape[1], "free", *size, bounded=False)
    loop = make_training_loop(training.steps, BANDITNET_CHECK_STEPS, training.patience)
    learn = batched_training.stack_row_sets([np.flatnonzero(~rows.held)], rows.weight, training.batch)
    stop = batched_training.stack_row_sets([np.flatnonzero(rows.held)], rows.weight, most=batched_training.STOP_ROWS)
    model_data = (
        *(np.repeat(array, len(shifts), axis=0) for array in (*learn, *stop)),
        shifts.astype(np.float32),
        prices.astype(np.float32),
    )
    numbers = (rows.X, rows.reward, rows.inverse, rows.costs)
    data = (rows.level.astype(np.int32), *(np.asarray(array, np.float32) for array in numbers))
    job = TrainingJob(make_policy_program(shape, training, loop), loop, data, model_data, np.full(len(shifts), seed))
    return PolicyNetworks(shape, train_networks(job).params)


def compute_policy_loss(
    shape: NetworkShape, params: Any, rows: tuple[jax.Array, ...], shift: jax.Array, price: jax.Array
) -> jax.Array:
    """Return the counterfactual risk of a policy network on a batch of rows.

    A batch is level, features, reward, 1/ρ, costs (n, K) and weight.
    """
    level, X, reward, inverse, costs, weight = rows
    probabilities = jax.nn.softmax(layers.forward(shape, params, X)[1], axis=1)
    ratio = jnp.take_along_axis(probabilities, level[:, None], axis=1)[:, 0] * inverse
    gain = (reward - shift) * ratio - price * (probabilities * costs).sum(axis=1)
    return -(weight @ gain) / jnp.maximum(weight.sum(), 1e-9)


@functools.lru_cache(maxsize=8)
def make_policy_program(shape: NetworkShape, training: Training, loop: TrainingLoop) -> TrainingProgram:
    """Return the compiled training program of policy networks.

    `data`: level, features, reward, 1/ρ, costs. `model_data`: rows and weights to train on, rows and weights to stop by, λ, η.
    """
    sizes = layers.parameter_shapes(shape)
    matrices = {name: len(size) == 2 for name, size in sizes.items()}
    optimiser = optax.adamw(training.rate, weight_decay=training.decay, mask=matrices)

    def first(rng: np.random.Generator) -> Any:
        params = {
            name: (rng.standard_normal(size) / np.sqrt(max(size[0], 1))).astype(np.float32)
            if matrices[name]
            else np.zeros(size, np.float32)
            for name, size in sizes.items()
        }
        return params, make_zero_moments(optimiser, params)

    def draw(seed: int, model_data: Any, stretches: Sequence[Array]) -> Iterator[Array]:
        return draw_batches_by_interval(
            seed, stretches, loop.steps, lambda rng, n: draw_batches(rng, model_data[1], n, training.batch)
        )

    def step(state: Any, data: Any, model_data: Any, places: jax.Array) -> Any:
        params, moments = state
        rows = (*(array[model_data[0][places]] for array in data), model_data[1][places])
        slope = jax.grad(compute_policy_loss, argnums=1)(shape, params, rows, model_data[4], model_data[5])
        update, moments = optimiser.update(slope, moments, params)
        return optax.apply_updates(params, update), moments

    def loss(state: Any, data: Any, model_data: Any) -> jax.Array:
        return compute_policy_loss(
            shape, state[0], (*(array[model_data[2]] for array in data), model_data[3]), model_data[4], model_data[5]
        )

    return TrainingProgram(
        lambda seeds, _model_data: initialise_models_by_seed(seeds, first),
        draw,
        step,
        loss,
        lambda state: state[0],
        (0, 2),
        shape.depth * shape.width,
    )
