"""A policy that explores for a purpose does so for customers whom it has not seen, and its file keeps how."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import largesse as lg
from largesse.errors import InputError
from largesse.io import read_archive
from largesse.policy import Policy
from largesse.policy.policy import POLICY_FORMAT
from largesse.records import Array

COSTS = np.arange(5.0)


@pytest.fixture(scope="module")
def made() -> tuple[Policy, Array, Array]:
    """A policy, customers it was calibrated on, and others like them."""
    log = lg.simulate("averaged", n=600, seed=2).log
    known, new = (np.asarray(lg.simulate("averaged", n=3000, seed=seed).features) for seed in (12, 22))
    policy = Policy(lg.Linear(penalty=1.0).fit(log), log.levels)
    return policy.calibrate(known, 1.5, explore_for="evaluation"), known, new


def test_it_draws_for_others_as_an_exploration_draws_for_its_own(made: tuple[Policy, Array, Array]) -> None:
    policy, known, new = made
    plan = policy.explore(known, 1.5)
    assert np.abs(policy.probabilities(known) - plan.probabilities).mean() < 1e-4
    assert policy.price == plan.price
    spends = policy.probabilities(known) @ COSTS, policy.probabilities(new) @ COSTS
    assert spends[0].mean() <= 1.5 * (1 + 1e-7)
    assert spends[1].mean() == pytest.approx(spends[0].mean(), abs=4 * np.hypot(*(s.std() / 55 for s in spends)))
    assert (policy.probabilities(new).max(axis=1) > 0.7).mean() > 0.5
    assert "explores for evaluation" in repr(policy)


def test_what_is_drawn_has_the_propensity_that_is_told(made: tuple[Policy, Array, Array]) -> None:
    policy, _, new = made
    offers, given = policy.offer(new, seed=1), policy.probabilities(new)
    assert np.array_equal(offers.propensity, given[np.arange(3000), offers.levels])
    assert np.bincount(offers.levels, minlength=5) / 3000 == pytest.approx(given.mean(axis=0), abs=0.03)
    assert np.array_equal(policy.decide(new), Policy(policy.model, policy.levels, policy.price).decide(new))


def test_its_file_keeps_how_it_draws_and_others_are_as_before(
    tmp_path: Path, made: tuple[Policy, Array, Array]
) -> None:
    policy, known, new = made
    policy.save(tmp_path / "policy")
    loaded = Policy.load(tmp_path / "policy")
    assert loaded.exploration == policy.exploration
    assert np.array_equal(loaded.probabilities(new), policy.probabilities(new))
    policy.calibrate(known, 1.5, explore=0.0).save(tmp_path / "plain")
    assert read_archive(tmp_path / "plain", POLICY_FORMAT)[0]["exploration"] is None


def test_calibrating_again_explores_as_before_unless_it_is_told_otherwise(made: tuple[Policy, Array, Array]) -> None:
    policy, known, _ = made
    again = policy.calibrate(known, 2.0)
    assert again.exploration is not None
    assert (again.exploration.goal, again.exploration.rate) == ("evaluation", 0.05)
    assert (again.probabilities(known) @ COSTS).mean() == pytest.approx(2.0, rel=1e-3)
    assert policy.calibrate(known, 2.0, explore=0.1).exploration is None
    assert policy.calibrate(known, 2.0, explore=0.1, explore_for="random").exploration_rate == 0.1
    learning = policy.calibrate(known, 2.0, explore=0.1, explore_for="learning").exploration
    assert learning is not None
    assert (learning.goal, learning.rate) == ("learning", 0.1)


def test_amounts_vary_as_the_log_says_and_the_file_keeps_it(tmp_path: Path) -> None:
    log = lg.simulate("averaged", n=400, seed=1).log
    features = np.column_stack([log.features.column(0).to_numpy()])
    amounts = lg.log_from_arrays(features, log.level, 10 * log.response + log.level, levels=log.levels)
    policy = Policy(lg.Linear(penalty=1.0).fit(amounts), log.levels)
    with pytest.raises(InputError, match="log=log"):
        policy.calibrate(amounts, 1.0, explore_for="evaluation")
    found = policy.calibrate(amounts, 1.0, explore_for="evaluation", log=amounts)
    found.save(tmp_path / "policy")
    loaded = Policy.load(tmp_path / "policy")
    assert loaded.exploration is not None
    assert loaded.exploration.variance.variance
    assert np.array_equal(loaded.probabilities(features), found.probabilities(features))
    assert loaded.calibrate(amounts, 1.2).exploration is not None  # what it knows of responses is enough


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"explore_for": "evaluate"}, "the goal is 'evaluate'"),
        ({"explore_for": "evaluation", "explore": 0}, "the rate is 0"),
        ({"explore_for": "evaluation", "log": "log.csv"}, "the log is"),
        ({"price": 0.5}, "explores around a price"),
        ({"exploration_rate": 0.1}, "a level at random"),
        ({"exploration": "evaluation"}, "exploration is 'evaluation'"),
    ],
)
def test_invalid_arguments_are_refused(made: tuple[Policy, Array, Array], wrong: dict[str, Any], words: str) -> None:
    policy, known, _ = made
    with pytest.raises(InputError, match=words):
        policy.calibrate(known, 1.5, **wrong) if "explore_for" in wrong else replace(policy, **wrong)
