"""A simple rule: who gets what by the groups of one column, for the same money as a plan.

It is made like the plan it stands beside. Each fold of the log has a rule of its own, learnt from curves of models that
never saw the fold: for every column, the groups' mean curves are planned within what the plan itself is expected to cost
there, and the column whose groups promise most is taken. So the rule's value is honest, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largesse.data import Groups, find_grouping, group_column, name_groups
from largesse.evaluation.estimates import describe_mix
from largesse.levels import Levels
from largesse.records import Array, Log, Scores
from largesse.stats import sample_rows

if TYPE_CHECKING:
    import pyarrow as pa

RULE_GROUPS = 4  # of a column; rare words and missing values are further ones
ROWS = 100_000  # columns are compared on no more
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class SimpleRule:
    """The probabilities of levels in each group of one column."""

    column: str
    groups: tuple[str, ...]
    shares: Array  # (groups, K)

    def describe(self, levels: Levels) -> str:
        """Describe who gets what in words; groups that get the same are named together."""
        by_words: dict[str, list[str]] = {}
        for label, share in zip(self.groups, self.shares, strict=True):
            by_words.setdefault(describe_mix(share, levels), []).append(label)
        if len(by_words) == 1:
            return next(iter(by_words))
        return f"by {self.column!r}: " + "; ".join(f"{', '.join(own)}: {words}" for words, own in by_words.items())


@dataclass(frozen=True, eq=False)
class FoldRules:
    """The rules of all folds, and the one that all rows together would give."""

    whole: SimpleRule
    folds: tuple[SimpleRule, ...]
    policy: Array  # (n, K) the probabilities of each row's levels, by its own fold's rule


def learn_rules(log: Log, scores: Scores, policy: Array) -> FoldRules | None:
    """Return simple rules that are expected to cost what a policy is; None where no column has two groups."""
    rows, table = _look_at(log)
    grouped = {name: group_column(table.column(name), RULE_GROUPS) for name in table.column_names}
    grouped = {name: groups for name, groups in grouped.items() if len(np.unique(groups.code)) > 1}
    if not grouped:
        return None
    whole, *own = [_find_column(scores, policy, rows[mine], _take(grouped, mine)) for mine in _split(scores.fold[rows])]
    # Folds outside of a large log's sample take the column of the sample, which knows nothing of their responses either.
    by_fold = dict(zip(np.unique(scores.fold[rows]), own, strict=True))
    names = [whole, *(by_fold.get(f, whole) for f in np.unique(scores.fold))]
    # The columns that were taken are grouped again where there are more rows: nobody is left out.
    kept = grouped if len(rows) == len(log) else _group_all(log, sorted(set(names)))
    folds = []
    given = np.empty(scores.gamma.shape)
    for name, mine in zip(names[1:], _split(scores.fold)[1:], strict=True):
        folds.append(_make_rule(name, _take(kept, mine)[name], scores, policy, mine))
        given[mine] = folds[-1].shares[kept[name].code[mine]]
    return FoldRules(_make_rule(names[0], kept[names[0]], scores, policy, np.arange(len(log))), tuple(folds), given)


def _look_at(log: Log) -> tuple[Array, pa.Table]:
    """Return the rows that columns are compared on, and their features."""
    if log.sample is None:
        rows = sample_rows(len(log), ROWS)
        return rows, log.features if len(rows) == len(log) else log.features.take(rows)
    seen = log.sample.log
    inside = sample_rows(len(seen), ROWS)
    # A level of which more than its share was drawn must not count for more.
    stand_for = seen.weights[inside] / np.maximum(log.weights[log.sample.rows[inside]], 1e-300)
    kept = np.random.default_rng(0).random(len(inside)) * stand_for.max() < stand_for
    return log.sample.rows[inside[kept]], seen.features.take(inside[kept])


def _group_all(log: Log, names: list[str]) -> dict[str, Groups]:
    """Return the groups of all rows in some columns; those of a large log are found on its sample."""
    if log.sample is None:
        return {name: group_column(log.features.column(name), RULE_GROUPS) for name in names}
    found = {name: find_grouping(log.sample.log.features.column(name), RULE_GROUPS) for name in names}
    codes: dict[str, list[Array]] = {name: [] for name in names}
    for batch in log.sample.batches(names):
        for name in names:
            codes[name].append(found[name].code(batch.column(name)).astype(np.int8))
    return {name: name_groups(found[name], np.concatenate(codes[name])) for name in names}


def _split(fold: Array) -> list[Array]:
    """Return all rows, and then the rows of each fold."""
    return [np.arange(len(fold)), *(np.flatnonzero(fold == f) for f in np.unique(fold))]


def _take(grouped: Mapping[str, Groups], rows: Array) -> dict[str, Groups]:
    return {name: Groups(groups.code[rows], groups.labels) for name, groups in grouped.items()}


def _find_column(scores: Scores, policy: Array, rows: Array, grouped: Mapping[str, Groups]) -> str:
    """Return the column whose rule promises most."""
    budget = _expected_spend(scores, policy, rows)
    promised = {}
    for name, groups in grouped.items():
        mass, value, cost = _average(groups, scores, rows)
        promised[name] = float(mass @ (share_budget(value, cost, mass, budget) * value).sum(axis=1))
    return max(promised, key=lambda name: promised[name])


def _make_rule(name: str, groups: Groups, scores: Scores, policy: Array, rows: Array) -> SimpleRule:
    mass, value, cost = _average(groups, scores, rows)
    return SimpleRule(name, groups.labels, share_budget(value, cost, mass, _expected_spend(scores, policy, rows)))


def _expected_spend(scores: Scores, policy: Array, rows: Array) -> float:
    """Return what a policy is expected to cost on some rows, by the curves alone."""
    weight = _weigh_alike(scores.weight[rows])
    if policy.ndim == 1 and np.issubdtype(policy.dtype, np.integer):
        own = scores.expected_costs[rows, policy[rows]]
    else:
        own = (np.broadcast_to(policy, scores.gamma.shape)[rows] * scores.expected_costs[rows]).sum(axis=1)
    return float(weight @ own / weight.sum())


def _weigh_alike(weight: Array) -> Array:
    """Return weights (n,); ones where none counts: a fold may have no weight at all."""
    return weight if weight.any() else np.ones(len(weight))


def _average(groups: Groups, scores: Scores, rows: Array) -> tuple[Array, Array, Array]:
    """Return each group's share of the weight (G,), and its mean curve and costs (G, K); an empty group has those of all."""
    weight, size = _weigh_alike(scores.weight[rows]), len(groups.labels)
    mass = np.bincount(groups.code, weights=weight, minlength=size)
    means = []
    for table in (scores.curves, scores.expected_costs):
        # One column after the other: logs may be large.
        sums = [np.bincount(groups.code, weights=weight * column[rows], minlength=size) for column in table.T]
        whole = weight @ table[rows] / weight.sum() if (mass == 0).any() else 0.0
        means.append(np.where(mass[:, None] > 0, np.stack(sums, axis=1) / np.maximum(mass, 1e-300)[:, None], whole))
    return mass / mass.sum(), means[0], means[1]


def share_budget(value: Array, cost: Array, mass: Array, budget: float) -> Array:
    """Return the probabilities (G, K) of levels in groups that bring most within a mean cost.

    Each group climbs from its cheapest level, the step with the best return first. Part of one group takes the last step.

    >>> share_budget(np.array([[0.0, 1.0], [0.0, 3.0]]), np.array([[0.0, 1.0]] * 2), np.array([0.5, 0.5]), 0.75)
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    groups, level = np.arange(len(value)), np.eye(value.shape[1])
    own = np.argmax(np.where(cost <= cost.min(axis=1, keepdims=True), value, -np.inf), axis=1)
    shares, left = level[own], budget - float(mass @ cost[groups, own])
    while left > ROUNDING * budget:
        gain, more = (table - table[groups, own][:, None] for table in (value, cost))
        slope = np.where(more > 0, gain, -np.inf) / np.where(more > 0, more, 1.0)
        g, k = np.unravel_index(int(np.argmax(slope)), slope.shape)
        if not slope[g, k] > 0:
            break
        needed = float(mass[g] * more[g, k])
        part = 1.0 if needed <= left else left / needed
        shares[g] = (1 - part) * level[own[g]] + part * level[k]
        left -= part * needed
        own[g] = k
    return shares
