"""Levels compared within customers, next to all rows: on panels with and without a hidden reason."""

from typing import Any

import numpy as np
import pytest

from largesse.data.log_reader import read_log
from largesse.evaluation.log_checks import check_log, doctor
from largesse.evaluation.within_customer_comparison import compare_levels_within_customers
from largesse.levels import Levels
from largesse.propensity.propensity_estimation import encode_propensity_features
from largesse.records import Array, Log, Propensities, WithinCustomerComparison

LEVELS = Levels(costs=[0, 1, 2])


def make_panel(hidden: float, seed: int = 0, customers: int = 200, rows: int = 6, **roles: Any) -> Log:
    """Customers of different spending, each level worth 0.3; with `hidden`, those who spend more get higher levels."""
    rng = np.random.default_rng(seed)
    spends, customer = rng.normal(size=customers), np.repeat(np.arange(customers), rows)
    recency = rng.exponential(size=len(customer))
    scores = hidden * spends[customer][:, None] * [-1, 0, 1] + rng.gumbel(size=(len(customer), 3))
    level = scores.argmax(axis=1)
    response = spends[customer] + 0.3 * level - 0.2 * recency + 0.5 * rng.normal(size=len(customer))
    table = {"id": customer, "recency": recency, "age": rng.integers(18, 80, customers)[customer]}
    table |= {"coupon": level, "spent": response}
    roles = {"customer": "id", "features": ["recency", "age"]} | roles
    return read_log(table, level="coupon", response="spent", levels=LEVELS, **roles)


def compared(log: Log, propensity: Array | None = None) -> WithinCustomerComparison:
    within = compare_levels_within_customers(
        log, np.full(len(log), 1 / 3) if propensity is None else propensity, encode_propensity_features(log)
    )
    assert within is not None
    return within


def answer(log: Log) -> str:
    found = check_log(log, Propensities(np.full(len(log), 1 / 3), "given"))
    return next(finding.answer for finding in found.findings if finding.topic.startswith("within"))


def test_the_regression_is_that_with_one_indicator_for_each_customer() -> None:
    rng = np.random.default_rng(1)
    log = make_panel(0.5, customers=60)
    propensity = rng.uniform(0.2, 0.5, len(log))
    features = encode_propensity_features(log)
    group = np.asarray(log.customer.dictionary_encode().indices)  # type: ignore[union-attr]
    design = np.column_stack([log.level == 1, log.level == 2, features.X, np.eye(60)[group]]).astype(float)
    share = np.bincount(log.level) / len(log)
    root = np.sqrt(share[log.level] / propensity)
    slow = np.linalg.lstsq(design * root[:, None], log.response * root, rcond=None)[0][:2]
    found = compared(log, propensity)
    assert [effect.estimate for effect in found.within] == pytest.approx(slow)
    means = [np.average(log.response, weights=(log.level == k) / propensity) for k in range(3)]
    assert [effect.estimate for effect in found.among] == pytest.approx([means[1] - means[0], means[2] - means[0]])


def test_customers_who_spend_more_and_get_more_are_a_no() -> None:
    log = make_panel(1.0)
    found = compared(log)
    assert found.among[1].estimate > 1.2
    assert found.within[1].low < 0.6 < found.within[1].high
    assert found.p < 1e-6
    assert answer(log) == "no"
    assert doctor(log).answer == "no"


def test_levels_at_random_agree_within_and_among_customers() -> None:
    found = [compared(make_panel(0.0, seed)) for seed in range(40)]
    assert min(comparison.p for comparison in found) > 1e-3
    assert np.mean([comparison.p < 0.05 for comparison in found]) <= 0.15
    inside = [effect.low <= 0.6 <= effect.high for effect in (comparison.within[1] for comparison in found)]
    assert np.mean(inside) >= 0.85
    assert answer(make_panel(0.0)) == "fine"


def test_clusters_are_compared_where_the_log_has_no_customers() -> None:
    assert compared(make_panel(0.0, customer=None, cluster="id")).of == "cluster"
    assert compared(make_panel(0.0)).of == "customer"


def test_customers_of_one_level_each_cannot_be_compared() -> None:
    log = make_panel(0.0)
    one = log.take(np.unique(np.asarray(log.customer), return_index=True)[1])
    assert compare_levels_within_customers(one, np.full(len(one), 1 / 3), encode_propensity_features(one)) is None
    same = log.take(log.level == 1)
    assert compare_levels_within_customers(same, np.full(len(same), 1 / 3), encode_propensity_features(same)) is None
