"""A shallow tree of conditions that brings most within a budget: who gets what, for people to read.

At a price of cost, the best tree of depth two is found exactly: sums of response and cost over all pairs of conditions
are a few matrix products, and every tree of two conditions is read off them. A deeper tree takes the first condition of the
best tree of depth two, and the best trees on both sides of it. Trees are grown at several prices; each gets the best whole
levels of its leaves within the budget (`allocate`), and the one that brings most is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from largesse.allocation import allocate
from largesse.errors import BudgetError
from largesse.policy.conditions import LEAST, Condition
from largesse.records import Array

PRICES = (0.0, 0.25, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0)  # times the policy's own
MOST_CONDITIONS = 160


@dataclass(frozen=True)
class Leaf:
    """Who meets all conditions on the way here, and what they get."""

    level: int = 0
    share: float = 0.0  # of customers
    response: float = 0.0  # expected on average
    cost: float = 0.0


@dataclass(frozen=True)
class Split:
    """A condition, and what follows if it holds and if it does not."""

    condition: Condition
    yes: Node
    no: Node


Node: TypeAlias = Leaf | Split
Path: TypeAlias = tuple[tuple[Condition, bool], ...]  # conditions, and whether they hold


@dataclass(frozen=True, eq=False)
class Rows:
    """Customers to learn a tree from, and which conditions hold for them."""

    holds: Array  # (n, S) bool
    value: Array  # (n, K)
    cost: Array  # (n, K)
    least: float  # fewest rows of a leaf

    def take(self, rows: Array) -> Rows:
        """Return some of the rows."""
        return replace(self, holds=self.holds[rows], value=self.value[rows], cost=self.cost[rows])

    @cached_property
    def pairs(self) -> tuple[Array, Array, Array]:
        """Rows (S, S), and sums of value and cost (K, S, S), for whom both of two conditions hold."""
        B = self.holds.astype(np.float64)
        sums = [np.stack([(B * column[:, None]).T @ B for column in table.T]) for table in (self.value, self.cost)]
        return B.T @ B, sums[0], sums[1]

    def worth(self, price: float) -> tuple[Array, Array]:
        """Return what each level brings at a price for pairs of conditions (K, S, S), and for everybody (K,)."""
        _, value, cost = self.pairs
        return value - price * cost, (self.value - price * self.cost).sum(axis=0)


def learn_tree(
    rows: Rows, conditions: Sequence[Condition], depth: int, price: float, budget: float
) -> tuple[Node, Array]:
    """Return the tree that brings most value − price × cost within an average cost, and its levels (n,)."""
    best: tuple[float, Node, Array] | None = None
    memory: dict[bytes, Rows] = {}
    for factor in PRICES if price > 0 else (0.0, 1e-6, 1e-3):
        own = price * factor if price > 0 else factor
        grown = _grow(rows, np.arange(len(rows.value)), conditions, depth, own, memory)
        try:
            tree, levels = _fill(grown, rows, conditions, price, budget)
        except BudgetError:
            continue
        every = np.arange(len(levels))
        worth = float((rows.value - price * rows.cost)[every, levels].mean())
        if best is None or worth > best[0] + 1e-12 * abs(best[0]):
            best = worth, tree, levels
    if best is None:  # one level for all is the smallest tree
        tree, levels = _fill(Leaf(), rows, conditions, price, budget)
        return tree, levels
    return best[1], best[2]


def follow(node: Node, plain: Mapping[str, Array], rows: int) -> Array:
    """Return the level (n,) that a tree gives every row."""
    if isinstance(node, Leaf):
        return np.full(rows, node.level, dtype=np.int64)
    return np.where(node.condition.holds(plain), follow(node.yes, plain, rows), follow(node.no, plain, rows))


def list_leaves(node: Node, path: Path = ()) -> list[tuple[Path, Leaf]]:
    """Return every leaf with the conditions on the way to it, and whether they hold there."""
    if isinstance(node, Leaf):
        return [(path, node)]
    return [
        *list_leaves(node.yes, (*path, (node.condition, True))),
        *list_leaves(node.no, (*path, (node.condition, False))),
    ]


# -- growing --------------------------------------------------------------------------------------------------------------


def _grow(
    rows: Rows, mine: Array, conditions: Sequence[Condition], depth: int, price: float, memory: dict[bytes, Rows]
) -> Node:
    """Return the conditions of a tree for some of the rows; its leaves are empty."""
    if depth == 0 or not conditions:
        return Leaf()
    key = np.packbits(np.isin(np.arange(len(rows.value)), mine)).tobytes()
    part = memory.setdefault(key, rows if len(mine) == len(rows.value) else rows.take(mine))
    first, second = _best_two(part, price, depth)
    if first < 0:
        return Leaf()
    true = part.holds[:, first]
    sides = []
    for side, then in ((true, second[0]), (~true, second[1])):
        if depth > 2:
            sides.append(_grow(rows, mine[side], conditions, depth - 1, price, memory))
        else:
            sides.append(Split(conditions[then], Leaf(), Leaf()) if then >= 0 else Leaf())
    return Split(conditions[first], sides[0], sides[1])


def _best_two(rows: Rows, price: float, depth: int) -> tuple[int, tuple[int, int]]:
    """Return the first condition of the best tree of depth two (−1: none) and those on its two sides (−1: none)."""
    count = rows.pairs[0]
    both, everybody = rows.worth(price)  # (K, S, S) and (K,)
    own = np.diagonal(both, axis1=1, axis2=2)  # (K, S)
    single, all_rows = np.diagonal(count), len(rows.value)
    yes_alone = own.max(axis=0)
    no_alone = (everybody[:, None] - own).max(axis=0)
    valid = (single >= rows.least) & (all_rows - single >= rows.least)
    yes, no = yes_alone, no_alone
    then = np.full((2, len(single)), -1)
    if depth > 1:
        one, other = own[:, :, None], own[:, None, :]
        only_one, only_other = single[:, None] - count, single[None, :] - count
        neither = all_rows - single[:, None] - only_other
        sides = (
            (yes_alone, (both, count), (one - both, only_one)),
            (no_alone, (other - both, only_other), (everybody[:, None, None] - one - other + both, neither)),
        )
        for side, (alone, (a, a_count), (b, b_count)) in enumerate(sides):
            split = np.where((a_count >= rows.least) & (b_count >= rows.least), a.max(axis=0) + b.max(axis=0), -np.inf)
            best = split.argmax(axis=1)
            gain = split[np.arange(len(best)), best]
            better = gain > alone + 1e-12 * (1.0 + np.abs(alone))
            then[side], found = np.where(better, best, -1), np.where(better, gain, alone)
            yes, no = (found, no) if side == 0 else (yes, found)
    total = np.where(valid, yes + no, -np.inf)
    first = int(np.argmax(total))
    least = float(everybody.max())
    if not total[first] > least + 1e-12 * (1.0 + abs(least)):
        return -1, (-1, -1)
    return first, (int(then[0][first]), int(then[1][first]))


# -- leaves ---------------------------------------------------------------------------------------------------------------


def _fill(grown: Node, rows: Rows, conditions: Sequence[Condition], price: float, budget: float) -> tuple[Node, Array]:
    """Return a tree with the levels that bring most within the budget, and the level (n,) of every row."""
    place = {condition: j for j, condition in enumerate(conditions)}
    n = len(rows.value)
    leaf = np.zeros(n, dtype=np.int64)
    paths = [path for path, _ in list_leaves(grown)]
    for number, path in enumerate(paths):
        mine = np.ones(n, dtype=bool)
        for condition, true in path:
            mine &= rows.holds[:, place[condition]] == true
        leaf[mine] = number
    G = len(paths)
    mass = np.bincount(leaf, minlength=G) / n
    sums = [
        np.stack([np.bincount(leaf, weights=column, minlength=G) for column in table.T], axis=1) / n
        for table in (rows.value, rows.cost)
    ]
    chosen = allocate(sums[0] - price * sums[1], sums[1], total=budget * (1 + 1e-12), exact=True).levels
    every = np.arange(G)
    size = np.maximum(mass, 1e-300)
    leaves = [
        Leaf(int(level), float(share), float(value), float(cost))
        for level, share, value, cost in zip(
            chosen, mass, sums[0][every, chosen] / size, sums[1][every, chosen] / size, strict=True
        )
    ]
    return _merge(_replace(grown, iter(leaves))), chosen[leaf]


def _replace(node: Node, leaves: Iterator[Leaf]) -> Node:
    if isinstance(node, Leaf):
        return next(leaves)
    return Split(node.condition, _replace(node.yes, leaves), _replace(node.no, leaves))


def _merge(node: Node) -> Node:
    """Return a tree without conditions that decide nothing."""
    if isinstance(node, Leaf):
        return node
    yes, no = _merge(node.yes), _merge(node.no)
    if isinstance(yes, Leaf) and isinstance(no, Leaf) and yes.level == no.level:
        share = yes.share + no.share
        means = [
            (yes.share * a + no.share * b) / max(share, 1e-300)
            for a, b in ((yes.response, no.response), (yes.cost, no.cost))
        ]
        return Leaf(yes.level, share, *means)
    return Split(node.condition, yes, no)


def thin_conditions(conditions: Sequence[Condition], holds: Array) -> tuple[list[Condition], Array]:
    """Return conditions that differ, and no more than can be paired; those that split customers most evenly."""
    _, first = np.unique(holds, axis=1, return_index=True)
    kept = np.sort(first)
    if len(kept) > MOST_CONDITIONS:
        even = np.abs(holds[:, kept].mean(axis=0) - 0.5)
        kept = np.sort(kept[np.argsort(even, kind="stable")[:MOST_CONDITIONS]])
    return [conditions[j] for j in kept], holds[:, kept]


def least_rows(rows: int) -> float:
    """Return the fewest customers of a leaf."""
    return max(LEAST * rows, 1.0)
