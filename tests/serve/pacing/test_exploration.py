"""A price that explores for a purpose draws as its rule says, whatever the price, and never overspends."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from largesse.errors import InputError
from largesse.exploration import ExplorationRule, ResponseVariance, design_log, find_rule, make_task
from largesse.records import Array
from largesse.serve import (
    LedgerTerms,
    Offers,
    PacePlan,
    Pacer,
    Population,
    Standing,
    draw_stream,
    make_plan,
    open_ledger,
    pace_stream,
    plan_pace,
)
from support.ledgers import DAY, START

N, K = 2000, 4


def draw_population(seed: int = 0) -> Population:
    rng = np.random.default_rng(seed)
    curves = np.minimum(rng.uniform(0.05, 0.3, (N, 1)) + rng.gamma(2.0, 0.05, (N, 1)) * np.sqrt(np.arange(K)), 0.95)
    costs = np.broadcast_to(np.arange(K) * 1_000_000, (N, K)).copy()
    return Population(curves, costs, np.zeros_like(costs), np.zeros_like(costs), curves * (1 - curves))


POPULATION = draw_population()


def derive_rule(population: Population, budget: float, goal: str) -> ExplorationRule:
    assert population.variance is not None
    task = make_task(population.responses, population.early, population.variance, budget)
    expected, first = np.unique(population.responses, return_index=True)
    knots = slice(None, None, max(len(first) // 50, 1))  # offers bring the variances that are used
    variances = population.variance.ravel()[first][knots]
    variance = ResponseVariance(tuple(expected[knots].tolist()), tuple(variances.tolist()))
    rule = find_rule(task, design_log(task, 0.05, goal), 0.05, goal, variance)
    assert rule is not None
    return rule


@cache
def rule_at(budget: float, goal: str = "evaluation") -> ExplorationRule:
    return derive_rule(POPULATION, budget, goal)


@cache
def plan_at(budget: float, goal: str | None = "evaluation") -> PacePlan:
    rule = None if goal is None else rule_at(budget, goal)
    return plan_pace(POPULATION, fixed_terms(budget * N), N, exploration=rule)


def fixed_terms(total: float) -> LedgerTerms:
    return LedgerTerms(int(total * 1e6), START, START + 30 * DAY)


def make_offers(rows: Array, *, variance: bool = True) -> Offers:
    part = POPULATION.take(rows)
    ids = tuple(f"c{i}" for i in range(len(rows)))
    return Offers(ids, *part.arrays[:4], part.variance if variance else None)


def spread_slowly(
    f: Array, cost: Array, variance: Array, price: float, rule: ExplorationRule, value_price: float
) -> Array:
    """One customer's probabilities at a price, as the formula has them."""
    eye, near = np.eye(K), [price * one.price / rule.plan.price for one in rule.near]
    planned, *others = (eye[np.argmax(f - at * cost)] for at in (price, *near))
    weight = (planned - rule.incumbent) ** 2 + 0.25 * planned
    weight = np.maximum(weight + sum(0.25 * (other - planned) ** 2 for other in others), 0.01)
    weight = np.ones(K) if rule.goal == "learning" else weight
    spread = np.sqrt(weight * np.maximum(variance, rule.floor))
    score = f - price * cost
    lost = value_price * (score.max() - score)

    def given(a: float) -> Array:
        return np.maximum(rule.least, spread / np.sqrt(a + lost))

    return given(brentq(lambda a: given(a).sum() - 1, 1e-14, (2 * K * spread.max()) ** 2, xtol=1e-15, rtol=1e-14))


def decide(plan: PacePlan, total: float, rows: Array, seed: int = 0, **more: Any) -> Any:
    terms = fixed_terms(total)
    standing = Standing(terms, START + DAY, *[0] * 11, state=(), plan=plan.as_dict())
    return Pacer(seed=seed).choose(standing, make_offers(rows, **more))


@pytest.mark.parametrize("goal", ["evaluation", "learning"])
def test_every_propensity_is_that_of_the_formula_at_the_price_of_the_moment(goal: str) -> None:
    plan, rule = plan_at(0.8, goal), rule_at(0.8, goal)
    rows = np.random.default_rng(1).integers(0, N, 400)
    found = decide(plan, 0.8 * N, rows)
    assert len(np.unique(found.price)) > 100  # it moves
    costs, variance = np.arange(K, dtype=float), POPULATION.variance
    assert variance is not None
    assert plan.exploration is not None
    dear = plan.exploration.value_price
    for at, (row, price) in enumerate(zip(rows, found.price, strict=True)):
        slow = spread_slowly(POPULATION.responses[row], costs, variance[row], price, rule, dear)
        assert found.propensity[at] == pytest.approx(slow[found.levels[at]], rel=1e-6)


def test_levels_are_drawn_with_their_propensities() -> None:
    plan = plan_at(0.8)
    plan = replace(plan, gains=replace(plan.gains, window=0.0))  # the price stands still
    found = decide(plan, 1e9, np.full(20_000, 7))
    shares = np.bincount(found.levels, minlength=K) / 20_000
    told = [found.propensity[found.levels == k][0] if (found.levels == k).any() else 0.0 for k in range(K)]
    assert sum(told) == pytest.approx(1, abs=1e-6)
    assert shares == pytest.approx(told, abs=0.015)
    assert sum(share > 0 for share in shares) >= 3


def test_what_does_not_fit_is_replaced_and_the_propensity_counts_both_ways() -> None:
    plan = plan_at(0.8)
    levels, propensity = [], []
    for seed in range(300):  # room for one unit: the dearer levels never fit
        found = decide(plan, 1.5, np.array([11]), seed)
        levels.append(int(found.levels[0]))
        propensity.append(float(found.propensity[0]))
        assert found.reason[0] in (0, 1)
    assert set(levels) == {0, 1}
    told = dict(zip(levels, propensity, strict=True))
    assert sum(told.values()) == pytest.approx(1, abs=1e-9)
    assert np.mean(levels) == pytest.approx(told[1], abs=0.1)


def test_without_a_variance_and_without_a_rule_nothing_is_drawn() -> None:
    aimed, plain, rows = plan_at(0.8), plan_at(0.8, None), np.arange(300)
    assert (decide(aimed, 1e6, rows, variance=False).propensity == 1).all()
    assert (decide(plain, 1e6, rows).propensity == 1).all()
    other = replace(aimed, exploration=replace(aimed.exploration, incumbent=(0.5, 0.5)))  # type: ignore[type-var]
    assert (decide(other, 1e6, rows).propensity == 1).all()


def test_a_ledger_keeps_the_rule_and_is_never_overspent(tmp_path: Path) -> None:
    plan, terms = plan_at(0.5), fixed_terms(0.5 * N)
    rng, drawn = np.random.default_rng(1), []
    with open_ledger(f"sqlite:///{tmp_path}/x.db", terms, plan=plan.as_dict()) as ledger:
        for day in range(30):
            offers = make_offers(rng.integers(0, N, 100))
            drawn.append(ledger.decide(f"day {day}", offers, Pacer(seed=day), now=START + int((day + 0.5) * DAY)))
        standing = ledger.standing(now=START + 30 * DAY - 1)
        assert ledger.audit().fine
    assert 0.97 * terms.total < standing.spent <= terms.total
    propensity = np.concatenate([decided.propensity for decided in drawn])
    assert propensity.min() > 0.9 * 0.1 * 0.05 / K
    assert (1 / propensity).mean() == pytest.approx(K, rel=0.25)  # weighted back, every level counts all customers


def test_a_plan_is_read_back_and_plans_of_earlier_versions_are_read() -> None:
    plan, plain = plan_at(0.5), plan_at(0.5, None)
    content = plan.as_dict()
    assert PacePlan.from_dict(content) == plan
    assert plain.as_dict()["exploration"] is None
    assert PacePlan.from_dict(plain.as_dict()).exploration is None
    rule = content["exploration"]
    for wrong in (
        [], {}, {**rule, "goal": "fun"}, {**rule, "near": [1.0]}, {**rule, "floor": 0.0}, {**rule, "rate": 1.5},
        {**rule, "value_price": -1.0}, {**rule, "incumbent": [0.5, "x"]}, {**rule, "value_price": float("nan")},
    ):  # fmt: skip
        with pytest.raises(InputError, match="holds no plan for its price"):
            PacePlan.from_dict({**content, "exploration": wrong})


def test_a_rule_without_what_it_needs_is_refused() -> None:
    population, rule = POPULATION, rule_at(0.5)
    with pytest.raises(InputError, match="variance of responses"):
        plan_pace(replace(population, variance=None), fixed_terms(500), N, exploration=rule)
    with pytest.raises(InputError, match="the exploration rule is"):
        plan_pace(population, fixed_terms(500), N, exploration="evaluation")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the variances of responses are not valid"):
        Offers(("a",), np.ones((1, 2)), *(np.zeros((1, 2), dtype=np.int64),) * 3, np.full((1, 2), -1.0))


def test_where_the_policys_price_is_nothing_its_neighbours_are_alike() -> None:
    rule = rule_at(2.9)
    ample = replace(rule, plan=replace(rule.plan, price=0.0))
    assert ample.pack_for_pacing()[1:3].tolist() == [1.0, 1.0]
    lower, higher = rule.pack_for_pacing()[1:3]
    assert lower >= 1 >= higher


def test_where_money_is_held_for_promises_exploring_gives_up_no_more_than_the_policys_plan_does() -> None:
    population, rule, dear = POPULATION, rule_at(0.3), []
    promised = replace(
        population,
        at_once=np.zeros_like(population.face),
        face=population.at_once * 10,
        expected=population.at_once,
    )
    for people, valid in ((population, None), (promised, 10 * DAY)):
        plan = plan_pace(people, replace(fixed_terms(0.3 * N), valid=valid), N, exploration=rule)
        assert plan.exploration is not None
        dear.append(plan.exploration.value_price / rule.value_price)
    assert dear[0] == pytest.approx(1, abs=0.1)  # costs are paid at once: the ledger draws as the policy does
    assert dear[1] > 1.5


@pytest.mark.parametrize(("seed", "promises"), [(3, "kept"), (3, "while_it_lasts"), (6, "kept")])
def test_on_a_stream_exploring_for_evaluation_costs_no_more_than_levels_at_random(seed: int, promises: str) -> None:
    drawn = draw_stream(seed)
    drawn = replace(drawn, terms=replace(drawn.terms, promises=promises))
    top = max(float(drawn.population.responses.max()), 1.0)

    def vary(people: Population) -> Population:
        share = people.responses / top
        return replace(people, variance=top**2 * np.clip(share * (1 - share), 0.0, None))

    stream = replace(drawn, population=vary(drawn.population), customers=vary(drawn.customers))
    rule = derive_rule(stream.population, stream.terms.total / 1e6 / stream.traits.foreseen, "evaluation")
    plain = pace_stream(stream)
    aimed = pace_stream(stream, plan=make_plan(stream, exploration=rule))
    at_random = pace_stream(
        stream,
        plan=plan_pace(
            stream.population, stream.terms, stream.traits.foreseen, season=stream.season, exploration_rate=0.05
        ),
    )
    gains = [one.value - one.base for one in (plain, aimed, at_random)]
    assert aimed.kept
    assert aimed.use > plain.use - 0.05
    assert gains[0] - gains[1] < 1.3 * (gains[0] - gains[2])
    assert (aimed.propensity < 1).mean() > 0.9  # the others come when nothing is left
    assert (plain.propensity == 1).all()


def test_no_level_of_probability_zero_is_drawn() -> None:
    from largesse.serve.pacing.kernels import draw_level

    p, largest = np.array([0.0, 0.5, 0.5 - 2**-53, 0.0]), 1.0 - 2**-53
    assert p.sum() <= largest  # the sum ends short of one
    assert [draw_level(p, u) for u in (0.0, 0.5, largest)] == [1, 2, 2]
