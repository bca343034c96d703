"""Choosing among candidates by held-out losses: who wins, and by how much."""

import numpy as np
import pytest

from largesse.records import Array
from largesse.stats.model_selection import choose_by_one_standard_error, choose_lowest_loss, find_chosen_index
from largesse.stats.t_intervals import t_estimate


def kept(losses: Array, weight: Array | None = None, cluster: Array | None = None) -> str:
    choices = choose_by_one_standard_error([f"m{i}" for i in range(len(losses))], losses, weight, cluster)
    assert sum(choice.chosen for choice in choices) == 1
    return choices[find_chosen_index(choices)].name


def test_a_clearly_better_candidate_wins() -> None:
    noise = np.random.default_rng(0).normal(size=100)
    assert kept(np.array([noise + 1, noise])) == "m1"
    assert kept(np.array([noise, noise + 1])) == "m0"


def test_the_simpler_one_wins_a_tie() -> None:
    same = np.random.default_rng(0).normal(size=100)
    assert kept(np.array([same, same, same])) == "m0"


def test_the_simpler_one_wins_within_one_paired_standard_error() -> None:
    base, wobble = np.random.default_rng(1).normal(size=(2, 100))
    wobble -= wobble.mean()
    se = t_estimate(wobble).se
    assert kept(np.array([base + wobble + 0.99 * se, base])) == "m0"
    assert kept(np.array([base + wobble + 1.01 * se, base])) == "m1"


def test_the_error_is_of_the_paired_difference_not_of_the_losses() -> None:
    wide = 100 * np.random.default_rng(2).normal(size=100)
    assert kept(np.array([wide + 0.01, wide])) == "m1"


def test_a_worse_one_between_two_good_ones_is_passed_over() -> None:
    base = np.random.default_rng(3).normal(size=100)
    assert kept(np.array([base + 1, base + 2, base])) == "m2"


def test_choices_hold_losses_differences_and_errors() -> None:
    losses = np.random.default_rng(4).normal(size=(2, 50)) + np.array([[1], [0]])
    first, second = choose_by_one_standard_error(["a", "b"], losses)
    assert (first.name, first.loss) == ("a", pytest.approx(losses[0].mean()))
    difference = t_estimate(losses[0] - losses[1])
    assert (first.difference, first.se) == (difference.estimate, difference.se)
    assert (second.difference, second.se, second.chosen) == (0, 0, True)


def test_weights_and_clusters_count_in_the_choice() -> None:
    losses = np.array([[0.0, 1.0] * 20, [1.0, 0.0] * 20])
    assert kept(losses, weight=np.array([9.0, 1.0] * 20)) == "m0"
    assert kept(losses, weight=np.array([1.0, 9.0] * 20)) == "m1"
    worse = np.random.default_rng(5).normal(0.12, 0.5, 10).repeat(10)  # ten clusters of ten alike rows
    both = np.array([worse, np.zeros(100)])
    assert kept(both) == "m1"
    assert kept(both, cluster=np.arange(100) // 10) == "m0"


def test_the_least_loss_wins_by_however_little() -> None:
    base = np.random.default_rng(6).normal(size=100)
    choices = choose_lowest_loss(["a", "b"], np.array([base + np.r_[1.0, np.zeros(99)] * 1e-6, base]))
    assert find_chosen_index(choices) == 1
    weight = np.r_[1.0, np.full(99, 2.0)]
    assert (
        find_chosen_index(
            choose_lowest_loss(["a", "b"], np.array([np.r_[0.0, np.ones(99)], np.r_[9.0, np.zeros(99)]]), weight)
        )
        == 1
    )
