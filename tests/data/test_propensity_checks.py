"""Given propensities: what cannot be right is refused with the numbers, honest logs never, doubts are said."""

from typing import Any

import numpy as np
import pytest

from largesse.data.log_reader import read_log
from largesse.data.propensity_checks import GivenPropensities, find_implausible_levels, find_propensity_problems
from largesse.errors import InputError
from largesse.evaluation import doctor
from largesse.levels import Levels
from largesse.records import Log

N = 600
SHARES = np.array([0.2, 0.2, 0.6])
LABELS = ("0", "1", "2")


def draw(probabilities: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return (np.cumsum(probabilities, axis=1) > rng.random((len(probabilities), 1))).argmax(axis=1)


def table(**columns: Any) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    level = draw(np.tile(SHARES, (N, 1)))
    bought = (rng.random(N) < 0.3 + 0.1 * level).astype(float)
    return {"age": rng.normal(size=N), "coupon": level, "bought": bought, "stratum": rng.integers(0, 3, N)} | columns


def read(content: dict[str, Any], **roles: Any) -> Log:
    return read_log(content, level="coupon", response="bought", levels=Levels(costs=[0, 1, 2]), **roles)


WRONG = {  # propensity of each level
    "one everywhere": np.ones(3),
    "nearly one everywhere": np.full(3, 0.9),
    "ten times too small": SHARES / 10,
    "of another level": SHARES[::-1],
    "uniform, when levels were not": np.full(3, 1 / 3),
}


@pytest.mark.parametrize("name", WRONG)
def test_propensities_that_cannot_be_right_are_refused(name: str) -> None:
    content = table()
    with pytest.raises(InputError, match="propensity 'p'"):
        read(content | {"p": WRONG[name][content["coupon"]]}, propensity="p")
    with pytest.raises(InputError, match="percentages"):
        read(content | {"p": 100 * SHARES[content["coupon"]]}, propensity="p")


def test_doubtful_propensities_are_a_finding() -> None:
    content = table()
    level = draw(np.full((N, 3), 1 / 3))
    log = read(content | {"coupon": level, "p": np.full(N, 0.5)}, propensity="p")
    found = [finding for finding in doctor(log).findings if finding.topic == "propensities"]
    assert "no" in {finding.answer for finding in found}


def honest(seed: int) -> GivenPropensities:
    """A log whose propensities are right: strata, soft rules, rare levels, exploration; weights, clusters."""
    rng = np.random.default_rng(seed)
    rows, levels = int(rng.choice([60, 300, 2000])), int(rng.integers(2, 6))
    kind = seed % 4
    if kind == 0:
        chance = rng.dirichlet(np.ones(levels), 5)[rng.integers(0, 5, rows)]
    elif kind == 1:
        scores = np.exp(rng.normal(size=(rows, 3)) @ rng.normal(size=(3, levels)))
        chance = scores / scores.sum(axis=1, keepdims=True)
    elif kind == 2:
        chance = np.full((rows, levels), 0.1 / levels)
        chance[np.arange(rows), rng.integers(0, levels, rows)] += 0.9
    else:
        chance = np.tile(rng.dirichlet(np.full(levels, 0.5)) * 0.9 + 0.1 / levels, (rows, 1))
    cluster = rng.integers(0, max(rows // 10, 4), rows) if seed % 3 == 0 else None
    level = draw(chance, seed)
    if cluster is not None:  # the first row of a cluster decides for all of it
        _, first, own = np.unique(cluster, return_index=True, return_inverse=True)
        chance, level = chance[first][own], level[first][own]
    weight = rng.lognormal(0, 1, rows) if seed % 5 == 0 else None
    return GivenPropensities(level, chance[np.arange(rows), level], [str(k) for k in range(levels)], weight, cluster)


def test_honest_propensities_are_never_refused_and_hardly_ever_doubted() -> None:
    logs = [honest(seed) for seed in range(400)]
    assert sum(bool(find_propensity_problems(log, "p")) for log in logs) == 0
    assert sum(bool(find_implausible_levels(log)) for log in logs) <= 8


def test_propensities_of_levels_are_read() -> None:
    log = read(table(), propensity=[0.2, 0.2, 0.6])
    assert np.array_equal(log.propensity, SHARES[log.level])


@pytest.mark.parametrize(
    "given", [[0.5, 0.5], [0.2, 0.2, 0.2], [0, 0.5, 0.5], ["a", "b", "c"], [20, 20, 60], [0.3, 0.3, 0.4]]
)
def test_invalid_propensities_of_levels_are_refused(given: list[Any]) -> None:
    with pytest.raises(InputError, match="propensities of the levels"):
        read(table(), propensity=given)


def test_propensities_of_strata_are_the_shares_in_them() -> None:
    content = table()
    log = read(content, propensity_strata="stratum")
    for row in range(20):
        inside = content["stratum"] == content["stratum"][row]
        assert log.propensity is not None
        assert log.propensity[row] == (content["coupon"][inside] == content["coupon"][row]).mean()
    assert "stratum" in log.features.column_names  # what decided the level must not be hidden from the models
