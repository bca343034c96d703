"""The price starts where the plan is, follows what comes, and keeps the ledger's rule."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from largesse.allocation import allocate
from largesse.errors import BudgetError, InputError
from largesse.policy import Policy
from largesse.response import Linear
from largesse.serve import (
    Gains,
    LedgerTerms,
    Offers,
    PacePlan,
    Pacer,
    Population,
    Standing,
    make_offers,
    make_population,
    open_ledger,
    plan_pace,
)
from largesse.worlds import simulate
from support.ledgers import DAY, START

N, K = 3000, 4


def draw_population(seed: int = 0, face: bool = False) -> Population:
    rng = np.random.default_rng(seed)
    curves = np.cumsum(
        np.concatenate([rng.uniform(0.05, 0.2, (N, 1)), rng.exponential(0.06, (N, K - 1))], axis=1), axis=1
    )
    curves = np.minimum(curves, 0.95)
    costs = np.broadcast_to(np.arange(K) * 1_000_000, (N, K)).copy()
    none = np.zeros_like(costs)
    if face:
        return Population(curves, none, costs, np.rint(costs * curves).astype(np.int64))
    return Population(curves, costs, none, none)


def fixed_terms(total: float, days: float = 30, valid: float | None = None) -> LedgerTerms:
    return LedgerTerms(int(total * 1e6), START, START + int(days * DAY), None if valid is None else int(valid * DAY))


def offers_of(population: Population, rows: np.ndarray, name: str = "c") -> Offers:
    part = population.take(rows)
    ids = tuple(f"{name}{i}" for i in range(len(rows)))
    return Offers(ids, part.responses, part.at_once, part.face, part.expected)


def test_it_starts_at_the_price_of_a_plan_for_the_same_customers() -> None:
    population = draw_population()
    plan = plan_pace(population, fixed_terms(0.8 * N), N)
    planned = allocate(population.responses, population.early, 0.8)
    assert plan.price == pytest.approx(planned.price, rel=0.15)
    assert plan.paid[0] == pytest.approx(0.8, rel=0.02)


def test_an_ample_budget_has_no_price_and_the_price_can_still_rise() -> None:
    population = draw_population()
    plan = plan_pace(population, fixed_terms(10 * N), N)
    assert plan.price == 0
    assert plan.ahead[0] > 0


def test_less_is_promised_where_promises_stand_long() -> None:
    population = draw_population(face=True)
    short, long = (plan_pace(population, fixed_terms(0.3 * N, valid=valid), N) for valid in (2, 14))
    assert sum(long.paid) / len(long.paid) < 0.9 * sum(short.paid) / len(short.paid)
    assert len(short.promised) > 12
    assert all(promised >= paid for promised, paid in zip(long.promised, long.paid, strict=True))


def test_a_plan_is_read_back_as_it_was_written() -> None:
    plan = plan_pace(
        draw_population(face=True), fixed_terms(500, valid=5), N, season=(1, 1, 1, 1, 2, 3, 1), exploration_rate=0.1
    )
    assert PacePlan.from_dict(plan.as_dict()) == plan
    for wrong in ({}, {**plan.as_dict(), "paid": [1.0]}, {**plan.as_dict(), "gains": {"speed": 1}}):
        with pytest.raises(InputError, match="holds no plan for its price"):
            PacePlan.from_dict(wrong)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"customers": 0}, "expected customers are 0"),
        ({"season": (1, 2)}, "seven numbers"),
        ({"season": (0,) * 7}, "seven numbers"),
        ({"exploration_rate": 2}, "exploration_rate is 2"),
    ],
)
def test_a_wrong_plan_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_pace(draw_population(), fixed_terms(10), **{"customers": N, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(("face", "promises"), [(False, "kept"), (True, "kept"), (True, "while_it_lasts")])
def test_twice_as_many_customers_as_foreseen_are_paced_until_the_end(tmp_path: Path, face: bool, promises: str) -> None:
    population = draw_population(face=face)
    terms = replace(fixed_terms(0.6 * N, valid=3 if face else None), promises=promises)
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
        assert ledger.audit().fine
    assert standing.spent + standing.held <= terms.total
    assert standing.spent + standing.held > 0.97 * terms.total
    assert (standing.spent + standing.promised > terms.total) == (promises == "while_it_lasts")
    assert min(shares[-5:]) > 0.1 * max(shares)  # there is something left for the last ones


def test_what_is_reserved_follows_what_promises_turn_out_to_cost(tmp_path: Path) -> None:
    """Twice as many redeem as are expected, at once: the ledger learns it, and keeps back twice as much of what is open."""
    population = draw_population(face=True)
    terms = replace(fixed_terms(1.0 * N, valid=3), promises="while_it_lasts")
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


def test_outside_the_period_everyone_gets_the_cheapest_level(tmp_path: Path) -> None:
    population, terms = draw_population(), fixed_terms(100)
    plan = plan_pace(population, terms, N)
    with open_ledger(f"sqlite:///{tmp_path}/x.db", terms, plan=plan.as_dict()) as ledger:
        for name, now in (("early", START - 1), ("late", terms.ends)):
            decided = ledger.decide(name, offers_of(population, np.arange(5)), Pacer(), now=now)
            assert decided.levels.tolist() == [0] * 5
            assert decided.reason.tolist() == [2] * 5


def test_where_nothing_fits_the_request_is_refused(tmp_path: Path) -> None:
    population, terms = draw_population(), fixed_terms(3)
    dear = Population(population.responses, population.at_once + 1_000_000, population.face, population.expected)
    plan = plan_pace(population, terms, N)
    with open_ledger(f"sqlite:///{tmp_path}/x.db", terms, plan=plan.as_dict()) as ledger:
        with pytest.raises(BudgetError, match="not even the cheapest level fits"):
            ledger.decide("1", offers_of(dear, np.arange(5)), Pacer(), now=START)
        with pytest.raises(BudgetError, match="nothing is spent outside the period"):
            ledger.decide("1", offers_of(dear, np.arange(1)), Pacer(), now=terms.ends)
        assert ledger.standing(now=START).decisions == 0


@pytest.mark.parametrize(("total", "fits"), [(1e6, 3), (1.0, 1)])
def test_propensities_are_those_after_all_rules(total: float, fits: int) -> None:
    """Levels are drawn at random for some; what does not fit falls to the best that does, and its probability with it."""
    population, pacer = draw_population(), Pacer(seed=3)
    plan = replace(plan_pace(population, fixed_terms(0.8 * N), N, exploration_rate=0.4), gains=Gains(window=0.0))
    terms, counts, chances = fixed_terms(total), np.zeros(K), np.zeros(K)
    standing = Standing(terms, START, *(0,) * 11, state=(), plan=plan.as_dict())
    one = offers_of(population, np.zeros(1, dtype=np.int64))
    for _ in range(2000):
        made = pacer.choose(standing, one)
        counts[made.levels[0]] += 1
        chances[made.levels[0]] = made.propensity[0]
    assert chances.sum() == pytest.approx(1.0)
    assert (chances > 0).sum() == fits + 1
    np.testing.assert_allclose(counts / counts.sum(), chances, atol=0.04)


# -- what a policy offers ------------------------------------------------------------------------------------------------


def test_offers_count_the_most_that_a_level_may_cost() -> None:
    sim = simulate("averaged", n=300)
    model = Linear().fit(sim.log)
    for settings, at_once, face in (
        ({}, [0, 1, 2, 3, 4], [0] * 5),
        ({"on_redemption": True, "contact_cost": 0.5}, [0, 0.5, 0.5, 0.5, 0.5], [0, 1, 2, 3, 4]),
    ):
        levels = replace(sim.log.levels, **settings)  # type: ignore[arg-type]
        offers = make_offers(Policy(model, levels, price=0.1), sim.features, [str(i) for i in range(300)])
        assert (offers.at_once[0] / 1e6).tolist() == at_once
        assert (offers.face[0] / 1e6).tolist() == face
        assert (offers.expected <= offers.face).all()


def test_costs_without_a_bound_need_one() -> None:
    sim = simulate("averaged", n=300)
    model = Linear().fit(sim.log)
    model.binary_ = False
    policy = Policy(model, replace(sim.log.levels, on_redemption=True), price=0.1)
    with pytest.raises(InputError, match="nothing says the most that a level may cost"):
        make_population(policy, sim.features)
    with pytest.raises(InputError, match="one number for each of the 5 levels"):
        make_population(policy, sim.features, most=[1, 2])
    found = make_population(policy, sim.features, most=[0, 5, 5, 5, 9])
    assert (found.face[0] / 1e6).tolist() == [0, 5, 5, 5, 9]


def test_days_that_are_left_are_counted_in_whole_weeks_as_one_by_one() -> None:
    from largesse.serve.pacing import kernels as k

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
        assert k.count_days(plan, state, t, until) == pytest.approx(expected, abs=1e-12)
