"""One program trains many networks: each as if it were alone, and never worse than the best it has been."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from largesse.records import Array
from largesse.response.networks import batched_training
from largesse.response.networks.batched_training import count_models_in_memory, train_in_groups
from largesse.response.networks.hsic import hsic_penalty
from largesse.response.networks.layers import forward
from largesse.response.networks.network_settings import Balance, NetworkShape, Training
from largesse.response.networks.sire_training import (
    MODELS_AT_ONCE,
    count_steps_per_epoch,
    make_sire_program,
    predict_mean_scores,
    predict_scores,
    response_losses,
)
from largesse.response.networks.training_types import TrainedNetworks, TrainingJob, TrainingLoop

# Few shapes and settings: each is compiled once.
SHAPE = NetworkShape(features=3, levels=3, head="shrunk", width=8)
SMALL = Training(optimiser="adam", rate=0.05, schedule="constant", decay=0.1, batch=20, epochs=40, patience=3)
WHOLE = replace(SMALL, batch=1000, epochs=10, patience=20)  # every step sees all rows
HSIC = Balance(kernel="linear", estimator="biased", normalise=True)
ROWS, TRAIN, STOP = 120, 80, 40
NAMES = ("train", "train_weight", "stop", "stop_weight", "kappa", "penalty", "gate", "curve")


def data(seed: int = 0) -> tuple[Array, Array, Array]:
    """Features, places and responses; the level follows the first feature, the response the second and the level."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, 3)).astype(np.float32)
    level = np.digitize(X[:, 0] + 0.3 * rng.normal(size=ROWS), [-0.5, 0.5])
    response = (rng.random(ROWS) < 1 / (1 + np.exp(-2 * X[:, 1] - 0.5 * level))).astype(np.float32)
    return X, np.eye(3, dtype=np.float32)[level], response


def models(count: int = 3, **other: Any) -> dict[str, Array]:
    usual = {
        "train": np.tile(np.arange(TRAIN, dtype=np.int32), (count, 1)),
        "train_weight": np.ones((count, TRAIN), np.float32),
        "stop": np.tile(np.arange(TRAIN, ROWS, dtype=np.int32), (count, 1)),
        "stop_weight": np.ones((count, STOP), np.float32),
        "kappa": np.zeros(count),
        "penalty": np.linspace(0, 1, count),
        "gate": np.ones(count, np.float32),
        "curve": np.full((count, 3), np.nan, np.float32),
        "seed": np.arange(count),
    }
    return usual | other


def job(own: dict[str, Array], training: Training = SMALL, rows: Any = None) -> TrainingJob:
    n = own["train"].shape[1]
    loop = TrainingLoop(training.epochs, count_steps_per_epoch(n, training.batch), training.patience, stretch=10)
    made = make_sire_program(SHAPE, training, HSIC if training is WHOLE else None, n)
    arrays = tuple(np.asarray(own[name], np.float32 if i > 3 else None) for i, name in enumerate(NAMES))
    return TrainingJob(made, loop, data() if rows is None else rows, arrays, own["seed"])


def train(own: dict[str, Array], training: Training = SMALL, rows: Any = None) -> TrainedNetworks:
    return train_in_groups(job(own, training, rows))


def scores(found: TrainedNetworks, gate: Any = (1.0, 1.0, 1.0)) -> Array:
    return predict_scores(found.params, data()[0], SHAPE, np.asarray(gate, np.float32))


def assert_close(one: TrainedNetworks, other: TrainedNetworks, atol: float = 2e-4) -> None:
    for name in one.params:
        np.testing.assert_allclose(one.params[name], other.params[name], atol=atol, err_msg=name)
    np.testing.assert_allclose(one.loss, other.loss, atol=atol)


@pytest.fixture(scope="module")
def usual() -> TrainedNetworks:
    return train(models())


# ---------------------------------------------------------------------------------------------- the same again


def test_the_same_seeds_give_the_same_bits(usual: TrainedNetworks) -> None:
    other = train(models())
    assert all(usual.params[name].tobytes() == other.params[name].tobytes() for name in usual.params)
    assert usual.loss.tobytes() == other.loss.tobytes()
    assert np.array_equal(usual.look, other.look)


def test_another_seed_gives_another_network() -> None:
    found = train(models(penalty=np.zeros(3)))
    assert np.abs(found.params["w0"][0] - found.params["w0"][1]).max() > 0.1


def test_models_trained_together_do_not_see_each_other(usual: TrainedNetworks) -> None:
    for m in range(3):
        mine = slice(m, m + 1)
        alone = train({name: value[mine] for name, value in models().items()})
        part = TrainedNetworks({k: v[mine] for k, v in usual.params.items()}, usual.loss[mine], usual.look[mine])
        assert_close(part, alone)


def test_groups_give_the_same_as_all_at_once(usual: TrainedNetworks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched_training, "MEMORY", {"cpu": 1, "gpu": 1})
    assert_close(usual, train(models()))


def test_models_with_many_rows_are_cut_into_groups() -> None:
    many = models(2, stop=np.zeros((2, 10_000_000), np.int8), stop_weight=np.zeros((2, 0)))
    assert count_models_in_memory(job(models())) == MODELS_AT_ONCE  # on a CPU
    assert count_models_in_memory(job(many)) == 1


# ---------------------------------------------------------------------------------------------- rows and weights


def balanced(**other: Any) -> dict[str, Array]:
    return models(kappa=np.array([0.0, 1.0, 5.0]), penalty=np.full(3, 0.1), **other)


def padded(rows: Array, weight: Array, length: int) -> dict[str, Array]:
    more = length - len(rows)
    rows, weight = np.concatenate([rows, np.resize(rows, more)]), np.concatenate([weight, np.zeros(more)])
    return {"rows": np.tile(rows.astype(np.int32), (3, 1)), "weight": np.tile(weight.astype(np.float32), (3, 1))}


def test_padding_weighs_nothing() -> None:
    plain = train(balanced(), WHOLE)
    wide = padded(np.arange(TRAIN), np.ones(TRAIN), TRAIN + 17)
    stop = padded(np.arange(TRAIN, ROWS), np.ones(STOP), STOP + 9)
    more = balanced(train=wide["rows"], train_weight=wide["weight"], stop=stop["rows"], stop_weight=stop["weight"])
    assert_close(plain, train(more, WHOLE))


def test_a_row_of_weight_two_counts_like_the_row_twice() -> None:
    rows = np.arange(TRAIN - 15)
    weight = np.where(rows < 15, 2.0, 1.0)
    weighted = padded(rows, weight, TRAIN)
    twice = np.tile(np.concatenate([rows, rows[:15]]).astype(np.int32), (3, 1))
    one = train(balanced(train=weighted["rows"], train_weight=weighted["weight"]), WHOLE)
    other = train(balanced(train=twice), WHOLE)
    assert_close(one, other)
    assert np.abs(scores(one) - scores(train(balanced(), WHOLE))).max() > 1e-3


def test_rows_that_no_model_names_are_never_used() -> None:
    X, place, response = data()
    half = models(train=np.tile(np.arange(TRAIN, dtype=np.int32) % 40, (3, 1)))
    one = train(half, rows=(X, place, response))
    X[40:TRAIN], response[40:TRAIN] = 1e6, 1 - response[40:TRAIN]
    other = train(half, rows=(X, place, response))
    assert all(np.array_equal(one.params[name], other.params[name]) for name in one.params)


# ---------------------------------------------------------------------------------------------- stopping


def test_the_best_weights_are_kept(usual: TrainedNetworks) -> None:
    found = usual
    _, place, response = data()
    own = (scores(found)[:, TRAIN:] * place[TRAIN:]).sum(axis=2)
    loss = np.asarray(response_losses(jnp.asarray(own), jnp.asarray(response[TRAIN:]), True)).mean(axis=1)
    np.testing.assert_allclose(found.loss, loss, rtol=1e-5)
    assert (found.look >= 1).all()


def test_patience_ends_training_early() -> None:
    X, place, _ = data()
    noise = (np.random.default_rng(5).random(ROWS) < 0.5).astype(np.float32)
    found = train(models(), rows=(X, place, noise))
    assert found.look.max() + SMALL.patience < SMALL.epochs


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_training_lowers_the_loss(optimiser: str) -> None:
    sgd = replace(SMALL, optimiser="sgd", rate=0.3, epochs=10, patience=20)
    found = train(models(), WHOLE if optimiser == "adam" else sgd)
    _, _, response = data()
    constant = response[:TRAIN].mean()
    before = -np.mean(np.where(response[TRAIN:] > 0, np.log(constant), np.log1p(-constant)))
    assert (found.loss < before - 0.03).all()


# ---------------------------------------------------------------------------------------------- penalties


def test_balance_makes_the_representation_forget_the_level() -> None:
    X, place, _ = data()
    found = train(models(kappa=np.array([0.0, 3.0, 30.0]), penalty=np.zeros(3), seed=np.zeros(3, int)), WHOLE)
    hsic = []
    for m in range(3):
        params = {name: jnp.asarray(value[m]) for name, value in found.params.items()}
        z = forward(SHAPE, params, jnp.asarray(X))[0]
        hsic.append(float(hsic_penalty(z, jnp.asarray(place))))
    assert hsic[2] < 0.5 * hsic[0]
    assert hsic[1] < hsic[0]


def test_a_penalty_holds_increments_together() -> None:
    found = train(models(penalty=np.array([0.0, 1.0, 100.0]), seed=np.zeros(3, int)))
    spread = np.diff(scores(found), axis=2).std(axis=1).mean(axis=1)
    assert spread[0] > spread[1] > spread[2]


def test_a_penalty_behind_a_closed_gate_does_nothing() -> None:
    shut = models(gate=np.zeros(3, np.float32), seed=np.zeros(3, int), penalty=np.array([0.0, 1.0, 100.0]))
    found = train(shut)
    for value in found.params.values():
        np.testing.assert_allclose(value, np.broadcast_to(value[:1], value.shape), atol=1e-5)
    assert not found.params["head_w"][:, :, 1:].any()
    assert np.diff(scores(found, np.zeros(3)), axis=2).std(axis=1).max() < 1e-5


# ---------------------------------------------------------------------------------------------- predicting


def test_predicting_in_parts_gives_the_same(usual: TrainedNetworks) -> None:
    found = usual
    X, gate = data()[0], np.ones(3, np.float32)
    whole = predict_scores(found.params, X, SHAPE, gate)
    assert whole.shape == (3, ROWS, 3)
    np.testing.assert_allclose(predict_scores(found.params, X, SHAPE, gate, rows=50), whole, rtol=1e-5, atol=1e-6)
    mean = predict_mean_scores(found.params, X, SHAPE, gate, rows=50)
    np.testing.assert_allclose(mean, whole.mean(axis=0), rtol=1e-5, atol=1e-6)
    assert predict_scores(found.params, X[:0], SHAPE, gate).shape == (3, 0, 3)


# ---------------------------------------------------------------------------------------------- size

LARGE = """
import resource
import numpy as np
from largesse.response.networks.training_types import TrainingLoop, TrainingJob
from largesse.response.networks.training_runner_hook import train_networks
from largesse.response.networks.network_settings import NetworkShape, Training
from largesse.response.networks.sire_training import make_sire_program, count_steps_per_epoch

n, models = 1_000_000, 10
rng = np.random.default_rng(0)
X = rng.normal(size=(n, 50)).astype(np.float32)
level = np.eye(5, dtype=np.float32)[rng.integers(0, 5, n)]
half = np.arange(n, dtype=np.int32).reshape(2, -1)
one = np.ones((models, n // 2), np.float32)
own = (
    np.tile(half, (models // 2, 1)), one, np.tile(half[::-1], (models // 2, 1)), one,
    *(np.full(models, value, np.float32) for value in (0.0, 0.1, 1.0)), np.full((models, 5), np.nan, np.float32),
)
training = Training(optimiser="adam", rate=1e-3, schedule="constant", decay=10.0, batch=4096, epochs=1, patience=20)
program = make_sire_program(NetworkShape(50, 5), training, None, n // 2)
loop = TrainingLoop(1, count_steps_per_epoch(n // 2, 4096), 20)
job = TrainingJob(program, loop, (X, level, (X[:, 0] > 0).astype(np.float32)), own, np.arange(models))
found = train_networks(job)
assert (found.loss < 0.6).all(), found.loss
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_a_million_rows_fit_into_six_gigabytes() -> None:
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 6 * 1024
