"""Coverage of intervals: the fixed rule, and a short run."""

import numpy as np
import pytest
from scipy import stats

from largesse.worlds import simulate
from largesse_lab.experiments import interval_coverage
from largesse_lab.runner.experiment_request import Request


def test_the_fixed_rule_does_not_depend_on_who_is_drawn() -> None:
    for name in ("unit", "averaged"):
        some, many = (simulate(name, n=n, seed=1).features for n in (50, 2000))
        np.testing.assert_array_equal(
            interval_coverage.apply_fixed_rule(some), interval_coverage.apply_fixed_rule(many)[:50]
        )


@pytest.mark.slow
def test_intervals_contain_the_truth_as_often_as_they_promise() -> None:
    """A short version of `largesse experiment coverage --repeats 500`.

    All cases together must cover at least .93; each alone, what 93 % intervals would cover in 999 of 1,000 such tests.
    """
    records = interval_coverage.measure(Request(("averaged", "confounded"), repeats=100))
    cases = ("fixed given", "learnt given", "fixed estimated", "learnt estimated")
    kinds = [f"{case} {paid}" for case in cases for paid in ("always", "redeemed")]
    shares = np.array([[record[kind]["hit"] for record in records] for kind in kinds]).mean(axis=1)  # (kinds, 2)
    assert shares.mean() >= 0.93
    assert shares.min() >= stats.binom.ppf(0.001, len(records), 0.93) / len(records)
    bands = [record["band given"]["hit"] for record in records if "band given" in record]
    assert np.mean(bands) > 0.85
