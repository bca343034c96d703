import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from largesse.data.log_reader import log_from_arrays
from largesse.propensity.covariate_balancing import fit_logit_corrections
from largesse.propensity.propensity_estimation import (
    MIN_PROPENSITY,
    _estimate_level_probabilities,
    compute_doubly_robust_scores,
    encode_propensity_features,
    estimate_propensities,
)
from largesse.records import Log, UnsupportedCells
from largesse.stats.folds import assign_folds
from largesse.worlds.paper_simulations import simulate


def test_given_propensities_are_used_as_they_are() -> None:
    log = log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0], propensity=[0.001, 0.2, 0.5, 1.0])
    propensities = estimate_propensities(log, np.arange(4) % 2)
    assert propensities.own is log.propensity
    assert (propensities.source, propensities.clipped, propensities.clipped_weight) == ("given", 0, 0)


def test_estimates_are_close_to_the_truth_in_a_big_log() -> None:
    sim = simulate("confounded", n=20_000, seed=1)
    log = replace(sim.log, propensity=None)
    estimate = estimate_propensities(log, assign_folds(log, 5))
    found = estimate.own
    assert (estimate.source, estimate.model) == ("estimated", "logistic")
    assert np.abs(found - sim.propensity).mean() < 0.03
    assert np.corrcoef(found, sim.propensity)[0, 1] > 0.9
    # 1/ρ weighting brings every level back to its share of one.
    shares = np.bincount(sim.level, weights=1 / found) / len(sim)
    np.testing.assert_allclose(shares, 1, atol=0.1)


def test_levels_given_at_random_get_their_shares() -> None:
    rng = np.random.default_rng(0)
    level = rng.choice(3, 5000, p=[0.5, 0.3, 0.2])
    log = log_from_arrays(rng.normal(size=(5000, 4)), level, rng.integers(0, 2, 5000))
    estimate = estimate_propensities(log, assign_folds(log, 5))
    found, clipped = estimate.own, estimate.clipped
    np.testing.assert_allclose(found, np.array([0.5, 0.3, 0.2])[level], atol=0.1)
    assert clipped == 0


def test_rows_below_the_floor_are_raised_and_counted() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=2000)
    level = (x > 0).astype(int)
    odd = rng.permutation(np.flatnonzero(np.abs(x) > 0.5))[:6]
    level[odd] = 1 - level[odd]  # levels of a tiny probability
    log = log_from_arrays(x[:, None], level, rng.integers(0, 2, 2000))
    estimate = estimate_propensities(log, assign_folds(log, 5), cells=UnsupportedCells())
    found, clipped = estimate.own, estimate.clipped
    assert found.min() == MIN_PROPENSITY
    assert clipped == (found == MIN_PROPENSITY).sum() > 3
    assert 0 < estimate.clipped_weight < 1


def test_levels_that_a_kind_of_customers_never_got_leave_their_probability_to_the_others() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=3000)
    inside = (x > 0.4) & (x < 0.65)
    level = np.where(inside, rng.integers(0, 2, 3000), rng.integers(0, 3, 3000))
    log = log_from_arrays(x[:, None], level, rng.integers(0, 2, 3000))
    fold = assign_folds(log, 5)
    found, blind = estimate_propensities(log, fold), estimate_propensities(log, fold, cells=UnsupportedCells())
    truth = np.where(inside, 1 / 2, 1 / 3)
    assert found.unsupported is not None
    assert [cell.levels for cell in found.unsupported.cells] == [(2,)]
    assert np.abs(found.own - truth).mean() < min(0.03, np.abs(blind.own - truth).mean())
    # The level is balanced over the customers who could get it, not over all.
    got = level == 2
    assert np.average(x[got], weights=1 / found.own[got]) == pytest.approx(x[~inside].mean(), abs=0.01)


def test_a_feature_that_says_nothing_leaves_the_shares() -> None:
    log = log_from_arrays(np.ones((90, 1)), np.arange(90) % 3, np.arange(90) % 2)
    assert estimate_propensities(log, assign_folds(log, 3)).own == pytest.approx(np.full(90, 1 / 3))


def test_a_level_with_one_row_is_raised_to_the_floor() -> None:
    rng = np.random.default_rng(2)
    level = np.zeros(100, dtype=int)
    level[1::2], level[5] = 1, 2
    log = log_from_arrays(rng.normal(size=(100, 2)), level, rng.integers(0, 2, 100))
    estimate = estimate_propensities(log, assign_folds(log, 5))
    found, clipped = estimate.own, estimate.clipped
    assert found[5] == MIN_PROPENSITY
    assert clipped == 1


def test_many_features_that_say_nothing_do_not_make_wild_weights() -> None:
    rng = np.random.default_rng(3)
    level = rng.integers(0, 5, 1000)
    log = log_from_arrays(rng.normal(size=(1000, 50)), level, rng.integers(0, 2, 1000))
    estimate = estimate_propensities(log, assign_folds(log, 5))
    found, clipped = estimate.own, estimate.clipped
    assert clipped == 0
    assert np.sqrt((1 / found**2).mean()) < 1.25 * 5


def test_the_unit_of_weights_does_not_matter() -> None:
    rng = np.random.default_rng(4)
    X, weight = rng.normal(size=(300, 3)), rng.uniform(0.5, 2, 300)
    level = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    log, scaled = (
        log_from_arrays(X, level, rng.integers(0, 2, 300), weight=factor * weight) for factor in (1.0, 1000.0)
    )
    fold = assign_folds(log, 5)
    np.testing.assert_allclose(estimate_propensities(log, fold).own, estimate_propensities(scaled, fold).own, rtol=1e-6)


def test_trees_are_used_where_held_out_rows_prefer_them() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(4000, 2))
    high = np.where((x[:, 0] > 0) ^ (x[:, 1] > 0), 0.8, 0.2)  # no line tells these apart
    log = log_from_arrays(x, (rng.random(4000) < high).astype(int), rng.integers(0, 2, 4000))
    estimate = estimate_propensities(log, assign_folds(log, 5))
    assert estimate.model == "boosting"
    assert np.abs(estimate.own - np.where(log.level == 1, high, 1 - high)).mean() < 0.06


def test_held_out_logits_are_calibrated() -> None:
    """Shrunk propensities leave confounding in; after calibration the log-odds have the slope of the truth."""
    slopes = []
    for seed in range(4):
        sim = simulate("confounded", n=2000, seed=seed, mix=0.2)
        log, fold = replace(sim.log, propensity=None), assign_folds(sim.log, 5)
        probabilities = _estimate_level_probabilities(
            log, fold, 0, encode_propensity_features(log, fold=fold)
        ).probabilities
        estimated, true = np.log(probabilities[np.arange(2000), sim.level]), np.log(sim.propensity)
        slopes.append(np.polyfit(estimated, true, 1)[0])
    assert 0.85 < np.mean(slopes) < 1.15


def test_weighted_rows_of_every_level_look_like_all_rows() -> None:
    sim = simulate("confounded", n=2000, seed=1, mix=0.2)
    log = replace(sim.log, propensity=None)
    propensity = estimate_propensities(log, assign_folds(log, 5)).own
    scaled = (sim.features - sim.features.mean(axis=0)) / sim.features.std(axis=0)
    for k in range(5):
        logged = sim.level == k
        assert (1 / propensity[logged]).sum() / 2000 == pytest.approx(1, abs=0.01)
        assert np.abs(np.average(scaled[logged], axis=0, weights=1 / propensity[logged])).max() < 0.03


def test_several_logging_policies_are_mixed() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=6000)
    logger = rng.integers(0, 2, 6000)
    steep = 1 / (1 + np.exp(-4 * x))
    high = np.where(logger == 0, 0.5, steep)  # one policy randomised, the other targeted
    log = log_from_arrays(x[:, None], (rng.random(6000) < high).astype(int), rng.integers(0, 2, 6000))
    mixture = 0.5 * 0.5 + 0.5 * steep
    true = np.where(log.level == 1, mixture, 1 - mixture)
    propensity = estimate_propensities(replace(log, logger=logger), assign_folds(log, 5)).own
    assert np.abs(propensity - true).mean() < 0.02
    assert propensity.min() > 0.15  # the randomised rows bound the weights, which the targeted ones alone would not


def small_log() -> Log:
    rng = np.random.default_rng(0)
    table = pa.table({"age": rng.normal(size=60), "city": np.array(["Oslo", "Rome", "Lima"])[np.arange(60) % 3]})
    return log_from_arrays(table, np.arange(60) % 2, rng.integers(0, 2, 60))


def test_every_column_knows_its_feature() -> None:
    features = encode_propensity_features(small_log())
    assert features.names == ("age", "city")
    assert len(features.sources) == features.X.shape[1]
    assert set(features.sources) == {"age", "city"}
    assert features.rows.tolist() == list(range(60))


def test_a_sample_keeps_the_order_of_its_rows() -> None:
    whole = encode_propensity_features(small_log())
    some = whole.sample(20, seed=3)
    assert len(some.rows) == 20
    assert (np.diff(some.rows) > 0).all()
    assert np.array_equal(some.X, whole.X[some.rows])
    assert whole.sample(60) is whole


def test_only_the_sample_may_be_encoded() -> None:
    log = small_log()
    some = encode_propensity_features(log, max_rows=20, seed=3)
    assert np.array_equal(some.rows, encode_propensity_features(log).sample(20, seed=3).rows)
    assert len(some.X) == 20
    assert abs(some.X[:, 0].mean()) < 1e-6  # standardised among themselves


def test_only_the_logged_level_is_corrected() -> None:
    rng = np.random.default_rng(0)
    curves, level, outcome, propensity = rng.random((9, 3)), np.arange(9) % 3, rng.random(9), rng.uniform(0.1, 1, 9)
    copy = curves.copy()
    scores = compute_doubly_robust_scores(curves, level, outcome, propensity)
    for i in range(9):
        for k in range(3):
            expected = curves[i, k] + (outcome[i] - curves[i, k]) / propensity[i] * (level[i] == k)
            assert np.isclose(scores[i, k], expected)
    assert np.array_equal(curves, copy)


@pytest.mark.parametrize("kind", ["shares", "logistic", "boosting", "logging policies"])
def test_a_model_packed_as_json_and_arrays_predicts_the_same(kind: str) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3000, 2))
    differ = (x[:, 0] > 0) ^ (x[:, 1] > 0)  # no line tells these
    level = np.where(differ, 0, rng.integers(0, 3, 3000)) if kind == "boosting" else rng.integers(0, 3, 3000)
    features = np.ones((3000, 1)) if kind == "shares" else x
    log = log_from_arrays(features, level, rng.integers(0, 2, 3000))
    if kind == "logging policies":
        log = replace(log, logger=(x[:, 0] > 0).astype(np.int64))
    estimate = _estimate_level_probabilities(log, assign_folds(log, 3), 0, encode_propensity_features(log))
    assert kind in (estimate.model, "logging policies")
    scorer = estimate.learn()
    tilts = fit_logit_corrections(
        estimate.probabilities[np.arange(3000), level], encode_propensity_features(log).X, level, np.ones(3000)
    )[0]
    for variant in (scorer, replace(scorer, model=replace(scorer.model, tilts=tilts))):
        restore, (state, arrays, *encoders) = variant.__reduce__()
        json.dumps([state, encoders], allow_nan=False)
        probabilities = variant(log.features)
        assert np.array_equal(restore(state, arrays, *encoders)(log.features), probabilities)
        assert np.array_equal(variant.encode_and_predict(log.features)[:, -3:], probabilities)
