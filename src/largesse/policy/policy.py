"""A response model and a price: a rule for customers not seen yet, and the small file it is saved in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from largesse.allocation import (
    EVEN,
    Constraints,
    Mixture,
    calibrate_mixture,
    confidence_problems,
    correct_costs,
    decide_at_price,
    expected_costs,
)
from largesse.data import feature_table, read_customers
from largesse.errors import (
    NotFittedError,
    Problem,
    budget_problems,
    fail,
    refuse,
    repr_short,
    suggest,
    whole_problems,
)
from largesse.evaluation import Noise, learn_noise
from largesse.io import archive_error, atomic_file, expected_content, read_archive, write_archive
from largesse.levels import Levels
from largesse.policy.aimed import Aimed
from largesse.policy.checks import check_policy
from largesse.policy.exploring import (
    Expected,
    Exploring,
    as_probabilities,
    check_exploring,
    choose_aim,
    explore,
    find_rule,
)
from largesse.policy.export import onnx_inputs, policy_onnx, policy_sql
from largesse.policy.held_out import hold_out_policy
from largesse.policy.movers import measure_movers
from largesse.policy.score_card import CardSettings, ScoreCard, check_card, make_score_card, offer_levels
from largesse.policy.state import read_facts, write_facts
from largesse.records import Array, Card, Customers, Decisions, Explanation, Exploration, Log, Spending, find_changes
from largesse.response import ResponseModel, model_classes, own_costs
from largesse.stats import draw_levels

FORMAT = "largesse-policy"


@dataclass(frozen=True, eq=False)
class Outlook:
    """What a model expects of customers at every level, (n, K) each."""

    responses: Array
    costs: Array  # in the mean, contact and corrections included
    listed: Array | None = None  # costs or face values as the levels list them; None where costs are observed


@final
@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """Who gets which level: the best of expected response − price × expected cost.

    Parameters
    ----------
    model
        A fitted response model.
    levels
        The levels and their costs.
    price
        Response given up per unit of cost: `plan.price` of a plan for similar customers, or what `calibrate` finds.
    at_random
        The share of customers who get a level at random, all levels alike, so that the next log can be learnt from.
    share
        Where two levels are worth the same at the price, the probability of the dearer one; found by `calibrate`.
    spending
        What plans really cost on the log, where costs depend on what customers do: `measure_spending(scores).whole`.
    scale
        What expected costs are multiplied by so that the policy really costs its budget; found by `calibrate`.
    aimed
        How levels are drawn around the price so that the next log tells most for what that costs; found by `calibrate`.

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
    at_random: float = field(default=0.0, kw_only=True)
    share: float = field(default=0.0, kw_only=True)
    spending: Spending | None = field(default=None, kw_only=True)
    scale: float = field(default=1.0, kw_only=True)
    aimed: Aimed | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_policy(self)

    def __repr__(self) -> str:
        mixed = f", at_random={self.at_random:g}" if self.at_random else ""
        mixed += "" if self.aimed is None else f", explores for {self.aimed.rule.for_}"
        return f"Policy({self.model!r}, {len(self.levels)} levels, price={self.price}{mixed})"

    def _repr_html_(self) -> str:
        costs = self.levels.costs if self.levels.certain and not self.levels.cost_columns else [None] * len(self.levels)
        rows = list(zip(self.levels.titles, costs, strict=True))
        return Card(repr(self), ("level", "cost"), rows).html

    @property
    def draws(self) -> bool:
        """Whether chance has a part in who gets what."""
        return self.aimed is not None or self.share > 0 or self.at_random > 0

    def calibrate(
        self,
        customers: Any,
        budget: float,
        *,
        explore: float | None = None,
        explore_for: str | None = None,
        log: Log | None = None,
        confidence: float = EVEN,
    ) -> Policy:
        """Return this policy at the price at which customers like these cost `budget` on average.

        What exploring costs is part of the budget. `explore` is the share of customers who get a level at random. With
        `explore_for`, "evaluation" or "learning", levels are drawn around the price instead, as `Policy.explore` draws them, and
        give up as much expected response; `log` then says how much responses vary, where they are not yes or no. By default
        the policy explores as before. `confidence` is the probability with which the true cost is to be within the budget,
        where the policy knows what plans really cost (`spending`).
        """
        refuse("policy", [*budget_problems(budget, unlimited=True), *confidence_problems(confidence, "confidence")])
        aim = choose_aim(explore, explore_for, self)
        policy = replace(self, scale=1.0, aimed=None, at_random=self.at_random if explore is None else explore)
        curves, costs = policy._expected(customers)
        scale = correct_costs(curves, costs, budget, self.spending, confidence).scale
        if aim is None:
            rule = calibrate_mixture(curves, costs * scale, budget, policy.at_random)
            return replace(policy, price=rule.price, share=rule.share, scale=scale)
        check_exploring(aim.for_, aim.rate, 0, log)
        known = None if self.aimed is None else self.aimed.noise
        aimed = find_rule(Expected(curves, costs * scale, self._find_noise(log, known)), budget, aim)
        own = aimed.rule.plan
        return replace(policy, price=own.price, share=own.share, scale=scale, at_random=0.0, aimed=aimed)

    def _find_noise(self, log: Log | None, known: Noise | None = None, seed: int = 0) -> Noise:
        """Return how much responses vary, from the log that the model learnt from, if it is given."""
        if log is not None:
            return learn_noise(log, self.model, seed)
        if known is None and not self.model.binary_:
            hint = "give the log that the model learnt from: log=log"
            fail("explore", Problem("responses are amounts, and nothing says how much they vary", hint))
        return known or Noise()

    def probabilities(self, customers: Any) -> Array:
        """Return the probability (n, K) with which each customer gets each level."""
        return self._mix(*self._expected(customers))

    def mix(self, expected: Outlook) -> Array:
        """Return the probability (n, K) of each level for customers of whom this is expected."""
        return self._mix(expected.responses, np.ascontiguousarray(expected.costs))

    def _mix(self, curves: Array, costs: Array) -> Array:
        if self.aimed is not None:
            return self.aimed.probabilities(curves, costs)
        return Mixture(self._price(), self.share, self.at_random).probabilities(curves, costs)

    def offer(self, customers: Any, *, seed: int = 0) -> Decisions:
        """Draw a level for each customer, and give its probability: write both into the next log."""
        refuse("policy", whole_problems(seed, "the seed"))
        probabilities = self.probabilities(customers)
        levels = draw_levels(probabilities, seed)
        return Decisions(levels, probabilities[np.arange(len(levels)), levels], self.levels.labels)

    def explore(
        self,
        customers: Any,
        budget: float | None = None,
        *,
        for_: str = "evaluation",
        rate: float = 0.05,
        incumbent: Any = None,
        constraints: Constraints | None = None,
        log: Log | None = None,
        seed: int = 0,
    ) -> Exploration:
        """Plan for customers, and draw levels around the plan so that the next log tells most for what that costs.

        Parameters
        ----------
        customers, budget
            Whom to plan for, and the average cost that may not be exceeded, exploring included; by default what the policy
            costs at its price.
        for_
            "evaluation": the next log is to tell what the plan brings, and what it gains over what it is compared with.
            "learning": it is to tell every level's effect on every customer.
        rate
            Exploring gives up as much expected response as drawing the levels of this share of customers at random.
        incumbent
            What the plan will be compared with: levels (n,), probabilities (n, K) or a policy; by default the best uniform mix.
        constraints
            What the plan must keep besides the budget. Caps and least shares hold for the levels that are drawn, totals of
            money on average.
        log
            The log the model learnt from: says how much responses vary. Needed unless they are yes or no.
        seed
            The same seed draws the same levels.

        >>> from largesse.worlds import simulate
        >>> from largesse.response import Linear
        >>> sim = simulate("averaged", n=500)
        >>> found = Policy(Linear().fit(sim.log), sim.log.levels).explore(sim.features, budget=1.5)
        >>> found.probabilities.shape, found.spend <= 1.5, found.precisions[0].gain_se < found.precisions[1].gain_se
        ((500, 5), True, True)
        """
        check_exploring(for_, rate, seed, log, constraints)
        noise = self._find_noise(log, seed=seed)
        read = self._read(customers)
        curves, costs = (self if budget is None else replace(self, scale=1.0))._expected(read)
        if budget is None:
            chosen = decide_at_price(curves, costs, self._price())
            budget = float(np.broadcast_to(costs, curves.shape)[np.arange(len(chosen)), chosen].mean())
        else:
            refuse("explore", budget_problems(budget))
            costs = costs * correct_costs(curves, costs, budget, self.spending).scale
        before = None if incumbent is None else as_probabilities(incumbent, read, curves.shape)
        return explore(Expected(curves, costs, noise), budget, Exploring(for_, rate, before, constraints, seed))

    def decide(self, customers: Any, *, names: bool = False) -> Array:
        """Return the level (n,) of each of the customers: `Customers`, a `Log`, a table, a path or an array (n, p).

        Levels are numbers from 0, or with `names` as the log writes them. It is the best level at the price; nothing is
        drawn at random, as `offer` does.
        """
        price = self._price()
        levels = decide_at_price(*self._expected(customers), price)
        return np.array(self.levels.labels, dtype=object)[levels] if names else levels

    def explain(self, customers: Any, *, log: Log | None = None, folds: int = 3, seed: int = 0) -> Explanation:
        """Say why customers, given as for `decide`, get their levels, and at which prices they would get others.

        With a `log`, also say which features move decisions, measured on its rows: a model that learnt from this log is
        fitted anew without each of `folds` folds, so that every row is held out. A log that shares only some rows with
        the one it learnt from is not recognised, and flatters.
        """
        price = self._price()
        refuse("policy", [*whole_problems(folds, "folds", least=2), *whole_problems(seed, "the seed")])
        if log is not None and (not isinstance(log, Log) or len(log.levels) != len(self.levels)):
            hint = f"give a log from read_log with the policy's {len(self.levels)} levels"
            fail("policy", Problem(f"decisions cannot be measured on {repr_short(log)}", hint))
        read = self._read(customers)
        curves, costs = self._expected(read)
        costs = np.ascontiguousarray(np.broadcast_to(costs, curves.shape))
        levels = decide_at_price(curves, costs, price)
        named = read.customer if isinstance(read, Customers) else None
        movers = () if log is None else tuple(measure_movers(self.model, self._decide_by, price, log, folds, seed))
        return Explanation(
            *(curves, costs, price, levels, *find_changes(curves, costs, levels), self.levels.labels, named),
            movers=movers,
            rows=0 if log is None else len(log.seen),
        )

    def _decide_by(self, model: ResponseModel, customers: Customers) -> tuple[Array, Array]:
        """Return levels (n,) and curves (n, K) of customers at this policy's price, by another model."""
        curves, costs = replace(self, model=model)._expected(customers)
        return decide_at_price(curves, costs, self._price()), curves

    def _price(self) -> float:
        if self.price is None:
            hint = "calibrate it, or plan first: Policy(model, levels, price=plan.price)"
            raise NotFittedError("policy", [Problem("it has no price yet", hint)])
        return self.price

    def expect(self, customers: Any) -> Outlook:
        """Return what the model expects of customers at every level: responses, costs, and what is listed as cost."""
        read = self._read(customers)
        curves, costs = self._expected(read)
        own = None if self.levels.observed else own_costs(self.model, read)
        listed = self.levels.common_costs if own is None else own
        wide = [None if part is None else np.broadcast_to(part, curves.shape) for part in (costs, listed)]
        return Outlook(np.asarray(curves, dtype=np.float64), *wide)  # type: ignore[arg-type]

    def _expected(self, customers: Any) -> tuple[Array, Array]:
        """Return the expected responses (n, K) and costs (K,) or (n, K) of customers in any form."""
        customers = self._read(customers)
        curves = self._curves(customers)
        costs = expected_costs(self.levels, curves, own_costs(self.model, customers))
        return curves, costs if self.scale == 1.0 else costs * self.scale

    def _read(self, customers: Any) -> Any:
        """Return customers as a model takes them, with their own costs if they have any."""
        if isinstance(customers, Log):
            return Customers(customers.features, customers.customer, customers.costs)
        if not isinstance(customers, Customers) and (
            self.levels.cost_columns or isinstance(customers, str | os.PathLike)
        ):
            return read_customers(customers, levels=self.levels)
        return customers

    def _curves(self, customers: Any) -> Array:
        with np.errstate(all="ignore"):
            curves = self.model.predict(customers)
            finite = np.isfinite(curves.sum()) or np.isfinite(curves).all()
        if not finite:
            hint = "look for features far outside the log that it learnt from"
            fail("policy", Problem("the model predicts numbers that are missing or infinite", hint))
        return curves

    def to_sql(
        self, dialect: str = "duckdb", *, table: str | Sequence[str] = "customers", customer: str | None = "customer"
    ) -> str:
        """Return one SELECT that decides like this policy: customer, level, its number, expected response and cost.

        Parameters
        ----------
        dialect
            "duckdb", "postgresql", "spark" or "bigquery".
        table
            The table of customers, with the log's features (and costs, where they are per customer) under their names;
            "shop.customers" is a table of a schema, ["shop", "a.b"] one with a dot in its name.
        customer
            The column that says who a row is; None for none.

        A policy that explores gives its best level at the price: nothing is drawn at random.
        """
        return policy_sql(self, self._price(), dialect, table, customer)

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """Return an ONNX model that decides like this policy, and write it to a file if a path is given.

        Its outputs are level, level_number, expected_response and expected_cost; `onnx_inputs` gives its inputs. Needs the
        package onnx: ``pip install 'largesse[export]'``.
        """
        model = policy_onnx(self, self._price())
        if path is not None:
            with atomic_file(path) as part:
                part.write_bytes(model)
        return model

    def onnx_inputs(self, customers: Any) -> dict[str, Array]:
        """Return customers, given as for `decide`, as the inputs of the model that `to_onnx` makes, (n, 1) each."""
        read = self._read(customers)
        table = read.features if isinstance(read, Customers) else feature_table(read)
        names = self.levels.cost_columns or ()
        costs = dict(zip(names, getattr(read, "costs", np.zeros((0, 0))).T, strict=True)) if names else {}
        return onnx_inputs(self.model.encoder_, table, costs)

    def to_score_card(
        self, customers: Any, *, depth: int = 3, budget: float | None = None, folds: int = 3, seed: int = 0
    ) -> ScoreCard:
        """Return a tree of at most `depth` conditions in a row that stands for this policy, and what it loses against it.

        It is learnt from customers, given as for `decide`, to bring most at the policy's price for at most `budget`, by
        default what the policy costs. From a `Log`, its honest value is measured, too, on held-out rows: a model that
        learnt from this log is fitted anew without each of `folds` folds.
        """
        check_card(depth, budget, folds, seed)
        price, read = self._price(), self._read(customers.seen if isinstance(customers, Log) else customers)
        offered = offer_levels(self.model.encoder_, read, *self._expected(read), seed)
        log = customers if isinstance(customers, Log) else None
        held = None if log is None else hold_out_policy(self.model, self._decide_by, log, folds, seed)
        return make_score_card(self.levels, offered, held, CardSettings(depth, budget, price, seed))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file; the same policy gives the same bytes."""
        write_archive(path, FORMAT, *self._state())

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the manifest and the arrays that the policy is saved as."""
        model, arrays = self.model.state()
        return {"model": model, **write_facts(self)}, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy file; refuse it unless everything in it is known and complete."""
        manifest, arrays = read_archive(path, FORMAT)
        with expected_content(path):
            kind = manifest["model"]["kind"]
            known = model_classes()
            if kind not in known:
                raise archive_error(path, f"holds a model of kind {kind!r}", suggest(str(kind), known))
            model = known[kind].from_state(manifest["model"], arrays, known)
            model.check_curves()
            return cls(model, **read_facts(manifest))
