"""Can this log answer the question at all? Everything that can be seen before any model is fitted, with plain verdicts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from largesse.data import Encoder
from largesse.errors import count
from largesse.evaluation.findings import FEW_CLUSTERS, HEAVY, UNBALANCED, level_verdict
from largesse.evaluation.leaks import SURE, find_leaks
from largesse.evaluation.overlap import measure_overlap
from largesse.evaluation.randomisation import measure_dependence
from largesse.propensity import estimate_propensities
from largesse.records import (
    NOT_BY_CHANCE,
    Array,
    Checkup,
    Dependence,
    Estimate,
    HeavyRow,
    Leak,
    Log,
    Overlap,
    Propensities,
    Verdict,
)
from largesse.stats import assign_folds, mean_estimate, t_quantile

SEVERITY = {"no": 0, "careful": 1, "fine": 2}
SHOWN_ROWS = 5
ROWS = 100_000  # that the test of dependence may choose from
ONE_ROW = 0.02  # share of all weight on a single row that makes it worth looking at


def doctor(log: Log, *, folds: int = 5, seed: int = 0, chances: Propensities | None = None) -> Checkup:
    """Examine a log: overlap, balance, whether levels were drawn by lot, the raw curve, leaks and heavy rows.

    `chances` spares estimating propensities that are there already.

    >>> from largesse.worlds import simulate
    >>> found = doctor(simulate("averaged", n=1000, seed=1, mix=1.0).log)
    >>> found.randomised, found.answer
    (True, 'fine')
    """
    chances = estimate_propensities(log, assign_folds(log, folds, seed), seed) if chances is None else chances
    seen = measure_overlap(log, chances.own, seed)
    lots = _followed(log, seed)
    raw, weighted, drops = _raw_curve(log, chances.own)
    given_away, heavy = find_leaks(log, seed), _heavy(log, chances.own)
    verdicts = [
        _levels(log, seen),
        _lots(lots, chances, seen),
        _balance(seen),
        _weights(log, chances, heavy),
        _rising(log, drops),
        _leaks(given_away),
        *_clusters(log),
    ]
    return Checkup(
        verdicts=tuple(sorted(verdicts, key=lambda verdict: SEVERITY[verdict.answer])),
        rows=len(log),
        clusters=None if log.cluster is None else len(np.unique(log.cluster)),
        labels=log.levels.labels,
        propensity=chances,
        overlap=seen,
        dependence=lots,
        raw=raw,
        weighted=weighted,
        leaks=given_away,
        heavy=heavy,
    )


def _followed(log: Log, seed: int) -> Dependence:
    """Test whether levels follow the features, on some of the rows where there are very many."""
    if len(log) > ROWS:
        log = log.take(np.sort(np.random.default_rng(seed).permutation(len(log))[:ROWS]))
    X = Encoder().fit_transform(log.features, log.level, discrete=True, seed=seed)
    return measure_dependence(X, log.level, log.cluster, seed=seed)


def _levels(log: Log, seen: Overlap) -> Verdict:
    """Whether every level has enough rows."""
    told = [
        (level_verdict(rows, effective, smallest), label, int(rows), effective)
        for label, rows, effective, smallest in zip(
            log.levels.labels, seen.rows, seen.effective, seen.smallest, strict=True
        )
    ]
    worst = min((answer for answer, *_ in told), key=lambda answer: SEVERITY[answer])
    if worst == "fine":
        least = int(seen.effective.min())
        text = f"Every level has rows enough: the thinnest is worth {count(least, 'row')} after weighting."
        return Verdict("rows of each level", "fine", text)
    named = [
        f"{label!r} ({count(rows, 'row')}, worth {effective:.0f})" for a, label, rows, effective in told if a == worst
    ]
    if worst == "no":
        text = f"Too few rows: {', '.join(named)}. What they bring cannot be told; try them on more customers first."
    else:
        text = f"Thin, or almost impossible for some customers: {', '.join(named)}. Expect wide intervals there."
    return Verdict("rows of each level", worst, text)


def _lots(lots: Dependence, chances: Propensities, seen: Overlap) -> Verdict:
    """Whether levels were drawn without regard to the features."""
    about, p = "drawn by lot", f"p {'<' if lots.p < 0.002 else '='} {max(lots.p, 0.002):.2g}"
    if lots.p >= NOT_BY_CHANCE:
        return Verdict(about, "fine", f"Levels look randomised: they do not follow the features ({p}).")
    if chances.source == "given":
        text = f"Levels are not randomised over all customers: they follow the features ({p}). The given propensities "
        left = float(seen.after.max(initial=0.0))
        if left <= UNBALANCED:
            return Verdict(about, "fine", text + "account for it: after weighting nothing is left of it.")
        return Verdict(about, "careful", text + f"leave differences of up to {left:.2f} standard deviations.")
    text = (
        f"Levels are not randomised: they follow the features ({p}). What is compared is corrected for the features in the "
        "log; whatever else decided the level is not."
    )
    return Verdict(about, "careful", text)


def _balance(seen: Overlap) -> Verdict:
    """Whether customers of different levels are alike after weighting."""
    off = [name for name, after in zip(seen.features, seen.after, strict=True) if after > 2 * UNBALANCED]
    most = float(seen.after.max(initial=0.0))
    if not off:
        text = f"After weighting, customers of different levels are alike (largest difference {most:.2f} sd)."
        return Verdict("balance", "fine", text)
    names = ", ".join(repr(name) for name in off[:3]) + (" and others" if len(off) > 3 else "")
    text = f"After weighting, customers of different levels still differ in {names} (up to {most:.2f} sd)."
    return Verdict("balance", "careful", text)


def _heavy(log: Log, propensity: Array) -> tuple[HeavyRow, ...]:
    """Return the rows that carry most weight."""
    weight = (1.0 if log.weight is None else log.weight) / propensity
    top = np.argsort(-weight, kind="stable")[:SHOWN_ROWS]
    labels, whole = log.levels.labels, weight.sum()
    return tuple(HeavyRow(int(i), labels[log.level[i]], float(propensity[i]), float(weight[i] / whole)) for i in top)


def _weights(log: Log, chances: Propensities, heavy: tuple[HeavyRow, ...]) -> Verdict:
    """Whether estimates hang on few rows."""
    weight = np.sort((1.0 if log.weight is None else log.weight) / chances.own)[::-1]
    share = float(weight[: max(len(weight) // 100, 1)].sum() / weight.sum())
    clipped = (
        f" {count(chances.clipped, 'row')} had a propensity below the floor; raising it took "
        f"{chances.clipped_weight:.1%} of the weight."
        if chances.clipped
        else ""
    )
    one = f"row {heavy[0].row} alone carries {heavy[0].share:.1%}"
    if heavy[0].share > ONE_ROW and len(log) >= 1000:
        return Verdict("weights", "careful", f"Estimates hang on few rows: {one} of the weight.{clipped}")
    if share > HEAVY and len(log) >= 100:
        text = f"Estimates hang on few rows: one in a hundred carries {share:.0%} of the weight, {one}.{clipped}"
        return Verdict("weights", "careful", text)
    text = f"No row speaks for too many others: the heaviest hundredth carries {share:.1%} of the weight.{clipped}"
    return Verdict("weights", "careful" if chances.clipped > 0.01 * len(log) else "fine", text)


def _raw_curve(log: Log, propensity: Array) -> tuple[tuple[Estimate, ...], tuple[Estimate, ...], list[Estimate]]:
    """Return each level's mean response, as logged and weighted, and the weighted rises from level to level."""
    plain = np.ones(len(log)) if log.weight is None else log.weight / log.weight.mean()
    raw, weighted, scores = [], [], []
    for k in range(len(log.levels)):
        own = log.level == k
        raw.append(_level_mean(log, own, plain))
        ratio = own / propensity
        part = float(plain @ ratio) / float(plain.sum())
        mean = float(plain @ (ratio * log.response)) / float(plain.sum()) / part if part > 0 else float("nan")
        scores.append(mean + ratio * (log.response - mean) / part if part > 0 else np.full(len(log), np.nan))
        weighted.append(mean_estimate(scores[-1], plain, log.cluster))
    rises = [mean_estimate(high - low, plain, log.cluster) for low, high in pairwise(scores)]
    return tuple(raw), tuple(weighted), rises


def _level_mean(log: Log, own: Array, weight: Array) -> Estimate:
    if not own.any():
        return Estimate(float("nan"), float("nan"), float("nan"), float("nan"))
    return mean_estimate(log.response[own], weight[own], None if log.cluster is None else log.cluster[own])


def _rising(log: Log, rises: list[Estimate]) -> Verdict:
    """Whether the response rises with the level, as the models assume; a fall must be clear among all steps together."""
    labels = log.levels.labels
    # Bonferroni: one-sided, all steps together err in one log of forty at most.
    reach = t_quantile(1e9, 1 - 0.05 / max(len(rises), 1))
    falls = [
        f"from {a!r} to {b!r} by {-rise.estimate:.3g} ± {1.96 * rise.se:.2g}"
        for (a, b), rise in zip(pairwise(labels), rises, strict=True)
        if rise.estimate < -reach * rise.se
    ]
    if falls:
        text = f"The mean response falls with the level: {', '.join(falls)}. Models here take it to rise."
        return Verdict("rising curve", "careful", text)
    flat = sum(rise.estimate < 0 for rise in rises)
    text = "The mean response does not clearly fall anywhere as the level rises"
    return Verdict(
        "rising curve", "fine", text + (f" ({flat} of {len(rises)} steps dip within noise)." if flat else ".")
    )


def _leaks(found: tuple[Leak, ...]) -> Verdict:
    """Whether a feature gives away the response or the level."""
    if not found:
        return Verdict("leaks", "fine", "No feature alone gives away the response or the level.")
    worst = found[0]
    named = ", ".join(f"{leak.feature!r} explains {leak.explained:.0%} of the {leak.of}" for leak in found[:3])
    if worst.explained >= SURE:
        text = (
            f"A feature gives away what it must not know: {named}. Leave it out unless it was known before the level."
        )
        return Verdict("leaks", "no", text)
    return Verdict("leaks", "careful", f"Suspiciously telling: {named}. Was it known before the level was chosen?")


def _clusters(log: Log) -> list[Verdict]:
    if log.cluster is None:
        return []
    clusters = len(np.unique(log.cluster))
    if clusters < FEW_CLUSTERS:
        text = f"The rows come in only {count(clusters, 'cluster')}: intervals may be too narrow."
        return [Verdict("clusters", "careful", text)]
    return [Verdict("clusters", "fine", f"The rows come in {count(clusters, 'cluster')}; intervals respect them.")]
