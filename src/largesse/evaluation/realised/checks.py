"""Did the campaign go as promised? One list of checks of a new log against the plan, with few false alarms together.

Every test has an error rate of its own, and they add up to about three campaigns of a hundred in which nothing is wrong. A change
must also be large enough to matter. Tenths of promised gain and notes raise no alarm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largesse.data import Choices, as_floats, doubt_propensities, group_column, kind_of
from largesse.errors import join_some, percent, plural
from largesse.evaluation.crossfitting import what_was_paid
from largesse.evaluation.leaks import GROUPS as LEAK_GROUPS
from largesse.evaluation.leaks import SURE, measure_explained
from largesse.evaluation.realised.drift import measure_drift
from largesse.records import (
    Array,
    CampaignCheck,
    Drift,
    Estimate,
    Finding,
    FollowedLevel,
    KeptPromise,
    KeptTenth,
    Leak,
    Log,
    Promise,
)
from largesse.stats import mean_estimate, sample_rows, t_quantile

if TYPE_CHECKING:
    import pyarrow as pa

ERROR = 0.004  # of the test of a promise, and of that of the price
DRIFT_ERROR = 0.01  # of all columns together
CHANGED, MUCH_CHANGED = 0.02, 0.25  # population stability index
FOLLOWED, BARELY_FOLLOWED = 0.98, 0.9  # shares of customers who got the planned level
SHORT = 0.1  # a shortfall of more than this share of the promise, beyond doubt, is a no
BEYOND_DOUBT = 1e-4
PRICE_CHANGED = 0.1
LEAKS_MORE = 0.1  # share of what the model left open that a column explains, more than it did in the old log
LEAKS_NEW = 0.3  # the same, for a column that the old log did not have
LEAK_ROWS = 50_000
SHUFFLES = 99
OVERSPENT = 0.03
SERIOUS_FIRST = ("no", "careful", "note", "fine")


@dataclass(frozen=True, eq=False)
class Before:
    """What the log that the model learnt from looked like."""

    features: pa.Table
    residual: Array  # (m,) response − what models that did not see the row expected
    cluster: Array | None = None
    binary: bool = False


def check_campaign(log: Log, promise: Promise, before: Before | None = None, seed: int = 0) -> CampaignCheck:
    """Check a new log against what its plan promised, and against the log that the plan was made from."""
    paid, rows = what_was_paid(log), np.arange(len(log))
    followed = log.level == promise.levels
    value = _keep(log, log.response, promise.expected, promise.honest)
    error = promise.spend_error * float(np.average(promise.costs, weights=log.weights))
    spend = _keep(log, paid, promise.costs, Estimate(0.0, error, -1.96 * error, 1.96 * error))
    residual = log.response - promise.curves[rows, log.level]
    drifts = () if before is None else measure_drift(before.features, log.features, (before.cluster, log.cluster), seed)
    leaks = _find_leaks(log, residual, before, seed)
    levels = _count_levels(log, promise, followed)
    tenths = _cut_tenths(log, promise)
    findings = [
        _check_followed(log, promise, followed),
        *_check_outside(len(log), promise),
        *_check_propensities(log, promise),
        *_check_responses(log, before),
        _check_value(value, log.binary and value.promised.estimate <= 1),
        _check_spend(value=spend, certain=log.levels.certain),
        *_check_tenths(tenths),
        *_check_drift(drifts, before is not None),
        *_check_price(promise),
        _check_leaks(leaks, before is not None),
    ]
    return CampaignCheck(
        tuple(sorted(findings, key=lambda finding: SERIOUS_FIRST.index(finding.answer))),
        len(log),
        promise.joined,
        value,
        spend,
        tenths,
        levels,
        float(np.average(followed, weights=log.weights)),
        drifts,
        None if promise.price is None or promise.price_now is None else (promise.price, promise.price_now),
        leaks,
    )


# -- promises -----------------------------------------------------------------------------------------------------------


def _keep(log: Log, came: Array, expected: Array, more: Estimate | None) -> KeptPromise:
    """Return what was promised and what came; `more` is what must be added to the promise, with its own error."""
    more = more or Estimate(0.0, 0.0, 0.0, 0.0)
    realised = mean_estimate(came, log.weight, log.cluster)
    apart = mean_estimate(came - expected, log.weight, log.cluster)
    promised = float(np.average(expected, weights=log.weights)) + more.estimate
    difference, se = apart.estimate - more.estimate, float(np.hypot(apart.se, more.se))
    if not np.isfinite([se, more.low, more.high]).all():  # too few rows carry the promise, or the result
        nothing = Estimate(difference, float("nan"), float("nan"), float("nan"))
        return KeptPromise(_around(promised, more), realised, nothing, 1.0)
    # Where few rows carry the difference, its error is itself uncertain: the interval then reaches further.
    wide = (apart.high - apart.low) / 2 / (t_quantile(1e9) * apart.se) if apart.se > 0 else 1.0
    own = wide * t_quantile(1e9) * apart.se
    # The interval of a promise about rare responses reaches further up than down: the one up speaks against a result above.
    low, high = float(np.hypot(own, more.high - more.estimate)), float(np.hypot(own, more.estimate - more.low))
    found = Estimate(difference, se, difference - low, difference + high)
    reach = low if difference > 0 else high
    return KeptPromise(_around(promised, more), realised, found, _two_sided(difference, reach / t_quantile(1e9)))


def _around(estimate: float, more: Estimate) -> Estimate:
    return Estimate(estimate, more.se, estimate + more.low - more.estimate, estimate + more.high - more.estimate)


def _two_sided(difference: float, se: float) -> float:
    from scipy.special import ndtr

    if se <= 0:
        return 0.0 if difference else 1.0
    return float(2 * ndtr(-abs(difference) / se))


def _check_value(kept: KeptPromise, binary: bool) -> Finding:
    """Whether customers responded as promised."""
    promised, found = kept.promised.estimate, kept.difference
    scale, unit, more = (100, " %", " pp") if binary else (1, " per customer", "")
    told = f"promised {scale * promised:.4g}{unit}, realised {scale * kept.realised.estimate:.4g}{unit}"
    ends = " to ".join(f"{scale * end:+.2g}" for end in found.interval)
    told = f"{told} (difference {scale * found.estimate:+.2g}{more}, 95 % interval {ends}{more})".replace("-", "−")
    if kept.p >= ERROR:
        return Finding("value", "fine", f"The value is as promised: {told}.")
    if found.estimate > 0:
        return Finding(
            "value", "careful", f"The value is above what was promised: {told}. Is the response measured as before?"
        )
    bad = kept.p < BEYOND_DOUBT and -found.estimate > SHORT * abs(promised)
    return Finding("value", "no" if bad else "careful", f"The value is below what was promised: {told}.")


def _check_spend(value: KeptPromise, certain: bool) -> Finding:
    """Whether the campaign cost what was promised."""
    promised, found = value.promised.estimate, value.difference
    told = f"promised {promised:.4g} per customer, realised {value.realised.estimate:.4g}"
    over = found.estimate / promised if promised > 0 else np.inf if found.estimate > 0 else 0.0
    if value.p >= ERROR or abs(over) <= OVERSPENT:
        return Finding("spend", "fine", f"The spend is as promised: {told}.")
    if found.estimate < 0:
        return Finding("spend", "careful", f"Less was spent than promised: {told}.")
    answer = "no" if over > SHORT and (certain or value.p < BEYOND_DOUBT) else "careful"
    return Finding(
        "spend", answer, f"More was spent than promised: {told} ({'+' if over > 0 else ''}{percent(over, 1)})."
    )


def _cut_tenths(log: Log, promise: Promise) -> tuple[KeptTenth, ...]:
    """Return promise and result by tenths of the promised gain over the cheapest level."""
    gain = promise.curves[np.arange(len(log)), promise.levels] - promise.curves[:, 0]
    more = 0.0 if promise.honest is None else promise.honest.estimate
    found = []
    for rows in np.array_split(np.argsort(gain, kind="stable"), min(10, max(len(log) // 20, 1))):
        weight = None if log.weight is None else log.weight[rows]
        cluster = None if log.cluster is None else log.cluster[rows]
        came = mean_estimate(log.response[rows], weight, cluster)
        promised = float(np.average(promise.expected[rows], weights=weight)) + more
        found.append(KeptTenth(float(np.average(gain[rows], weights=weight)), promised, came, len(rows)))
    return tuple(found)


def _check_tenths(tenths: tuple[KeptTenth, ...]) -> list[Finding]:
    """Say where promises and results lie apart by tenths; models are never right everywhere, so it is a note."""
    reach = t_quantile(1e9, 1 - 0.05 / max(len(tenths), 1))
    off = [
        place
        for place, one in enumerate(tenths, 1)
        if np.isfinite(one.realised.se) and abs(one.realised.estimate - one.promised) > reach * one.realised.se
    ]
    if not off:
        return []
    which = f"{'parts' if len(off) > 1 else 'part'} {join_some([str(place) for place in off], 10)}"
    text = f"Customers in {len(tenths)} parts, from the least promised gain: promise and result are clearly apart in {which}."
    return [Finding("tenths", "note", text)]


# -- was the plan followed ----------------------------------------------------------------------------------------------


def _check_followed(log: Log, promise: Promise, followed: Array) -> Finding:
    """Whether customers got what was planned."""
    share = float(np.average(followed, weights=log.weights))
    due = 1.0 if promise.likely is None else float(np.average(promise.likely, weights=log.weights))
    noise = 0.0
    if promise.likely is not None:
        noise = 3 * float(np.sqrt((promise.likely * (1 - promise.likely)).sum())) / len(log)
    way = "of the customers got the level that was planned for them"
    if promise.joined is None:
        way = "of the customers got the level that the policy gives them today"
    if due < 1:
        way += f" ({percent(due, 1)} were due to, the others get a level at random)"
    missed = due - share
    answer = "fine"
    if missed > max(1 - FOLLOWED, noise):
        answer = "no" if missed > max(1 - BARELY_FOLLOWED, noise) else "careful"
    words = {
        "fine": "The plan was followed",
        "careful": "The plan was not quite followed",
        "no": "The plan was not followed",
    }
    return Finding("plan", answer, f"{words[answer]}: {percent(share, 1)} {way}.")


def _check_outside(rows: int, promise: Promise) -> list[Finding]:
    """Say how many rows are not in the plan."""
    if not promise.outside:
        return []
    if promise.joined is None:
        text = "No customer of the new log is in the plan: the policy decided anew what each should have got."
        text += " If a service decided, compare with its ledger."
        return [Finding("plan", "note", text)]
    share = promise.outside / (rows + promise.outside)
    answer = "note" if share <= 1 - FOLLOWED else "careful" if share <= 1 - BARELY_FOLLOWED else "no"
    text = (
        f"{plural(promise.outside, 'row')} of the new log ({percent(share, 1)}) are not in the plan and were left out."
    )
    return [Finding("plan", answer, text)]


def _count_levels(log: Log, promise: Promise, followed: Array) -> tuple[FollowedLevel, ...]:
    found = []
    for k, name in enumerate(log.levels.titles):
        own = promise.levels == k
        share = float(np.average(followed[own], weights=log.weights[own])) if own.any() else float("nan")
        found.append(FollowedLevel(name, int(own.sum()), int((log.level == k).sum()), share))
    return tuple(found)


def _check_propensities(log: Log, promise: Promise) -> list[Finding]:
    """Whether the propensities of the new log can be right, and are those of the plan."""
    if log.propensity is None:
        if promise.propensity is None:
            return []
        text = "The plan drew its levels, but the new log does not hold their propensities: copy them from the plan."
        return [Finding("propensities", "note", text)]
    off = doubt_propensities(Choices(log.level, log.propensity, log.levels.titles, log.weight, log.cluster))
    if off:
        told = join_some([str(one) for one in off], 3)
        text = f"The propensities of the new log do not agree with how often levels were given. {told}."
        return [Finding("propensities", "no", text)]
    if promise.propensity is not None:
        same = np.isclose(log.propensity, promise.propensity, rtol=1e-4)[log.level == promise.levels]
        if len(same) and same.mean() < FOLLOWED:
            text = f"{percent(1 - same.mean(), 1)} of the propensities in the new log are not those of the plan."
            return [Finding("propensities", "careful", text)]
    return [Finding("propensities", "fine", "The propensities agree with how often levels were given.")]


# -- what has changed ---------------------------------------------------------------------------------------------------


def _check_drift(drifts: tuple[Drift, ...], known: bool) -> list[Finding]:
    """Whether customers look like those of the log that the model learnt from."""
    if not known:
        text = "The log that the model learnt from is not there: features cannot be compared with it."
        return [Finding("features", "note", text)]
    off = [drift for drift in drifts if drift.p < DRIFT_ERROR and drift.psi >= CHANGED]
    if not off:
        most = f" (largest index {drifts[0].psi:.2f}: {drifts[0].column!r})" if drifts else ""
        return [Finding("features", "fine", f"Customers look like those of the log{most}.")]
    named = join_some([f"{drift.column!r} ({drift.psi:.2f})" for drift in off], 3)
    text = f"{plural(len(off), 'column')} of {len(drifts)} changed since the log: {named}, by their stability index."
    much = off[0].psi >= MUCH_CHANGED
    more = " The model speaks of other customers: learn again." if much else ""
    return [Finding("features", "no" if much else "careful", text + more)]


def _check_price(promise: Promise) -> list[Finding]:
    """Whether the same budget would buy as much today."""
    if promise.price is None or promise.price_now is None:
        return []
    now, then = promise.price_now, promise.price
    told = f"{then:.4g} in the plan, {now.estimate:.4g} for the customers of the new log"
    apart = abs(now.estimate - then) > PRICE_CHANGED * then
    if _two_sided(now.estimate - then, now.se) >= ERROR or not apart:
        return [Finding("price", "fine", f"The price of budget is as in the plan: {told}.")]
    return [Finding("price", "careful", f"The price of budget has changed: {told}. Plan again.")]


def _check_responses(log: Log, before: Before | None) -> list[Finding]:
    """Whether responses are of the kind that the model learnt from."""
    if before is not None and before.binary and not log.binary:
        text = "Responses were yes or no in the log that the model learnt from, and are not in the new one."
        return [Finding("response", "no", text)]
    if len(log) > 1 and np.ptp(log.response) == 0:
        text = f"All responses are {log.response[0]:g}: were they recorded already?"
        return [Finding("response", "no", text)]
    return []


def _find_leaks(log: Log, residual: Array, before: Before | None, seed: int) -> tuple[Leak, ...]:
    """Return columns that explain more of what the model left open than they did before, or than a new one may."""
    rng = np.random.default_rng(seed)
    rows = sample_rows(len(log), LEAK_ROWS, seed)
    half, open_ = rng.integers(0, 2, len(rows)), residual[rows][:, None]
    old = None if before is None else sample_rows(len(before.residual), LEAK_ROWS, seed)
    halves = None if old is None else rng.integers(0, 2, len(old))
    found = []
    for name in log.features.column_names:
        column = log.features.column(name).take(rows)
        code, values = group_column(column, LEAK_GROUPS).code, _read_numbers(column)
        share = _explain(code, values, open_, half)
        known = before is not None and name in before.features.column_names
        if share < (LEAKS_MORE if known else LEAKS_NEW):
            continue
        if known:
            assert before is not None
            assert halves is not None
            then = before.features.column(name).take(old)
            grouped, old_open = group_column(then, LEAK_GROUPS).code, before.residual[old][:, None]
            if share - _explain(grouped, _read_numbers(then), old_open, halves) < LEAKS_MORE:
                continue
        draw = np.random.default_rng([seed, 1])  # the same for every column: their order says nothing
        chance = [_explain(code, values, draw.permutation(open_), half) for _ in range(SHUFFLES)]
        if share > max(chance):  # a few large amounts explain much by chance
            found.append(Leak(name, "response", share))
    return tuple(sorted(found, key=lambda leak: (-leak.explained, leak.feature)))


def _read_numbers(column: pa.ChunkedArray) -> Array | None:
    """Return a column of numbers (n,), the mean where one is missing; None if it holds no numbers."""
    if kind_of(column.type) != "number":
        return None
    values = as_floats(column)
    known = np.isfinite(values)
    return np.where(known, values, (values[known] / known.sum()).sum()) if known.any() else None


def _explain(code: Array, values: Array | None, target: Array, half: Array) -> float:
    """Return the share of a target (n, 1) that a column explains: by its groups on held-out rows, or as a line.

    Groups of equal size lump large amounts together, which a line tells apart.
    """
    found = measure_explained(code, target, half)
    return found if values is None else max(found, _fit_line(values, target[:, 0]))


def _fit_line(values: Array, target: Array) -> float:
    """Return the share of a target (n,) that a line of values (n,) explains: R², and 0 where either is constant."""
    one, other = (_center(part) for part in (values, target))
    squares = float((one @ one) * (other @ other))
    return float(one @ other) ** 2 / squares if squares else 0.0


def _center(values: Array) -> Array:
    """Return numbers less their mean, in units of the largest: squares of very large and very small ones are none."""
    for _ in range(2):
        largest = float(np.abs(values).max())
        values = values / largest if largest else values
        values = values - values.mean()
    largest = float(np.abs(values).max())
    return values / largest if largest else values


def _check_leaks(leaks: tuple[Leak, ...], known: bool) -> Finding:
    """Whether a column of the new log knows what happened after the level was chosen."""
    if not leaks:
        than = "than it did in the old log" if known else "than it should"
        return Finding("leaks", "fine", f"No column knows more about the responses {than}.")
    named = ", ".join(f"{leak.feature!r} ({percent(leak.explained)})" for leak in leaks[:3])
    text = f"A column explains much of what the model left open: {named}. Was it recorded after the response? Do not learn from it."
    return Finding("leaks", "no" if leaks[0].explained >= SURE else "careful", text)
