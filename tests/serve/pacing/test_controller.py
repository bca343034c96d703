"""The price starts where the plan is, follows the customers who come, and keeps the ledger's rule."""

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from largesse.allocation import allocate
from largesse.errors import BudgetError, InputError
from largesse.policy import Policy
from largesse.response import Linear
from largesse.serve import (
    ControllerGains,
    LedgerStanding,
    LedgerTerms,
    Offers,
    Pacer,
    PacingPlan,
    Population,
    make_offers,
    make_population,
    open_ledger,
    plan_pace,
)
from largesse.serve.pacing.population import make_prepaid_population, make_redeemed_population
from largesse.worlds import simulate
from support.ledgers import DAY, START

N, K = 3000, 4


@cache
def draw_population(face: bool = False) -> Population:
    rng = np.random.default_rng(0)
    steps = np.concatenate([rng.uniform(0.05, 0.2, (N, 1)), rng.exponential(0.06, (N, K - 1))], axis=1)
    curves = np.minimum(np.cumsum(steps, axis=1), 0.95)
    return (
        make_redeemed_population(curves, np.arange(K), curves)
        if face
        else make_prepaid_population(curves, np.arange(K))
    )


def fixed_terms(total: float, valid: float | None = None, promises: str = "kept") -> LedgerTerms:
    valid_micros = None if valid is None else int(valid * DAY)
    return LedgerTerms(int(total * 1e6), START, START + 30 * DAY, valid_micros, promises=promises)


def offers_of(population: Population, rows: np.ndarray) -> Offers:
    return Offers(tuple(f"c{i}" for i in range(len(rows))), *population.take(rows).kernel_arrays[:4])


# -- the plan -------------------------------------------------------------------------------------------------------------


def test_it_starts_at_the_price_of_a_plan_for_the_same_customers() -> None:
    population = draw_population()
    plan = plan_pace(population, fixed_terms(0.8 * N), N)
    assert plan.price == pytest.approx(allocate(population.responses, population.expected_costs, 0.8).price, rel=0.15)
    assert plan.paid[0] == pytest.approx(0.8, rel=0.02)
    ample = plan_pace(population, fixed_terms(10 * N), N)
    assert ample.price == 0
    assert ample.ahead[0] > 0  # the price can still rise


def test_less_is_promised_where_promises_stand_long() -> None:
    population = draw_population(face=True)
    short, long = (plan_pace(population, fixed_terms(0.3 * N, valid=valid), N) for valid in (2, 14))
    assert sum(long.paid) / len(long.paid) < 0.9 * sum(short.paid) / len(short.paid)
    assert len(short.promised) > 12
    assert all(promised >= paid for promised, paid in zip(long.promised, long.paid, strict=True))


def test_a_plan_is_read_back_as_it_was_written() -> None:
    season = (1, 1, 1, 1, 2, 3, 1)
    plan = plan_pace(draw_population(face=True), fixed_terms(500, valid=5), N, season=season, exploration_rate=0.1)
    assert PacingPlan.from_dict(plan.as_dict()) == plan
    for wrong in ({}, {**plan.as_dict(), "paid": [1.0]}, {**plan.as_dict(), "gains": {"speed": 1}}):
        with pytest.raises(InputError, match="holds no plan for its price"):
            PacingPlan.from_dict(wrong)


def test_everything_wrong_with_a_plan_is_named_together() -> None:
    with pytest.raises(InputError) as caught:
        plan_pace(draw_population(), fixed_terms(10), 0, season=(1, 2), exploration_rate=2)  # type: ignore[arg-type]
    words = ("expected customers are 0", "exploration_rate is 2", "the season is (1, 2)")
    assert all(word in str(caught.value) for word in words)
    with pytest.raises(InputError, match="the season is"):
        plan_pace(draw_population(), fixed_terms(10), N, season=(0,) * 7)


# -- the price ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("face", "promises"), [(False, "kept"), (True, "kept"), (True, "while_it_lasts")])
def test_twice_as_many_customers_as_expected_are_paced_until_the_end(tmp_path: Path, face: bool, promises: str) -> None:
    population, terms = draw_population(face), fixed_terms(0.6 * N, 3 if face else None, promises)
    plan = plan_pace(population, terms, N)
    rng, pacer, shares = np.random.default_rng(1), Pacer(seed=0), []
    with open_ledger(f"sqlite:///{tmp_path}/x.db", terms, plan=plan.as_dict()) as ledger:
        for day in range(30):
            offers = offers_of(population, rng.integers(0, N, 200))
            decided = ledger.decide(f"day {day}", offers, pacer, now=START + int((day + 0.5) * DAY))
            shares.append(float((decided.levels > 0).mean()))
            for i in np.flatnonzero(rng.random(200) < decided.expected / np.maximum(decided.face, 1)):
                ledger.redeem(f"day {day}", decided.customers[i], now=START + int((day + 0.6) * DAY))
        standing = ledger.standing(now=START + 30 * DAY - 1)
        assert ledger.audit().matches
    assert 0.97 * terms.total < standing.spent + standing.held <= terms.total
    assert (standing.spent + standing.promised > terms.total) == (promises == "while_it_lasts")
    assert min(shares[-5:]) > 0.1 * max(shares)  # the last customers get something, too


def test_the_reservation_follows_the_actual_cost_of_promises(tmp_path: Path) -> None:
    """Twice as many redeem as are expected: the ledger learns it, and reserves twice as much for open promises."""
    population, terms = draw_population(face=True), fixed_terms(1.0 * N, 3, "while_it_lasts")
    plan, rng, pacer, held = plan_pace(population, terms, N), np.random.default_rng(1), Pacer(seed=0), {}
    for times in (1.0, 2.0):
        with open_ledger(f"sqlite:///{tmp_path}/{times}.db", terms, plan=plan.as_dict()) as ledger:
            for day in range(15):
                offers = offers_of(population, rng.integers(0, N, 50))
                decided = ledger.decide(f"day {day}", offers, pacer, now=START + int(day * DAY))
                held[times] = ledger.standing(now=START + int(day * DAY)).held / int(decided.expected.sum())
                for i in np.flatnonzero(rng.random(50) < times * decided.expected / np.maximum(decided.face, 1)):
                    ledger.redeem(f"day {day}", decided.customers[i], now=START + int((day + 0.75) * DAY))
    assert 0.9 < held[1.0] < 1.6
    assert 1.5 < held[2.0] / held[1.0] < 2.5


def test_outside_the_period_everyone_gets_the_cheapest_level_or_nothing(tmp_path: Path) -> None:
    population, terms = draw_population(), fixed_terms(3)
    dear = replace(population, at_once=population.at_once + 1_000_000)
    plan = plan_pace(population, terms, N)
    with open_ledger(f"sqlite:///{tmp_path}/x.db", terms, plan=plan.as_dict()) as ledger:
        for people, now, words in (
            (dear, START, "not even the cheapest level fits"),
            (dear, terms.ends, "nothing is spent outside the period"),
        ):
            with pytest.raises(BudgetError, match=words):
                ledger.decide("1", offers_of(people, np.arange(5)), Pacer(), now=now)
        assert ledger.standing(now=START).decisions == 0
        for name, now in (("early", START - 1), ("late", terms.ends)):
            decided = ledger.decide(name, offers_of(population, np.arange(5)), Pacer(), now=now)
            assert decided.levels.tolist() == [0] * 5
            assert decided.reason.tolist() == [2] * 5


@pytest.mark.parametrize(("total", "fits"), [(1e6, 3), (1.0, 1)])
def test_propensities_are_those_after_all_rules(total: float, fits: int) -> None:
    """Levels are drawn at random for some; one that does not fit is replaced by the best that does."""
    population, pacer = draw_population(), Pacer(seed=3)
    plan = replace(
        plan_pace(population, fixed_terms(0.8 * N), N, exploration_rate=0.4), gains=ControllerGains(window=0.0)
    )
    counts, propensities = np.zeros(K), np.zeros(K)
    standing = LedgerStanding(fixed_terms(total), START, *(0,) * 11, state=(), plan=plan.as_dict())
    offers = offers_of(population, np.zeros(1, dtype=np.int64))
    for _ in range(2000):
        choice = pacer.choose(standing, offers)
        counts[choice.levels[0]] += 1
        propensities[choice.levels[0]] = choice.propensity[0]
    assert propensities.sum() == pytest.approx(1.0)
    assert (propensities > 0).sum() == fits + 1
    np.testing.assert_allclose(counts / counts.sum(), propensities, atol=0.04)


def test_the_days_that_are_left_are_counted_in_whole_weeks_as_one_by_one() -> None:
    from largesse.serve.pacing import pacing_kernels as k

    def count(first: int, week: np.ndarray, t: float, until: float) -> float:
        left, day = 0.0, math.floor(t)
        while day < until:
            left += max(min(day + 1.0, until) - max(float(day), t), 0.0) * week[(first + day) % 7]
            day += 1
        return left

    rng = np.random.default_rng(0)
    for _ in range(200):
        plan, state = np.zeros(k.PATH), np.zeros(k.OPEN)
        plan[k.FIRST_DAY], state[k.WEEK : k.WEEK + 7] = rng.integers(7), rng.random(7)
        t = rng.choice([60 * rng.random(), float(rng.integers(0, 40))])
        until = t + rng.choice([50 * rng.random(), float(rng.integers(0, 30)), -1.0])
        expected = count(int(plan[k.FIRST_DAY]), state[k.WEEK : k.WEEK + 7], t, until)
        assert k.count_weighted_days(plan, state, t, until) == pytest.approx(expected, abs=1e-12)


# -- the offers of a policy ----------------------------------------------------------------------------------------------


def test_offers_count_the_most_that_a_level_may_cost() -> None:
    sim = simulate("averaged", n=300)
    model, ids = Linear().fit(sim.log), [str(i) for i in range(300)]
    later = replace(sim.log.levels, on_redemption=True)
    contact = replace(later, contact_cost=0.5)
    for levels, at_once, face in (
        (sim.log.levels, [0, 1, 2, 3, 4], [0] * 5),
        (contact, [0, 0.5, 0.5, 0.5, 0.5], [0, 1, 2, 3, 4]),
    ):
        offers = make_offers(Policy(model, levels, price=0.1), sim.features, ids)
        assert (offers.at_once[0] / 1e6).tolist() == at_once
        assert (offers.face[0] / 1e6).tolist() == face
        assert (offers.expected <= offers.face).all()
    model.binary_ = False  # costs of an amount have no bound
    policy = Policy(model, later, price=0.1)
    for most, words in (
        (None, "maximum cost"),
        ([1, 2], "one number for each of the 5"),
    ):
        with pytest.raises(InputError, match=words):
            make_population(policy, sim.features, max_costs=most)
    bounded = make_population(policy, sim.features, max_costs=[0, 5, 5, 5, 9])
    assert (bounded.face[0] / 1e6).tolist() == [0, 5, 5, 5, 9]
