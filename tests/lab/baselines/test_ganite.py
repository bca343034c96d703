"""GANITE: known errors of public implementations, the recovered effect, choices and invalid settings."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from largesse.errors import InputError
from largesse.records import Array
from largesse.response.networks.training_types import TrainingLoop
from largesse_lab.baselines import ganite as program
from largesse_lab.baselines.ganite import GANITE, STRENGTHS
from largesse_lab.baselines.network_helpers import draw_initial_parameters
from support.models import flat

GAN = program.GANITEArchitecture(
    features=3, levels=4, width=6, bounded=True, rate=1e-3, batch=16, discriminator_steps=2
)
TINY: dict[str, Any] = {"width": 8, "batch": 32, "steps": 20}


@functools.cache
def networks() -> dict[str, dict[str, Array]]:
    rng = np.random.default_rng(0)
    return {
        name: draw_initial_parameters(rng, sizes, program.INITIAL_SCALE)
        for name, sizes in program.list_ganite_shapes(GAN).items()
    }


def batch(n: int = 40) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """Rows (features, one-hot level, response, weight), and noise."""
    rng = np.random.default_rng(0)
    x, level = rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % 4)
    rows = (x, np.eye(4)[level], rng.integers(0, 2, n).astype(float), np.ones(n))
    return tuple(jnp.asarray(part, jnp.float32) for part in rows), jnp.asarray(rng.random((n, 3)), jnp.float32)


def arrays(K: int = 3, n: int = 200) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % K)
    return X, level, (rng.random(n) < 1 / (1 + np.exp(-X[:, 0] - 0.6 * level))).astype(float)


def complete_inputs(n: int) -> tuple[jax.Array, jax.Array]:
    """Completed rows, and noise for the second generator."""
    noise = batch(n)[1]
    return jnp.asarray(np.random.default_rng(1).random((n, 4)), jnp.float32), jnp.concatenate([noise, noise[:, :1]], 1)


# ---------------------------------------------------------------------------------------------- known errors of others


@pytest.mark.parametrize(("n", "K"), [(1, 2), (30, 5)])
def test_every_row_holds_its_own_response_in_its_own_slot_and_nothing_else_moves(n: int, K: int) -> None:
    complete = jax.jit(program.insert_logged_responses)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        generated, level, response = rng.random((n, K)), rng.integers(0, K, n), rng.random(n) + 10
        rows = np.asarray(complete(generated, np.eye(K)[level], response))
        expected = generated.copy()
        expected[np.arange(n), level] = response
        np.testing.assert_allclose(rows, expected, rtol=1e-6)


@functools.cache
def gradients() -> dict[str, dict[str, Array]]:
    """The gradients of all losses, by one compiled program."""
    nets, (rows, noise) = networks(), batch()
    x, place, response, w = rows
    same_level = (x, jnp.eye(4)[jnp.zeros(len(x), int)], response, w)  # everyone got level 0
    completed, four = complete_inputs(len(x))

    def complete(params: Any, batch_rows: Any, alpha: float) -> jax.Array:
        return program.compute_counterfactual_generator_loss(
            GAN, params, nets["detect"], batch_rows, noise, jnp.float32(alpha)
        )

    @jax.jit
    def compute() -> dict[str, Any]:
        first, one = nets["complete"], jnp.float32(1.0)
        return {
            "without adversary": jax.grad(complete)(first, rows, 0.0),
            "with adversary": jax.grad(complete)(first, rows, 1.0),
            "level 0 without": jax.grad(complete)(first, same_level, 0.0),
            "level 0 with": jax.grad(complete)(first, same_level, 1.0),
            "infer": jax.grad(
                lambda q: program.compute_inference_generator_loss(GAN, q, nets["judge"], rows, completed, four, one)
            )(nets["infer"]),
            "detect": jax.grad(lambda q: program.compute_level_discriminator_loss(q, x, completed, place, w))(
                nets["detect"]
            ),
            "judge": jax.grad(lambda q: program.compute_second_discriminator_loss(q, x, completed, completed[::-1], w))(
                nets["judge"]
            ),
        }

    return jax.tree.map(np.asarray, compute())


def test_gradients_reach_every_head_of_both_generators_and_both_discriminators() -> None:
    found = gradients()
    for alpha in ("without adversary", "with adversary"):
        assert all(part.any() for name in ("head0_w", "head1_w", "head1_b") for part in found[alpha][name])
        assert found[alpha]["shared0_w"].any(axis=1).all()  # features, level, response and noise are all used
    assert all(part.any() for part in found["infer"]["head1_w"])
    assert found["detect"]["layer2_w"].any(axis=0).all()
    assert found["judge"]["layer0_w"].any()


def test_the_adversary_alone_reaches_the_heads_of_levels_that_were_not_given() -> None:
    assert all(part.any() for part in gradients()["level 0 with"]["head1_w"])
    assert [bool(part.any()) for part in gradients()["level 0 without"]["head1_w"]] == [True, False, False, False]


def test_the_generators_follow_the_slope_that_confuses_their_discriminators() -> None:
    nets, (rows, noise) = networks(), batch(200)
    x, place, r, w = rows
    completed, four = complete_inputs(200)

    def detection_loss(q: Any) -> jax.Array:
        rows_of_q = program.convert_generator_scores(GAN, program.compute_completion_scores(q, x, place, r, noise))
        return program.compute_level_discriminator_loss(
            nets["detect"], x, program.insert_logged_responses(rows_of_q, place, r), place, w
        )

    def judgement_loss(q: Any) -> jax.Array:
        inferred = program.convert_generator_scores(
            GAN, program.compute_generator_scores(q, jnp.concatenate([x, four], axis=1))
        )
        return program.compute_second_discriminator_loss(nets["judge"], x, completed, inferred, w)

    strong = jnp.float32(1e4)  # the supervised part no longer matters

    def complete(q: Any) -> jax.Array:
        return program.compute_counterfactual_generator_loss(GAN, q, nets["detect"], rows, noise, strong)

    def infer(q: Any) -> jax.Array:
        return program.compute_inference_generator_loss(GAN, q, nets["judge"], rows, completed, four, strong)

    for loss, adversary, params in ((complete, detection_loss, "complete"), (infer, judgement_loss, "infer")):

        @jax.jit
        def compare(q: Any, loss: Any = loss, adversary: Any = adversary) -> tuple[jax.Array, jax.Array]:
            moved = jax.tree.map(lambda value, slope: value - 1e-6 * slope, q, jax.grad(loss)(q))
            return adversary(moved), adversary(q)

        after, before = compare(nets[params])
        assert float(after) > float(before)


def test_training_a_discriminator_does_not_move_its_generator() -> None:
    parts = program.make_counterfactual_program(GAN, TrainingLoop(1, 1))
    rng = np.random.default_rng(0)
    state = jax.tree.map(lambda part: part[0], parts.start(np.zeros(1, int), None))
    n = 40
    level = np.eye(4, dtype=np.float32)[np.arange(n) % 4]
    data = (rng.normal(size=(n, 3)).astype(np.float32), level, np.ones(n, np.float32))
    own = (np.arange(n), np.ones(n, np.float32), np.arange(4), np.ones(4, np.float32), jnp.float32(1.0))
    draws = tuple(part[0] for part in next(parts.draw(0, own, [np.ones(1, int)])))
    after = jax.jit(parts.step)(state, data, own, draws)
    # One step of Adam moves a weight by at most the rate: the generator took one, the discriminator two.
    for before, now, steps in ((state[0], after[0], 1), (state[1], after[1], GAN.discriminator_steps)):
        largest = max(float(np.abs(np.asarray(now[name]) - before[name]).max()) for name in before)
        assert 0.5 * GAN.rate < largest <= steps * GAN.rate * 1.001


# ---------------------------------------------------------------------------------------------- fits


@pytest.mark.slow
def test_the_effect_of_a_linear_problem_is_recovered_and_not_without_the_adversary() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    level = (rng.random(2000) < 1 / (1 + np.exp(-X[:, 1]))).astype(int)
    effect = 2 + 0.5 * X[:, 2]
    response = X[:, 0] + effect * level + 0.3 * rng.normal(size=2000)

    def estimate(alpha: float) -> Array:
        return np.diff(flat(GANITE, alpha=alpha, steps=2000).fit(X, level, response).predict(X), axis=1)[:, 0]

    with_adversary, without = estimate(1.0), estimate(0.0)
    assert with_adversary.mean() == pytest.approx(2.0, abs=0.3)
    assert np.sqrt(((with_adversary - effect) ** 2).mean()) < 0.4
    assert np.corrcoef(with_adversary, effect)[0, 1] > 0.8
    assert np.sqrt(((without - effect) ** 2).mean()) > 0.8


@pytest.mark.slow
def test_the_setting_of_least_held_out_loss_is_chosen() -> None:
    model = flat(GANITE, alpha="auto", beta="auto", **TINY).fit(*arrays())
    assert len(model.choices_) == len(STRENGTHS) ** 2
    (chosen,) = [choice for choice in model.choices_ if choice.chosen]
    assert chosen.loss == min(choice.loss for choice in model.choices_)
    assert chosen.name == f"α {model.alpha_:g}, β {model.beta_:g}"


def test_every_strength_of_a_block_is_trained_by_one_program(programs: list[int]) -> None:
    flat(GANITE, alpha="auto", beta="auto", **TINY).fit(*arrays())
    assert programs == [len(STRENGTHS), len(STRENGTHS) ** 2]  # the second block learns from completed rows


def test_predictions_are_shares_and_repeat_to_the_bit() -> None:
    X, level, response = arrays()
    one, other = (flat(GANITE, **TINY).fit(X, level, response).predict(X) for _ in range(2))
    assert one.tobytes() == other.tobytes()
    assert one.shape == (200, 3)
    assert ((one > 0) & (one < 1)).all()


def test_invalid_settings_are_named_together() -> None:
    with pytest.raises(InputError, match="3 things are wrong") as refused:
        flat(GANITE, alpha="grid", beta=-1, steps=0).fit(*arrays())
    assert "steps=0" in str(refused.value)
