"""Covariate shift between a log and a plan's customers: unknown values, and row weights that correct the shift.

A log speaks for customers whose values it has seen. For those, its rows are weighted by the ratio of the two densities: a
classifier tells rows of the log from customers by features and expected responses, the same that estimates propensities, and its
odds are then corrected until features and expected responses have the same means. Value, spend and gain of a plan are means of
the weighted scores. Customers with other values are counted, and named where they are many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largesse.data import (
    convert_to_floats,
    convert_to_seconds,
    decode_dictionary,
    find_feature_kind,
    index_words,
    parse_expected_kinds,
)
from largesse.errors import join_some, percent, plural
from largesse.evaluation.column_drift import measure_column_drifts
from largesse.levels import Levels
from largesse.propensity import estimate_propensities
from largesse.records import Array, CustomerShift, Finding, Log, UnknownValues, UnsupportedCells
from largesse.stats import assign_folds, sample_rows

if TYPE_CHECKING:
    import pyarrow as pa

MAX_MATCHED_CUSTOMERS = 20_000  # whose features the weighted log is to have
MATCHING_FOLDS = 5
MAX_UNKNOWN_SHARE = 0.1  # of the customers, beyond which a log says too little about them
MIN_UNKNOWN_SHARE = 0.005  # below which they are not mentioned
MIN_MATCHED_ROWS = 200  # of the log after weighting
MAX_DRIFT_P, MIN_DRIFT = 0.01, 0.02  # of a column that is mentioned
MAX_REMAINING_DRIFT = 0.25  # population stability index after weighting
RANGE_MARGIN = 0.02  # of a number's range in the log, which customers may lie outside of
MAX_EXAMPLES = 3


@dataclass(frozen=True, eq=False)
class CustomerSample:
    """Sample of a plan's customers: features (m rows) and expected responses (m, K)."""

    features: pa.Table
    curves: Array

    def take(self, rows: Array) -> CustomerSample:
        """Return selected rows of the customer sample."""
        return CustomerSample(self.features.take(rows), self.curves[rows])


def compare_customers(log: Log, features: pa.Table, seed: int = 0) -> tuple[CustomerShift, Array]:
    """Compare new customers with logged customers: unknown feature values and drifted columns.

    >>> import pyarrow as pa
    >>> from largesse.data import log_from_arrays
    >>> log = log_from_arrays(np.arange(100)[:, None] % 10, np.arange(100) % 2, np.arange(100) % 3 == 0)
    >>> shift, known = compare_customers(log, pa.table({"x0": [1, 2, 30, 4]}))
    >>> shift.unknown, shift.values[0].feature, known
    (0.25, 'x0', array([ True,  True, False,  True]))
    """
    seen = log.seen.features
    features = parse_expected_kinds(
        features, {name: find_feature_kind(seen.column(name).type) for name in seen.column_names}
    )
    features = features.take(sample_rows(len(features), MAX_MATCHED_CUSTOMERS, seed))
    unknown, values = np.zeros(len(features), dtype=bool), []
    for name in seen.column_names:
        lacking, examples = _find_unknown_values(seen.column(name), features.column(name))
        if lacking.mean() >= MIN_UNKNOWN_SHARE:
            unknown |= lacking
            values.append(UnknownValues(name, float(lacking.mean()), examples))
    drifts = measure_column_drifts(seen, features.select(seen.column_names), seed=seed)
    drifted = tuple(drift for drift in drifts if drift.p < MAX_DRIFT_P and drift.psi >= MIN_DRIFT)
    values.sort(key=lambda value: -value.share)
    return CustomerShift(float(unknown.mean()), tuple(values), drifted), ~unknown


def weight_log_to_customers(
    log: Log, curves: Array, customers: CustomerSample, seed: int = 0
) -> tuple[Array, CustomerShift]:
    """Return weights (n,) under which the log's rows resemble the new customers, with the remaining differences.

    `curves` (n, K) are the expected responses of the rows.
    """
    some = customers.take(sample_rows(len(customers.features), MAX_MATCHED_CUSTOMERS, seed))
    shift, is_known = compare_customers(log, some.features, seed)
    if not is_known.any():
        return log.weights, shift.add_weighting_result(0.0, ())
    known = some.take(np.flatnonzero(is_known))
    both = _stack_log_and_customers(log, curves, known)
    propensities = estimate_propensities(both, assign_folds(both, MATCHING_FOLDS, seed), seed, cells=UnsupportedCells())
    propensity = propensities.own[: len(log)]
    weight = log.weights * (1 - propensity) / propensity
    weight /= weight.mean()
    effective = float(weight.sum() ** 2 / (weight @ weight))
    drawn = np.random.default_rng(seed).choice(len(log), min(len(log), MAX_MATCHED_CUSTOMERS), p=weight / weight.sum())
    left = measure_column_drifts(
        log.features.take(drawn), both.features.select(log.features.column_names).slice(len(log)), seed=seed
    )
    return weight, shift.add_weighting_result(
        effective, tuple(drift for drift in left if drift.psi > MAX_REMAINING_DRIFT)
    )


def _find_unknown_values(seen: pa.ChunkedArray, column: pa.ChunkedArray) -> tuple[Array, tuple[str, ...]]:
    """Return a mask (m,) of the column's values that the log lacks, and examples of these values.

    Text with many rare words always has unknown ones: as many as its words that occur once suggest (Good and Turing).
    """
    kind = find_feature_kind(seen.type)
    missing = np.asarray(column.is_null(nan_is_null=True))
    unknown = missing & (seen.null_count == 0) if kind == "text" else np.zeros(len(column), dtype=bool)
    if kind == "text":
        counts = decode_dictionary(seen).value_counts()
        words = {str(count["values"].as_py()): count["counts"].as_py() for count in counts}
        others = ~missing & (index_words(column, tuple(words)) >= len(words))
        expected = sum(times == 1 for times in words.values()) / max(len(seen), 1)
        if others.mean() > expected + 4 * np.sqrt(expected / max(len(column), 1)):
            unknown = unknown | others
        names = decode_dictionary(column).filter(unknown).unique().to_pylist()
        return unknown, tuple("missing" if name is None else str(name) for name in names[:MAX_EXAMPLES])
    if kind not in ("number", "date"):
        return unknown, ()
    values, known = (convert_to_seconds(part) if kind == "date" else convert_to_floats(part) for part in (column, seen))
    known = known[np.isfinite(known)]
    if len(known) < len(seen):  # the log has missing values, too
        missing = np.zeros(len(column), dtype=bool)
    if not len(known):
        return missing, ("missing",) if missing.any() else ()
    low, high = float(known.min()), float(known.max())
    margin = RANGE_MARGIN * (high - low)
    with np.errstate(invalid="ignore"):
        outside = (values < low - margin) | (values > high + margin)
    ends = []
    if kind == "date":
        ends += ["another date"] if outside.any() else []
    else:
        ends += [f"above {high:g}"] if (values[outside] > high).any() else []
        ends += [f"below {low:g}"] if (values[outside] < low).any() else []
    return outside | missing, (*ends, *(["missing"] if missing.any() else []))


def _stack_log_and_customers(log: Log, curves: Array, customers: CustomerSample) -> Log:
    """Return one log of logged and new customers, whose level tells them apart (0 logged, 1 new)."""
    import pyarrow as pa

    names, tables = log.features.column_names, []
    kinds = {name: find_feature_kind(log.features.column(name).type) for name in names}
    for table, expected in (
        (log.features, curves),
        (parse_expected_kinds(customers.features, kinds), customers.curves),
    ):
        columns = {name: decode_dictionary(table.column(name)) for name in names}
        columns |= {
            f"expected response {k}": pa.array(values.astype(np.float64)) for k, values in enumerate(expected.T)
        }
        tables.append(pa.table(columns))
    level = np.repeat([0, 1], [len(log), len(customers.features)])
    weight = np.concatenate([log.weights, np.ones(len(customers.features))])
    both = pa.concat_tables(tables, promote_options="permissive")
    return Log(both, level, np.zeros(len(level)), Levels(costs=[0, 1]), weight=weight)


# -- findings ---------------------------------------------------------------------------------------------------------


def check_customer_shift(shift: CustomerShift) -> list[Finding]:
    """Return findings on the differences between new customers and logged customers."""
    topic, findings = "your customers", list[Finding]()
    kinds = ", ".join(f"{value} ({percent(value.share)})" for value in shift.values[:MAX_EXAMPLES])
    cure = "Give some of these customers levels at random first, or plan for the others alone."
    if shift.unknown > MAX_UNKNOWN_SHARE:
        text = f"The log cannot speak for {percent(shift.unknown)} of your customers, whose values it never had: {kinds}. {cure}"
        findings.append(Finding(topic, "no", text))
    elif shift.unknown >= MIN_UNKNOWN_SHARE:
        text = f"The log never had the values of {percent(shift.unknown)} of your customers: {kinds}. All estimates are for the others."
        findings.append(Finding(topic, "careful", text))
    names = join_some([repr(drift.column) for drift in shift.drifted], MAX_EXAMPLES)
    if shift.effective is None:
        if shift.drifted:
            text = f"Your customers differ from those of the log in {names}."
            findings.append(Finding(topic, "careful", text))
        return findings
    rows = plural(round(shift.effective), "row")
    if shift.effective < MIN_MATCHED_ROWS and shift.unknown < 1:
        text = f"Hardly any row of the log is like your customers: weighted to them, it is worth {rows}. {cure}"
        findings.append(Finding(topic, "no", text))
    elif shift.remaining:
        left = join_some([repr(drift.column) for drift in shift.remaining], MAX_EXAMPLES)
        text = f"Weights cannot make the log's rows like your customers: they still differ in {left}. Estimates rest on the model there."
        findings.append(Finding(topic, "careful", text))
    elif shift.drifted:
        text = f"Your customers differ from those of the log in {names}. All estimates are weighted to them: the log is worth {rows}."
        findings.append(Finding(topic, "note", text))
    return findings
