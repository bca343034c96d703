"""Checks of a campaign's log against its plan and against the log that trained the model.

Every test has an error rate of its own; together about three of a hundred campaigns in which nothing is wrong raise an
alarm. A change must also be large enough to matter. Tenths of predicted gain and notes raise no alarm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largesse.data import (
    GivenPropensities,
    convert_to_floats,
    find_feature_kind,
    find_implausible_levels,
    group_column_values,
)
from largesse.errors import join_some, percent, plural
from largesse.evaluation import compute_paid_costs, measure_column_drifts, measure_explained_share
from largesse.monitoring.new_log_predictions import PlanPrediction
from largesse.records import (
    Array,
    CampaignCheck,
    ColumnDrift,
    Estimate,
    Finding,
    Leak,
    LevelUptake,
    Log,
    PredictedAndRealised,
    RealisedTenth,
    sort_findings,
)
from largesse.stats import sample_rows, t_estimate, t_quantile

if TYPE_CHECKING:
    import pyarrow as pa

TEST_ERROR = 0.004  # error rate of the test of value or spend, and of the price
DRIFT_ERROR = 0.01  # of all columns together
MIN_PSI, SERIOUS_PSI = 0.02, 0.25
MIN_FOLLOWED, SERIOUS_FOLLOWED = 0.98, 0.9  # shares of customers who got the planned level
SERIOUS_SHORTFALL = 0.1  # as a share of the prediction
SERIOUS_P = 1e-4
MIN_DRIFT_OF_PRICE = 0.1
MIN_LEAK_INCREASE = 0.1  # of the share of the residual that a column explains
MIN_NEW_LEAK = 0.3  # the share itself, for a column that the old log lacks
SERIOUS_LEAK = 0.8
MAX_LEAK_GROUPS, MAX_LEAK_ROWS = 50, 50_000
N_SHUFFLES = 99
MAX_OVERSPENDING = 0.03


@dataclass(frozen=True, eq=False)
class TrainingLogResiduals:
    """Features and out-of-fold residuals of the log that trained the model."""

    features: pa.Table
    residual: Array  # (m,) response − out-of-fold prediction
    cluster: Array | None = None
    binary: bool = False


def check_campaign(
    log: Log, prediction: PlanPrediction, old: TrainingLogResiduals | None = None, seed: int = 0
) -> CampaignCheck:
    """Check a campaign's log against the plan's prediction and against the training log."""
    paid, rows = compute_paid_costs(log), np.arange(len(log))
    followed = log.level == prediction.levels
    value = _compare_with_prediction(log, log.response, prediction.expected, prediction.honest)
    error = prediction.spend_error * float(np.average(prediction.costs, weights=log.weights))
    spend = _compare_with_prediction(log, paid, prediction.costs, Estimate(0.0, error, -1.96 * error, 1.96 * error))
    residual = log.response - prediction.curves[rows, log.level]
    drifts = () if old is None else measure_column_drifts(old.features, log.features, (old.cluster, log.cluster), seed)
    leaks = _find_residual_leaks(log, residual, old, seed)
    levels = _measure_level_uptake(log, prediction, followed)
    tenths = _compare_tenths(log, prediction)
    findings = [
        _check_adherence(log, prediction, followed),
        *_check_unmatched_rows(len(log), prediction),
        *_check_propensities(log, prediction),
        *_check_responses(log, old),
        _check_value(value, log.binary and value.promised.estimate <= 1),
        _check_spend(spend, log.levels.certain),
        *_check_tenths(tenths),
        *_check_drift(drifts, old is not None),
        *_check_price(prediction),
        _check_leaks(leaks, old is not None),
    ]
    return CampaignCheck(
        sort_findings(findings),
        len(log),
        prediction.joined,
        value,
        spend,
        tenths,
        levels,
        float(np.average(followed, weights=log.weights)),
        drifts,
        None if prediction.price is None or prediction.price_now is None else (prediction.price, prediction.price_now),
        leaks,
    )


# -- value and spend ------------------------------------------------------------------------------------------------------


def _compare_with_prediction(
    log: Log, outcome: Array, expected: Array, correction: Estimate | None
) -> PredictedAndRealised:
    """Compare the mean of an outcome (n,) with its bias-corrected prediction."""
    more = correction or Estimate(0.0, 0.0, 0.0, 0.0)
    realised = t_estimate(outcome, log.weight, log.cluster)
    gap = t_estimate(outcome - expected, log.weight, log.cluster)
    mean = float(np.average(expected, weights=log.weights)) + more.estimate
    promised = Estimate(mean, more.se, mean + more.low - more.estimate, mean + more.high - more.estimate)
    difference, se = gap.estimate - more.estimate, float(np.hypot(gap.se, more.se))
    if not np.isfinite([se, more.low, more.high]).all():  # too few rows for an error
        return PredictedAndRealised(
            promised, realised, Estimate(difference, float("nan"), float("nan"), float("nan")), 1.0
        )
    # With few rows the error of the gap is itself uncertain: its interval is wider than ±1.96 standard errors.
    normal = t_quantile(1e9)
    half_width = (gap.high - gap.low) / 2 if gap.se > 0 else 0.0
    # The interval of a prediction of rare responses is longer upwards; its upper part counts against a result above.
    low = float(np.hypot(half_width, more.high - more.estimate))
    high = float(np.hypot(half_width, more.estimate - more.low))
    interval = Estimate(difference, se, difference - low, difference + high)
    return PredictedAndRealised(
        promised, realised, interval, _compute_two_sided_p(difference, (low if difference > 0 else high) / normal)
    )


def _compute_two_sided_p(difference: float, se: float) -> float:
    from scipy.special import ndtr

    if se <= 0:
        return 0.0 if difference else 1.0
    return float(2 * ndtr(-abs(difference) / se))


def _check_value(value: PredictedAndRealised, binary: bool) -> Finding:
    promised, difference = value.promised.estimate, value.difference
    scale, unit, points = (100, " %", " pp") if binary else (1, " per customer", "")
    ends = " to ".join(f"{scale * end:+.2g}" for end in difference.interval)
    numbers = (
        f"promised {scale * promised:.4g}{unit}, realised {scale * value.realised.estimate:.4g}{unit} "
        f"(difference {scale * difference.estimate:+.2g}{points}, 95 % interval {ends}{points})"
    ).replace("-", "−")
    if value.p >= TEST_ERROR:
        return Finding("value", "fine", f"The value is as promised: {numbers}.")
    if difference.estimate > 0:
        text = f"The value is above the promise: {numbers}. Is the response measured as before?"
        return Finding("value", "careful", text)
    serious = value.p < SERIOUS_P and -difference.estimate > SERIOUS_SHORTFALL * abs(promised)
    return Finding("value", "no" if serious else "careful", f"The value is below the promise: {numbers}.")


def _check_spend(spend: PredictedAndRealised, certain: bool) -> Finding:
    promised, difference = spend.promised.estimate, spend.difference.estimate
    numbers = f"promised {promised:.4g} per customer, realised {spend.realised.estimate:.4g}"
    over = difference / promised if promised > 0 else np.inf if difference > 0 else 0.0
    if spend.p >= TEST_ERROR or abs(over) <= MAX_OVERSPENDING:
        return Finding("spend", "fine", f"The spend is as promised: {numbers}.")
    if difference < 0:
        return Finding("spend", "careful", f"Less was spent than promised: {numbers}.")
    answer = "no" if over > SERIOUS_SHORTFALL and (certain or spend.p < SERIOUS_P) else "careful"
    sign = "+" if over > 0 else ""
    return Finding("spend", answer, f"More was spent than promised: {numbers} ({sign}{percent(over, 1)}).")


def _compare_tenths(log: Log, prediction: PlanPrediction) -> tuple[RealisedTenth, ...]:
    gain = prediction.curves[np.arange(len(log)), prediction.levels] - prediction.curves[:, 0]
    correction = 0.0 if prediction.honest is None else prediction.honest.estimate
    tenths = []
    for rows in np.array_split(np.argsort(gain, kind="stable"), min(10, max(len(log) // 20, 1))):
        weight = None if log.weight is None else log.weight[rows]
        cluster = None if log.cluster is None else log.cluster[rows]
        realised = t_estimate(log.response[rows], weight, cluster)
        promised = float(np.average(prediction.expected[rows], weights=weight)) + correction
        tenths.append(RealisedTenth(float(np.average(gain[rows], weights=weight)), promised, realised, len(rows)))
    return tuple(tenths)


def _check_tenths(tenths: tuple[RealisedTenth, ...]) -> list[Finding]:
    """Report the tenths of customers, sorted by predicted gain, whose response differs from its prediction."""
    reach = t_quantile(1e9, 1 - 0.05 / max(len(tenths), 1))
    off = [
        str(place)
        for place, tenth in enumerate(tenths, 1)
        if abs(tenth.realised.estimate - tenth.promised) > reach * tenth.realised.se  # false for an unknown error
    ]
    if not off:
        return []
    parts = f"{'parts' if len(off) > 1 else 'part'} {join_some(off, 10)}"
    text = f"Of {len(tenths)} parts of the customers, by promised gain, promise and result clearly differ in {parts}."
    return [Finding("tenths", "note", text)]


# -- was the plan followed ----------------------------------------------------------------------------------------------


def _check_adherence(log: Log, prediction: PlanPrediction, followed: Array) -> Finding:
    share = float(np.average(followed, weights=log.weights))
    due = 1.0 if prediction.likely is None else float(np.average(prediction.likely, weights=log.weights))
    noise = 0.0
    if prediction.likely is not None:
        noise = 3 * float(np.sqrt((prediction.likely * (1 - prediction.likely)).sum())) / len(log)
    way = "of the customers got the level that was planned for them"
    if prediction.joined is None:
        way = "of the customers got the level that the policy gives them today"
    if due < 1:
        way += f" ({percent(due, 1)} expected: the others get a level at random)"
    missed = due - share
    answer = "fine"
    if missed > max(1 - MIN_FOLLOWED, noise):
        answer = "no" if missed > max(1 - SERIOUS_FOLLOWED, noise) else "careful"
    quality = {"fine": "followed", "careful": "not quite followed", "no": "not followed"}[answer]
    return Finding("plan", answer, f"The plan was {quality}: {percent(share, 1)} {way}.")


def _check_unmatched_rows(rows: int, prediction: PlanPrediction) -> list[Finding]:
    if not prediction.outside:
        return []
    if prediction.joined is None:
        text = (
            "No customer of the new log is in the plan: they were compared with the policy's present decisions. "
            "If a service decided, compare with its ledger."
        )
        return [Finding("plan", "note", text)]
    share = prediction.outside / (rows + prediction.outside)
    answer = "note" if share <= 1 - MIN_FOLLOWED else "careful" if share <= 1 - SERIOUS_FOLLOWED else "no"
    text = f"{plural(prediction.outside, 'row')} of the new log ({percent(share, 1)}) are not in the plan and were left out."
    return [Finding("plan", answer, text)]


def _measure_level_uptake(log: Log, prediction: PlanPrediction, followed: Array) -> tuple[LevelUptake, ...]:
    levels = []
    for k, name in enumerate(log.levels.titles):
        planned = prediction.levels == k
        share = float(np.average(followed[planned], weights=log.weights[planned])) if planned.any() else float("nan")
        levels.append(LevelUptake(name, int(planned.sum()), int((log.level == k).sum()), share))
    return tuple(levels)


def _check_propensities(log: Log, prediction: PlanPrediction) -> list[Finding]:
    if log.propensity is None:
        if prediction.propensity is None:
            return []
        text = "The plan drew its levels, but the new log does not hold their propensities: copy them from the plan."
        return [Finding("propensities", "note", text)]
    off = find_implausible_levels(
        GivenPropensities(log.level, log.propensity, log.levels.titles, log.weight, log.cluster)
    )
    if off:
        reasons = join_some([str(problem) for problem in off], 3)
        text = f"The propensities of the new log do not agree with how often levels were given. {reasons}."
        return [Finding("propensities", "no", text)]
    if prediction.propensity is not None:
        same = np.isclose(log.propensity, prediction.propensity, rtol=1e-4)[log.level == prediction.levels]
        if len(same) and same.mean() < MIN_FOLLOWED:
            text = f"{percent(1 - same.mean(), 1)} of the propensities in the new log are not those of the plan."
            return [Finding("propensities", "careful", text)]
    return [Finding("propensities", "fine", "The propensities agree with how often levels were given.")]


# -- what has changed ---------------------------------------------------------------------------------------------------


def _check_drift(drifts: tuple[ColumnDrift, ...], known: bool) -> list[Finding]:
    if not known:
        text = "The log that the model learnt from is missing: features cannot be compared with it."
        return [Finding("features", "note", text)]
    off = [drift for drift in drifts if drift.p < DRIFT_ERROR and drift.psi >= MIN_PSI]
    if not off:
        most = f" (largest index {drifts[0].psi:.2f}: {drifts[0].column!r})" if drifts else ""
        return [Finding("features", "fine", f"Customers look like those of the log{most}.")]
    named = join_some([f"{drift.column!r} ({drift.psi:.2f})" for drift in off], 3)
    text = f"{plural(len(off), 'column')} of {len(drifts)} changed since the log: {named}, by their stability index."
    much = off[0].psi >= SERIOUS_PSI
    more = " The model was learnt from different customers: learn again." if much else ""
    return [Finding("features", "no" if much else "careful", text + more)]


def _check_price(prediction: PlanPrediction) -> list[Finding]:
    if prediction.price is None or prediction.price_now is None:
        return []
    now, then = prediction.price_now, prediction.price
    prices = f"{then:.4g} in the plan, {now.estimate:.4g} for the customers of the new log"
    changed = abs(now.estimate - then) > MIN_DRIFT_OF_PRICE * then
    if not changed or _compute_two_sided_p(now.estimate - then, now.se) >= TEST_ERROR:
        return [Finding("price", "fine", f"The price of budget is as in the plan: {prices}.")]
    return [Finding("price", "careful", f"The price of budget has changed: {prices}. Plan again.")]


def _check_responses(log: Log, old: TrainingLogResiduals | None) -> list[Finding]:
    if old is not None and old.binary and not log.binary:
        text = "Responses were yes or no in the log that the model learnt from, and are not in the new one."
        return [Finding("response", "no", text)]
    if len(log) > 1 and np.ptp(log.response) == 0:
        text = f"All responses are {log.response[0]:g}: were they recorded already?"
        return [Finding("response", "no", text)]
    return []


# -- columns recorded after the response ----------------------------------------------------------------------------------


def _find_residual_leaks(log: Log, residual: Array, old: TrainingLogResiduals | None, seed: int) -> tuple[Leak, ...]:
    """Return the columns that explain more of the residuals (n,) than in the training log."""
    rng = np.random.default_rng(seed)
    rows = sample_rows(len(log), MAX_LEAK_ROWS, seed)
    half, target = rng.integers(0, 2, len(rows)), residual[rows][:, None]
    old_rows = None if old is None else sample_rows(len(old.residual), MAX_LEAK_ROWS, seed)
    old_half = None if old_rows is None else rng.integers(0, 2, len(old_rows))
    leaks = []
    for name in log.features.column_names:
        column = _ExplainingColumn.read(log.features.column(name).take(rows))
        share = column.explain(target, half)
        known = old is not None and name in old.features.column_names
        if share < (MIN_LEAK_INCREASE if known else MIN_NEW_LEAK):
            continue
        if known:
            assert old is not None
            assert old_half is not None
            before = _ExplainingColumn.read(old.features.column(name).take(old_rows))
            if share - before.explain(old.residual[old_rows][:, None], old_half) < MIN_LEAK_INCREASE:
                continue
        shuffling = np.random.default_rng([seed, 1])  # the same for every column: their order does not matter
        by_chance = [column.explain(shuffling.permutation(target), half) for _ in range(N_SHUFFLES)]
        if share > max(by_chance):  # a few large amounts explain much by chance
            leaks.append(Leak(name, "response", share))
    return tuple(sorted(leaks, key=lambda leak: (-leak.explained, leak.feature)))


@dataclass(frozen=True, eq=False)
class _ExplainingColumn:
    """Column that may explain residuals, as groups and as numbers."""

    code: Array  # (n,) group
    values: Array | None  # (n,) with the mean for a missing number

    @classmethod
    def read(cls, column: pa.ChunkedArray) -> _ExplainingColumn:
        code = group_column_values(column, MAX_LEAK_GROUPS).code
        if find_feature_kind(column.type) != "number":
            return cls(code, None)
        values = convert_to_floats(column)
        known = np.isfinite(values)
        return cls(code, np.where(known, values, (values[known] / known.sum()).sum()) if known.any() else None)

    def explain(self, target: Array, half: Array) -> float:
        """Return the share of a target's variance (n, 1) that the column explains.

        Groups of equal size lump large amounts together; a line tells them apart.
        """
        by_groups = measure_explained_share(self.code, target, half)
        return by_groups if self.values is None else max(by_groups, measure_linear_r2(self.values, target[:, 0]))


def measure_linear_r2(values: Array, target: Array) -> float:
    """Return R² of a linear regression of a target (n,) on one variable; 0 if either is constant."""
    x, y = _centre_and_scale(values), _centre_and_scale(target)
    squares = float((x @ x) * (y @ y))
    return float(x @ y) ** 2 / squares if squares else 0.0


def _centre_and_scale(values: Array) -> Array:
    """Centre an array and scale it to a unit maximum, to avoid overflow."""
    for _ in range(2):
        largest = float(np.abs(values).max())
        values = values / largest if largest else values
        values = values - values.mean()
    largest = float(np.abs(values).max())
    return values / largest if largest else values


def _check_leaks(leaks: tuple[Leak, ...], known: bool) -> Finding:
    if not leaks:
        limit = "more of the responses than in the old log" if known else "too much of the responses"
        return Finding("leaks", "fine", f"No column explains {limit}.")
    named = ", ".join(f"{leak.feature!r} ({percent(leak.explained)})" for leak in leaks[:3])
    text = f"A column explains much of the model's residual: {named}. Was it recorded after the response? Do not learn from it."
    return Finding("leaks", "no" if leaks[0].explained >= SERIOUS_LEAK else "careful", text)
