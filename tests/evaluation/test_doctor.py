from dataclasses import replace

import numpy as np
import pytest

from largesse.data.log import log_from_arrays
from largesse.evaluation.doctor import doctor
from largesse.records import Checkup, Log
from largesse.worlds.simulation import simulate


def randomised(n: int = 1200, seed: int = 0) -> Log:
    log = simulate("averaged", n=n, seed=seed, mix=1.0).log
    return replace(log, propensity=None, features=log.features.select([f"x{j}" for j in range(8)]))


def answers(found: Checkup) -> dict[str, str]:
    return {verdict.about: verdict.answer for verdict in found.verdicts}


def text(found: Checkup, about: str) -> str:
    return next(verdict.text for verdict in found.verdicts if verdict.about == about)


def test_a_randomised_log_is_fine() -> None:
    found = doctor(randomised())
    assert found.randomised
    assert set(answers(found).values()) == {"fine"}
    assert "Checkup(1,200 rows, fine" in repr(found)


def test_a_confounded_log_is_not_randomised() -> None:
    found = doctor(replace(simulate("confounded", n=1200, seed=1, mix=0.2).log, propensity=None))
    assert not found.randomised
    assert answers(found)["drawn by lot"] == "careful"
    assert "not randomised" in text(found, "drawn by lot")
    assert found.overlap.before.max() > 2 * found.overlap.after.max()


def test_given_propensities_that_explain_the_levels_are_fine() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(4000, 2))
    high = np.where(x[:, 0] > 0, 0.7, 0.3)
    level = (rng.random(4000) < high).astype(int)
    given = np.where(level == 1, high, 1 - high)
    log = log_from_arrays(x, level, rng.integers(0, 2, 4000), propensity=given)
    assert answers(doctor(log))["drawn by lot"] == "fine"
    assert "account for it" in text(doctor(log), "drawn by lot")
    lied = replace(log, propensity=np.full(4000, 0.5))
    assert answers(doctor(lied))["drawn by lot"] == "careful"


def test_a_level_with_five_rows_is_a_no() -> None:
    log = randomised()
    keep = np.ones(len(log), dtype=bool)
    keep[np.flatnonzero(log.level == 3)[5:]] = False
    found = doctor(log.take(keep))
    assert found.verdicts[0].about == "rows of each level"
    assert found.answer == "no"
    assert "'3' (5 rows" in found.verdicts[0].text


def test_a_planted_leak_is_a_no() -> None:
    log = randomised()
    told = log.response + np.random.default_rng(0).normal(scale=0.1, size=len(log))
    found = doctor(replace(log, features=log.features.append_column("after", [told])))
    assert answers(found)["leaks"] == "no"
    assert "'after' explains" in text(found, "leaks")


def test_a_row_of_great_weight_is_pointed_at() -> None:
    log = randomised()
    given = np.full(len(log), 0.2)
    given[7] = 0.001
    found = doctor(replace(log, propensity=given))
    assert found.heavy[0].row == 7
    assert answers(found)["weights"] == "careful"
    assert "row 7 alone carries" in text(found, "weights")


def test_a_falling_curve_is_seen_and_noise_is_not() -> None:
    rng = np.random.default_rng(3)
    level = rng.integers(0, 3, 3000)
    falling = rng.random(3000) < np.array([0.5, 0.3, 0.5])[level]
    found = doctor(log_from_arrays(rng.normal(size=(3000, 2)), level, falling))
    assert answers(found)["rising curve"] == "careful"
    assert "from '0' to '1'" in text(found, "rising curve")
    flat = [
        answers(doctor(log_from_arrays(rng.normal(size=(300, 1)), np.arange(300) % 3, rng.integers(0, 2, 300))))
        for _ in range(8)
    ]
    assert sum(one["rising curve"] == "careful" for one in flat) <= 2


def test_raw_means_and_intervals_are_those_of_the_rows() -> None:
    log = randomised()
    found = doctor(log)
    for k in range(5):
        own = log.response[log.level == k]
        assert found.raw[k].estimate == pytest.approx(own.mean())
        assert found.raw[k].se == pytest.approx(own.std(ddof=1) / np.sqrt(len(own)))
        assert abs(found.weighted[k].estimate - own.mean()) < 2 * found.raw[k].se


def test_few_clusters_are_mentioned() -> None:
    log = replace(randomised(), cluster=np.arange(1200) % 12)
    assert answers(doctor(log))["clusters"] == "careful"


def test_balance_is_told_for_every_feature_and_level() -> None:
    log = replace(simulate("confounded", n=1200, seed=1, mix=0.2).log, propensity=None)
    seen = doctor(log).overlap
    assert seen.by_level.shape == (2, len(seen.features), 5)
    np.testing.assert_allclose(np.abs(seen.by_level[0]).max(axis=1), seen.before)
    column = np.asarray(log.features.column(seen.features[0]))
    own = column[log.level == 4].mean() - column.mean()
    assert seen.by_level[0, 0, 4] == pytest.approx(own / column.std(), abs=1e-3)
