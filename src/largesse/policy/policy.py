"""Policy: a response model and a shadow price that decide the level of each new customer; stored in one file."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from largesse.allocation import (
    BUDGET_CONFIDENCE,
    Constraints,
    add_cheapest_level,
    decide_at_price,
    expected_costs,
    find_cost_correction,
    penalise_unsupported_levels,
)
from largesse.data import make_feature_table, read_customers
from largesse.errors import (
    Problem,
    fail,
    fail_not_fitted,
    find_budget_problems,
    find_confidence_problems,
    find_integer_problems,
    number_or_none,
    refuse,
    repr_short,
    suggest,
)
from largesse.exploration import (
    AT_RANDOM,
    DEFAULT_RATE,
    EpsilonGreedyPriceRule,
    ExplorationRule,
    ResponseVariance,
    check_exploration,
    convert_policy_probabilities,
    estimate_response_variance,
    fit_rule_to_budget,
    plan_exploration,
)
from largesse.io import (
    RecordReader,
    atomic_file,
    convert_content_errors,
    make_archive_error,
    pack_value,
    read_archive,
    write_archive,
)
from largesse.levels import Levels
from largesse.policy.export import make_policy_onnx, onnx_inputs, write_policy_sql
from largesse.policy.feature_importance import decide_out_of_fold, measure_feature_importance
from largesse.policy.policy_tree import PolicyTree, TreeSettings, make_policy_tree, make_tree_data
from largesse.propensity import find_supported_levels
from largesse.records import (
    Array,
    Card,
    Customers,
    DrawnLevels,
    Explanation,
    Exploration,
    Log,
    SpendingCurve,
    UnsupportedCells,
    find_neighbouring_levels_and_prices,
)
from largesse.response import ResponseModel, WithCosts, get_customer_costs, list_model_classes
from largesse.stats import draw_levels

if TYPE_CHECKING:
    import pyarrow as pa

POLICY_FORMAT = "largesse-policy"
MAX_SCALE = 1e6  # of costs, up or down: corrections are far smaller, and products stay finite


@dataclass(frozen=True, eq=False)
class ExpectedOutcomes:
    """Expected responses and costs of customers at every level, (n, K) each."""

    responses: Array
    costs: Array  # with contact costs and corrections
    listed: Array | None = None  # listed costs or face values; None where costs are observed


@dataclass(frozen=True)
class AllowedLevels:
    """The levels that a policy chooses among, and the customer groups that are barred from some levels."""

    levels: Levels
    cells: UnsupportedCells = field(default_factory=UnsupportedCells)

    def mark_allowed(self, features: pa.Table) -> Array | None:
        """Return the mask (n, K) of the levels that customers with these features may get; None if no level is barred."""
        return add_cheapest_level(find_supported_levels(self.cells, features, len(self.levels))) if self.cells else None

    def expect_outcomes(self, curves: Array, paid: Array | None, allowed: Array | None) -> tuple[Array, Array]:
        """Return responses (n, K) and expected costs (K,) or (n, K); barred levels are made unattractive.

        `paid` are customers' own costs (n, K), if they differ. A level without support is never the best; see
        `allocation.penalise_unsupported_levels`.
        """
        costs = expected_costs(self.levels, curves, paid)
        if allowed is None:
            return curves, costs
        return penalise_unsupported_levels(curves, np.broadcast_to(costs, curves.shape), allowed)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """Rule that gives each customer the level with the highest expected response − shadow price × expected cost.

    Parameters
    ----------
    model
        A fitted response model.
    levels
        The levels and their costs.
    price
        Value of one unit of cost in responses: `plan.price` of a plan for similar customers, or found by `calibrate`.
    exploration_rate
        Share of customers who get a random level, so that the next log is informative.
    tie_probability
        Probability of the dearer of two levels that tie at the price; found by `calibrate`.
    spending
        True costs of plans on the log, where costs depend on customers' responses: `measure_spend_by_price(scores).curve_of_all_folds`.
    scale
        Multiplier of expected costs that corrects them to the true costs; found by `calibrate`.
    exploration
        Rule that draws levels around the price for the most informative next log; found by `calibrate`.
    unsupported
        Kinds of customers who never got some levels in the log: `doctor(log).unsupported`.
    bar_unsupported
        Whether such customers never get these levels; the cheapest is never barred.

    Examples
    --------
    >>> from largesse.worlds import simulate
    >>> from largesse.response import Linear
    >>> sim = simulate("averaged", n=500)
    >>> policy = Policy(Linear().fit(sim.log), sim.log.levels, price=0.045)
    >>> policy.decide(sim.features).shape
    (500,)
    """

    model: ResponseModel
    levels: Levels
    price: float | None = None
    exploration_rate: float = field(default=0.0, kw_only=True)
    tie_probability: float = field(default=0.0, kw_only=True)
    spending: SpendingCurve | None = field(default=None, kw_only=True)
    scale: float = field(default=1.0, kw_only=True)
    exploration: ExplorationRule | None = field(default=None, kw_only=True)
    unsupported: UnsupportedCells = field(default_factory=UnsupportedCells, kw_only=True)
    bar_unsupported: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        _check_policy(self)

    def __repr__(self) -> str:
        mixed = f", exploration_rate={self.exploration_rate:g}" if self.exploration_rate else ""
        mixed += "" if self.exploration is None else f", explores for {self.exploration.goal}"
        return f"Policy({self.model!r}, {len(self.levels)} levels, price={self.price}{mixed})"

    def _repr_html_(self) -> str:
        costs = self.levels.costs if self.levels.certain and not self.levels.cost_columns else [None] * len(self.levels)
        rows = list(zip(self.levels.titles, costs, strict=True))
        return Card(repr(self), ("level", "cost"), rows).html

    @property
    def draws(self) -> bool:
        """True if the policy draws levels at random."""
        return self.exploration is not None or self.tie_probability > 0 or self.exploration_rate > 0

    def calibrate(
        self,
        customers: Any,
        budget: float,
        *,
        explore: float | None = None,
        explore_for: str | None = None,
        log: Log | None = None,
        confidence: float = BUDGET_CONFIDENCE,
    ) -> Policy:
        """Return this policy with the shadow price at which these customers cost `budget` on average.

        The budget includes the cost of exploration.

        `explore` is the share of customers who get a random level. With `explore_for` ("evaluation" or "learning"), levels are
        drawn around the price instead, as by `Policy.explore`, at the same loss of expected response; `log` then provides the
        variance of responses that are not yes or no. By default the policy explores as before. `confidence` is the probability
        that the true cost is within the budget, if the policy knows the true costs of plans (`spending`).
        """
        refuse(
            "policy",
            [*find_budget_problems(budget, unlimited=True), *find_confidence_problems(confidence, "confidence")],
        )
        rate = self.exploration_rate if explore is None else explore
        policy = replace(self, scale=1.0, exploration=None, exploration_rate=rate)
        curves, costs = policy._predict_outcomes(customers)
        scale = find_cost_correction(curves, costs, budget, self.spending, confidence).scale
        known = self.exploration
        if explore_for is None and explore is None and known is not None:
            goal, rate = known.goal, known.rate
        else:
            goal, rate = explore_for or AT_RANDOM, DEFAULT_RATE if explore is None else explore
        if goal == AT_RANDOM:
            mixture = fit_rule_to_budget(curves, costs * scale, budget, policy.exploration_rate)
            return replace(policy, price=mixture.price, tie_probability=mixture.tie_probability, scale=scale)
        check_exploration(goal, rate, 0, log)
        variance = self._find_response_variance(log, None if known is None else known.variance)
        rule = plan_exploration(curves, costs * scale, budget, variance, goal=goal, rate=rate)[1]
        assert rule is not None  # no customer is barred from any level
        drawn: Any = {"tie_probability": rule.plan.tie_probability, "exploration_rate": 0.0, "exploration": rule}
        return replace(policy, price=rule.plan.price, scale=scale, **drawn)

    def _find_response_variance(
        self, log: Log | None, known: ResponseVariance | None = None, seed: int = 0
    ) -> ResponseVariance:
        """Return the variance of responses, estimated from the log if it is given."""
        if log is not None:
            return estimate_response_variance(log, self.model, seed)
        if known is None and not self.model.binary_:
            hint = "give the log that the model learnt from: log=log"
            fail("explore", Problem("responses are amounts, and their variance is not known", hint))
        return known or ResponseVariance()

    def probabilities(self, customers: Any) -> Array:
        """Return the probability (n, K) of each level for each customer."""
        return self.mix(ExpectedOutcomes(*self._predict_outcomes(customers)))

    def mix(self, expected: ExpectedOutcomes) -> Array:
        """Return the probability (n, K) of each level from the expected responses and costs of customers."""
        curves, costs = expected.responses, np.ascontiguousarray(expected.costs)
        if self.exploration is not None:
            return self.exploration.probabilities(curves, costs)
        return self._mixture.probabilities(curves, costs)

    @cached_property
    def _mixture(self) -> EpsilonGreedyPriceRule:
        return EpsilonGreedyPriceRule(self._require_price(), self.tie_probability, self.exploration_rate)

    def offer(self, customers: Any, *, seed: int = 0) -> DrawnLevels:
        """Draw a level for each customer at random; return levels and their propensities for the next log."""
        refuse("policy", find_integer_problems(seed, "the seed"))
        probabilities = self.probabilities(customers)
        levels = draw_levels(probabilities, seed)
        return DrawnLevels(levels, probabilities[np.arange(len(levels)), levels], self.levels.labels)

    def explore(
        self,
        customers: Any,
        budget: float | None = None,
        *,
        goal: str = "evaluation",
        rate: float = DEFAULT_RATE,
        incumbent: Any = None,
        constraints: Constraints | None = None,
        log: Log | None = None,
        seed: int = 0,
    ) -> Exploration:
        """Plan levels within a budget, randomised around the plan so that the next log is informative.

        Parameters
        ----------
        customers, budget
            Customers to plan for, and the average cost that may not be exceeded, exploration included; by default the cost of
            the policy at its price.
        goal
            "evaluation": a precise value of the plan, and a precise gain over the incumbent.
            "learning": a precise effect of every level on every customer.
        rate
            Exploration loses as much expected response as random levels for this share of customers.
        incumbent
            Levels (n,), probabilities (n, K) or a policy to compare the plan with; by default the best uniform mix.
        constraints
            `Constraints(eligible=…)`: allowed levels of each customer. Other constraints are not supported.
        log
            The log of the model, for the variance of responses. Required unless responses are yes or no.
        seed
            The same seed draws the same levels.

        Examples
        --------
        >>> from largesse.worlds import simulate
        >>> from largesse.response import Linear
        >>> sim = simulate("averaged", n=500)
        >>> found = Policy(Linear().fit(sim.log), sim.log.levels).explore(sim.features, budget=1.5)
        >>> found.probabilities.shape, found.spend <= 1.5, found.precisions[0].gain_se < found.precisions[1].gain_se
        ((500, 5), True, True)
        """
        check_exploration(goal, rate, seed, log, constraints)
        variance = self._find_response_variance(log, seed=seed)
        read = self._read_customers(customers)
        curves, costs = (self if budget is None else replace(self, scale=1.0))._predict_outcomes(read)
        if budget is None:
            chosen = decide_at_price(curves, costs, self._require_price())
            budget = float(np.broadcast_to(costs, curves.shape)[np.arange(len(chosen)), chosen].mean())
        else:
            refuse("explore", find_budget_problems(budget))
            costs = costs * find_cost_correction(curves, costs, budget, self.spending).scale
        before = None if incumbent is None else convert_policy_probabilities(incumbent, read, curves.shape)
        settings: Any = {"goal": goal, "rate": rate, "incumbent": before, "constraints": constraints, "seed": seed}
        return plan_exploration(curves, costs, budget, variance, **settings)[0]

    def decide(self, customers: Any, *, names: bool = False) -> Array:
        """Return the best level (n,) of each customer at the policy's shadow price.

        Customers are `Customers`, a `Log`, a table, a path or an array (n, p).

        Levels are numbers from 0, or with `names` as in the log. Nothing is drawn at random: see `offer`.
        """
        price = self._require_price()
        levels = decide_at_price(*self._predict_outcomes(customers), price)
        return np.array(self.levels.labels, dtype=object)[levels] if names else levels

    def explain(self, customers: Any, *, log: Log | None = None, folds: int = 3, seed: int = 0) -> Explanation:
        """Explain each customer's level, with the shadow prices at which the customer would get other levels.

        Customers are given as for `decide`.

        With a `log`, also measure the importance of features for decisions on its rows: a model that learnt from this log is
        fitted again without each of `folds` folds, so that every row is held out. A log that shares only some rows with the
        training log is not recognised, and the measurement is then too optimistic.
        """
        price = self._require_price()
        refuse("policy", [*find_integer_problems(folds, "folds", least=2), *find_integer_problems(seed, "the seed")])
        if log is not None and (not isinstance(log, Log) or len(log.levels) != len(self.levels)):  # type: ignore[redundant-expr]
            hint = f"give a log from read_log with the policy's {len(self.levels)} levels"
            fail("policy", Problem(f"decisions cannot be measured on {repr_short(log)}", hint))
        read = self._read_customers(customers)
        curves, costs = self._predict_outcomes(read)
        costs = np.ascontiguousarray(np.broadcast_to(costs, curves.shape))
        levels = decide_at_price(curves, costs, price)
        named = read.customer if isinstance(read, Customers) else None
        movers = (
            ()
            if log is None
            else tuple(measure_feature_importance(self.model, self._decide_by_model, price, log, folds, seed))
        )
        return Explanation(
            *(
                curves,
                costs,
                price,
                levels,
                *find_neighbouring_levels_and_prices(curves, costs, levels),
                self.levels.labels,
                named,
            ),
            movers=movers,
            rows=0 if log is None else len(log.seen),
        )

    def _decide_by_model(self, model: ResponseModel, customers: Customers) -> tuple[Array, Array]:
        """Return levels (n,) and curves (n, K) at this policy's shadow price, by another response model."""
        curves, costs = replace(self, model=model)._predict_outcomes(customers)
        return decide_at_price(curves, costs, self._require_price()), curves

    def _require_price(self) -> float:
        if self.price is None:
            hint = "calibrate it, or plan first: Policy(model, levels, price=plan.price)"
            fail_not_fitted("policy", Problem("it has no price yet", hint))
        return self.price

    def expect(self, customers: Any) -> ExpectedOutcomes:
        """Return the expected responses, expected costs and listed costs of customers at every level."""
        read = self._read_customers(customers)
        curves, costs = self._predict_outcomes(read)
        own_listed = None if self.levels.observed else get_customer_costs(self.model, read)
        listed = self.levels.common_costs if own_listed is None else own_listed
        wide = None if listed is None else _broadcast_rows(listed, curves)
        return ExpectedOutcomes(np.asarray(curves, dtype=np.float64), _broadcast_rows(costs, curves), wide)

    def _predict_outcomes(self, customers: Any) -> tuple[Array, Array]:
        """Predict the responses (n, K) and the expected costs (K,) or (n, K) of customers in any form."""
        customers = self._read_customers(customers)
        with np.errstate(all="ignore"):
            curves = self.model.predict(customers)
            finite = math.isfinite(curves.sum()) or np.isfinite(curves).all()
        if not finite:
            hint = "look for features far outside the log that it learnt from"
            fail("policy", Problem("the model predicts numbers that are missing or infinite", hint))
        options = self.options
        allowed = options.mark_allowed(_read_features(customers)) if options.cells else None
        curves, costs = options.expect_outcomes(curves, get_customer_costs(self.model, customers), allowed)
        return curves, costs if self.scale == 1.0 else costs * self.scale

    @cached_property
    def options(self) -> AllowedLevels:
        """The levels that customers may get, and the customer groups that are barred from some levels."""
        return AllowedLevels(self.levels, self.unsupported if self.bar_unsupported else UnsupportedCells())

    def _read_customers(self, customers: Any) -> Any:
        """Convert customers in any form to the input of the response model, with customer-specific costs if known."""
        if isinstance(customers, Log):
            return Customers(customers.features, customers.customer, customers.costs)
        if not isinstance(customers, Customers) and (
            self.levels.cost_columns or isinstance(customers, str | os.PathLike)
        ):
            return read_customers(customers, levels=self.levels)
        return customers

    def to_sql(
        self, dialect: str = "duckdb", *, table: str | Sequence[str] = "customers", customer: str | None = "customer"
    ) -> str:
        """Return one SELECT that decides like this policy: customer, level, level number, expected response and cost.

        Parameters
        ----------
        dialect
            "duckdb", "postgresql", "spark" or "bigquery".
        table
            The table of customers, with the log's features (and costs, where they are per customer) under their names;
            "shop.customers" is a table of a schema, ["shop", "a.b"] one with a dot in its name.
        customer
            The column with the customer's id, or None.

        Notes
        -----
        Nothing is drawn at random: a policy that explores gives its best level at the price.
        """
        return write_policy_sql(self, self._require_price(), dialect, table, customer)

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """Return an ONNX model that decides like this policy; also write a file if a path is given.

        Its outputs are level, level_number, expected_response and expected_cost; `onnx_inputs` gives its inputs. Needs the
        package onnx: ``pip install 'largesse[export]'``.
        """
        model = make_policy_onnx(self, self._require_price())
        if path is not None:
            with atomic_file(path) as unfinished:
                unfinished.write_bytes(model)
        return model

    def onnx_inputs(self, customers: Any) -> dict[str, Array]:
        """Convert customers, given as for `decide`, to the input arrays (n, 1) of the ONNX model."""
        read = self._read_customers(customers)
        table = read.features if isinstance(read, Customers) else make_feature_table(read)
        names = self.levels.cost_columns or ()
        costs = dict(zip(names, getattr(read, "costs", np.zeros((0, 0))).T, strict=True)) if names else {}
        return onnx_inputs(self.model.encoder_, table, costs)

    def to_tree(
        self, customers: Any, *, depth: int = 3, budget: float | None = None, folds: int = 3, seed: int = 0
    ) -> PolicyTree:
        """Approximate this policy by a decision tree of at most `depth` conditions per path, with its loss.

        The tree is learnt from customers, given as for `decide`: it maximises response − price × cost at a cost of at most
        `budget` (default: the cost of the policy). With a `Log`, the loss is also measured on held-out rows, by models that are
        fitted without each of `folds` folds.
        """
        settings = TreeSettings(depth, budget, self._require_price(), seed)
        settings.check(folds)
        read = self._read_customers(customers.seen if isinstance(customers, Log) else customers)
        data = make_tree_data(self.model.encoder_, read, *self._predict_outcomes(read), seed)
        log = customers if isinstance(customers, Log) else None
        held = None if log is None else decide_out_of_fold(self.model, self._decide_by_model, log, folds, seed)
        return make_policy_tree(self.levels, data, held, settings)

    to_score_card = to_tree  # name in version 0.1.0

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file; equal policies give equal bytes."""
        write_archive(path, POLICY_FORMAT, *self._state())

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the settings (as JSON types) and the arrays that the policy's file stores."""
        model, arrays = self.model.state()
        facts = {
            "price": self.price,
            "explore": self.exploration_rate,
            "share": self.tie_probability,
            "scale": self.scale,
            "bar_unsupported": self.bar_unsupported,
        }
        records = {name: pack_value(getattr(self, name), kind, name, {}) for name, kind in RECORDS.items()}
        return {"model": model, "levels": asdict(self.levels), **facts, **records}, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy file; refuse a file that is incomplete or invalid."""
        manifest, arrays = read_archive(path, POLICY_FORMAT)
        with convert_content_errors(path):
            kind = manifest["model"]["kind"]
            known = list_model_classes()
            if kind not in known:
                raise make_archive_error(path, f"holds a model of kind {kind!r}", suggest(str(kind), known))
            model = known[kind].from_state(manifest["model"], arrays, known)
            model.check_curves()
            # Files of version 0.1.0 have no scale and no records.
            reader = RecordReader({}, {}, None)
            records = {name: reader.unpack(manifest.get(name), kind, name, {}) for name, kind in RECORDS.items()}
            spending = records["spending"]
            if spending is not None and not np.isfinite([*spending.price, *spending.expected, *spending.honest]).all():
                raise ValueError("the spending curve holds infinite numbers")
            return cls(
                model,
                Levels(**manifest["levels"]),
                manifest["price"],
                exploration_rate=manifest["explore"],
                tie_probability=manifest["share"],
                scale=manifest.get("scale", 1.0),
                bar_unsupported=manifest["bar_unsupported"],
                **records,
            )


RECORDS: dict[str, Any] = {
    "spending": SpendingCurve | None,
    "exploration": ExplorationRule | None,
    "unsupported": UnsupportedCells,
}  # saved with a policy


def _broadcast_rows(amounts: Array, curves: Array) -> Array:
    """Broadcast amounts (K,) or (n, K) to one row for each curve (n, K)."""
    if len(curves) == 1:
        return np.atleast_2d(amounts)
    return amounts if amounts.shape == curves.shape else np.broadcast_to(amounts, curves.shape)


def _read_features(customers: Any) -> pa.Table:
    """Return the feature table of customers that are not an array of encoded features."""
    return customers.features if isinstance(customers, Customers) else make_feature_table(customers)


def _check_policy(policy: Policy) -> None:
    """Validate the fields of a policy and their consistency."""
    refuse("policy", _find_field_problems(policy))
    n_fitted = getattr(policy.model, "levels_", len(policy.levels))
    if n_fitted != len(policy.levels):
        got = f"the model was fitted with {n_fitted} levels, but {len(policy.levels)} are given"
        fail("policy", Problem(got, "give the levels of the log it was fitted on: log.levels"))
    if policy.levels.observed and not isinstance(policy.model, WithCosts):
        hint = "fit a model of them, too: WithCosts(Stack()).fit(log)"
        fail("policy", Problem("costs are observed, but the model knows responses only", hint))
    rule, problems, hint = policy.exploration, [], "calibrate it again: policy.calibrate(customers, budget)"
    if rule is None:
        return
    if len(rule.incumbent) != len(policy.levels):
        problems.append(Problem(f"it explores {len(rule.incumbent)} levels, and there are {len(policy.levels)}", hint))
    if (rule.plan.price, rule.plan.tie_probability) != (policy.price, policy.tie_probability):
        got = f"it explores around a price of {rule.plan.price:g}, and its price is {repr_short(policy.price)}"
        problems.append(Problem(got, hint))
    if policy.exploration_rate:
        got = f"it explores for {rule.goal}, and gives {policy.exploration_rate:g} of the customers a level at random"
        problems.append(Problem(got, "set exploration_rate or exploration, not both"))
    refuse("policy", problems)


def _find_field_problems(policy: Policy) -> list[Problem]:
    """Return the problems of a policy's single fields: wrong types and invalid numbers."""
    problems = []
    calibrate = "let calibrate find it: policy.calibrate(customers, budget, explore_for='evaluation')"
    kinds: dict[str, tuple[Any, str]] = {
        "model": (ResponseModel, "give a response model that was fitted: Linear().fit(log)"),
        "levels": (Levels, "give the levels of the log: log.levels"),
        "exploration": (ExplorationRule | None, calibrate),
        "unsupported": (UnsupportedCells, "give the cells of a checkup: doctor(log).unsupported"),
        "bar_unsupported": (bool, "give True or False"),
    }
    for name, (kind, hint) in kinds.items():
        if not isinstance(getattr(policy, name), kind):
            problems.append(Problem(f"{name} is {repr_short(getattr(policy, name))}", hint))
    price = 0.0 if policy.price is None else number_or_none(policy.price)
    if price is None or not 0 <= price < math.inf:
        problems.append(
            Problem(f"the price is {repr_short(policy.price)}", "a price is a number, zero or more: plan.price")
        )
    for name in ("exploration_rate", "tie_probability"):
        probability = number_or_none(getattr(policy, name))
        if probability is None or not 0 <= probability <= 1:
            problems.append(
                Problem(f"{name} is {repr_short(getattr(policy, name))}", "give a probability, from 0 to 1")
            )
    scale = number_or_none(policy.scale)
    if scale is None or not 1 / MAX_SCALE <= scale <= MAX_SCALE:
        hint = f"costs are multiplied by a number from {1 / MAX_SCALE:g} to {MAX_SCALE:g}"
        problems.append(Problem(f"scale is {repr_short(policy.scale)}", hint))
    return problems
