"""A policy file that was changed and sealed again is refused when it is read, or decides."""

import policies
import pytest
from harness import observe

QUICK = ("linear", "additive", "boosting", "thresholds", "aimed")


@pytest.mark.parametrize("kind", QUICK)
def test_a_file_with_odd_content_is_refused_or_decides(kind: str) -> None:
    found = [(seed, observe(lambda seed=seed: policies.try_policy(seed, kind))) for seed in range(25)]  # type: ignore[misc]
    assert [(seed, outcome) for seed, outcome in found if not outcome.good] == []
    assert {outcome.kind for _, outcome in found} == {"fine", "refused"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", policies.KINDS)
def test_many_files_with_odd_content_are_refused_or_decide(kind: str) -> None:
    found = [(seed, observe(lambda seed=seed: policies.try_policy(seed, kind))) for seed in range(400)]  # type: ignore[misc]
    assert [(seed, outcome) for seed, outcome in found if not outcome.good] == []
