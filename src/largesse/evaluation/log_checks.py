"""Checks of a log before any model is fitted: overlap, randomisation, balance, weights, leaks and clusters.

`doctor` and a study show the whole list; `evaluate` warns of missing overlap alone. Every check is one
function that returns a `Finding`: fine, note, careful or no.

A leaking feature nearly equals the response or the level. The first was usually recorded after the response: a model that learns
from it looks excellent and its plans are useless. With the second no customers are left to compare.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import comb

import numpy as np

from largesse.data import GivenPropensities, find_implausible_levels, group_column_values
from largesse.errors import join_some, percent, plural
from largesse.evaluation.group_monotonicity_check import GroupMeanFall, find_clearest_group_fall, has_stated_order
from largesse.evaluation.level_mean_responses import MeanResponseCurve, MeanResponseFall, measure_mean_responses
from largesse.evaluation.overlap_and_balance import measure_level_overlap, measure_overlap
from largesse.evaluation.policy_estimates import MIN_RATIO_CLUSTERS
from largesse.evaluation.randomisation_check import find_randomised_strata, run_independence_test
from largesse.evaluation.within_customer_comparison import compare_levels_within_customers
from largesse.io import to_toml
from largesse.levels import PER_UNIT
from largesse.propensity import (
    PropensityFeatures,
    encode_propensity_features,
    estimate_propensities,
    find_unsupported_cells,
)
from largesse.records import (
    MAX_SIGNIFICANT_P,
    Array,
    Checkup,
    Estimate,
    Finding,
    HeavyRow,
    IndependenceTest,
    Leak,
    Log,
    Overlap,
    Propensities,
    UnsupportedCells,
    WithinCustomerComparison,
    are_groups_nested,
    sort_findings,
)
from largesse.stats import assign_folds, limit_to_one_thread, shuffle_rows, t_estimate, t_quantile

MAX_BALANCE_ROWS = 100_000  # balance and independence need no more
MAX_LEAK_ROWS = 50_000
N_LEAK_GROUPS = 50
SUSPECTED_LEAK, CERTAIN_LEAK = 0.5, 0.8  # shares of the variance that a feature explains on held-out rows
MAX_HEAVY_ROWS = 5
MIN_INTERVAL_CLUSTERS = 30
MAX_TOP_SHARE = 0.1  # of all weight, on the 1 % of rows with the largest weights
MAX_ROW_SHARE = 0.02  # of all weight
MAX_CLIPPED_SHARE = 0.01  # of the rows
MAX_FEATURE_DIFFERENCE = 0.5  # standard deviations after weighting: features from before the level hardly differ more
MAX_BALANCED_DIFFERENCE = 0.1  # standard deviations
# Of a comparison within customers: p-value of a disagreement, and its share of the larger effect.
MAX_CHANCE_DISAGREEMENT, MIN_DISAGREEMENT, SEVERE_DISAGREEMENT = 0.001, 0.15, 1 / 3
MAX_WIDENING = 1.1  # of standard errors, if rows that got their level together count as one
MAX_UNSUPPORTED_SHARE = 0.5  # of the customers, or of the levels that they could get
MAX_OTHER_SHARE = 0.05  # of the probability of another level, relative to that of all customers, under a fixed rule
MAX_LISTED_CELLS = 4
SEVERE_FALL = 4.0  # standard errors
MIN_LOWERED = 2.58  # standard errors by which every level lies below the first
MAX_LISTED_FALLS = 3


@limit_to_one_thread()
def doctor(log: Log, *, folds: int = 5, seed: int = 0) -> Checkup:
    """Check if a log supports an evaluation: overlap, randomisation, balance, weights, leaks and clusters.

    >>> from largesse.worlds import simulate
    >>> checkup = doctor(simulate("averaged", n=1000, seed=1, mix=1.0).log)
    >>> checkup.randomised, checkup.answer
    (True, 'fine')
    """
    fold = assign_folds(log, folds, seed)
    features = encode_log_if_propensities_unknown(log, seed, fold)
    propensities = estimate_propensities(log, fold, seed, features)
    return check_log(log, propensities, features, seed)


def encode_log_if_propensities_unknown(log: Log, seed: int = 0, fold: Array | None = None) -> PropensityFeatures | None:
    """Encode the features of a log unless its propensities are given; otherwise return None."""
    return encode_propensity_features(log, seed=seed, fold=fold) if log.propensity is None else None


@limit_to_one_thread()
def check_log(
    log: Log, propensities: Propensities, features: PropensityFeatures | None = None, seed: int = 0
) -> Checkup:
    """Check a log with given or estimated propensities."""
    sample = (
        encode_propensity_features(log, MAX_BALANCE_ROWS, seed)
        if features is None
        else features.sample(MAX_BALANCE_ROWS, seed)
    )
    overlap = measure_overlap(log, propensities.own, sample)
    group = None if log.assigned is None else log.assigned[sample.rows]
    dependence = run_independence_test(sample.X, log.level[sample.rows], group, seed=seed)
    dependence = replace(dependence, sampled=dependence.sampled or len(sample.rows) < len(log))
    design = _propose_propensities(log, propensities, dependence, sample, group, seed)
    curve, within = (
        measure_mean_responses(log, propensities.own),
        compare_levels_within_customers(log, propensities.own, sample),
    )
    unsupported = find_unsupported_cells(log, seed) if propensities.unsupported is None else propensities.unsupported
    leaks, heavy = find_leaks(log, seed), _find_heavy_rows(log, propensities.own)
    findings = [
        *_check_levels(log.levels.titles, overlap.rows, overlap.effective, overlap.smallest, overlap.answers),
        *_check_support(unsupported, log, propensities),
        _check_randomisation(dependence, propensities, overlap, design),
        _check_propensities(propensities),
        *_check_propensity_sums(log),
        _check_balance(overlap),
        _check_weights(log, propensities, heavy),
        _check_level_order(
            log, curve, None if has_stated_order(log.levels) else find_clearest_group_fall(log, propensities.own, seed)
        ),
        *_check_observed_costs(log, propensities.own),
        *_check_redemption(log),
        _check_leaks(leaks, log),
        *_check_assignment_unit(log),
        *_check_repeated_customers(log),
        *_check_within_customers(within, log.levels.titles),
        *_check_clusters(log),
        *(Finding("reading the log", "note", f"{note[:1].upper()}{note[1:]}.") for note in log.notes),
    ]
    return Checkup(
        findings=sort_findings([_convert_accepted_warning(finding, log.accepted) for finding in findings]),
        rows=len(log),
        clusters=log.clusters,
        customers=None if log.last_rows is None else log.customers,
        labels=log.levels.titles,
        propensity=propensities,
        overlap=overlap,
        dependence=dependence,
        raw=curve.raw,
        weighted=curve.weighted,
        leaks=leaks,
        heavy=heavy,
        unsupported=unsupported,
        within=within,
    )


def find_overlap_warnings(log: Log, propensities: Propensities) -> tuple[Finding, ...]:
    """Return warnings about levels with too few rows, and about estimated propensities."""
    findings = [
        *_check_levels(log.levels.titles, *measure_level_overlap(log, propensities.own)),
        _check_propensities(propensities),
    ]
    findings = [_convert_accepted_warning(finding, log.accepted) for finding in findings]
    return tuple(finding for finding in findings if finding.answer != "fine")


def _convert_accepted_warning(finding: Finding, accepted: Collection[str]) -> Finding:
    """Convert a warning that the user has accepted to a note."""
    if finding.answer != "careful" or finding.topic not in accepted:
        return finding
    return replace(finding, answer="note", text=f"Accepted: {finding.text}")


# -- levels -----------------------------------------------------------------------------------------------------------


def _check_levels(
    labels: tuple[str, ...], rows: Array, effective: Array, smallest: Array, answers: tuple[str, ...]
) -> list[Finding]:
    """Check that every level has enough logged rows."""
    topic, by_answer = "rows of each level", dict[str, list[str]]()
    for label, n, n_effective, least, answer in zip(labels, rows, effective, smallest, answers, strict=True):
        text = f"{label!r} ({plural(int(n), 'row')}, worth {n_effective:.0f} after weighting"
        by_answer.setdefault(answer, []).append(text + (f", smallest propensity {least:.2g})" if n else ")"))
    findings = []
    if "no" in by_answer:
        hint = "There is too little data to estimate their effect; try them on more customers first."
        findings.append(Finding(topic, "no", f"Too few rows: {', '.join(by_answer['no'])}. {hint}"))
    if "careful" in by_answer:
        text = f"Few rows, or very small propensities: {', '.join(by_answer['careful'])}. Expect wide intervals there."
        findings.append(Finding(topic, "careful", text))
    if not findings:
        fewest = plural(int(effective.min()), "row")
        findings.append(Finding(topic, "fine", f"Every level has enough rows: at least {fewest} after weighting."))
    return findings


def _check_support(cells: UnsupportedCells, log: Log, propensities: Propensities) -> list[Finding]:
    """Check that every level was given to all customer groups, and not by a fixed rule."""
    topic, fixed = "support", _measure_share_of_fixed_levels(log, propensities)
    findings = [Finding(topic, "careful", describe_unsupported_cells(cells, log.levels.titles))] if cells else []
    if max(cells.single, fixed) > MAX_UNSUPPORTED_SHARE:
        text = f"For {percent(max(cells.single, fixed))} of the customers only one level was possible: a rule gave it."
        hint = "This log cannot compare levels for them. Give some of them other levels at random, and keep the probabilities."
        findings.insert(0, Finding(topic, "no", f"{text} {hint}"))
    elif cells.barred > MAX_UNSUPPORTED_SHARE:
        text = f"On average, a customer's kind never got {percent(cells.barred)} of the levels: this log cannot compare them."
        findings.insert(0, Finding(topic, "no", text))
    if not findings:
        findings.append(Finding(topic, "fine", "No kind of customers was found that never got one of the levels."))
    return findings


def describe_unsupported_cells(cells: UnsupportedCells, titles: tuple[str, ...]) -> str:
    """Describe the customer groups that never received some level, as text."""
    named = []
    for cell in cells.cells[:MAX_LISTED_CELLS]:
        who = f"Customers whose {cell} ({percent(cell.share)} of all, {plural(cell.rows, 'row')})"
        never = f"hardly ever got (in {plural(cell.exceptions, 'row')})" if cell.exceptions else "never got"
        named.append(f"{who} {never} {' or '.join(repr(titles[k]) for k in cell.levels)}.")
    if len(cells.cells) > MAX_LISTED_CELLS:
        named.append(f"So it is with {plural(len(cells.cells) - MAX_LISTED_CELLS, 'more kind')} of customers.")
    named.append(
        "What these levels would bring there is a guess. Try them on some of these customers at random to know."
    )
    return " ".join(named)


def _measure_share_of_fixed_levels(log: Log, propensities: Propensities) -> float:
    """Return the weighted share of rows whose level was certain (propensity one)."""
    other = 1 - propensities.own
    if propensities.source == "estimated":
        shares = np.bincount(log.level, weights=log.weights, minlength=len(log.levels)) / log.weights.sum()
        other = other / np.maximum(1 - shares[log.level], 1e-12) - MAX_OTHER_SHARE
    return float(np.average(other <= 0, weights=log.weights))


def _check_randomisation(
    dependence: IndependenceTest, propensities: Propensities, overlap: Overlap, design: str
) -> Finding:
    """Check that the levels are independent of the features."""
    topic, p = "randomisation", f"p {'<' if dependence.p < 0.002 else '='} {max(dependence.p, 0.002):.2g}"
    tested = f" on a sample of {plural(dependence.units, dependence.of)}" if dependence.sampled else ""
    if dependence.of == "cluster" and not tested:
        tested = f" of {plural(dependence.units, 'group')} of rows"
    if dependence.p >= MAX_SIGNIFICANT_P:
        meaning = f"{percent(dependence.p)} of logs with random levels depend on them as much or more"
        text = f"Levels look randomised: a test{tested} finds no dependence on the features ({p}: {meaning})."
        return Finding(topic, "fine", f"{text} {design}".rstrip())
    meaning = f"so do fewer than {percent(MAX_SIGNIFICANT_P)} of logs with random levels"
    text = f"Levels are not randomised: a test{tested} finds that they depend on the features ({p}: {meaning})."
    if propensities.source == "estimated":
        more = (
            "Comparisons are corrected for the features in the log, but not for anything else that decided the level."
        )
        return Finding(topic, "careful", f"{text} {more} {design}".rstrip())
    left = float(overlap.beyond_chance.max(initial=0.0))
    if left <= MAX_BALANCED_DIFFERENCE:
        return Finding(topic, "fine", f"{text} The given propensities account for it: weighting restores balance.")
    more = f"The given propensities do not account for all of it: differences of up to {left:.2f} sd remain."
    return Finding(topic, "careful", f"{text} {more}")


def _propose_propensities(
    log: Log,
    propensities: Propensities,
    dependence: IndependenceTest,
    sample: PropensityFeatures,
    group: Array | None,
    seed: int,
) -> str:
    """Propose propensities for levels that look randomised, overall or within strata; else return an empty text."""
    if propensities.source == "given":
        return ""
    if dependence.p >= MAX_SIGNIFICANT_P:
        shares = np.bincount(log.level, weights=log.weights, minlength=len(log.levels)) / log.weights.sum()
        listed = ", ".join(f"{share:.4g}" for share in shares)
        line = f"propensities = [{listed}] under [levels]"
        return f"If they were drawn with the same probabilities for everybody, use these instead of estimates: {line}."
    rows = sample.rows if log.sample is None else np.searchsorted(log.sample.rows, sample.rows)
    strata = find_randomised_strata(log.seen.features.take(rows), sample.X, log.level[sample.rows], group, seed)
    if strata is None:
        return ""
    line = f"propensity_strata = {to_toml(strata.column)} under [columns]"
    return f"Within the values of {strata.column!r} they look randomised (p = {strata.p:.2g}): if they were drawn so, {line}."


def _check_propensities(propensities: Propensities) -> Finding:
    """Check that the log contains propensities."""
    if propensities.source == "given":
        return Finding("propensities", "fine", "The log gives the probability with which each level was chosen.")
    text = (
        "The log does not say how levels were chosen; propensities were estimated from the features. "
        "If levels also followed something else, the estimates are biased."
    )
    return Finding("propensities", "note", text)


def _check_propensity_sums(log: Log) -> list[Finding]:
    """Check that the given propensities agree with the frequencies of the levels."""
    if log.propensity is None:
        return []
    doubts = find_implausible_levels(
        GivenPropensities(log.level, log.propensity, log.levels.titles, log.weight, log.cluster)
    )
    if not doubts:
        return []
    text = (
        "The given propensities do not agree with how often levels were chosen: the sum of 1/propensity over a level's rows "
        f"should be about the number of all rows. {join_some([str(doubt) for doubt in doubts], 3)}. Check that they are those of the "
        "row's own level, for all customers; leave them out to have them estimated."
    )
    return [Finding("propensities", "no", text)]


def _check_balance(overlap: Overlap) -> Finding:
    """Check that weighting by 1 / propensity balances the features between levels."""
    beyond = overlap.beyond_chance
    unbalanced = [
        name for name, after in zip(overlap.features, beyond, strict=True) if after > 2 * MAX_BALANCED_DIFFERENCE
    ]
    sampled = f" in a sample of {plural(overlap.sampled, 'row')}" if overlap.sampled else ""
    largest = float(overlap.after.max(initial=0.0))
    if not unbalanced:
        chance = ", which is chance" if largest > 2 * MAX_BALANCED_DIFFERENCE else ""
        text = f"After weighting, customers of different levels are similar (largest difference {largest:.2f} sd{sampled}{chance})."
        return Finding("balance", "fine", text)
    names = ", ".join(repr(name) for name in unbalanced[:3]) + (" and others" if len(unbalanced) > 3 else "")
    text = f"After weighting, customers of different levels still differ in {names} (by up to {beyond.max():.2f} sd{sampled})."
    more = "Comparisons between levels depend on the model there."
    if beyond.max() > MAX_FEATURE_DIFFERENCE:
        more += " A column that was known before the level was chosen has to stay: without it, the difference remains unseen."
    return Finding("balance", "careful", f"{text} {more}")


def _check_assignment_unit(log: Log) -> list[Finding]:
    """Check that rows whose level was assigned together lie in one cluster."""
    unit = log.unit
    if unit is None or (log.cluster is not None and are_groups_nested(unit.code, log.cluster)):
        return []
    level_means = np.bincount(log.level, weights=log.response) / np.maximum(np.bincount(log.level), 1)
    residual = log.response - level_means[log.level]
    by_unit, by_row = (t_estimate(residual, log.weight, group).se for group in (unit.code, log.cluster))
    widening = by_unit / by_row if by_row > 0 else 1.0
    groups = plural(unit.groups, "group")
    text = f"Levels are constant within {unit.column!r} ({groups} of rows): rows of a group did not get them independently."
    more = f"If levels were given to these groups, name them: cluster = {to_toml(unit.column)} under [columns]. Then groups are judged."
    if widening <= MAX_WIDENING:
        return [Finding("clusters", "note", f"{text} {more} Standard errors of mean responses hardly change.")]
    more += f" Without it intervals are too narrow: standard errors of mean responses are {widening:.1f} times as large by group."
    return [Finding("clusters", "careful", f"{text} {more}")]


def _check_repeated_customers(log: Log) -> list[Finding]:
    """Report the consequences of customers with several rows."""
    if log.last_rows is None:
        return []
    text = (
        f"The log has {plural(len(log), 'row')} of {plural(log.customers, 'customer')}. Values are means over rows: the value of one "
        "decision. Without a table of customers, each customer of the log is planned once, by their last row in the table."
    )
    return [Finding("customers", "note", text)]


def _check_within_customers(within: WithinCustomerComparison | None, titles: tuple[str, ...]) -> list[Finding]:
    """Check that effects of levels within customers agree with effects among all rows."""
    if within is None:
        return []
    topic, of, rows = (
        f"within {within.of}s",
        within.of,
        zip(within.among, within.within, within.difference, strict=True),
    )
    shares = [
        abs(d.estimate) / max(abs(a.estimate), abs(w.estimate), 1e-300) * (abs(d.estimate) > 3 * d.se)
        for a, w, d in rows
    ]
    clear = within.p < MAX_CHANCE_DISAGREEMENT
    place = int(np.argmax(shares)) if clear and max(shares) > 0 else len(shares) - 1
    among, inside, level = within.among[place], within.within[place], within.levels[place + 1]
    text = (
        f"Among all rows, {titles[level]!r} brings {_format_effect(among)} more than {titles[within.levels[0]]!r}; within the "
        f"{plural(within.groups, of)} who got several levels, {_format_effect(inside)}."
    )
    if not clear or max(shares) < MIN_DISAGREEMENT:
        return [Finding(topic, "fine", f"{text} The two comparisons do not clearly disagree.")]
    text = f"Levels differ otherwise within {of}s than among all rows. {text}"
    more = f"So {of}s who got more differ in something that the features do not hold, and it is in every estimate."
    if max(shares) < SEVERE_DISAGREEMENT:
        return [Finding(topic, "careful", f"{text} {more}")]
    hint = f"Add a feature for it, such as the {of}'s earlier responses, or give some {of}s their levels at random."
    return [Finding(topic, "no", f"{text} {more} {hint}")]


def _format_effect(effect: Estimate) -> str:
    """Format an effect with its 95 % interval."""
    return f"{effect.estimate:.3g} ({effect.low:.3g} to {effect.high:.3g})".replace("-", "−")


def _check_clusters(log: Log) -> list[Finding]:
    """Check that the log has enough clusters for confidence intervals."""
    clusters = log.clusters
    if clusters is None:
        return []
    if clusters < MIN_INTERVAL_CLUSTERS:
        ratio = ", and the return per unit of spend has no interval" if clusters < MIN_RATIO_CLUSTERS else ""
        text = f"The rows come from only {plural(clusters, 'cluster')}: intervals may be too narrow{ratio}."
        return [Finding("clusters", "careful", text)]
    what = "customer" if log.last_rows is not None and clusters == log.customers else "cluster"
    text = f"The rows come from {plural(clusters, what)}; folds and intervals respect them."
    return [Finding("clusters", "fine", text)]


# -- weights ----------------------------------------------------------------------------------------------------------


def _find_heavy_rows(log: Log, propensity: Array) -> tuple[HeavyRow, ...]:
    """Return the rows with the largest inverse-propensity weights."""
    weight = log.weights / propensity
    top = np.argsort(-weight, kind="stable")[:MAX_HEAVY_ROWS]
    labels, whole = log.levels.titles, weight.sum()
    return tuple(HeavyRow(int(i), labels[log.level[i]], float(propensity[i]), float(weight[i] / whole)) for i in top)


def _check_weights(log: Log, propensities: Propensities, heavy: tuple[HeavyRow, ...]) -> Finding:
    """Check that the estimates do not depend on a few rows with large weights."""
    weight = np.sort(log.weights / propensities.own)[::-1]
    share = float(weight[: max(len(weight) // 100, 1)].sum() / weight.sum())
    top_rows = "the 1 % of rows with the largest weights have"
    top_row = f"row {heavy[0].row} alone carries {percent(heavy[0].share, 1)} of the weight"
    answer = "careful"
    if heavy[0].share > MAX_ROW_SHARE and len(log) >= 1000:
        text = f"Estimates depend on few rows: {top_row}."
    elif share > MAX_TOP_SHARE and len(log) >= 100:
        text = f"Estimates depend on few rows: {top_rows} {percent(share)} of the weight; {top_row}."
    else:
        text = f"Estimates do not depend on few rows: {top_rows} {percent(share, 1)} of the weight."
        answer = "fine"
    if propensities.clipped:
        text += (
            f" {plural(propensities.clipped, 'row')} had an estimated propensity below 1 %, raised to 1 %: "
            f"this removed {percent(propensities.clipped_weight, 1)} of the weight."
        )
        many = propensities.clipped > MAX_CLIPPED_SHARE * len(log)
        answer = "careful" if many or answer == "careful" else "note"
    return Finding("weights", answer, text)


# -- responses --------------------------------------------------------------------------------------------------------


def _check_level_order(log: Log, curve: MeanResponseCurve, group_fall: GroupMeanFall | None) -> Finding:
    """Check that the mean response rises with the level.

    Where neither costs nor names state an order, a fall in a group of customers counts, too.
    """
    topic, labels = "order of levels", log.levels.titles
    threshold = _find_fall_threshold(len(labels))
    clear = [fall for fall in curve.falls if fall.sure > threshold]
    if _is_lowered_by_all_levels(curve, len(labels), threshold):
        return Finding(topic, "no", _ask_if_less_is_better(curve, labels))
    if group_fall is not None:
        who = f"Customers whose {group_fall.group} ({plural(group_fall.rows, 'row')}) respond less to a later level"
        text = f"The levels do not look ordered. {who}, {_describe_fall(group_fall.fall, labels)}; neither costs nor names order them."
        more = (
            "A plan assumes that a later level never brings less. Keep levels that are each more than the one before, such as "
            f"{labels[0]!r} and one other, in a campaign of their own; or give the levels their amounts as doses, in order."
        )
        return Finding(topic, "no", f"{text} {more}")
    if not clear:
        dips = sum(fall.low == fall.high + 1 for fall in curve.falls)
        more = f" ({dips} of {len(labels) - 1} steps dip within noise)" if dips else ""
        return Finding(topic, "fine", f"The mean response does not clearly fall as the level rises{more}.")
    first, *others = (_describe_fall(fall, labels) for fall in clear)
    also = f" Also {', '.join(others[:MAX_LISTED_FALLS])}" if others else ""
    also += f" and {len(others) - MAX_LISTED_FALLS} more." if len(others) > MAX_LISTED_FALLS else "." if others else ""
    if clear[0].sure <= max(SEVERE_FALL, threshold):
        text = f"The mean response falls as the level rises, {first}.{also} The models assume that it never falls."
        return Finding(topic, "careful", text)
    text = f"The levels may be in the wrong order: the mean response clearly falls as the level rises, {first}.{also}"
    more = (
        "Put the cheapest level first. If the order is right and levels were drawn at random, more brings less there: leave that "
        "level out; else something outside the log decided who got more."
    )
    return Finding(topic, "no", f"{text} {more}")


def _describe_fall(fall: MeanResponseFall, labels: tuple[str, ...]) -> str:
    return f"from {labels[fall.high]!r} to {labels[fall.low]!r} by {fall.by:.3g} ± {1.96 * fall.se:.2g}"


def _is_lowered_by_all_levels(curve: MeanResponseCurve, levels: int, threshold: float) -> bool:
    """Test if every level above the first clearly lowers the mean response."""
    lower = {fall.low for fall in curve.falls if fall.high == 0 and fall.sure > max(threshold, MIN_LOWERED)}
    return len(lower) == levels - 1


def _ask_if_less_is_better(curve: MeanResponseCurve, labels: tuple[str, ...]) -> str:
    """Write the text that asks if lower responses are better, with the mean response at each level."""
    first, *others = (f"{mean.estimate:.3g} at {label!r}" for label, mean in zip(labels, curve.weighted, strict=True))
    means = f"{first}, {', '.join(others[:MAX_LISTED_FALLS])}" + (" …" if len(others) > MAX_LISTED_FALLS else "")
    return (
        f"Every level above the first clearly lowers the mean response: {means}. Plans want more of it. If less is better, as of "
        "cancelled contracts or weeks without work, name a column of the opposite as the response: stayed = 1 − cancelled, or weeks "
        "in work = 52 − weeks without. If more is better, the levels are in the wrong order, or they do harm."
    )


def _find_fall_threshold(levels: int) -> float:
    """Return the size of a clear decrease between two levels in standard errors, by Bonferroni."""
    return t_quantile(1e9, 1 - 0.05 / max(comb(levels, 2), 1))


def _check_observed_costs(log: Log, propensity: Array) -> list[Finding]:
    """Check that the observed mean cost rises with the level."""
    if log.paid is None:
        return []
    curve, labels = measure_mean_responses(log.of_costs, propensity), log.levels.titles
    means = ", ".join(f"{label!r} {mean.estimate:.4g}" for label, mean in zip(labels, curve.weighted, strict=True))
    if not curve.falls or curve.falls[0].sure <= _find_fall_threshold(len(labels)):
        text = f"Costs are observed; they do not clearly fall as the level rises. On average a row costs: {means}."
        return [Finding("costs", "fine", text)]
    fall = curve.falls[0]
    text = f"Costs fall as the level rises, from {labels[fall.high]!r} to {labels[fall.low]!r}: on average a row costs {means}."
    more = "Levels are listed from the cheapest: check their order. The plan itself follows the costs, not the order."
    return [Finding("costs", "careful", f"{text} {more}")]


def _check_redemption(log: Log) -> list[Finding]:
    """Check that costs paid on redemption belong to a yes/no response, not to an amount."""
    most = float(log.response.max())
    if log.levels.on_redemption is not True or most <= 1:
        return []
    text = f"Costs are paid on redemption, and the response goes up to {most:,g}: a row costs its level's cost × the response"
    if log.levels.common_costs is not None:
        paid = log.levels.common_costs[log.level] * np.maximum(log.response, 0.0)
        text += f", {np.average(paid, weights=log.weights):,.4g} on average and up to {paid.max():,.4g}"
    more = (
        "If each response is paid once, name a column with what each row cost (cost_column). If every unit of the "
        f'response is paid for, write on_redemption = "{PER_UNIT}".'
    )
    return [Finding("costs", "careful", f"{text}. {more}")]


def _check_leaks(leaks: tuple[Leak, ...], log: Log) -> Finding:
    """Check that no feature reveals the response, the level or the cost."""
    topic, sampled = "suspicious features", min(MAX_LEAK_ROWS, len(log.seen))
    sample = f"a sample of {plural(sampled, 'row')}" if sampled < len(log) else ""
    answered = [leak for leak in leaks if leak.feature in log.known_before]
    leaks = tuple(leak for leak in leaks if leak.feature not in log.known_before)
    if not leaks:
        where = f" (checked on {sample})" if sample else ""
        if not answered:
            return Finding(topic, "fine", f"No feature alone predicts the response or the level{where}.")
        return Finding(topic, "fine", f"{_describe_leaks(answered)}{where}, as a feature that was known before may.")
    named = _describe_leaks(leaks) + (f" (in {sample})" if sample else "")
    say = f"say so: known_before = {to_toml([leaks[0].feature])} under [checks]"
    if leaks[0].explained < CERTAIN_LEAK:
        text = f"Suspicious: {named}. If it only happened afterwards, leave it out; if it was known before the level was chosen, {say}."
        return Finding(topic, "careful", text)
    text = f"A feature nearly equals what it should predict: {named}."
    if all(leak.of == "level" for leak in leaks):
        more = f"If it was set with the level, leave it out; if it was known before, the level follows from it: keep it, and {say}."
        if log.unit is not None and log.unit.column == leaks[0].feature:
            more += " If it names groups that levels were given to, such as villages, name it as the cluster."
    else:
        more = f"If it only happened afterwards, leave it out; if it was known before the level was chosen, {say}."
    return Finding(topic, "no", f"{text} {more}")


def _describe_leaks(leaks: Sequence[Leak]) -> str:
    return ", ".join(f"{leak.feature!r} explains {percent(leak.explained)} of the {leak.of}" for leak in leaks[:3])


# -- leaks ------------------------------------------------------------------------------------------------------------


def find_leaks(log: Log, seed: int = 0) -> tuple[Leak, ...]:
    """Return the features that reveal the response, the level or the cost, the clearest first."""
    log = log.seen
    rng = np.random.default_rng(seed)
    rows = np.sort(shuffle_rows(len(log), MAX_LEAK_ROWS, rng))
    half = rng.integers(0, 2, len(rows))
    named_unit = "" if log.unit is None or log.assigned is not log.unit.code else log.unit.column
    targets = {"response": log.response[rows][:, None], "level": np.eye(len(log.levels))[log.level[rows]]}
    if log.paid is not None:
        targets["cost"] = log.paid[rows][:, None]
    leaks = []
    for name in log.features.column_names:
        code = group_column_values(log.features.column(name).take(rows), N_LEAK_GROUPS).code
        for of, target in targets.items():
            if of == "level" and named_unit == name:
                continue  # its values are known to have had one level
            share = measure_explained_share(code, target, half)
            if share >= SUSPECTED_LEAK:
                leaks.append(Leak(name, of, share))
    return tuple(sorted(leaks, key=lambda leak: -leak.explained))


def measure_explained_share(code: Array, target: Array, half: Array) -> float:
    """Return the share of the targets' variance that group means explain on held-out rows.

    Sums over groups and halves suffice: Σ (t − g)² = Σ t² − 2 g Σ t + g² n within a group.
    """
    target = target - target.mean(axis=0)  # keeps the sums of squares small
    groups = int(code.max()) + 1
    place = half * groups + code
    sizes = np.bincount(place, minlength=2 * groups).reshape(2, groups)
    if not sizes.sum(axis=1).all():
        return 0.0
    left = whole = 0.0
    for column in target.T:
        sums = np.bincount(place, weights=column, minlength=2 * groups).reshape(2, groups)
        squares = np.bincount(half, weights=column**2, minlength=2)
        for train, test in ((0, 1), (1, 0)):
            mean = sums[train].sum() / sizes[train].sum()
            guess = np.where(sizes[train] > 0, sums[train] / np.maximum(sizes[train], 1), mean)
            left += squares[test] - 2 * guess @ sums[test] + guess**2 @ sizes[test]
            whole += squares[test] - 2 * mean * sums[test].sum() + mean**2 * sizes[test].sum()
    return float(max(1.0 - left / whole, 0.0)) if whole > 0 else 0.0
