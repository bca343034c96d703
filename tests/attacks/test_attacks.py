"""Every attack with a few seeds; `make attack` tries ten thousand."""

import pytest
from catalogue import ATTACKS
from harness import Attack, run_apart, run_one

EVERY = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)


@EVERY
def test_a_few_seeds_find_nothing(attack: Attack) -> None:
    found = [(seed, run_one(attack, seed)) for seed in range(attack.quick)]
    assert [(seed, outcome) for seed, outcome in found if not outcome.good] == []


@pytest.mark.slow
@EVERY
def test_more_seeds_find_nothing(attack: Attack) -> None:
    seeds = range(1000, 1000 + max(attack.share // 50, 4))
    assert [(seed, outcome) for seed, outcome in run_apart(attack, seeds) if not outcome.good] == []
