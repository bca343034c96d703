"""Measures of the literature are one half for a random order, and as large as can be for the true one."""

import numpy as np
import pytest

from largesse.records import Array
from largesse_lab.runner.uplift_measures import measure_aucc, measure_multi_level_aucc, measure_qini

N = 20_000


@pytest.fixture(scope="module")
def log() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    effect = np.where(rng.random(N) < 0.5, 0.4, 0.0)
    treated = rng.random(N) < 0.5
    response = (rng.random(N) < 0.2 + effect * treated).astype(float)
    return {"effect": effect, "treated": treated, "response": response, "random": rng.random(N)}


def slow_qini(effect: Array, treated: Array, response: Array) -> float:
    order, curve = np.argsort(-effect, kind="stable"), []
    for i in range(1, len(order) + 1):
        first = order[:i]
        on, off = first[treated[first]], first[~treated[first]]
        curve.append(response[on].sum() - (response[off].sum() * len(on) / len(off) if len(off) else 0.0))
    return float(np.mean(curve) / curve[-1])


def test_qini_is_the_mean_of_the_curve_over_its_end(log: dict[str, Array]) -> None:
    few = slice(0, 300)
    arguments = (log["random"][few], log["treated"][few], log["response"][few])
    assert measure_qini(*arguments) == pytest.approx(slow_qini(*arguments), rel=1e-12)


def test_qini_rises_from_one_half_to_three_quarters(log: dict[str, Array]) -> None:
    rest = (log["treated"], log["response"])
    assert measure_qini(log["random"], *rest) == pytest.approx(0.5, abs=0.05)
    assert measure_qini(log["effect"], *rest) == pytest.approx(0.75, abs=0.05)


def test_area_under_the_cost_curve_rises_likewise(log: dict[str, Array]) -> None:
    change = np.where(log["treated"], log["response"], -log["response"]) / 0.5
    cost, spending = np.ones(N), np.where(log["treated"], 2.0, 0.0)
    assert measure_aucc(log["random"], cost, change, spending) == pytest.approx(0.5, abs=0.05)
    assert measure_aucc(log["effect"], cost, change, spending) == pytest.approx(0.75, abs=0.05)


def test_with_two_levels_both_areas_are_the_same(log: dict[str, Array]) -> None:
    curves = np.column_stack([np.full(N, 0.2), 0.2 + log["random"]])
    costs = np.tile([0.0, 1.0], (N, 1))
    value = np.column_stack([~log["treated"], log["treated"]]) * log["response"][:, None] * 2
    paid = np.column_stack([np.zeros(N), log["treated"] * 2.0])
    single = measure_aucc(log["random"], costs[:, 1], value[:, 1] - value[:, 0], paid[:, 1])
    assert measure_multi_level_aucc(curves, costs, value, paid) == pytest.approx(single, rel=1e-12)


def test_a_level_below_the_hull_is_passed_over() -> None:
    curves = np.array([[0.0, 0.1, 1.0]])  # the first step returns less than the second
    costs, value = np.array([[0.0, 1.0, 2.0]]), np.array([[0.0, 5.0, 1.0]])
    assert measure_multi_level_aucc(curves, costs, value, costs) == 0.5  # one straight step
