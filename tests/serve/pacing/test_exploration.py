"""A price that explores by a rule draws with the rule's probabilities, whatever the price, and never overspends."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from largesse.errors import InputError
from largesse.exploration import (
    ExplorationRule,
    ResponseVariance,
    design_exploration,
    find_exploration_rule,
    make_exploration_task,
)
from largesse.records import Array
from largesse.serve import (
    LedgerStanding,
    LedgerTerms,
    Offers,
    Pacer,
    PacingPlan,
    Population,
    draw_stream,
    open_ledger,
    pace_stream,
    plan_pace,
    plan_stream,
)
from largesse.serve.pacing.population import make_prepaid_population
from support.ledgers import DAY, START

N, K = 2000, 4


def draw_population() -> Population:
    rng = np.random.default_rng(0)
    curves = np.minimum(rng.uniform(0.05, 0.3, (N, 1)) + rng.gamma(2.0, 0.05, (N, 1)) * np.sqrt(np.arange(K)), 0.95)
    return replace(make_prepaid_population(curves, np.arange(K)), variance=curves * (1 - curves))


POPULATION = draw_population()


def derive_rule(population: Population, budget: float, goal: str) -> ExplorationRule:
    assert population.variance is not None
    task = make_exploration_task(population.responses, population.expected_costs, population.variance, budget)
    expected, first = np.unique(population.responses, return_index=True)
    knots = slice(None, None, max(len(first) // 50, 1))  # offers bring the variances that are used
    variances = population.variance.ravel()[first][knots]
    variance = ResponseVariance(tuple(expected[knots].tolist()), tuple(variances.tolist()))
    rule = find_exploration_rule(task, design_exploration(task, 0.05, goal), 0.05, goal, variance)
    assert rule is not None
    return rule


@cache
def rule_at(budget: float, goal: str = "evaluation") -> ExplorationRule:
    return derive_rule(POPULATION, budget, goal)


@cache
def plan_at(budget: float, goal: str | None = "evaluation") -> PacingPlan:
    rule = None if goal is None else rule_at(budget, goal)
    return plan_pace(POPULATION, fixed_terms(budget * N), N, exploration=rule)


def fixed_terms(total: float) -> LedgerTerms:
    return LedgerTerms(int(total * 1e6), START, START + 30 * DAY)


def make_offers(rows: Array, *, variance: bool = True) -> Offers:
    customers = POPULATION.take(rows)
    ids = tuple(f"c{i}" for i in range(len(rows)))
    return Offers(ids, *customers.kernel_arrays[:4], customers.variance if variance else None)


def spread_slowly(
    f: Array, cost: Array, variance: Array, price: float, rule: ExplorationRule, value_price: float
) -> Array:
    """Return one customer's probabilities at a price, as the formula has them."""
    near_prices = [price * near.price / rule.plan.price for near in rule.near]
    planned, *others = (np.eye(K)[np.argmax(f - at * cost)] for at in (price, *near_prices))
    weight = (planned - rule.incumbent) ** 2 + 0.25 * planned
    weight = np.maximum(weight + sum(0.25 * (other - planned) ** 2 for other in others), 0.01)
    weight = np.ones(K) if rule.goal == "learning" else weight
    spread = np.sqrt(weight * np.maximum(variance, rule.floor))
    score = f - price * cost
    lost = value_price * (score.max() - score)

    def given(a: float) -> Array:
        return np.maximum(rule.min_probability, spread / np.sqrt(a + lost))

    return given(brentq(lambda a: given(a).sum() - 1, 1e-14, (2 * K * spread.max()) ** 2, xtol=1e-15, rtol=1e-14))


def decide(plan: PacingPlan, total: float, rows: Array, seed: int = 0, **more: Any) -> Any:
    standing = LedgerStanding(fixed_terms(total), START + DAY, *[0] * 11, state=(), plan=plan.as_dict())
    return Pacer(seed=seed).choose(standing, make_offers(rows, **more))


@pytest.mark.parametrize("goal", ["evaluation", "learning"])
def test_every_propensity_is_that_of_the_formula_at_the_price_of_the_moment(goal: str) -> None:
    plan, rule, variance = plan_at(0.8, goal), rule_at(0.8, goal), POPULATION.variance
    rows = np.random.default_rng(1).integers(0, N, 400)
    choice = decide(plan, 0.8 * N, rows)
    assert len(np.unique(choice.price)) > 100  # it moves
    assert variance is not None
    assert plan.exploration is not None
    for at, (row, price) in enumerate(zip(rows, choice.price, strict=True)):
        f, value_price = POPULATION.responses[row], plan.exploration.value_price
        slow = spread_slowly(f, np.arange(K, dtype=float), variance[row], price, rule, value_price)
        assert choice.propensity[at] == pytest.approx(slow[choice.levels[at]], rel=1e-6)


def test_levels_are_drawn_with_their_propensities() -> None:
    plan = plan_at(0.8)
    plan = replace(plan, gains=replace(plan.gains, window=0.0))  # the price stands still
    choice = decide(plan, 1e9, np.full(20_000, 7))
    shares = np.bincount(choice.levels, minlength=K) / 20_000
    stated = [choice.propensity[choice.levels == k][0] if (choice.levels == k).any() else 0.0 for k in range(K)]
    assert sum(stated) == pytest.approx(1, abs=1e-6)
    assert shares == pytest.approx(stated, abs=0.015)
    assert sum(share > 0 for share in shares) >= 3


def test_a_level_that_does_not_fit_is_replaced_and_the_propensity_counts_both_ways() -> None:
    plan, levels, propensity = plan_at(0.8), [], []
    for seed in range(300):  # room for one unit: the dearer levels never fit
        choice = decide(plan, 1.5, np.array([11]), seed)
        levels.append(int(choice.levels[0]))
        propensity.append(float(choice.propensity[0]))
        assert choice.reason[0] in (0, 1)
    stated = dict(zip(levels, propensity, strict=True))
    assert set(stated) == {0, 1}
    assert sum(stated.values()) == pytest.approx(1, abs=1e-9)
    assert np.mean(levels) == pytest.approx(stated[1], abs=0.1)


def test_without_a_variance_and_without_a_matching_rule_nothing_is_drawn() -> None:
    explores, plain, rows = plan_at(0.8), plan_at(0.8, None), np.arange(300)
    assert (decide(explores, 1e6, rows, variance=False).propensity == 1).all()
    assert (decide(plain, 1e6, rows).propensity == 1).all()
    other = replace(explores, exploration=replace(explores.exploration, incumbent=(0.5, 0.5)))  # type: ignore[type-var]
    assert (decide(other, 1e6, rows).propensity == 1).all()


def test_a_ledger_keeps_the_rule_and_is_never_overspent(tmp_path: Path) -> None:
    plan, terms = plan_at(0.5), fixed_terms(0.5 * N)
    rng, propensity = np.random.default_rng(1), []
    with open_ledger(f"sqlite:///{tmp_path}/x.db", terms, plan=plan.as_dict()) as ledger:
        for day in range(30):
            offers, now = make_offers(rng.integers(0, N, 100)), START + int((day + 0.5) * DAY)
            propensity.append(ledger.decide(f"day {day}", offers, Pacer(seed=day), now=now).propensity)
        standing = ledger.standing(now=START + 30 * DAY - 1)
        assert ledger.audit().matches
    drawn = np.concatenate(propensity)
    assert 0.97 * terms.total < standing.spent <= terms.total
    assert drawn.min() > 0.9 * 0.1 * 0.05 / K
    assert (1 / drawn).mean() == pytest.approx(K, rel=0.25)  # weighted back, every level counts all customers


def test_a_plan_that_explores_is_read_back() -> None:
    plan, plain = plan_at(0.5), plan_at(0.5, None)
    content = plan.as_dict()
    assert PacingPlan.from_dict(content) == plan
    assert plain.as_dict()["exploration"] is None
    assert PacingPlan.from_dict(plain.as_dict()).exploration is None
    rule = content["exploration"]
    for wrong in (
        [], {}, {**rule, "goal": "fun"}, {**rule, "near": [1.0]}, {**rule, "floor": 0.0}, {**rule, "rate": 1.5},
        {**rule, "value_price": -1.0}, {**rule, "incumbent": [0.5, "x"]}, {**rule, "value_price": float("nan")},
    ):  # fmt: skip
        with pytest.raises(InputError, match="holds no plan for its price"):
            PacingPlan.from_dict({**content, "exploration": wrong})


def test_an_invalid_rule_or_variance_is_refused() -> None:
    for population, rule, words in (
        (replace(POPULATION, variance=None), rule_at(0.5), "variance of responses"),
        (POPULATION, "evaluation", "the exploration rule is"),
    ):
        with pytest.raises(InputError, match=words):
            plan_pace(population, fixed_terms(500), N, exploration=rule)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the variances of responses are not valid"):
        Offers(("a",), np.ones((1, 2)), *(np.zeros((1, 2), dtype=np.int64),) * 3, np.full((1, 2), -1.0))


def test_near_prices_are_multiples_of_the_plans_and_one_if_it_is_zero() -> None:
    rule = rule_at(2.9)
    lower, higher = rule.pack_for_pacing()[1:3]
    assert lower >= 1 >= higher
    assert replace(rule, plan=replace(rule.plan, price=0.0)).pack_for_pacing()[1:3].tolist() == [1.0, 1.0]


def test_where_money_is_held_for_promises_exploring_gives_up_no_more_than_the_policys_plan_does() -> None:
    population, rule, ratios = POPULATION, rule_at(0.3), []
    promised = replace(
        population,
        at_once=np.zeros_like(population.face),
        face=population.at_once * 10,
        expected=population.at_once,
    )
    for people, valid in ((population, None), (promised, 10 * DAY)):
        plan = plan_pace(people, replace(fixed_terms(0.3 * N), valid=valid), N, exploration=rule)
        assert plan.exploration is not None
        ratios.append(plan.exploration.value_price / rule.value_price)
    assert ratios[0] == pytest.approx(1, abs=0.1)  # costs are paid at once: the ledger draws as the policy does
    assert ratios[1] > 1.5


@pytest.mark.parametrize(("seed", "promises"), [(3, "kept"), (3, "while_it_lasts"), (6, "kept")])
def test_on_a_stream_exploring_for_evaluation_costs_no_more_than_levels_at_random(seed: int, promises: str) -> None:
    stream = draw_stream(seed)
    top = max(float(stream.population.responses.max()), 1.0)

    def add_variance(people: Population) -> Population:
        share = people.responses / top
        return replace(people, variance=top**2 * np.clip(share * (1 - share), 0.0, None))

    population, customers = add_variance(stream.population), add_variance(stream.customers)
    terms = replace(stream.terms, promises=promises)
    stream = replace(stream, terms=terms, population=population, customers=customers)
    rule = derive_rule(population, terms.total / 1e6 / stream.traits.foreseen, "evaluation")
    plain, aimed, at_random = (
        pace_stream(stream, plan=plan)
        for plan in (plan_stream(stream), plan_stream(stream, rule), plan_stream(stream, rate=0.05))
    )
    gains = [paced.value - paced.base for paced in (plain, aimed, at_random)]
    assert aimed.within_budget
    assert aimed.budget_use > plain.budget_use - 0.05
    assert gains[0] - gains[1] < 1.3 * (gains[0] - gains[2])
    assert (aimed.propensity < 1).mean() > 0.9  # the others come when nothing is left
    assert (plain.propensity == 1).all()


def test_no_level_of_probability_zero_is_drawn() -> None:
    from largesse.serve.pacing.pacing_kernels import draw_level

    p, largest = np.array([0.0, 0.5, 0.5 - 2**-53, 0.0]), 1.0 - 2**-53
    assert p.sum() <= largest  # the sum ends short of one
    assert [draw_level(p, u) for u in (0.0, 0.5, largest)] == [1, 2, 2]
