"""BanditNet: its objective compared with a plain one, its budget, the search for η, the choice of λ, and its files."""

import functools
import json
import zipfile
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import largesse as lg
from largesse.allocation.plan_and_frontier import allocate
from largesse.data.log_reader import log_from_arrays, read_log
from largesse.errors import BudgetError, InputError, NotFittedError, PolicyFileError
from largesse.io import write_archive
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.response.networks.layers import parameter_shapes
from largesse.response.networks.network_settings import NetworkShape
from largesse.stats.link_functions import softmax
from largesse_lab.baselines.banditnet import (
    BANDITNET_FORMAT,
    BanditNet,
    BanditNetTrainer,
    TranslationResult,
    choose_translation,
    compute_policy_loss,
    find_softmax_price,
)
from support.models import flat

COSTS = np.array([0.0, 1.0, 2.0])
TINY: dict[str, Any] = {
    "width": 8,
    "depth": 1,
    "steps": 100,
    "batch": 64,
    "rate": 0.01,
    "translations": [0.0, 0.3, 0.6],
}
THETA = 0.5 * np.array([[0.0, 0, 0, 0], [1, 1, 0, 0], [-1, 1, 1, 0]]).T


def drawn(n: int, seed: int) -> tuple[Array, Array, Array, Array, Array]:
    """Features, true responses (linear), propensities, levels and responses."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    truth = X @ THETA + np.array([0, 0.2, 0.3])
    rho = softmax(0.5 * X[:, :3])
    level = (rng.random(n)[:, None] >= np.cumsum(rho, axis=1)[:, :-1]).sum(axis=1)
    return X, truth, rho, level, truth[np.arange(n), level] + 0.3 * rng.normal(size=n)


@functools.cache
def log(n: int = 300, seed: int = 0) -> Log:
    X, _, rho, level, response = drawn(n, seed)
    return log_from_arrays(X, level, response, levels=Levels(costs=COSTS), propensity=rho[np.arange(n), level])


@functools.cache
def fitted(search: str = "posthoc", budget: float = 0.8, spend: str = "up to") -> BanditNet:
    return flat(BanditNet, budget=budget, search=search, spend=spend, **TINY).fit(log())


# ---------------------------------------------------------------------------------------------- the objective


def test_the_objective_is_that_of_algorithm_one() -> None:
    shape = NetworkShape(2, 3, "free", 4, 1, "elu", False, False)
    rng = np.random.default_rng(0)
    params = {name: rng.normal(size=size) for name, size in parameter_shapes(shape).items()}
    X, level, reward = rng.normal(size=(6, 2)), rng.integers(0, 3, 6), rng.random(6)
    inverse, costs, weight = rng.uniform(1, 5, 6), np.tile(COSTS, (6, 1)), rng.uniform(0.5, 2, 6)
    hidden = X @ params["w0"] + params["b0"]
    hidden = np.where(hidden > 0, hidden, np.expm1(hidden))
    policy = softmax(hidden @ params["head_w"] + params["head_b"])
    each = (reward - 0.3) * policy[np.arange(6), level] * inverse - 0.2 * (policy @ COSTS)
    rows = tuple(jnp.asarray(part) for part in (level, X, reward, inverse, costs, weight))
    found = compute_policy_loss(shape, params, rows, jnp.float32(0.3), jnp.float32(0.2))
    assert float(found) == pytest.approx(-np.average(each, weights=weight), rel=1e-5)


def test_a_larger_translation_of_rewards_makes_the_normaliser_smaller() -> None:
    tried = trainer_of(budget=2.0).train(np.array([-1.0, 0.5, 2.0])).translations
    sizes = [one.normaliser for one in tried]
    assert sizes[0] > sizes[1] > sizes[2]
    assert tried[1].has_valid_normaliser
    assert not tried[2].has_valid_normaliser  # it avoids the rows of the log


def trainer_of(**other: Any) -> BanditNetTrainer:
    """The trainer of a net that is not fitted yet."""
    return BanditNetTrainer(
        flat(BanditNet, **(TINY | other))._gather_settings(),
        fitted().encode(log()),
        log(),
        np.broadcast_to(COSTS, (300, 3)),
    )


def test_snips_and_the_normaliser_are_what_they_are_called() -> None:
    trainer, given_log = trainer_of(), log()
    policy = softmax(np.random.default_rng(0).normal(size=(300, 3)))
    found = trainer._evaluate_translation(0.1, 0.2, policy)
    ratio = policy[np.arange(300), given_log.level] / given_log.propensity
    held = trainer.rows.held
    assert found.normaliser == pytest.approx(ratio[~held].mean())
    assert found.snips == pytest.approx((ratio * trainer.rows.reward)[held].sum() / ratio[held].sum())
    assert found.spend == pytest.approx((policy @ COSTS).mean())
    half = 3 * ratio[~held].std() / np.sqrt((~held).sum())
    assert found.expected == pytest.approx((1 - half, 1 + half), abs=1e-6)


def test_a_policy_that_avoids_rows_is_not_chosen_while_a_sound_one_is_there() -> None:
    def one(snips: float, normaliser: float) -> TranslationResult:
        return TranslationResult(0.0, 0.0, 0.0, normaliser, (0.9, 1.1), snips)

    assert choose_translation([one(0.9, 0.5), one(0.4, 1.0), one(0.6, 0.95)]) == 2
    assert choose_translation([one(0.9, 0.5), one(0.4, 1.5)]) == 0


def test_all_translations_are_trained_by_one_program(programs: list[int]) -> None:
    flat(BanditNet, **(TINY | {"translations": np.linspace(0, 0.9, 7)})).fit(log())
    assert programs == [7]
    flat(BanditNet, **(TINY | {"translations": "auto"})).fit(log())
    assert programs[1:] == [11, 11]  # 0, .1 … .9 and the mean reward, then as many around the best


# ---------------------------------------------------------------------------------------------- the budget


@given(seed=st.integers(0, 999), budget=st.floats(0.01, 2.5), spread=st.floats(0.01, 30))
@settings(max_examples=40, deadline=None)
def test_the_price_is_the_smallest_within_the_budget(seed: int, budget: float, spread: float) -> None:
    rng = np.random.default_rng(seed)
    scores, costs = spread * rng.normal(size=(30, 3)), np.tile(COSTS, (30, 1))

    def spend(price: float) -> float:
        return float((softmax(scores - price * costs) * costs).sum(axis=1).mean())

    price = find_softmax_price(scores, costs, budget)
    assert spend(price) <= budget
    assert price == 0 or spend(price * 0.999 - 1e-9) > budget - 1e-9

    spent = (softmax(scores - find_softmax_price(scores, costs, budget, None, "all") * costs) @ COSTS).mean()
    assert spent <= budget + 1e-12  # with a price of any sign, the whole budget is spent
    assert spent == pytest.approx(min(budget, 2.0), rel=1e-3)
    assert find_softmax_price(np.zeros((5, 3)), np.zeros((5, 3)), budget, None, "all") == 0  # nothing costs anything


@pytest.mark.parametrize("budget", [0.3, 0.8, 1.5, 1.9])
def test_all_of_the_budget_is_spent_when_asked(budget: float) -> None:
    net = fitted(spend="all")
    X, *_ = drawn(500, seed=7)
    for customers in (X, X[X[:, 0] > 0]):
        assert (net.probabilities(customers, budget) @ COSTS).mean() == pytest.approx(budget, rel=0.01)
        spent, total = COSTS[net.decide(customers, budget)].sum(), budget * len(customers)
        assert total - 1 - 1e-9 <= spent <= total + 1e-9  # a step of one customer may be left
    assert (fitted().probabilities(X, 1.9) @ COSTS).mean() < 1.5  # η ≥ 0 leaves much of it
    assert (net.decide(X, 5.0) == 2).all()  # beyond the dearest level
    assert (net.probabilities(X, 5.0) @ COSTS).mean() == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("spend", ["up to", "all"])
@pytest.mark.parametrize("search", ["posthoc", pytest.param("retrain", marks=pytest.mark.slow)])
def test_the_budget_holds_on_the_customers_it_is_applied_to(search: str, spend: str) -> None:
    net = fitted(search, spend=spend)
    X, *_ = drawn(500, seed=7)
    for who in (X, X[X[:, 0] > 0], X[:3]):
        for budget in (0.0, 0.3, 0.8, 2.0):
            assert COSTS[net.decide(who, budget)].mean() <= budget
            assert (net.probabilities(who, budget) @ COSTS).mean() <= budget + 1e-12
    assert (net.probabilities_at_price(log()) @ COSTS).mean() <= 0.8 + 1e-6
    assert all(one.spend <= 0.8 + 1e-6 for one in net.translations_)


@pytest.mark.slow
def test_training_anew_finds_the_smallest_price_within_the_budget() -> None:
    trainer = trainer_of(budget=0.8, search="retrain")
    shifts = np.array([0.2, 0.5])
    prices, networks = trainer._search_by_training(shifts)
    spends = [trainer._measure_spend(softmax(score)) for score in networks.scores(trainer.rows.X)]
    assert max(spends) <= 0.8
    assert min(spends) > 0.6  # it goes to the edge
    cheaper = trainer._train(shifts, prices * 0.8).scores(trainer.rows.X)
    assert any(trainer._measure_spend(softmax(score)) > 0.8 for score in cheaper)


def test_contact_costs_are_part_of_the_budget() -> None:
    X, _, rho, level, response = drawn(300, 0)
    levels = Levels(costs=COSTS, contact_cost=0.5)
    one = log_from_arrays(X, level, response, levels=levels, propensity=rho[np.arange(300), level])
    net = flat(BanditNet, budget=0.8, **TINY).fit(one)
    paid = np.array([0.0, 1.5, 2.5])
    assert (net.probabilities(X) @ paid).mean() == pytest.approx(0.8, abs=1e-3)
    assert paid[net.decide(X)].mean() <= 0.8
    assert lg.evaluate(one, net).spend <= 0.8 + 1e-9


def test_a_budget_below_the_cheapest_levels_is_refused() -> None:
    X, _, rho, level, response = drawn(300, 0)
    dear = log_from_arrays(X, level, response, levels=Levels(costs=[1, 2, 3]), propensity=rho[np.arange(300), level])
    with pytest.raises(BudgetError, match=r"0.5 .* 1 "):
        flat(BanditNet, budget=0.5, **TINY).fit(dear)
    with pytest.raises(InputError, match="the budget is -1"):
        fitted().decide(X, budget=-1)


# ---------------------------------------------------------------------------------------------- learning


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0.8, 2.0])
def test_with_true_propensities_it_approaches_the_best_policy_as_the_log_grows(budget: float) -> None:
    X, truth, *_ = drawn(5000, seed=99)
    best = allocate(truth, COSTS, budget).value
    alike = np.interp(budget, COSTS, np.maximum.accumulate(truth.mean(axis=0)))

    def share(n: int) -> float:
        """How much of what the best policy gains over treating all alike is gained, on average over logs."""
        nets = [flat(BanditNet, budget=budget, width=32, depth=1, rate=3e-3, seed=s).fit(log(n, s)) for s in range(2)]
        values = [truth[np.arange(5000), net.decide(X)].mean() for net in nets]
        return float((np.mean(values) - alike) / (best - alike))

    few, many = share(300), share(10_000)
    assert many > 0.95
    assert few < many - 0.05


@pytest.mark.slow
def test_estimated_propensities_do_almost_as_well_as_given_ones() -> None:
    X, truth, *_ = drawn(4000, seed=99)
    given_log = log(4000, 1)
    bare = log_from_arrays(drawn(4000, 1)[0], given_log.level, given_log.response, levels=Levels(costs=COSTS))
    values = [
        truth[np.arange(4000), flat(BanditNet, budget=2.0, width=32, depth=1, rate=3e-3).fit(one).decide(X)].mean()
        for one in (given_log, bare)
    ]
    assert values[1] == pytest.approx(values[0], abs=0.05)


def test_its_evaluation_is_that_of_its_probabilities() -> None:
    net = fitted()
    direct, by_hand = lg.evaluate(log(), net), lg.evaluate(log(), net.probabilities(log()))
    assert (direct.value, direct.spend) == (by_hand.value, by_hand.spend)
    assert direct.spend <= 0.8 + 1e-6


def test_an_evaluation_on_its_own_log_has_a_warning() -> None:
    seen, unseen = lg.evaluate(log(), fitted()), lg.evaluate(log(seed=5), fitted())
    assert seen.warnings[0].answer == "careful"
    assert "trained on this log" in seen.warnings[0].text
    assert not any("trained on this log" in finding.text for finding in unseen.warnings)


# ---------------------------------------------------------------------------------------------- the contract


def test_it_clones_repeats_and_predicts_each_customer_alone() -> None:
    net = fitted()
    copy = clone(net)
    assert repr(copy) == repr(net)
    assert not [name for name in vars(copy) if name.endswith("_")]
    X, *_ = drawn(300, 0)
    again = copy.fit(log())
    assert again.probabilities_at_price(X).tobytes() == net.probabilities_at_price(X).tobytes()
    np.testing.assert_allclose(net.probabilities_at_price(X[3:4]), net.probabilities_at_price(X)[3:4], rtol=1e-4)
    assert net.probabilities_at_price(X).sum(axis=1) == pytest.approx(1.0)
    assert net.probabilities_at_price(X[:0]).shape == (0, 3)
    assert net.decide(X[:0]).shape == (0,)


@pytest.mark.parametrize(("spend", "budget"), [("up to", 0.8), ("all", 1.5)])
def test_save_and_load_give_the_same_bits_and_damage_is_refused(tmp_path: Path, spend: str, budget: float) -> None:
    net, path = fitted(spend=spend, budget=budget), tmp_path / "net"
    net.save(path)
    kept = BanditNet.load(path)
    X, *_ = drawn(300, 0)
    assert kept.spend == spend
    if spend == "all":
        assert (net.probabilities_at_price(log()) @ COSTS).mean() == pytest.approx(1.5, rel=0.01)
    assert kept.probabilities_at_price(X).tobytes() == net.probabilities_at_price(X).tobytes()
    assert np.array_equal(kept.decide(X), net.decide(X))
    assert kept.translations_ == net.translations_
    kept.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("manifest.json"))["format"] == "largesse-banditnet"
    (tmp_path / "cut").write_bytes(path.read_bytes()[:-40])
    with pytest.raises(PolicyFileError, match="damaged"):
        BanditNet.load(tmp_path / "cut")
    with pytest.raises(PolicyFileError, match="policy file"):
        lg.Policy.load(path)


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("model", "learnt", "price_"), "nan", "price_: nan"),
        (("model", "learnt", "price_"), "inf", "price_: inf"),
        (("model", "learnt", "price_"), -0.1, "price_: -0.1"),
        (("model", "learnt", "price_"), 1e308, "no finite scores"),
        (("model", "learnt", "price_"), "x", "price_"),
        (("model", "params", "budget"), "nan", "budget"),
        (("model", "params", "spend"), "most", "spend"),
        (("model", "params", "clip"), 0.5, "clip"),
        (("levels", "on_redemption"), True, "on redemption"),
    ],
)
def test_a_file_with_another_price_or_setting_is_refused(
    tmp_path: Path, place: tuple[str, ...], value: Any, said: str
) -> None:
    manifest, arrays = fitted()._state()
    manifest = json.loads(json.dumps(manifest))
    inside = functools.reduce(lambda part, name: part[name], place[:-1], manifest)
    assert place[-1] in inside
    inside[place[-1]] = value
    write_archive(tmp_path / "net", BANDITNET_FORMAT, manifest, arrays)
    with pytest.raises(PolicyFileError, match="holds unexpected content") as caught:
        BanditNet.load(tmp_path / "net")
    assert said in str(caught.value)


@pytest.mark.parametrize("price", [-0.5, 0.0])
def test_a_price_is_negative_only_where_all_of_the_budget_is_spent(tmp_path: Path, price: float) -> None:
    manifest, arrays = fitted(spend="all")._state()
    manifest["model"]["learnt"]["price_"] = price
    write_archive(tmp_path / "net", BANDITNET_FORMAT, manifest, arrays)
    assert BanditNet.load(tmp_path / "net").price_ == price


@pytest.mark.slow
def test_categories_never_seen_and_costs_of_each_customer() -> None:
    rng = np.random.default_rng(0)
    n = 240
    level = rng.integers(0, 2, n)
    table = {
        "city": rng.choice(["Oslo", "Rome"], n).tolist(),
        "age": rng.uniform(18, 80, n),
        "coupon": level,
        "bought": (rng.random(n) < 0.3 + 0.3 * level).astype(int),
        "none": np.zeros(n),
        "some": rng.uniform(1, 3, n),
    }
    levels = Levels(costs=["none", "some"])
    given_log = read_log(table, level="coupon", response="bought", levels=levels)
    net = flat(BanditNet, budget=0.5, **TINY).fit(given_log)
    assert given_log.costs is not None
    assert given_log.costs[np.arange(n), net.decide(given_log)].mean() <= 0.5
    with pytest.raises(InputError, match="read without them"):
        net.decide(pa.table({"city": ["Lima"], "age": [30.0]}))
    asked = lg.read_customers(
        {"city": ["Lima", None], "age": [30.0, 1e9], "none": [0, 0], "some": [1, 2]}, levels=levels
    )
    assert np.isfinite(net.probabilities(asked)).all()


def test_invalid_settings_are_named_together() -> None:
    bad = flat(BanditNet, search="posthok", spend="al", clip=0.5, steps=0, hold_out=0, translations=[])
    with pytest.raises(InputError, match="6 things are wrong") as refused:
        bad.fit(log())
    assert "did you mean 'all'?" in str(refused.value)
    assert "did you mean 'posthoc'?" in str(refused.value)
    paid = log_from_arrays(*(drawn(300, 0)[j] for j in (0, 3, 4)), levels=Levels(costs=COSTS, on_redemption=True))
    with pytest.raises(InputError, match="paid on redemption"):
        flat(BanditNet, **TINY).fit(paid)
    with pytest.raises(NotFittedError, match="BanditNet"):
        BanditNet().decide(np.zeros((1, 4)))
