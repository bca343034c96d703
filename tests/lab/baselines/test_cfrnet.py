"""CFRNet: its objective compared with a plain one, distances between groups, many levels, and invalid settings."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from largesse.errors import InputError
from largesse.records import Array
from largesse.response.networks.network_settings import Network
from largesse.worlds.paper_simulations import simulate
from largesse_lab.baselines import cfrnet as program
from largesse_lab.baselines.cfrnet import ALPHAS, CFRNet
from largesse_lab.baselines.network_helpers import draw_initial_parameters
from support.models import flat

# The same small network everywhere: it is compiled once.
TINY: dict[str, Any] = {"width": 8, "depth": 1, "head_width": 8, "head_depth": 1, "initial_scale": 1.0, "steps": 50}
SIZE = Network(width=5, depth=2, activation="elu", head_width=4, head_depth=1, initial_scale=1.0)
NET = program.CFRNetArchitecture(3, 2, SIZE, True)
OBJECTIVE = program.CFRNetPenalties("linear", True, 0.01)


def cfrnet(**other: Any) -> CFRNet:
    return flat(CFRNet, **({"alpha": 0.01, "ipm": "linear"} | TINY | other))


def arrays(K: int = 2, n: int = 240, *, amounts: bool = False) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % K)
    score = X[:, 0] + 0.6 * level - 0.5
    return X, level, 40 + 10 * score if amounts else (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float)


def params(net: program.CFRNetArchitecture = NET, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    first = draw_initial_parameters(rng, program.list_cfrnet_shapes(net), 1.0)
    return {name: value + 0.1 * rng.normal(size=value.shape).astype(np.float32) for name, value in first.items()}


def plain_elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


# ---------------------------------------------------------------------------------------------- the objective


def test_the_objective_is_the_published_one() -> None:
    rng = np.random.default_rng(1)
    p, x, level = params(), rng.normal(size=(10, 3)), np.arange(10) % 2
    response, sample, mass = rng.integers(0, 2, 10).astype(float), rng.uniform(0.5, 2, 10), np.ones(10)
    place = np.eye(2)[level]
    h = x
    for j in range(2):
        h = plain_elu(h @ p[f"rep{j}_w"] + p[f"rep{j}_b"])
    h = h / np.sqrt((h**2).sum(axis=1, keepdims=True))
    own = np.empty(10)
    for i, k in enumerate(level):
        hidden = plain_elu(h[i] @ p["head0_w"][k] + p["head0_b"][k])
        own[i] = (hidden @ p["head1_w"][k] + p["head1_b"][k])[0]
    chance = 0.995 / (1 + np.exp(-own)) + 0.0025
    loss = -(response * np.log(chance) + (1 - response) * np.log(1 - chance))
    apart = ((h[level == 1].mean(axis=0) - h[level == 0].mean(axis=0)) ** 2).sum()
    weights = 0.5 * sum((p[f"head{j}_w"] ** 2).sum() for j in range(2))
    expected = (sample * loss).mean() + 0.7 * apart + 0.01 * weights
    batch = tuple(jnp.asarray(part) for part in (x, place, response, sample, mass))
    found = float(
        jax.jit(program.compute_batch_loss, static_argnums=(0, 1))(NET, OBJECTIVE, p, batch, jnp.float32(0.7))
    )
    assert found == pytest.approx(expected, rel=1e-5)


def test_a_representation_has_length_one_and_never_breaks() -> None:
    p = params()
    represent = jax.jit(program.compute_representations, static_argnums=0)
    rows = represent(NET, p, jnp.asarray(np.random.default_rng(0).normal(size=(6, 3)) * 50))
    assert np.linalg.norm(np.asarray(rows), axis=1) == pytest.approx(1.0, rel=1e-5)
    silent = {name: 0 * value for name, value in p.items()}
    slope = jax.jit(jax.grad(lambda q: program.compute_representations(NET, q, jnp.ones((4, 3))).sum()))(silent)
    assert all(np.isfinite(np.asarray(part)).all() for part in slope.values())


def test_rows_of_all_levels_count_alike() -> None:
    model = cfrnet()
    weights = model._compute_level_weights(np.array([0, 0, 0, 1]), np.ones(4), [0, 1])
    assert weights == pytest.approx([4 / 6, 2.0])  # t/(2p) + (1 − t)/(2(1 − p)) with p = 1/4
    assert cfrnet(reweight=False)._compute_level_weights(np.array([0, 0, 1]), np.ones(3), [0, 1]).tolist() == [1, 1]


# ---------------------------------------------------------------------------------------------- levels


def test_pairs_share_level_zero_and_average_it() -> None:
    X, level, response = arrays(K=3)
    model = cfrnet(seed=1).fit(X, level, response)
    nets = program.predict_cfrnet_responses(model._make_architecture(3), model.params_, model.encode(X))
    assert nets.shape == (2, 240, 2)
    curves = model.predict(X)
    assert curves[:, 0] == pytest.approx(nets[:, :, 0].mean(axis=0))
    assert curves[:, 2] == pytest.approx(nets[1, :, 1])


def test_a_pair_learns_nothing_from_the_other_levels() -> None:
    X, level, response = arrays(K=3)
    one = cfrnet(seed=1).fit(X, level, response)
    other = cfrnet(seed=1).fit(X, level, np.where(level == 2, 1 - response, response))
    assert np.array_equal(one.predict(X)[:, 1], other.predict(X)[:, 1])
    assert not np.array_equal(one.predict(X)[:, 2], other.predict(X)[:, 2])


@pytest.mark.slow
def test_with_two_levels_both_ways_are_the_same() -> None:
    X, level, response = arrays()
    pairwise, shared = (cfrnet(way=way).fit(X, level, response).predict(X) for way in ("pairwise", "shared"))
    assert np.array_equal(pairwise, shared)


@pytest.mark.slow
def test_balance_brings_levels_together_in_the_representation() -> None:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(600, 3)), np.zeros(600, dtype=int)
    level[X[:, 0] + 0.5 * rng.normal(size=600) > 0] = 1
    response = X[:, 1] + 0.5 * level

    def apart(alpha: float) -> float:
        model = cfrnet(alpha=alpha, steps=400, patience=99, rate=0.01).fit(X, level, response)
        one = {name: value[0] for name, value in model.params_.items()}
        h = np.asarray(
            program.compute_representations(model._make_architecture(3), one, jnp.asarray(model.encode(X), jnp.float32))
        )
        return float(((h[level == 1].mean(axis=0) - h[level == 0].mean(axis=0)) ** 2).sum())

    assert apart(10.0) < 0.2 * apart(0.0)


# ---------------------------------------------------------------------------------------------- choices


def test_the_grid_of_the_paper_is_one_job_and_the_least_loss_is_kept() -> None:
    X, level, response = arrays(K=3)
    model = cfrnet(alpha="auto").fit(X, level, response)
    assert [choice.name for choice in model.choices_] == [f"α {alpha:g}" for alpha in ALPHAS]
    chosen = [choice for choice in model.choices_ if choice.chosen]
    assert len(chosen) == 1
    assert chosen[0].loss == min(choice.loss for choice in model.choices_)
    assert chosen[0].name == f"α {model.alpha_:g}"
    alone = cfrnet(alpha=model.alpha_).fit(X, level, response)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-4)  # trained together as if alone


@pytest.mark.parametrize(("way", "problems"), [("pairwise", 4), ("shared", 1)])
def test_every_strength_and_every_problem_is_trained_by_one_program(
    way: str, problems: int, programs: list[int]
) -> None:
    cfrnet(alpha="auto", way=way).fit(*arrays(K=5))
    assert programs == [len(ALPHAS) * problems]


@pytest.mark.slow
def test_no_balance_is_tarnet_whatever_the_distance() -> None:
    X, level, response = arrays()
    one, other = (cfrnet(alpha=0.0, ipm=ipm).fit(X, level, response).predict(X) for ipm in ("linear", "rbf"))
    assert np.array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("ipm", ["linear", "rbf", "wasserstein"])
def test_it_beats_the_levels_means(ipm: str) -> None:
    sim = simulate("averaged", n=2000, seed=3)
    fresh = sim.draw(2000, seed=99)
    curves = (
        flat(CFRNet, alpha=[1e-4, 1e-2], way="shared", ipm=ipm, width=32, head_width=16)
        .fit(sim.log)
        .predict(fresh.features)
    )
    means = np.bincount(sim.level, sim.response) / np.bincount(sim.level)
    assert np.sqrt(((curves - fresh.truth) ** 2).mean()) < np.sqrt(((means - fresh.truth) ** 2).mean())


@pytest.mark.slow
def test_amounts_are_learnt_on_their_own_scale() -> None:
    X, level, response = arrays(amounts=True)
    curves = cfrnet(steps=600, rate=0.01).fit(X, level, response).predict(X)
    assert np.corrcoef(curves[np.arange(240), level], response)[0, 1] > 0.9
    assert curves.mean() == pytest.approx(response.mean(), abs=3)


# ---------------------------------------------------------------------------------------------- invalid settings


def test_invalid_settings_are_named_together() -> None:
    bad = flat(CFRNet, way="pairs", ipm="wasserstien", loss="logg", width=0, hold_out=1.0, alpha=-1)
    with pytest.raises(InputError, match="6 things are wrong") as refused:
        bad.fit(*arrays())
    for part in (
        "did you mean 'pairwise'?",
        "did you mean 'wasserstein'?",
        "did you mean 'log'?",
        "width=0",
        "hold_out=1.0",
    ):
        assert part in str(refused.value)
    with pytest.raises(InputError, match=r"responses in \[0, 1\]"):
        CFRNet(loss="log").fit(*arrays(amounts=True))


IPMS = program.CFRNET_OPTIONS["ipm"]
NARROW = 7  # rows this much closer together: the published kernel is narrow
distance = jax.jit(lambda kind, z, *masses: program.measure_group_distance(kind, z / NARROW, *masses), static_argnums=0)
one_against_all = jax.jit(
    lambda kind, z, *rest: program.measure_one_against_all_distance(kind, z / NARROW, *rest), static_argnums=0
)
linear, rbf = jax.jit(program.linear_mean_distance), jax.jit(program.rbf_mmd_distance)
wasserstein = jax.jit(program.wasserstein_distance, static_argnums=(3, 4, 5))


def groups(seed: int = 0, n: int = 14, width: int = 3) -> tuple[Array, Array, Array]:
    """Rows, and masses of two groups; two rows are in neither."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, width)) + 1.0
    who = np.arange(n) % 3
    who[:2] = 2
    z[who == 1] += 0.5
    return z, (who == 0).astype(float), (who == 1).astype(float)


def transport(a: Array, b: Array) -> float:
    """The exact cost of moving one group onto the other, both of mass one: a linear program."""
    cost = np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=2))
    m, n = cost.shape
    out = np.kron(np.eye(m), np.ones(n))
    into = np.kron(np.ones(m), np.eye(n))
    found = linprog(cost.ravel(), A_eq=np.vstack([out, into]), b_eq=np.r_[np.full(m, 1 / m), np.full(n, 1 / n)])
    return float(found.fun)


def plain_sinkhorn(a: Array, b: Array, sharpness: float, iterations: int) -> float:
    """The published iterations on two groups of rows, in float64, with a bin beside each group."""
    cost = np.sqrt(np.maximum(((a[:, None] - b[None]) ** 2).sum(axis=2), 1e-10))
    m, n = cost.shape
    full = np.zeros((m + 1, n + 1))
    full[:m, :n], full[m, :n], full[:m, n] = cost, cost.max(), cost.max()
    left, right = np.r_[np.full(m, 0.5 / m), 0.5], np.r_[np.full(n, 0.5 / n), 0.5]
    kernel = np.exp(-sharpness / cost.mean() * full) + 1e-6
    u = left.copy()
    for _ in range(iterations):
        u = 1 / ((kernel / left[:, None]) @ (right / (kernel.T @ u)))
    v = right / (kernel.T @ u)
    return float(2 * (u[:, None] * kernel * v * full).sum())


# ---------------------------------------------------------------------------------------------- against plain formulas


def test_the_linear_distance_is_that_of_the_means() -> None:
    z, one, other = groups()
    expected = ((z[one > 0].mean(axis=0) - z[other > 0].mean(axis=0)) ** 2).sum()
    assert float(linear(jnp.asarray(z), jnp.asarray(one), jnp.asarray(other))) == pytest.approx(expected, rel=1e-5)


def test_the_rbf_distance_is_the_unbiased_one() -> None:
    z, one, other = groups()
    a, b = z[one > 0], z[other > 0]

    def k(p: Array, q: Array) -> float:
        return float(np.exp(-((p - q) ** 2).sum() / 0.7**2))

    within = [np.mean([k(g[i], g[j]) for i in range(len(g)) for j in range(len(g)) if i != j]) for g in (a, b)]
    between = np.mean([k(p, q) for p in a for q in b])
    found = float(rbf(jnp.asarray(z), jnp.asarray(one), jnp.asarray(other), 0.7))
    assert found == pytest.approx(sum(within) - 2 * between, abs=1e-5)


def test_the_rbf_distance_of_one_distribution_is_zero_on_average() -> None:
    z = jnp.asarray(np.random.default_rng(0).normal(size=(200, 12, 2)))
    one = jnp.asarray((np.arange(12) < 6).astype(float))
    distances = np.asarray(jax.jit(jax.vmap(lambda rows: program.rbf_mmd_distance(rows, one, 1 - one, 1.0)))(z))
    assert abs(distances.mean()) < 3 * distances.std() / np.sqrt(200)
    assert distances.min() < 0  # a biased one would never be


@pytest.mark.parametrize("seed", range(3))
def test_sinkhorn_is_as_published_and_approaches_the_exact_transport(seed: int) -> None:
    z, one, other = groups(seed)
    arrays = jnp.asarray(z), jnp.asarray(one), jnp.asarray(other)
    exact = transport(z[one > 0], z[other > 0])
    rough = float(wasserstein(*arrays, 10.0, 10))
    assert rough == pytest.approx(plain_sinkhorn(z[one > 0], z[other > 0], 10.0, 10), rel=1e-4)
    assert rough == pytest.approx(exact, rel=0.15)
    assert float(wasserstein(*arrays, 40.0, 1000, 0.0)) == pytest.approx(exact, rel=0.01)


# ---------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("kind", IPMS)
def test_laws_of_a_distance_between_groups(kind: str) -> None:
    z, one, other = (jnp.asarray(part) for part in groups())
    whole = float(distance(kind, z, one, other))
    with_mass = np.asarray((one + other) > 0)
    # Rows without mass do not count.
    selected = distance(kind, z[with_mass], one[with_mass], other[with_mass])
    moved = distance(kind, jnp.where(with_mass[:, None], z, z + 0.3), one, other)
    assert whole == pytest.approx(float(selected), rel=1e-4, abs=1e-6)
    assert whole == pytest.approx(float(moved), rel=1e-4, abs=1e-6)
    # A group without rows is at no distance and has no slope; otherwise the slope brings groups together.
    value_and_slope = jax.jit(
        jax.value_and_grad(lambda q, mass: program.measure_group_distance(kind, q / NARROW, one, mass))
    )
    value, slope = value_and_slope(z, jnp.zeros(len(z)))
    assert float(value) == 0.0
    assert not np.asarray(slope).any()
    _, slope = value_and_slope(z, other)
    assert np.isfinite(np.asarray(slope)).all()
    assert float(distance(kind, z - 0.1 * slope, one, other)) < whole


@pytest.mark.parametrize("kind", IPMS)
def test_one_against_all_weighs_each_level_by_its_share(kind: str) -> None:
    z = jnp.asarray(groups()[0])
    place, weight = np.eye(3)[np.minimum(np.arange(len(z)) % 4, 2)], np.linspace(0.5, 1.5, len(z))
    mass = place * weight[:, None]
    expected = sum(
        mass[:, k].sum() / weight.sum() * float(distance(kind, z, jnp.asarray(m), jnp.asarray(weight - m)))
        for k, m in enumerate(mass.T)
    )
    found = one_against_all(kind, z, jnp.asarray(place), jnp.asarray(weight))
    assert float(found) == pytest.approx(expected, rel=1e-4, abs=1e-6)
    two = np.eye(2)[np.arange(len(z)) % 2]  # with two levels it is the distance between them
    between = float(distance(kind, z, jnp.asarray(two[:, 1]), jnp.asarray(two[:, 0])))
    ones = jnp.ones(len(z))
    assert float(one_against_all(kind, z, jnp.asarray(two), ones)) == pytest.approx(between, rel=1e-6)
    both_ways = one_against_all(kind, z, jnp.asarray(np.c_[two, np.zeros(len(z))]), ones)
    assert float(both_ways) == pytest.approx(between, rel=0.02)  # ten iterations of Sinkhorn see two sides
