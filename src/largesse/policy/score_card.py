"""A score card: a policy as a tree of two or three conditions, for people, forms and any database.

It is learnt to bring most at the policy's price for no more than the policy costs. What it loses is measured on customers
it was not learnt from. With a log, the loss is honest, too: each fold has a model and a card that know nothing of the fold's
responses, and doubly robust scores judge both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.allocation import decide_at_price
from largesse.data import Encoder, feature_table, plain_columns, require_columns
from largesse.errors import Problem, budget_problems, fail, percent, refuse, repr_short, whole_problems
from largesse.evaluation import estimate_difference, estimate_value
from largesse.levels import Levels
from largesse.policy.card_tree import Leaf, Node, Rows, follow, learn_tree, least_rows, list_leaves, thin_conditions
from largesse.policy.conditions import Condition, list_conditions
from largesse.policy.export import card_sql
from largesse.policy.held_out import HeldOutPolicy
from largesse.records import Array, Card, Customers, Estimate, Log, Shown
from largesse.stats import sample_rows

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 20_000  # that a tree is learnt from, and its loss measured on
DEEPEST = 4
PARTS = 2  # into which customers are cut to measure the loss
STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; }
pre, div[tabindex] { overflow-x: auto; }
pre { font-size: .875rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid #8884; }
td:first-child { min-width: 9rem; }
td:nth-child(n + 3) { white-space: nowrap; }
"""


@dataclass(frozen=True)
class Promised:
    """What the model expects per customer, of customers that a card was not learnt from."""

    policy_response: float
    policy_cost: float
    card_response: float
    card_cost: float
    loss: float  # of response − price × cost
    same: float  # share of customers who get the same level from both
    rows: int


@dataclass(frozen=True)
class Honest:
    """What held-out rows of a log say per customer, doubly robust; `loss` is of value − price × spend."""

    policy_value: Estimate
    policy_spend: Estimate
    card_value: Estimate
    card_spend: Estimate
    loss: Estimate
    rows: int


@dataclass(frozen=True, eq=False)
class ScoreCard(Shown):
    """A rule of a few conditions, and what it loses against the policy it stands for."""

    tree: Node
    levels: Levels
    kinds: Mapping[str, Any]  # of the features that it asks for
    price: float
    budget: float  # average expected cost that it keeps
    promised: Promised
    honest: Honest | None = None

    def __repr__(self) -> str:
        return f"ScoreCard({len(list_leaves(self.tree))} groups by {', '.join(self.kinds) or 'nothing'})"

    def __str__(self) -> str:
        return "\n".join([*self._lines(self.tree, ""), "", *self.words()])

    def decide(self, customers: Any) -> Array:
        """Return the level (n,) of each customer: `Customers`, a `Log` or a table with the features that the card asks for."""
        table = customers.features if isinstance(customers, Customers | Log) else feature_table(customers)
        require_columns(table.column_names, tuple(self.kinds))
        return follow(self.tree, plain_columns(table, self.kinds), table.num_rows)

    def to_sql(
        self, dialect: str = "duckdb", *, table: str | Sequence[str] = "customers", customer: str | None = "customer"
    ) -> str:
        """Return one SELECT that decides like this card; see `Policy.to_sql`. Response and cost are means of the group."""
        return card_sql(self, dialect, table, customer)

    def words(self) -> list[str]:
        """Say in sentences what the card costs and loses."""
        promised = self.promised
        lines = [
            f"Expected on {promised.rows:,} customers that it was not learnt from: response {promised.card_response:.4g} "
            f"at a cost of {promised.card_cost:.4g} (the policy: {promised.policy_response:.4g} at "
            f"{promised.policy_cost:.4g}). {percent(promised.same)} get the same level.",
            f"Loss of response − price × cost per customer, by the model: {_write(promised.loss)}.",
        ]
        if self.honest is not None:
            honest, loss = self.honest, self.honest.loss
            lines.append(
                f"Honest, on {honest.rows:,} held-out rows of the log: value {_write_with(honest.card_value)} at a spend of "
                f"{honest.card_spend.estimate:.4g}; the policy: {_write_with(honest.policy_value)} at "
                f"{honest.policy_spend.estimate:.4g}. Loss of value − price × spend per customer: {_write_with(loss)}. "
                "Models that did not learn from these rows decide here, "
                "at the policy's price: they may spend more or less than the policy itself."
            )
        return lines

    def card(self) -> Card:
        """Return the groups, what each gets, and what the card loses."""
        head = ("customers whose", "get", "share", "expected response", "expected cost")
        rows = [tuple((row | {"share": percent(row["share"], 1)}).values()) for row in self._groups()]
        return Card("Score card", head, rows, self.words())

    def to_html(self) -> str:
        """Return the card as a whole page."""
        rules = escape("\n".join(self._lines(self.tree, "")))
        head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Score card</title>'
        body = f'<h1>Who gets which level</h1>\n<pre tabindex="0">{rules}</pre>\n<div tabindex="0">{self._repr_html_()}</div>'
        page = f'<!DOCTYPE html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head>'
        return f"{page}\n<body><main>{body}</main></body></html>\n"

    def to_arrow(self) -> pa.Table:
        """Return a row for each group of customers."""
        import pyarrow as pa

        return pa.Table.from_pylist(self._groups())

    def _groups(self) -> list[dict[str, Any]]:
        return [
            {
                "conditions": " and ".join(one.words(true) for one, true in path) or "all",
                "level": self.levels.labels[leaf.level],
                "share": leaf.share,
                "expected_response": leaf.response,
                "expected_cost": leaf.cost,
            }
            for path, leaf in list_leaves(self.tree)
        ]

    def _lines(self, node: Node, indent: str) -> list[str]:
        if isinstance(node, Leaf):
            return [f"{indent}{self.levels.titles[node.level]} ({percent(node.share, 1)} of customers)"]
        return [
            f"{indent}if {node.condition.words(True)}:",
            *self._lines(node.yes, indent + "    "),
            f"{indent}else ({node.condition.words(False)}):",
            *self._lines(node.no, indent + "    "),
        ]


@dataclass(frozen=True)
class CardSettings:
    """How a card is learnt."""

    depth: int
    budget: float | None  # None: what the policy costs
    price: float
    seed: int


@dataclass(frozen=True, eq=False)
class Offered:
    """Customers, and what every level brings and costs them by the policy's model."""

    plain: dict[str, Array]
    kinds: dict[str, Any]
    value: Array  # (n, K)
    cost: Array  # (n, K)

    def take(self, rows: Array) -> Offered:
        """Return some of the customers."""
        plain = {name: column[rows] for name, column in self.plain.items()}
        return Offered(plain, self.kinds, self.value[rows], self.cost[rows])

    def spend(self, levels: Array) -> float:
        """Return what levels (n,) cost on average."""
        return float(self.cost[np.arange(len(levels)), levels].mean())

    def response(self, levels: Array) -> float:
        """Return what levels (n,) bring on average."""
        return float(self.value[np.arange(len(levels)), levels].mean())


def _write(number: float) -> str:
    return f"{number:.3g}".replace("-", "−")


def _write_with(found: Estimate) -> str:
    """Return an estimate with its interval, if there is one."""
    known = np.isfinite(found.low) and np.isfinite(found.high)
    between = (
        f"95 % interval {_write(found.low)} to {_write(found.high)}" if known else "no interval: too few responses"
    )
    return f"{found.estimate:.4g} ({between})"


def check_card(depth: Any, budget: Any, folds: Any, seed: Any) -> None:
    """Refuse settings that make no card."""
    problems = [*whole_problems(folds, "folds", least=2), *whole_problems(seed, "the seed")]
    if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= DEEPEST:
        problems.append(
            Problem(f"depth is {repr_short(depth)}", f"give a whole number from 1 to {DEEPEST}; 2 or 3 can be read")
        )
    refuse("score card", problems + ([] if budget is None else budget_problems(budget)))


def offer_levels(encoder: Encoder, customers: Any, curves: Array, costs: Array, seed: int) -> Offered:
    """Return customers and what levels bring them, or a random part of them if they are many."""
    table = customers.features if isinstance(customers, Customers | Log) else feature_table(customers)
    if len(curves) < 2 * PARTS:
        fail("score card", Problem(f"there are {len(curves)} customers", "give a few hundred at least"))
    rows = sample_rows(len(curves), ROWS, seed)
    table, wide = table.take(rows), np.broadcast_to(costs, curves.shape)
    return Offered(encoder.plain(table), dict(encoder.kinds), curves[rows], wide[rows])


def make_score_card(levels: Levels, offered: Offered, held: HeldOutPolicy | None, settings: CardSettings) -> ScoreCard:
    """Learn a card from customers, and measure what it loses on others and on held-out rows of a log."""
    tree, budget = _learn(offered, settings)
    used = {condition.feature for path, _ in list_leaves(tree) for condition, _ in path}
    kinds = {name: kind for name, kind in offered.kinds.items() if name in used}
    honest = None if held is None else _measure_honest(held, offered.kinds, settings)
    return ScoreCard(tree, levels, kinds, settings.price, budget, _measure_promised(offered, settings), honest)


def _learn(offered: Offered, settings: CardSettings) -> tuple[Node, float]:
    """Return the best tree for customers, and the average cost that it may have."""
    chosen = decide_at_price(offered.value, np.ascontiguousarray(offered.cost), settings.price)
    budget = offered.spend(chosen) if settings.budget is None else settings.budget
    conditions: list[Condition] = list_conditions(offered.plain, offered.kinds)
    holds = (
        np.stack([one.holds(offered.plain) for one in conditions], axis=1)
        if conditions
        else np.zeros((len(chosen), 0), bool)
    )
    if conditions:
        conditions, holds = thin_conditions(conditions, holds)
    rows = Rows(holds, offered.value, offered.cost, least_rows(len(chosen)))
    return learn_tree(rows, conditions, settings.depth, settings.price, budget)[0], budget


def _measure_promised(offered: Offered, settings: CardSettings) -> Promised:
    """Return what cards that were learnt from other customers are expected to bring and cost."""
    n = len(offered.value)
    part = np.random.default_rng(settings.seed).permutation(n) % PARTS
    policy = decide_at_price(offered.value, np.ascontiguousarray(offered.cost), settings.price)
    card = np.empty(n, dtype=np.int64)
    for one in range(PARTS):
        mine = part == one
        tree, _ = _learn(offered.take(~mine), settings)
        card[mine] = follow(tree, offered.take(mine).plain, int(mine.sum()))
    sums = offered.response(policy), offered.spend(policy), offered.response(card), offered.spend(card)
    loss = (sums[0] - sums[2]) - settings.price * (sums[1] - sums[3])
    return Promised(*sums, loss, float((policy == card).mean()), n)


def _measure_honest(held: HeldOutPolicy, kinds: dict[str, Any], settings: CardSettings) -> Honest:
    """Return what policy and card bring on held-out rows; each fold's card is learnt from curves that never saw it."""
    scores = held.scores
    plain = plain_columns(held.customers.features, kinds)
    offered = Offered(plain, kinds, scores.curves, scores.expected_costs)
    card = np.empty(len(held.levels), dtype=np.int64)
    for f in np.unique(scores.fold):
        rows = np.flatnonzero(scores.fold == f)
        some = rows[sample_rows(len(rows), ROWS, settings.seed)]
        own = (
            settings
            if settings.budget is not None
            else replace(settings, budget=offered.take(rows).spend(held.levels[rows]))
        )
        tree, _ = _learn(offered.take(some), own)
        card[rows] = follow(tree, offered.take(rows).plain, len(rows))
    worth = replace(scores, gamma=scores.gamma - settings.price * scores.costs)
    loss = estimate_difference(worth, held.levels, card).value
    return Honest(*estimate_value(scores, held.levels), *estimate_value(scores, card), loss, len(card))
