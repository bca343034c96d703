from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as any_array
from sklearn.base import clone

from largesse.data.log import log_from_arrays
from largesse.errors import InputError
from largesse.levels import Levels
from largesse.policy.policy import Policy
from largesse.records import Array
from largesse.response.baselines.tlearner import TLearner
from largesse.response.boosting import Boosting
from largesse.response.catalogue import model_from_state
from largesse.response.choose import Choose
from largesse.response.ladder import Rows, fit_ladder
from largesse.response.linear import Linear
from largesse.response.shrunk import Shrunk
from largesse.response.steps import Blend, blend, isotonic, linked, unlinked
from largesse.stats.folds import assign_folds
from largesse.worlds.simulation import simulate


def logit(p: Array) -> Array:
    return np.log(p) - np.log1p(-p)


def data(n: int, own: float, seed: int = 0, *, amounts: bool = False) -> tuple[Array, Array, Array]:
    """A log of four levels whose steps are .4 for all, or (own = 1) .8 for half of the customers and 0 for the others."""
    rng = np.random.default_rng(seed)
    X, level = rng.normal(size=(n, 3)), rng.integers(0, 4, n)
    score = 0.5 * X[:, 0] - 0.6 + 0.4 * level * (1 + own * np.sign(X[:, 1]))
    if amounts:
        return X, level, 20 + 10 * score + rng.standard_t(2.5, n)
    return X, level, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(float)


def rows_of(level: Array, response: Array, bases: Array, *, K: int, binary: bool, weight: Array | None = None) -> Rows:
    weight = np.ones(len(level)) if weight is None else weight
    return Rows(bases, np.zeros(len(level)), level, response, weight / weight.sum(), K, binary)


# ---------------------------------------------------------------------------------------------- never falling


def pooled(curve: list[float]) -> list[float]:
    """Pool adjacent violators, one customer at a time."""
    blocks: list[list[float]] = []
    for value in curve:
        blocks.append([value])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return [float(np.mean(block)) for block in blocks for _ in block]


@given(any_array(np.float64, st.tuples(st.integers(1, 5), st.integers(2, 7)), elements=st.floats(-50, 50)))
def test_isotonic_curves_are_those_of_pooling_adjacent_violators(curves: Array) -> None:
    found = isotonic(curves)
    np.testing.assert_allclose(found, [pooled(list(curve)) for curve in curves], atol=1e-9)
    assert (np.diff(found, axis=1) >= 0).all()


def test_rising_curves_are_left_as_they_are() -> None:
    rising = np.sort(np.random.default_rng(0).normal(size=(20, 5)), axis=1)
    falling = rising[:3, ::-1]
    assert isotonic(np.vstack([rising, falling]))[:20].tobytes() == rising.tobytes()


def test_probabilities_come_back_from_logits() -> None:
    curves = np.sort(np.random.default_rng(0).random((20, 5)), axis=1)
    np.testing.assert_allclose(unlinked(linked(curves, True), True), curves)
    assert np.isfinite(linked(np.array([[0.0, 1.0]]), True)).all()
    assert unlinked(linked(100 * curves, False), False).tobytes() == (100 * curves).tobytes()


# ---------------------------------------------------------------------------------------------- the fit of common steps


@pytest.mark.parametrize("binary", [True, False])
def test_known_steps_are_recovered_given_the_base(binary: bool) -> None:
    rng = np.random.default_rng(1)
    base, level, ladder = rng.normal(size=200_000), rng.integers(0, 4, 200_000), np.array([-0.5, 0.0, 0.1, 0.9])
    score = base + ladder[level]
    response = rng.random(len(score)) < 1 / (1 + np.exp(-score)) if binary else score + rng.normal(size=len(score))
    found = fit_ladder(rows_of(level, response.astype(float), base[:, None], K=4, binary=binary), 0.0)
    np.testing.assert_allclose(np.cumsum(found[1:]), ladder, atol=0.03)
    assert found[0] == pytest.approx(1, abs=0.02)


def test_the_fit_is_that_of_a_general_solver() -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(2)
    for seed in range(8):
        level, bases, weight = rng.integers(0, 4, 400), rng.normal(size=(400, 3)), rng.random(400)
        slopes = rng.normal(size=3)  # some of them negative, so that weights and steps meet their bounds
        response = (rng.random(400) < 1 / (1 + np.exp(-bases @ slopes - 0.1 * level))).astype(float)
        rows = rows_of(level, response, bases, K=4, binary=True, weight=weight)
        stiffness = (0.0, 0.1)[seed % 2]

        def mean_loss(z: Array, rows: Rows = rows, stiffness: float = stiffness) -> float:
            uneven = z[4:] - z[4:].mean()
            return float(rows.weight @ rows.losses(rows.design() @ z) + 0.5 * stiffness * uneven @ uneven)

        found = fit_ladder(rows, stiffness)
        assert (np.delete(found, 3) >= 0).all()
        bounds = [(0, 9)] * 3 + [(-9, 9)] + [(0, 9)] * 3
        start = np.array([1 / 3] * 3 + [0, 0.1, 0.1, 0.1])
        slow = minimize(mean_loss, start, method="SLSQP", bounds=bounds, options={"ftol": 1e-12})
        assert mean_loss(found) <= slow.fun + 1e-8


def test_steps_that_would_fall_are_flat_and_empty_levels_harmless() -> None:
    level = np.repeat([0, 1, 3], 100)
    response = np.concatenate([np.ones(60), np.zeros(40), np.ones(40), np.zeros(60), np.ones(60), np.zeros(40)])
    found = fit_ladder(rows_of(level, response, np.empty((300, 0)), K=4, binary=True), 0.0)
    ladder = np.cumsum(found)
    np.testing.assert_allclose(ladder[[0, 1, 3]], [0.0, 0.0, logit(np.array(0.6))], atol=1e-5)
    assert (np.diff(ladder) >= 0).all()


# ---------------------------------------------------------------------------------------------- base, steps, deviations


def test_the_whole_share_and_the_own_ladder_reproduce_a_member() -> None:
    member = np.sort(np.random.default_rng(3).normal(size=(50, 4)), axis=1)
    centre = (member - member.mean(axis=1, keepdims=True)).mean(axis=0)
    made = Blend(np.ones(1), ladder=centre, leader=0, share=1.0, centre=centre)
    np.testing.assert_allclose(made.scores(member[None]), member)


def test_no_share_gives_all_customers_the_same_steps() -> None:
    X, level, response = data(600, own=1)
    steps = np.diff(logit(Shrunk(model=Boosting(rounds=30), weights=(0.0,)).fit(X, level, response).predict(X)), axis=1)
    assert np.ptp(steps, axis=0).max() < 1e-9
    assert steps.max() > 0


def test_common_steps_are_found_to_be_common() -> None:
    sim = simulate("averaged", 1500, seed=1)
    assert Shrunk(model=Boosting(rounds=60)).fit(sim.log).blend_.share == 0


@pytest.mark.parametrize("amounts", [False, True])
def test_strong_differences_and_many_rows_keep_a_model_its_own(amounts: bool) -> None:
    X, level, response = data(6000, own=1, amounts=amounts)
    model = Shrunk(model=Boosting(rounds=100)).fit(X, level, response)
    assert model.blend_.share >= 0.75
    rise = np.diff(model.predict(X)[:, [0, 3]], axis=1)[:, 0]
    assert rise[X[:, 1] > 0.1].mean() > 3 * rise[X[:, 1] < -0.1].mean()


def test_shrinking_mends_the_increments_of_boosting() -> None:
    sim = simulate("averaged", 2000, seed=0)
    error = {}
    for model in (Boosting(), Shrunk(model=Boosting())):
        wrong = np.diff(model.fit(sim.log).predict(sim.features) - sim.truth, axis=1)
        error[type(model)] = np.sqrt((wrong**2).mean())
    assert error[Shrunk] < 0.8 * error[Boosting]


def test_choices_tell_what_was_tried() -> None:
    model = Shrunk(model=Boosting(rounds=10), weights=(1.0, 0.5)).fit(*data(400, own=1))
    assert [choice.name for choice in model.choices_] == ["common steps", "Boosting × 0.5", "Boosting × 1"]
    assert sum(choice.chosen for choice in model.choices_) == 1


def test_a_model_without_deviations_has_nothing_to_choose() -> None:
    model = Shrunk(model=Linear(penalty=0.01)).fit(*data(400, own=0))
    assert [choice.name for choice in model.choices_] == ["common steps"]


def test_clusters_and_weights_count_in_the_choice() -> None:
    X, level, response = data(60, own=1)
    copies = [np.repeat(part, 20, axis=0) for part in (X, level, response)]
    rng = np.random.default_rng(0)
    levels = Levels(costs=[0, 1, 2, 3])

    def chosen(**more: Any) -> float:
        log = log_from_arrays(*copies, levels=levels, **more)
        member = logit(np.clip(0.2 * copies[0][:, :1] + 0.4 + 0.01 * np.arange(4), 0.05, 0.95))
        member = member + 0.3 * np.repeat(rng.normal(size=(60, 4)), 20, axis=0)
        choices = blend(member[None], member.mean(axis=1)[None], ["m"], log, assign_folds(log, 5), [(0.0, 1.0)])[1]
        return max(choice.se for choice in choices)  # the best one's is zero

    alone, together = chosen(), chosen(cluster=np.arange(1200) // 20)
    assert together > 2 * alone


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_weights_are_repeated_rows_for_a_model_to_which_they_are(seed: int) -> None:
    X, level, response = data(600, own=1, seed=seed)
    heavy = X[:, 1] > np.median(X[:, 1])
    times, couple = np.where(heavy, 3, 1), np.where(heavy, np.cumsum(heavy), np.cumsum(~heavy))
    again = np.repeat(np.arange(600), times)
    weighted = log_from_arrays(X, level, response, cluster=couple, weight=times.astype(float))
    repeated = log_from_arrays(X[again], level[again], response[again], cluster=couple[again])
    model = Shrunk(model=TLearner(model=Linear(penalty=0.01)), folds=2)
    one, other = (clone(model).fit(log) for log in (weighted, repeated))
    for a, b in zip(one.choices_, other.choices_, strict=True):  # weights count in the choice as copies do
        assert (a.name, a.chosen) == (b.name, b.chosen)
        np.testing.assert_allclose([a.loss, a.difference, a.se], [b.loss, b.difference, b.se], atol=5e-3)
    assert len(one.choices_) == 5
    assert np.abs(one.predict(X) - other.predict(X)).mean() < 5e-3


# ---------------------------------------------------------------------------------------------- odd logs and keeping


def test_a_part_of_amounts_that_looks_like_answers_is_no_trouble() -> None:
    X, level, response = data(300, own=0)
    response[17] = 3.0  # four of five parts for learning hold it, the fifth only 0 and 1
    curves = Shrunk(model=Boosting(rounds=10)).fit(X, level, response).predict(X)
    assert abs(curves.mean() - response.mean()) < 0.1
    assert (np.diff(curves, axis=1) >= 0).all()


@pytest.mark.parametrize("weights", [(0.0, 1.5), (-0.1,), (float("nan"),)])
def test_weights_outside_zero_and_one_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match=r"outside \[0, 1\]"):
        Shrunk(weights=weights).fit(*data(100, own=0))


def test_the_wrapped_model_stays_unfitted_and_can_be_any() -> None:
    inner = Choose(models=[Linear(penalty=0.01)], folds=2)
    model = Shrunk(model=Shrunk(model=inner, folds=2), folds=2).fit(*data(200, own=0))
    assert not hasattr(inner, "encoder_")
    assert len(model.models_) == 2


def test_a_kept_model_keeps_what_was_tried_and_its_models(tmp_path: Any) -> None:
    X, level, response = data(400, own=1)
    model = Shrunk(model=Shrunk(model=Boosting(rounds=7), folds=3), folds=2, seed=4).fit(X, level, response)
    Policy(model, Levels(costs=[0, 1, 2, 3]), 0.1).save(tmp_path / "policy")
    kept = Policy.load(tmp_path / "policy").model
    assert kept.predict(X).tobytes() == model.predict(X).tobytes()
    assert repr(kept) == repr(model)
    assert isinstance(kept, Shrunk)
    assert kept.choices_ == model.choices_


def test_states_that_do_not_fit_are_refused() -> None:
    state, arrays = Shrunk(model=Linear(penalty=0.01), folds=2).fit(*data(200, own=0)).state()
    with pytest.raises(ValueError, match="announced as"):
        model_from_state(state, {**arrays, "blend_/ladder": np.zeros(3)})
    state["learnt"]["models_"][0]["kind"] = "Oracle"
    with pytest.raises(ValueError, match="'Oracle'"):
        model_from_state(state, arrays)
