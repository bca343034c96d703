"""Random groups of customers hold a share between the limits, and no customer whose value is missing."""

import numpy as np
import pyarrow as pa
import pytest

from largesse.worlds import draw_world
from largesse_lab.runner.plan_interval_coverage import format_bias, measure_interval_coverage
from largesse_lab.runner.random_customer_groups import GROUP_KINDS, FeatureCondition, draw_customer_group


@pytest.mark.parametrize("seed", range(4))
def test_groups_hold_a_share_between_the_limits(seed: int) -> None:
    table = draw_world(seed).draw_fresh(1000).table
    rng = np.random.default_rng(seed)
    groups = [group for _ in range(6) if (group := draw_customer_group(table, rng)) is not None]
    assert groups
    for group in groups:
        assert group.kind in GROUP_KINDS
        assert len(group.conditions) == (2 if group.kind == "pair" else 1)
        assert 0.05 <= group.find_members(table).mean() <= 0.4


def test_missing_values_meet_no_condition() -> None:
    table = pa.table({"x": [1.0, None, 3.0], "w": ["a", None, "b"]})
    assert FeatureCondition("x", low=-np.inf, high=2.0).find_members(table).tolist() == [True, False, False]
    assert FeatureCondition("w", word="b").find_members(table).tolist() == [False, False, True]


def test_missing_intervals_do_not_count() -> None:
    stated = [[1.0, 0.5, 1.5, 1.5], [1.0, 0.5, 1.5, 1.6], [1.0, None, None, 1.0]]
    assert measure_interval_coverage(stated) == (0.5, 2)
    assert measure_interval_coverage([]) == (None, 0)
    assert format_bias(stated) == "−1.10 ± 0.10"
