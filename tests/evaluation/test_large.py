"""Large logs: models learn from a sample, all rows judge; the answer is that of the log in memory, but for its error."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.data import read_log
from largesse.evaluation import (
    crossfit_scores,
    doctor,
    estimate_policy_value_and_spend,
    evaluate,
    make_study,
    plan_each_fold,
    spend_by_price,
)
from largesse.evaluation import frontier_estimate as budgets
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.response import Linear
from largesse.stats import assign_folds

K, N, MOST = 3, 1500, 500
LEVELS = Levels(costs=[0.0, 1.0, 2.0])


def draw(seed: int, n: int = N, rare: float = 0.0) -> tuple[pa.Table, Array]:
    """Return a confounded log of a known world as a table, and the true curves (n, K)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    scores = np.column_stack([np.zeros(n), 0.8 * x[:, 0] - rare, 0.8 * x[:, 1] - rare])
    chosen = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    steps = np.exp(0.5 * x[:, 2])[:, None] * np.array([0.0, 0.5, 0.8])
    truth = 1 / (1 + np.exp(-(0.7 * x[:, :1] + 0.5 * x[:, 1:2] - 0.5 + steps)))
    response = (rng.random(n) < truth[np.arange(n), chosen]).astype(float)
    return pa.table({**{f"x{j}": x[:, j] for j in range(3)}, "level": chosen, "bought": response}), truth


def read(source: Any, most: int | None = MOST, seed: int = 0, **more: Any) -> Log:
    return read_log(source, levels=LEVELS, level="level", response="bought", most_rows=most, seed=seed, **more)


def errors(seed: int, most: int | None, rare: float = 0.0) -> tuple[float, float, float]:
    """Return the error of a held-out plan's estimated value, its standard error, and the estimate."""
    table, truth = draw(seed, rare=rare)
    scores = crossfit_scores(read(table, most, seed), Linear(), seed=seed)
    plan = plan_each_fold(scores, 0.8)
    found, _ = estimate_policy_value_and_spend(scores, plan.levels)
    return found.estimate - float(truth[np.arange(N), plan.levels].mean()), found.se, found.estimate


@pytest.mark.parametrize("rare", [0.0, 2.5])
def test_estimates_are_unbiased_and_their_errors_known(rare: float) -> None:
    found = np.array([errors(seed, MOST, rare) for seed in range(20)])
    z = found[:, 0] / found[:, 1]
    assert abs(z.mean()) < 3.5 / np.sqrt(len(z))
    assert 0.6 < z.std() < 1.45
    assert np.mean(np.abs(z) < 1.96) > 0.8


def test_the_answer_is_that_of_the_log_in_memory_within_its_standard_error() -> None:
    for seed in range(3):
        (_, se, large), (_, other, whole) = errors(seed, MOST), errors(seed, None)
        assert se == pytest.approx(other, rel=0.15)
        assert abs(large - whole) < 3 * se


def test_no_model_has_seen_the_row_that_it_scores() -> None:
    """Whatever a row's own response, its curve is the same; another row's response may change it."""
    table, _ = draw(0)
    log = read(table)
    assert log.sample is not None
    fold = assign_folds(log)
    outside, inside = np.flatnonzero(log.outside)[:3], log.sample.rows[:3]
    before = crossfit_scores(log, Linear()).curves
    for row in (*outside, *inside):
        flipped = np.asarray(table["bought"]).copy()
        flipped[row] = 1 - flipped[row]
        other = table.set_column(4, "bought", pa.array(flipped))
        after = crossfit_scores(read(other), Linear()).curves
        assert np.array_equal(after[row], before[row])
        mates = fold == fold[row]
        assert np.array_equal(after[mates], before[mates])  # those who are planned together with it
        if row in inside:
            assert not np.array_equal(after, before)


def test_folds_outside_of_the_sample_come_after_its_own_and_are_no_smaller() -> None:
    for n, most in ((N, MOST), (N, N - 1), (N, 50)):
        log = read(draw(0, n)[0], most)
        assert log.sample is not None
        fold = assign_folds(log)
        inside = np.bincount(fold[log.sample.rows])
        outside = np.bincount(fold[log.outside])[len(inside) :]
        assert len(inside) == 5
        assert outside.min() >= 0.9 * inside.min()
        assert len(outside) <= 5


def test_the_order_of_files_changes_the_sample_and_nothing_else(tmp_path: Path) -> None:
    table, _ = draw(3)
    studies, checks = [], []
    for name, order in (("one", (0, 1, 2)), ("two", (2, 0, 1))):
        (tmp_path / name).mkdir()
        for k, part in enumerate(order):
            pq.write_table(table.slice(500 * part, 500), tmp_path / name / f"{k}.parquet")
        log = read(tmp_path / name)
        studies.append(make_study(log, Linear(), 0.8))
        checks.append(doctor(log))
    one, two = (study.evaluation for study in studies)
    assert abs(one.value - two.value) < 3 * one.value_se
    assert 0.6 < one.value_se / two.value_se < 1.7
    for first, second in zip(checks[0].raw, checks[1].raw, strict=True):
        assert first.estimate == pytest.approx(second.estimate, rel=1e-12)
    assert np.array_equal(checks[0].overlap.rows, checks[1].overlap.rows)


def test_checks_of_a_large_log_weigh_levels_as_the_log_does() -> None:
    table, _ = draw(1, rare=2.5)
    whole, large = doctor(read(table, None)), doctor(read(table))
    assert large.rows == whole.rows == N
    assert np.array_equal(large.overlap.rows, whole.overlap.rows)
    assert large.overlap.sampled == MOST
    np.testing.assert_allclose(large.overlap.before, whole.overlap.before, atol=0.25)
    assert large.overlap.after.max() < 0.2
    for one, other in zip(large.weighted, whole.weighted, strict=True):
        assert abs(one.estimate - other.estimate) < 3 * other.se


def test_policies_and_models_are_judged_by_large_logs_like_by_any() -> None:
    table, _ = draw(2)
    large, whole = read(table), read(table, None)
    everyone = np.full(N, 1)
    one, other = evaluate(large, everyone), evaluate(whole, everyone)
    assert abs(one.value - other.value) < 3 * other.value_se
    assert one.spend == other.spend == 1.0
    found = evaluate(large, Linear(), budget=0.8)
    assert found.rows == N


def test_given_propensities_are_kept() -> None:
    table, _ = draw(2)
    table = table.append_column("p", pa.array(np.full(N, 1 / 3)))
    log = read(table, propensity="p")
    assert np.array_equal(crossfit_scores(log).propensity, np.full(N, 1 / 3))


def test_of_very_many_rows_not_all_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = crossfit_scores(read(draw(4, 4000)[0], None), Linear())
    usual = budgets.make_budget_grid(scores)
    plans = budgets.plan_at_budgets(scores, usual[::4])
    before = budgets.estimate_frontier(scores, plans)
    monkeypatch.setattr(budgets, "MAX_FRONTIER_ROWS", 300)
    monkeypatch.setattr(budgets, "MAX_CORRELATION_UNITS", 1000)
    np.testing.assert_allclose(budgets.make_budget_grid(scores), usual, rtol=1e-12, atol=1e-15)
    after = budgets.estimate_frontier(scores, plans)
    for one, other in zip(before, after, strict=True):
        assert one.value == other.value
        assert one.band == pytest.approx(other.band, abs=0.1 * one.value.se)


def test_prices_at_which_spending_is_measured_need_not_see_all_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = draw(5, 4000)
    levels = Levels(costs=[0, 1, 2], on_redemption=True)
    scores = crossfit_scores(read_log(table, levels=levels, level="level", response="bought"), Linear())
    whole = spend_by_price.measure_spend_by_price(scores)
    monkeypatch.setattr(spend_by_price, "MAX_UNSAMPLED_ROWS", 300)
    monkeypatch.setattr(spend_by_price, "PRICE_SAMPLE_ROWS", 1000)
    some = spend_by_price.measure_spend_by_price(scores)
    assert whole is not None
    assert some is not None
    assert some.curve_of_all_folds.honest[-1] == whole.curve_of_all_folds.honest[-1]
    assert some.curve_of_all_folds.honest[15] == pytest.approx(whole.curve_of_all_folds.honest[15], rel=0.1)
