"""The rule behind an exploration gives new customers what it gives those it was found on, at the same cost."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from largesse.exploration import (
    EpsilonGreedyPriceRule,
    ExplorationRule,
    ResponseVariance,
    design_exploration,
    find_exploration_rule,
    load_exploration_kernel,
    make_exploration_task,
)
from largesse.io import RecordReader, pack_value
from largesse.records import Array

COSTS = np.array([0.0, 1.0, 2.0, 3.0])


def draw_curves(seed: int, n: int = 2000, kinds: int | None = None) -> Array:
    """Curves of customers; of a few kinds, the same for every seed, many tie at any price."""
    rng = np.random.default_rng([5, seed if kinds is None else kinds])
    many = n if kinds is None else kinds
    curves = np.minimum(rng.uniform(0.1, 0.4, (many, 1)) + rng.gamma(2.0, 0.05, (many, 1)) * np.sqrt(COSTS), 0.95)
    return curves if kinds is None else curves[np.random.default_rng(seed).integers(0, kinds, n)]


def explore(curves: Array, budget: float, goal: str, **more: Any) -> Any:
    task = make_exploration_task(curves, COSTS, curves * (1 - curves), budget, **more)
    design = design_exploration(task, 0.05, goal)
    return task, design, find_exploration_rule(task, design, 0.05, goal, ResponseVariance())


@pytest.mark.parametrize("budget", [0.3, 1.2, 2.9, 5.0])
@pytest.mark.parametrize("goal", ["evaluation", "learning"])
def test_the_plans_own_customers_get_the_plans_probabilities(goal: str, budget: float) -> None:
    task, found, rule = explore(draw_curves(0), budget, goal)
    value_price, cost_price = found.prices
    same = replace(rule, value_price=value_price, cost_price=cost_price)
    for one, close in ((same, 1e-8), (rule, 2e-3)):  # the rule's own prices allow for customers on the edge of a plan
        off = np.abs(one.probabilities(task.curves, COSTS) - found.probabilities).max(axis=1)
        assert np.sort(off)[:-3].max() < close
        assert off.max() < 0.2  # of the plan's and of its neighbours' edge


@pytest.mark.parametrize("kinds", [None, 1, 2, 5])
@pytest.mark.parametrize("budget", [0.3, 1.2, 2.5])
@pytest.mark.parametrize("goal", ["evaluation", "learning"])
def test_it_costs_and_gives_up_what_the_plan_does_even_where_many_customers_tie(
    goal: str, budget: float, kinds: int | None
) -> None:
    task, found, rule = explore(draw_curves(0, kinds=kinds), budget, goal)
    given = rule.probabilities(task.curves, COSTS)
    assert task.compute_mean_cost(given) <= budget * (1 + 1e-7)
    assert task.compute_mean_response(given) == pytest.approx(task.compute_mean_response(found.probabilities), rel=1e-7)


@pytest.mark.parametrize("kinds", [None, 1, 7])
@pytest.mark.parametrize("goal", ["evaluation", "learning"])
def test_new_customers_cost_on_average_what_those_of_the_plan_do(goal: str, kinds: int | None) -> None:
    off = []
    for seed in range(6):
        task, design, rule = explore(draw_curves(seed, kinds=kinds), 1.2, goal)
        spend, expected = (
            rule.probabilities(draw_curves(100 + seed, kinds=kinds), COSTS) @ COSTS,
            task.compute_mean_cost(design.probabilities),
        )
        assert 1.19 < expected <= 1.2
        off.append((spend.mean() - expected) / max(spend.std() * np.sqrt(2 / 2000), 1e-6))
    assert np.abs(off).max() < 4  # standard errors: both sets of customers are samples
    assert np.abs(np.mean(off)) < 2


def spread_slowly(levels: tuple[int, int, int], cost: Array, variance: Array, rule: ExplorationRule) -> Array:
    """One customer's probabilities, as the formula has them."""
    eye = np.eye(len(cost))
    weight = (eye[levels[0]] - rule.incumbent) ** 2 + 0.25 * eye[levels[0]]
    weight += sum(0.25 * (eye[near] - eye[levels[0]]) ** 2 for near in levels[1:])
    weight = np.ones(len(cost)) if rule.goal == "learning" else np.maximum(weight, 0.01)
    spread = np.sqrt(weight * np.maximum(variance, rule.floor))

    def given(a: float) -> Array:
        return np.maximum(rule.min_probability, spread / np.sqrt(a + (cost - cost.min())))

    return given(
        brentq(lambda a: given(a).sum() - 1, 1e-14, (len(cost) * spread.max() / 0.5) ** 2, xtol=1e-15, rtol=1e-14)
    )


@pytest.mark.parametrize("goal", ["evaluation", "learning"])
def test_the_compiled_step_is_the_formula(goal: str) -> None:
    rng, step = np.random.default_rng(3), load_exploration_kernel()
    for _ in range(200):
        K = int(rng.integers(2, 7))
        plans = [EpsilonGreedyPriceRule(1.0)] * 3
        mix = rng.dirichlet(np.ones(K))
        rule = ExplorationRule(goal, rng.uniform(0.01, 0.5), plans[0], tuple(plans[1:]), tuple(mix), 1.0, 1.0, 1e-4)
        levels = tuple(int(k) for k in rng.integers(0, K, 3))
        cost, variance = rng.exponential(10 ** rng.uniform(-1, 4), K), rng.uniform(0, 0.25, K) * (rng.random(K) < 0.8)
        out = np.empty(K)
        step(levels, cost, variance, rule.pack(), out)
        assert out == pytest.approx(spread_slowly(levels, cost, variance, rule), rel=1e-6)
        assert out.sum() == pytest.approx(1)


@pytest.mark.parametrize("goal", ["evaluation", "learning"])
def test_one_customer_by_the_compiled_step_gets_what_all_of_them_do_together(goal: str) -> None:
    task, _, rule = explore(draw_curves(1, n=300), 1.2, goal)
    step, given = load_exploration_kernel(), rule.probabilities(task.curves, COSTS)
    plans = [mixture.probabilities(task.curves, COSTS).argmax(axis=1) for mixture in (rule.plan, *rule.near)]
    for i in range(300):
        cost, out = rule.cost_price * COSTS - rule.value_price * task.curves[i], np.empty(4)
        step(tuple(int(plan[i]) for plan in plans), cost, task.curves[i] * (1 - task.curves[i]), rule.pack(), out)
        assert out == pytest.approx(given[i], rel=1e-9)


def test_a_mix_that_is_given_is_explored_against_and_levels_of_each_customer_are_not_a_rule() -> None:
    curves = draw_curves(2, n=400)
    same = np.tile([0.0, 0.0, 1.0, 0.0], (400, 1))
    assert explore(curves, 1.2, "evaluation", incumbent=same)[2].incumbent == (0, 0, 1, 0)
    own = np.eye(4)[np.random.default_rng(0).integers(0, 4, 400)]
    assert explore(curves, 1.2, "evaluation", incumbent=own)[2] is None


def test_eligible_levels_have_no_rule_for_other_customers() -> None:
    eligible = np.ones((400, 4), dtype=bool)
    eligible[:9, 3] = False
    assert explore(draw_curves(3, n=400), 1.2, "evaluation", eligible=eligible)[2] is None


def test_a_rule_is_read_back_as_it_was_written() -> None:
    rule = explore(draw_curves(4, kinds=3), 1.2, "evaluation")[2]

    def read(content: Any) -> ExplorationRule:
        return RecordReader({}, {}, None).unpack(content, ExplorationRule, "exploration", {})  # type: ignore[no-any-return]

    content = pack_value(rule, ExplorationRule, "exploration", {})
    assert read(content) == rule
    for wrong in (
        {"goal": "fun"}, {"rate": -0.1}, {"rate": 2}, {"rate": True}, {"near": []}, {"plan": [0.1]},
        {"plan": {"price": 0.1, "tie_probability": 7.0, "exploration_rate": 0.0}}, {"incumbent": [0.2, 0.2, 0.2, 0.2]},
        {"value_price": "inf"}, {"value_price": "nan"}, {"cost_price": -1.0}, {"floor": 0.0},
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError)):
            read(content | wrong)
