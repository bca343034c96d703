import numpy as np
import pytest

from largesse.data.log_reader import log_from_arrays
from largesse.records import Log
from largesse.response.fold_ensemble import (
    average_member_scores,
    fit_fold_copies,
    predict_held_out,
    score_held_out_rows,
)
from largesse.response.level_effect_estimation import Link
from largesse.response.linear import Linear
from largesse.stats import logit

FOLD = np.arange(120) % 3


@pytest.fixture(scope="module")
def log() -> Log:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(120, 2)), rng.integers(0, 3, 120)
    return log_from_arrays(X, level, (rng.normal(size=120) < X[:, 0] + 0.6 * level - 0.5).astype(float))


def test_every_row_is_scored_by_the_model_that_did_not_see_it(log: Log) -> None:
    owner = Linear(penalty=0.1).fit(log)
    X = owner.encode(log)
    (models,) = fit_fold_copies([Linear(penalty=0.1)], X, log, FOLD, owner)
    held = score_held_out_rows(models, X, FOLD, Link(True))
    for f, model in enumerate(models):
        np.testing.assert_allclose(held[f == FOLD], logit(model.predict(log))[f == FOLD], atol=1e-6)
    np.testing.assert_allclose(
        average_member_scores(models, X, Link(True)),
        np.mean([logit(m.predict(log)) for m in models], axis=0),
        atol=1e-6,
    )


def test_curves_of_a_fold_do_not_depend_on_its_responses(log: Log) -> None:
    heard: list[float] = []
    curves = predict_held_out(Linear(penalty=0.1), log, FOLD, lambda _stage, done: heard.append(done)).curves
    other = log_from_arrays(log.features, log.level, np.where(FOLD == 1, 1 - log.response, log.response))
    again = predict_held_out(Linear(penalty=0.1), other, FOLD).curves
    np.testing.assert_allclose(curves[FOLD == 1], again[FOLD == 1])
    assert not np.allclose(curves[FOLD == 0], again[FOLD == 0])
    assert heard == pytest.approx([0, 1 / 3, 2 / 3, 1])
