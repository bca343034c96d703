"""Spend and gain by group of protected attributes add up to those of the plan, and differ where the plan does."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from largesse.evaluation.crossfitted_scores import crossfit_scores
from largesse.evaluation.policy_estimates import estimate_policy_difference, estimate_policy_value_and_spend
from largesse.evaluation.protected_group_comparison import compare_protected_groups
from largesse.response import Linear
from largesse.worlds import simulate


def test_groups_add_up_to_the_plan_and_show_who_gets_more() -> None:
    log = simulate("averaged", n=1200, seed=3).log
    sex = np.where(np.random.default_rng(0).random(1200) < 0.3, "f", "m")
    log = replace(log, protected=pa.table({"sex": sex, "age": np.arange(1200) % 60}))
    scores = crossfit_scores(log, Linear())
    policy = np.where(sex == "f", 1, 3)
    by_sex, by_age = compare_protected_groups(log, scores, policy)
    assert [group.label for group in by_sex.groups] == ["f", "m"]
    assert [group.spend.estimate for group in by_sex.groups] == [1.0, 3.0]
    assert len(by_age.groups) == 5
    value, spend = (
        estimate_policy_value_and_spend(scores, policy)[0],
        estimate_policy_value_and_spend(scores, policy)[1],
    )
    extra = estimate_policy_difference(scores, policy, np.zeros(1200, dtype=int)).value
    for attribute in (by_sex, by_age):
        assert sum(group.share for group in attribute.groups) == pytest.approx(1.0)
        assert sum(group.rows for group in attribute.groups) == 1200
        for part, whole in (("spend", spend), ("extra", extra)):
            mean = sum(group.share * getattr(group, part).estimate for group in attribute.groups)
            assert mean == pytest.approx(whole.estimate)
    assert value.estimate > extra.estimate
    assert compare_protected_groups(replace(log, protected=None), scores, policy) == ()
