"""One program trains many networks: each as if it were alone, and never worse than the best it has been."""

import subprocess
import sys
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from largesse.records import Array
from largesse.response.networks import network
from largesse.response.networks import train as training
from largesse.response.networks.hsic import hsic_penalty
from largesse.response.networks.network import Shape
from largesse.response.networks.train import Grid, Recipe, Trained, predict, row_loss, train

# Few shapes and recipes: each is compiled once.
SHAPE = Shape(features=3, levels=3, head="shrunk", width=8)
SMALL = Recipe(rate=0.05, decay=0.1, batch=20, epochs=40, patience=3)
WHOLE = Recipe(rate=0.05, decay=0.1, batch=1000, epochs=10, patience=20, balance=True)  # every step sees all rows
ROWS, TRAIN, STOP = 120, 80, 40


def data(seed: int = 0) -> tuple[Array, Array, Array]:
    """Features, places and responses; the level follows the first feature, the response the second and the level."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, 3)).astype(np.float32)
    level = np.digitize(X[:, 0] + 0.3 * rng.normal(size=ROWS), [-0.5, 0.5])
    response = (rng.random(ROWS) < 1 / (1 + np.exp(-2 * X[:, 1] - 0.5 * level))).astype(np.float32)
    return X, np.eye(3, dtype=np.float32)[level], response


def grid(models: int = 3, **other: Any) -> Grid:
    whole: dict[str, Any] = {
        "train": np.tile(np.arange(TRAIN, dtype=np.int32), (models, 1)),
        "train_weight": np.ones((models, TRAIN), np.float32),
        "stop": np.tile(np.arange(TRAIN, ROWS, dtype=np.int32), (models, 1)),
        "stop_weight": np.ones((models, STOP), np.float32),
        "kappa": np.zeros(models),
        "penalty": np.linspace(0, 1, models),
        "gate": np.ones(models, np.float32),
        "seed": np.arange(models),
    }
    return Grid(**(whole | other))


def scores(found: Trained, gate: Any = (1.0, 1.0, 1.0)) -> Array:
    return predict(found.params, data()[0], SHAPE, np.asarray(gate, np.float32))


def assert_close(one: Trained, other: Trained, atol: float = 2e-4) -> None:
    for name in one.params:
        np.testing.assert_allclose(one.params[name], other.params[name], atol=atol, err_msg=name)
    np.testing.assert_allclose(one.loss, other.loss, atol=atol)


# ---------------------------------------------------------------------------------------------- the same again


def test_the_same_seeds_give_the_same_bits() -> None:
    one, other = (train(*data(), grid(), SHAPE, SMALL) for _ in range(2))
    assert all(one.params[name].tobytes() == other.params[name].tobytes() for name in one.params)
    assert one.loss.tobytes() == other.loss.tobytes()
    assert np.array_equal(one.epochs, other.epochs)


def test_another_seed_gives_another_network() -> None:
    found = train(*data(), grid(penalty=np.zeros(3)), SHAPE, SMALL)
    assert np.abs(found.params["w0"][0] - found.params["w0"][1]).max() > 0.1


def test_models_of_a_grid_do_not_see_each_other() -> None:
    together = train(*data(), grid(), SHAPE, SMALL)
    for m in range(3):
        alone = train(*data(), grid().part(slice(m, m + 1)), SHAPE, SMALL)
        mine = slice(m, m + 1)
        part = Trained({k: v[mine] for k, v in together.params.items()}, together.loss[mine], together.epochs[mine])
        assert_close(part, alone)


def test_groups_give_the_same_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    together = train(*data(), grid(), SHAPE, SMALL)
    monkeypatch.setattr(training, "MEMORY", {"cpu": 1, "gpu": 1})
    told: list[float] = []
    apart = train(*data(), grid(), SHAPE, SMALL, told.append)
    assert_close(together, apart)
    assert told == sorted(told)
    assert len(told) >= 3  # three groups
    assert told[-1] == 1.0


def test_a_grid_with_many_rows_is_cut_into_groups() -> None:
    many = grid(2, stop=np.zeros((2, 10_000_000), np.int8), stop_weight=np.zeros((2, 0)))
    assert training._models_at_once(SHAPE, grid()) == training.TOGETHER  # on a CPU
    assert training._models_at_once(SHAPE, many) == 1


# ---------------------------------------------------------------------------------------------- rows and weights


def balanced(**other: Any) -> Grid:
    return grid(kappa=np.array([0.0, 1.0, 5.0]), penalty=np.full(3, 0.1), **other)


def padded(rows: Array, weight: Array, length: int) -> dict[str, Array]:
    more = length - len(rows)
    rows, weight = np.concatenate([rows, np.resize(rows, more)]), np.concatenate([weight, np.zeros(more)])
    return {"rows": np.tile(rows.astype(np.int32), (3, 1)), "weight": np.tile(weight.astype(np.float32), (3, 1))}


def test_padding_weighs_nothing() -> None:
    plain = train(*data(), balanced(), SHAPE, WHOLE)
    wide = padded(np.arange(TRAIN), np.ones(TRAIN), TRAIN + 17)
    stop = padded(np.arange(TRAIN, ROWS), np.ones(STOP), STOP + 9)
    more = balanced(train=wide["rows"], train_weight=wide["weight"], stop=stop["rows"], stop_weight=stop["weight"])
    assert_close(plain, train(*data(), more, SHAPE, WHOLE))


def test_a_row_of_weight_two_counts_like_the_row_twice() -> None:
    rows = np.arange(TRAIN - 15)
    weight = np.where(rows < 15, 2.0, 1.0)
    weighted = padded(rows, weight, TRAIN)
    twice = np.tile(np.concatenate([rows, rows[:15]]).astype(np.int32), (3, 1))
    one = train(*data(), balanced(train=weighted["rows"], train_weight=weighted["weight"]), SHAPE, WHOLE)
    other = train(*data(), balanced(train=twice), SHAPE, WHOLE)
    assert_close(one, other)
    assert np.abs(scores(one) - scores(train(*data(), balanced(), SHAPE, WHOLE))).max() > 1e-3


def test_rows_outside_the_grid_are_never_used() -> None:
    X, place, response = data()
    half = grid(train=np.tile(np.arange(TRAIN, dtype=np.int32) % 40, (3, 1)))
    one = train(X, place, response, half, SHAPE, SMALL)
    X[40:TRAIN], response[40:TRAIN] = 1e6, 1 - response[40:TRAIN]
    other = train(X, place, response, half, SHAPE, SMALL)
    assert all(np.array_equal(one.params[name], other.params[name]) for name in one.params)


# ---------------------------------------------------------------------------------------------- stopping


def test_the_best_weights_are_kept() -> None:
    found = train(*data(), grid(), SHAPE, SMALL)
    _, place, response = data()
    own = (scores(found)[:, TRAIN:] * place[TRAIN:]).sum(axis=2)
    loss = np.asarray(row_loss(jnp.asarray(own), jnp.asarray(response[TRAIN:]), True)).mean(axis=1)
    np.testing.assert_allclose(found.loss, loss, rtol=1e-5)
    assert (found.epochs >= 1).all()


def test_patience_ends_training_early() -> None:
    X, place, _ = data()
    noise = (np.random.default_rng(5).random(ROWS) < 0.5).astype(np.float32)
    told: list[float] = []
    found = train(X, place, noise, grid(), SHAPE, SMALL, told.append)
    assert found.epochs.max() + SMALL.patience < SMALL.epochs
    assert len(told) < SMALL.epochs / training.STRETCH


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_training_lowers_the_loss(optimiser: str) -> None:
    recipe = WHOLE if optimiser == "adam" else Recipe("sgd", rate=0.3, batch=20, epochs=10)
    found = train(*data(), grid(), SHAPE, recipe)
    _, _, response = data()
    constant = response[:TRAIN].mean()
    before = -np.mean(np.where(response[TRAIN:] > 0, np.log(constant), np.log1p(-constant)))
    assert (found.loss < before - 0.03).all()


# ---------------------------------------------------------------------------------------------- penalties


def test_balance_makes_the_representation_forget_the_level() -> None:
    X, place, _ = data()
    found = train(
        *data(), grid(kappa=np.array([0.0, 3.0, 30.0]), penalty=np.zeros(3), seed=np.zeros(3, int)), SHAPE, WHOLE
    )
    hsic = []
    for m in range(3):
        params = {name: jnp.asarray(value[m]) for name, value in found.params.items()}
        z = network.forward(SHAPE, params, jnp.asarray(X))[0]
        hsic.append(float(hsic_penalty(z, jnp.asarray(place))))
    assert hsic[2] < 0.5 * hsic[0]
    assert hsic[1] < hsic[0]


def test_a_penalty_holds_increments_together() -> None:
    found = train(*data(), grid(penalty=np.array([0.0, 1.0, 100.0]), seed=np.zeros(3, int)), SHAPE, SMALL)
    spread = np.diff(scores(found), axis=2).std(axis=1).mean(axis=1)
    assert spread[0] > spread[1] > spread[2]


def test_a_penalty_behind_a_closed_gate_does_nothing() -> None:
    shut = grid(gate=np.zeros(3, np.float32), seed=np.zeros(3, int), penalty=np.array([0.0, 1.0, 100.0]))
    found = train(*data(), shut, SHAPE, SMALL)
    for value in found.params.values():
        np.testing.assert_allclose(value, np.broadcast_to(value[:1], value.shape), atol=1e-5)
    assert not found.params["head_w"][:, :, 1:].any()
    assert np.diff(scores(found, np.zeros(3)), axis=2).std(axis=1).max() < 1e-5


# ---------------------------------------------------------------------------------------------- predicting


def test_predicting_in_parts_gives_the_same() -> None:
    found = train(*data(), grid(), SHAPE, SMALL)
    X, gate = data()[0], np.ones(3, np.float32)
    whole = predict(found.params, X, SHAPE, gate)
    assert whole.shape == (3, ROWS, 3)
    np.testing.assert_allclose(predict(found.params, X, SHAPE, gate, rows=50), whole, rtol=1e-5, atol=1e-6)
    mean = training.mean_scores(found.params, X, SHAPE, gate, rows=50)
    np.testing.assert_allclose(mean, whole.mean(axis=0), rtol=1e-5, atol=1e-6)
    assert predict(found.params, X[:0], SHAPE, gate).shape == (3, 0, 3)


# ---------------------------------------------------------------------------------------------- size

LARGE = """
import resource
import numpy as np
from largesse.response.network import Shape
from largesse.response.train import Grid, Recipe, train

n, models = 1_000_000, 10
rng = np.random.default_rng(0)
X = rng.normal(size=(n, 50)).astype(np.float32)
level = rng.integers(0, 5, n)
half = np.arange(n, dtype=np.int32).reshape(2, -1)
one = np.ones((models, n // 2), np.float32)
grid = Grid(
    np.tile(half, (models // 2, 1)), one, np.tile(half[::-1], (models // 2, 1)), one,
    np.zeros(models), np.full(models, 0.1), np.ones(models, np.float32), np.arange(models),
)
recipe = Recipe(rate=1e-3, batch=4096, epochs=1)
found = train(X, np.eye(5, dtype=np.float32)[level], (X[:, 0] > 0).astype(float), grid, Shape(50, 5), recipe)
assert (found.loss < 0.6).all(), found.loss
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_a_million_rows_fit_into_six_gigabytes() -> None:
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 6 * 1024
