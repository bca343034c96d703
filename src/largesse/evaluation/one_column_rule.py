"""Simple rule that chooses levels by the groups of one column, at the same expected spend as a plan.

It is made like the plan. Each fold of the log has a rule of its own, learnt from out-of-fold curves: for every column, the
groups' mean curves are planned within the plan's expected cost of the fold, and the column with the largest predicted value is
chosen. So the estimate of the rule's value is unbiased, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from largesse.data import GroupingRule, ValueGroups, drop_empty_groups, find_grouping_rule, group_column_values
from largesse.evaluation.estimators import is_level_array
from largesse.evaluation.policy_estimates import describe_mix
from largesse.levels import Levels
from largesse.records import Array, Log, RuleTable, Scores
from largesse.stats import sample_rows

if TYPE_CHECKING:
    import pyarrow as pa

RULE_GROUPS = 4  # of a column; rare words and missing values are further ones
MAX_RULE_ROWS = 100_000  # on which columns are compared
SPEND_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class OneColumnRule:
    """Level probabilities for each group of one column."""

    column: str
    groups: tuple[str, ...]
    shares: Array  # (groups, K)

    def tabulate(self) -> RuleTable:
        """Return the rule as a record with the level shares of each customer group."""
        return RuleTable(self.column, self.groups, tuple(tuple(row) for row in self.shares.tolist()))

    def describe(self, levels: Levels) -> str:
        """Describe the simple rule in words, joining groups with the same levels."""
        by_mix: dict[str, list[str]] = {}
        for label, share in zip(self.groups, self.shares, strict=True):
            by_mix.setdefault(describe_mix(share, levels), []).append(label)
        if len(by_mix) == 1:
            return next(iter(by_mix))
        return f"by {self.column!r}: " + "; ".join(f"{', '.join(groups)}: {mix}" for mix, groups in by_mix.items())


@dataclass(frozen=True, eq=False)
class OneColumnRulesByFold:
    """One-column rules learnt for each fold on the other folds, and the rule learnt on all rows."""

    whole: OneColumnRule
    folds: tuple[OneColumnRule, ...]
    policy: Array  # (n, K) the probabilities of each row's levels, by its own fold's rule


def learn_one_column_rules(log: Log, scores: Scores, policy: Array) -> OneColumnRulesByFold | None:
    """Learn one-column rules with the same expected cost as a policy; return None without a usable column."""
    rows, table = _sample_rows(log)
    grouped = {name: group_column_values(table.column(name), RULE_GROUPS) for name in table.column_names}
    grouped = {name: groups for name, groups in grouped.items() if len(np.unique(groups.code)) > 1}
    if not grouped:
        return None
    whole, *chosen = [
        _choose_rule_column(scores, policy, rows[part], grouped, part) for part in _list_fold_rows(scores.fold[rows])
    ]
    # Folds outside of a large log's sample take the column of the sample, which is independent of their responses, too.
    by_fold = dict(zip(np.unique(scores.fold[rows]), chosen, strict=True))
    names = [whole, *(by_fold.get(f, whole) for f in np.unique(scores.fold))]
    if len(rows) < len(log):  # the columns were compared on a sample: group all rows
        grouped = _group_by_each_column(log, sorted(set(names)))
    rules = []
    probabilities = np.empty(scores.gamma.shape)
    for name, part in zip(names, _list_fold_rows(scores.fold), strict=True):
        groups = grouped[name]
        code, spend = groups.code[part], _predict_spend(scores, policy, part)
        mass, value, cost = _average_groups(code, len(groups.labels), scores, part)
        rules.append(OneColumnRule(name, groups.labels, allocate_to_groups(value, cost, mass, spend)))
        probabilities[part] = rules[-1].shares[code]  # all rows come first: their folds overwrite them
    return OneColumnRulesByFold(rules[0], tuple(rules[1:]), probabilities)


def _sample_rows(log: Log) -> tuple[Array, pa.Table]:
    """Return sampled rows of a log, and their features, for the comparison of columns."""
    if log.sample is None:
        rows = sample_rows(len(log), MAX_RULE_ROWS)
        return rows, log.features if len(rows) == len(log) else log.features.take(rows)
    seen = log.sample.log
    rows = sample_rows(len(seen), MAX_RULE_ROWS)
    # A level that is over-represented in the sample must not count for more.
    represented = seen.weights[rows] / np.maximum(log.weights[log.sample.rows[rows]], 1e-300)
    rows = rows[np.random.default_rng(0).random(len(rows)) * represented.max() < represented]
    return log.sample.rows[rows], seen.features.take(rows)


def _group_by_each_column(log: Log, names: list[str]) -> dict[str, ValueGroups]:
    """Group all rows by each named column."""
    if log.sample is None:
        return {name: group_column_values(log.features.column(name), RULE_GROUPS) for name in names}
    groupings = {name: find_grouping_rule(log.sample.log.features.column(name), RULE_GROUPS) for name in names}
    codes = np.concatenate(list(log.sample.map(partial(_assign_column_groups, groupings), names, np.arange(len(log)))))
    return {name: drop_empty_groups(groupings[name], codes[:, k]) for k, name in enumerate(names)}


def _assign_column_groups(groupings: Mapping[str, GroupingRule], table: pa.Table) -> Array:
    """Return each row's group number for each column (n, columns)."""
    return np.column_stack([grouping.assign_groups(table.column(name)) for name, grouping in groupings.items()]).astype(
        np.int8
    )


def _list_fold_rows(fold: Array) -> list[Array]:
    """Return the row indices of the whole log, then of each fold."""
    return [np.arange(len(fold)), *(np.flatnonzero(fold == f) for f in np.unique(fold))]


def _choose_rule_column(
    scores: Scores, policy: Array, rows: Array, grouped: Mapping[str, ValueGroups], places: Array
) -> str:
    """Return the column whose rule has the largest predicted value on some rows."""
    spend, predicted = _predict_spend(scores, policy, rows), {}
    for name, groups in grouped.items():
        mass, value, cost = _average_groups(groups.code[places], len(groups.labels), scores, rows)
        predicted[name] = float(mass @ (allocate_to_groups(value, cost, mass, spend) * value).sum(axis=1))
    return max(predicted, key=lambda name: predicted[name])


def _predict_spend(scores: Scores, policy: Array, rows: Array) -> float:
    """Return the mean expected cost of a policy on some rows of the log."""
    weight = _select_nonzero_weights(scores, rows)
    if is_level_array(policy):
        cost = scores.expected_costs[rows, policy[rows]]
    else:
        cost = (np.broadcast_to(policy, scores.gamma.shape)[rows] * scores.expected_costs[rows]).sum(axis=1)
    return float(weight @ cost / weight.sum())


def _select_nonzero_weights(scores: Scores, rows: Array) -> Array:
    """Return the weights of some rows; if all are zero, return ones."""
    weight = scores.weight[rows]
    return weight if weight.any() else np.ones(len(weight))


def _average_groups(code: Array, groups: int, scores: Scores, rows: Array) -> tuple[Array, Array, Array]:
    """Return each group's share of the weight (G,), mean curve (G, K) and mean costs (G, K)."""
    weight = _select_nonzero_weights(scores, rows)
    mass = np.bincount(code, weights=weight, minlength=groups)
    means = []
    for table in (scores.curves, scores.expected_costs):
        # One column after the other: logs may be large.
        sums = [np.bincount(code, weights=weight * column[rows], minlength=groups) for column in table.T]
        whole = weight @ table[rows] / weight.sum() if (mass == 0).any() else 0.0
        means.append(np.where(mass[:, None] > 0, np.stack(sums, axis=1) / np.maximum(mass, 1e-300)[:, None], whole))
    return mass / mass.sum(), means[0], means[1]


def allocate_to_groups(value: Array, cost: Array, mass: Array, budget: float) -> Array:
    """Return level probabilities (G, K) of groups that maximise the value within a mean cost.

    Each group climbs from its cheapest level, the step with the best return first. Part of one group takes the last step.

    >>> allocate_to_groups(np.array([[0.0, 1.0], [0.0, 3.0]]), np.array([[0.0, 1.0]] * 2), np.array([0.5, 0.5]), 0.75)
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    groups, unit = np.arange(len(value)), np.eye(value.shape[1])
    levels = np.argmax(np.where(cost <= cost.min(axis=1, keepdims=True), value, -np.inf), axis=1)
    shares, left = unit[levels], budget - float(mass @ cost[groups, levels])
    while left > SPEND_TOLERANCE * budget:
        gain, more = (table - table[groups, levels][:, None] for table in (value, cost))
        slope = np.where(more > 0, gain, -np.inf) / np.where(more > 0, more, 1.0)
        g, k = np.unravel_index(int(np.argmax(slope)), slope.shape)
        if not slope[g, k] > 0:
            break
        needed = float(mass[g] * more[g, k])
        part = 1.0 if needed <= left else left / needed
        shares[g] = (1 - part) * unit[levels[g]] + part * unit[k]
        left -= part * needed
        levels[g] = k
    return shares
