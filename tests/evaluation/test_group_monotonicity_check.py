"""Falls of the response along the levels in groups of customers, where nothing states the order of the levels."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse.data.log_reader import log_from_arrays
from largesse.evaluation.group_monotonicity_check import find_clearest_group_fall, has_stated_order
from largesse.evaluation.log_checks import check_log, doctor
from largesse.levels import Levels
from largesse.records import Array, Log, Propensities

CHANNELS = Levels(costs=[0, 0.1, 0.1, 0.1], names=["none", "email", "sms", "push"])
N = 3000


def make_channels(seed: int = 0, levels: Levels = CHANNELS, effects: Any = None, **more: Any) -> Log:
    """Yes/no responses with effects (two groups of age, K) of the levels; by default each channel works at another age."""
    rng = np.random.default_rng(seed)
    age, city = rng.integers(18, 80, N), rng.choice(["Graz", "Wien", "Linz"], N)
    level = rng.integers(0, len(levels), N)
    effects = np.array([[0, 0.15, 0, 0.03], [0, 0, 0.15, 0.03]] if effects is None else effects)
    response = rng.random(N) < 0.1 + effects[(age >= 45).astype(int), level]
    table = pa.table({"age": age, "city": city, "visits": rng.poisson(3, N)})
    return log_from_arrays(table, level, response.astype(int), levels=levels, **more)


def own(log: Log) -> Array:
    return np.full(len(log), 1 / len(log.levels))


def answer(log: Log) -> tuple[str, str]:
    found = check_log(log, Propensities(own(log), "given"))
    return next((f.answer, f.text) for f in found.findings if f.topic == "order of levels")


def test_channels_for_different_ages_do_not_look_ordered() -> None:
    log = make_channels()
    found = find_clearest_group_fall(log, own(log))
    assert found is not None
    assert found.group.startswith("'age' is")
    assert 0.08 < found.fall.by < 0.22
    assert answer(log)[0] == "no"
    assert doctor(log).answer == "no"


def test_a_word_can_be_the_group() -> None:
    rng = np.random.default_rng(0)
    city, level = rng.choice(["Graz", "Wien", "Linz"], N), rng.integers(0, 3, N)
    response = rng.random(N) < 0.3 + 0.2 * (level == 1) + 0.3 * (level == 2) * np.where(city == "Linz", -0.6, 1)
    log = log_from_arrays(pa.table({"city": city}), level, response.astype(int))
    found = find_clearest_group_fall(log, own(log))
    assert found is not None
    assert found.group == "'city' is 'Linz'"
    assert found.rows == (city == "Linz").sum()


@pytest.mark.parametrize(
    "effects", [np.zeros((2, 4)), [[0, 0.05, 0.1, 0.15], [0, 0, 0.1, 0.1]]], ids=["flat", "rising"]
)
def test_levels_that_never_fall_are_hardly_ever_called_unordered(effects: Any) -> None:
    logs = [make_channels(seed, effects=effects) for seed in range(40)]
    assert sum(find_clearest_group_fall(log, own(log)) is not None for log in logs) <= 1


def test_rows_of_one_household_are_not_evidence_each() -> None:
    """Two hundred households of fifteen alike: over rows, their differences would look clear."""
    rng = np.random.default_rng(1)
    household = np.repeat(np.arange(200), 15)
    level, size = rng.integers(0, 4, 200)[household], rng.integers(1, 9, 200)[household]
    response = (rng.random(200) < 0.3)[household].astype(int)
    log = log_from_arrays(pa.table({"size": size}), level, response, levels=CHANNELS)
    assert find_clearest_group_fall(log, own(log)) is not None
    clustered = log_from_arrays(pa.table({"size": size}), level, response, levels=CHANNELS, cluster=household)
    assert find_clearest_group_fall(clustered, own(clustered)) is None


@pytest.mark.parametrize(
    ("levels", "stated"),
    [
        (Levels(costs=[0, 5, 10]), True),
        (Levels(costs=[0, 5, 10], doses=[0, 5, 10]), True),
        (Levels(costs=[0, 1, 2], names=["none", "5 EUR", "10 EUR"]), True),
        (Levels(costs=[0, 1], names=["control", "mail"]), True),
        (Levels(costs=[0, 1, 2], names=["none", "mail", "call"]), False),
        (Levels(costs=[0, 1, 1], doses=[0, 5, 10]), False),
        (Levels(observed=True, names=["a", "b"]), False),
        (Levels(costs=["c0", "c1", "c2"]), True),
    ],
)
def test_an_order_is_stated_by_amounts_sizes_and_different_costs(levels: Levels, stated: bool) -> None:
    assert has_stated_order(levels) == stated


def test_levels_with_amounts_are_not_searched() -> None:
    effects = [[0, 0.15, 0], [0, 0, 0.15]]
    assert (
        answer(make_channels(levels=Levels(costs=[0, 5, 5], names=["none", "mail", "call"]), effects=effects))[0]
        == "no"
    )
    assert answer(make_channels(levels=Levels(costs=[0, 5, 10]), effects=effects))[0] == "fine"


def test_a_response_that_every_level_lowers_asks_for_its_direction() -> None:
    lower = [[0, -0.06, -0.06, -0.06]] * 2
    said, text = answer(make_channels(effects=lower, levels=Levels(costs=[0, 5, 10, 20])))
    assert said == "no"
    assert "opposite" in text
    one = [[0, 0, 0, -0.08]] * 2
    assert "opposite" not in answer(make_channels(effects=one, levels=Levels(costs=[0, 5, 10, 20])))[1]
