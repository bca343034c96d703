"""GANITE: what its public implementations got wrong, what it recovers, what it chooses and refuses."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.errors import InputError
from largesse.records import Array
from largesse.response.networks.training_jobs import Loop
from largesse_lab.baselines import ganite as program
from largesse_lab.baselines.ganite import GANITE, STRENGTHS
from largesse_lab.baselines.networks import normal_params
from support.models import flat

GAN = program.Gan(features=3, levels=4, width=6, bounded=True, rate=1e-3, batch=16, discriminator_steps=2)
TINY: dict[str, Any] = {"width": 8, "batch": 32, "steps": 20}


def networks(seed: int = 0) -> dict[str, dict[str, Array]]:
    rng = np.random.default_rng(seed)
    return {name: normal_params(rng, sizes, program.INITIAL_SCALE) for name, sizes in program.shapes(GAN).items()}


def batch(n: int = 40, seed: int = 0) -> tuple[tuple[jax.Array, ...], jax.Array]:
    rng = np.random.default_rng(seed)
    x, level = rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % 4)
    rows = (x, np.eye(4)[level], rng.integers(0, 2, n).astype(float), np.ones(n))
    return tuple(jnp.asarray(part, jnp.float32) for part in rows), jnp.asarray(rng.random((n, 3)), jnp.float32)


def arrays(K: int = 3, n: int = 200) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % K)
    return X, level, (rng.random(n) < 1 / (1 + np.exp(-X[:, 0] - 0.6 * level))).astype(float)


# ---------------------------------------------------------------------------------------------- known bugs of others


@given(n=st.integers(1, 30), K=st.integers(2, 5), seed=st.integers(0, 999))
@settings(max_examples=10, deadline=None)
def test_every_row_holds_its_own_response_in_its_own_slot_and_nothing_else_moves(n: int, K: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    generated, level, response = rng.random((n, K)), rng.integers(0, K, n), rng.random(n) + 10
    place = np.eye(K)[level]
    rows = np.asarray(program.complete_rows(jnp.asarray(generated), jnp.asarray(place), jnp.asarray(response)))
    for i in range(n):
        assert rows[i, level[i]] == np.float32(response[i])
        others = np.delete(np.arange(K), level[i])
        assert rows[i, others] == pytest.approx(generated[i, others], rel=1e-6)


def slopes(loss: Any, params: dict[str, Array]) -> dict[str, Array]:
    return {name: np.asarray(value) for name, value in jax.jit(jax.grad(loss))(params).items()}


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_gradients_reach_every_head_of_the_first_generator(alpha: float) -> None:
    nets, (rows, noise) = networks(), batch()
    found = slopes(
        lambda q: program.completer_loss(GAN, q, nets["detect"], rows, noise, jnp.float32(alpha)), nets["complete"]
    )
    for name in ("head0_w", "head1_w", "head1_b"):
        assert all(part.any() for part in found[name])
    assert found["shared0_w"].any(axis=1).all()  # features, level, response and noise are all looked at


def test_the_adversary_alone_reaches_the_heads_of_levels_that_were_not_given() -> None:
    nets, (rows, noise) = networks(), batch()
    x, _, r, w = rows
    only = (x, jnp.eye(4)[jnp.zeros(len(x), int)], r, w)  # everyone got level 0
    found = slopes(
        lambda q: program.completer_loss(GAN, q, nets["detect"], only, noise, jnp.float32(1.0)), nets["complete"]
    )
    assert all(part.any() for part in found["head1_w"])
    without = slopes(
        lambda q: program.completer_loss(GAN, q, nets["detect"], only, noise, jnp.float32(0.0)), nets["complete"]
    )
    assert [bool(part.any()) for part in without["head1_w"]] == [True, False, False, False]


def test_gradients_reach_every_head_of_the_second_generator_and_both_discriminators() -> None:
    nets, (rows, noise) = networks(), batch()
    x, place, _, w = rows
    whole = jnp.asarray(np.random.default_rng(1).random((len(x), 4)), jnp.float32)
    four = jnp.concatenate([noise, noise[:, :1]], axis=1)
    inferring = slopes(
        lambda q: program.inference_loss(GAN, q, nets["judge"], rows, whole, four, jnp.float32(1.0)), nets["infer"]
    )
    assert all(part.any() for part in inferring["head1_w"])
    assert slopes(lambda q: program.detector_loss(q, x, whole, place, w), nets["detect"])["layer2_w"].any(axis=0).all()
    assert slopes(lambda q: program.judge_loss(q, x, whole, whole[::-1], w), nets["judge"])["layer0_w"].any()


def test_the_generators_follow_the_slope_that_confuses_their_discriminators() -> None:
    nets, (rows, noise) = networks(), batch(200)
    x, place, r, w = rows
    fill, tell, infer, judge = (nets[name] for name in ("complete", "detect", "infer", "judge"))

    def told(q: Any) -> float:
        made = program.responses(GAN, program.complete_scores(q, x, place, r, noise))
        return float(program.detector_loss(tell, x, program.complete_rows(made, place, r), place, w))

    strong = jnp.float32(1e4)  # the supervised part no longer matters
    slope = jax.jit(jax.grad(lambda q: program.completer_loss(GAN, q, tell, rows, noise, strong)))(fill)
    moved = {name: value - 1e-6 * np.asarray(slope[name]) for name, value in fill.items()}
    assert told(moved) > told(fill)

    whole = jnp.asarray(np.random.default_rng(1).random((len(x), 4)), jnp.float32)
    four = jnp.concatenate([noise, noise[:, :1]], axis=1)

    def judged(q: Any) -> float:
        made = program.responses(GAN, program.generate(q, jnp.concatenate([x, four], axis=1)))
        return float(program.judge_loss(judge, x, whole, made, w))

    slope = jax.jit(jax.grad(lambda q: program.inference_loss(GAN, q, judge, rows, whole, four, strong)))(infer)
    moved = {name: value - 1e-6 * np.asarray(slope[name]) for name, value in infer.items()}
    assert judged(moved) > judged(infer)


def test_training_a_discriminator_does_not_move_its_generator() -> None:
    parts = program.block_one(GAN, Loop(1, 1))
    rng = np.random.default_rng(0)
    state = jax.tree.map(lambda part: part[0], parts.start(np.zeros(1, int), None))
    n = 40
    data = (
        rng.normal(size=(n, 3)).astype(np.float32),
        np.eye(4, dtype=np.float32)[np.arange(n) % 4],
        np.ones(n, np.float32),
    )
    mine = (np.arange(n), np.ones(n, np.float32), np.arange(4), np.ones(4, np.float32), jnp.float32(1.0))
    chance = tuple(part[0] for part in next(parts.draw(0, mine, [np.ones(1, int)])))
    after = jax.jit(parts.step)(state, data, mine, chance)
    # One step of Adam moves a weight by at most the rate: the generator took one, the discriminator two.
    for before, now, most in ((state[0], after[0], 1), (state[1], after[1], GAN.discriminator_steps)):
        far = max(float(np.abs(np.asarray(now[name]) - before[name]).max()) for name in before)
        assert 0.5 * GAN.rate < far <= most * GAN.rate * 1.001


# ---------------------------------------------------------------------------------------------- what is recovered


@pytest.mark.slow
def test_the_effect_of_a_linear_problem_is_recovered_and_not_without_the_adversary() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    level = (rng.random(2000) < 1 / (1 + np.exp(-X[:, 1]))).astype(int)
    effect = 2 + 0.5 * X[:, 2]
    response = X[:, 0] + effect * level + 0.3 * rng.normal(size=2000)

    def found(alpha: float) -> Array:
        return np.diff(flat(GANITE, alpha=alpha, steps=2000).fit(X, level, response).predict(X), axis=1)[:, 0]

    with_adversary, without = found(1.0), found(0.0)
    assert with_adversary.mean() == pytest.approx(2.0, abs=0.3)
    assert np.sqrt(((with_adversary - effect) ** 2).mean()) < 0.4
    assert np.corrcoef(with_adversary, effect)[0, 1] > 0.8
    assert np.sqrt(((without - effect) ** 2).mean()) > 0.8


# ---------------------------------------------------------------------------------------------- what is chosen


@pytest.mark.slow
def test_the_grids_of_the_paper_are_one_job() -> None:
    model = flat(GANITE, alpha="auto", beta="auto", **TINY).fit(*arrays())
    assert len(model.choices_) == len(STRENGTHS) ** 2
    chosen = [choice for choice in model.choices_ if choice.chosen]
    assert len(chosen) == 1
    assert chosen[0].loss == min(choice.loss for choice in model.choices_)
    assert chosen[0].name == f"α {model.alpha_:g}, β {model.beta_:g}"


def test_every_strength_of_a_block_is_trained_by_one_program(programs: list[int]) -> None:
    flat(GANITE, alpha="auto", beta="auto", **TINY).fit(*arrays())
    assert programs == [
        len(STRENGTHS),
        len(STRENGTHS) ** 2,
    ]  # the second block learns from what the first has filled in


def test_predictions_are_shares_and_repeat_to_the_bit() -> None:
    X, level, response = arrays()
    one, other = (flat(GANITE, **TINY).fit(X, level, response).predict(X) for _ in range(2))
    assert one.tobytes() == other.tobytes()
    assert one.shape == (200, 3)
    assert ((one > 0) & (one < 1)).all()


def test_wrong_settings_are_named_together() -> None:
    with pytest.raises(InputError, match="3 things are wrong") as refused:
        flat(GANITE, alpha="grid", beta=-1, steps=0).fit(*arrays())
    assert "steps=0" in str(refused.value)
