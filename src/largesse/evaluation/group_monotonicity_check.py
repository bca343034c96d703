"""Check for customer groups whose mean response falls from a cheaper level to a dearer level.

An e-mail may work for the young and a letter for the old: then the mean of all customers rises, and that of a group falls. Groups
are ranges and words of single features. A fall counts if it is clear among all groups and pairs of levels that were compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from largesse.data import find_grouping_rule, format_group_limit, order_levels
from largesse.evaluation.level_mean_responses import MeanResponseFall, bound_share_variance, measure_mean_responses
from largesse.levels import Levels
from largesse.records import MIN_LEVEL_ROWS, Array, Log
from largesse.stats import sample_rows, t_quantile

if TYPE_CHECKING:
    import pyarrow as pa

MAX_GROUP_FALL_ROWS = 100_000
N_FALL_GROUPS = 8  # of each feature
MAX_FALSE_FALLS = 0.02  # share of logs with a fall by chance, by Bonferroni: groups overlap, so it is smaller
MAX_CONFIRMED_GROUPS = 5  # those with the clearest falls


@dataclass(frozen=True)
class GroupMeanFall:
    """Clear decrease of the mean response between two levels in one customer group."""

    group: str  # a condition on a feature
    rows: int
    fall: MeanResponseFall


def has_stated_order(levels: Levels) -> bool:
    """Test if the levels' doses, names or costs determine their order.

    >>> has_stated_order(Levels([0, 1, 2], names=["none", "small", "big"]))
    True
    >>> has_stated_order(Levels([0, 1, 2], names=["none", "mail", "call"]))
    False
    """
    costs = levels.common_costs
    if costs is not None and len(np.unique(costs)) < len(costs):
        return False
    return levels.names is None or levels.doses is not None or order_levels(levels.names) is not None


def find_clearest_group_fall(log: Log, propensity: Array, seed: int = 0) -> GroupMeanFall | None:
    """Find the customer group with the clearest decrease of the mean response between levels, beyond chance.

    Rows are weighted by 1 / `propensity` (n,). A large log is represented by its sample.
    """
    seen = log.seen
    places = sample_rows(len(seen), MAX_GROUP_FALL_ROWS, seed)
    rows = places if log.sample is None else log.sample.rows[places]
    features = seen.features if len(places) == len(seen) else seen.features.take(places)
    some, own = replace(log.bare, sample=None).take(rows), propensity[rows]
    scored, compared = list[tuple[float, str, Array]](), 0
    for name in features.column_names:
        for label, inside in _iterate_feature_groups(features.column(name)):
            errors = _score_falls(some, own, inside)
            compared += len(errors)
            if len(errors) and errors.max() > 0:
                scored.append((float(errors.max()), f"{name!r} is {label}", inside))
    threshold = t_quantile(1e9, 1 - 2 * MAX_FALSE_FALLS / max(compared, 1))
    scored.sort(key=lambda item: -item[0])
    for errors_most, label, inside in scored[:MAX_CONFIRMED_GROUPS]:
        if errors_most <= threshold:
            break
        falls = measure_mean_responses(
            some.take(inside), own[inside]
        ).falls  # which allows for clusters, few rows and long tails
        if falls and falls[0].sure > threshold:
            return GroupMeanFall(label, int(inside.sum()), falls[0])
    return None


def _iterate_feature_groups(column: pa.ChunkedArray) -> Iterator[tuple[str, Array]]:
    """Yield customer groups of one feature: below and above each cut of a number, or one word of a text."""
    grouping = find_grouping_rule(column, N_FALL_GROUPS)
    code = grouping.assign_groups(column)
    if grouping.kind == "words":
        yield from ((repr(word), code == place) for place, word in enumerate(grouping.words))
    elif grouping.kind != "nothing":
        cuts = grouping.numbers if grouping.kind != "values" else grouping.numbers[:-1]
        known = code < len(cuts) + 1
        for place, cut in enumerate(cuts):
            text = str(np.datetime64(int(cut), "s"))[:10] if grouping.kind == "dates" else format_group_limit(cut)
            yield f"up to {text}", code <= place
            yield f"over {text}", known & (code > place)


def _score_falls(log: Log, propensity: Array, inside: Array) -> Array:
    """Return the decreases of a group's mean response between all pairs of levels, in standard errors."""
    K = len(log.levels)
    level, response, weight = log.level[inside], log.response[inside], (log.weights / propensity)[inside]
    mass, squares = np.bincount(level, weights=weight, minlength=K), np.bincount(level, weights=weight**2, minlength=K)
    effective = np.divide(mass**2, squares, out=np.zeros(K), where=squares > 0)
    enough = np.flatnonzero(effective >= MIN_LEVEL_ROWS)
    if len(enough) < 2:
        return np.zeros(0)
    means = np.bincount(level, weights=weight * response, minlength=K) / np.maximum(mass, 1e-300)
    variance = np.bincount(level, weights=(weight * (response - means[level])) ** 2, minlength=K)
    variance = variance / np.maximum(mass, 1e-150) ** 2
    if log.binary:
        variance = np.maximum(variance, [bound_share_variance(m, n) for m, n in zip(means, effective, strict=True)])
    pairs = [(high, low) for high, low in combinations(enough, 2)]
    return np.array([(means[j] - means[k]) / max(np.sqrt(variance[j] + variance[k]), 1e-300) for j, k in pairs])
