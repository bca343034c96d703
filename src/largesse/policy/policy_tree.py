"""Policy tree: a decision tree of a few readable conditions that approximates a policy.

Conditions on raw features are the inputs of a scikit-learn decision tree for the net values (response − price × cost) of all
levels; each leaf gets one level, by an exact plan within the budget. The loss of value against the policy is measured on other
customers and, with a log, by doubly robust scores of held-out rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from largesse.allocation import allocate, decide_at_price
from largesse.data import SECONDS_PER_DAY, Encoder, make_feature_table, make_raw_arrays, require_customer_columns
from largesse.errors import (
    BudgetError,
    Problem,
    fail,
    find_budget_problems,
    find_integer_problems,
    percent,
    refuse,
    repr_short,
)
from largesse.evaluation import estimate_policy_difference, estimate_policy_value_and_spend
from largesse.levels import Levels
from largesse.policy.export import sql
from largesse.policy.feature_importance import OutOfFoldPolicy
from largesse.records import (
    Array,
    Card,
    Customers,
    DisplayMixin,
    Estimate,
    GroupCondition,
    Log,
    PlannedGroup,
)
from largesse.stats import sample_rows

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TREE_ROWS = 20_000
MAX_TREE_DEPTH = 4
DESCRIPTION_DEPTH = 2  # conditions of a group that a sentence can hold
LOSS_FOLDS = 2
MAX_WORD_CONDITIONS, MAX_CUTS = 12, 12  # per text (most frequent words) and per number (quantiles)
MIN_SHARE = 0.01  # of customers in a leaf and on either side of a condition
PRICE_FACTORS = (0.0, 0.5, 1.0, 2.0)  # multiples of the policy's price, one tree each; the best tree is kept


@dataclass(frozen=True)
class Condition:
    """Condition on a feature: a number or date below a value, a text equal to a word, or (value None) missing.

    It is false for missing values, unless it asks for them.
    """

    feature: str
    kind: str  # "number", "date" or "text"
    value: float | str | None

    def holds(self, plain: Mapping[str, Array]) -> Array:
        """Return a mask (n,) of the customers who meet the condition."""
        column = plain[self.feature]
        if self.kind == "text":
            return np.array([word is None for word in column]) if self.value is None else column == self.value
        known = np.isfinite(column)
        return ~known if self.value is None else known & (np.where(known, column, 0.0) < self.value)

    def describe(self, holds: bool) -> str:
        """Describe in words the customers who meet, or do not meet, the condition."""
        if self.value is None or self.kind == "text":
            value = "missing" if self.value is None else repr(self.value)
            return f"{self.feature} is {'' if holds else 'not '}{value}"
        if self.kind == "date":
            day = datetime.fromtimestamp(float(self.value), UTC).date().isoformat()
            return f"{self.feature} {'before' if holds else 'not before'} {day}"
        return f"{self.feature} {'below' if holds else 'not below'} {self.value:g}"

    def to_sql(self, column: str, dialect: str) -> str:
        """Write the condition on a column as SQL."""
        if self.kind == "text":
            if self.value is None:
                return f"{column} IS NULL"
            text = str(self.value)
            return f"{column} = {sql.quote_sql_text(text)}" if sql.can_store_text(dialect, text) else "1 = 0"
        if self.value is None:
            return f"({column} IS NULL OR NOT ({column} BETWEEN -{sql.MAX_FLOAT64_SQL} AND {sql.MAX_FLOAT64_SQL}))"
        return f"{column} >= -{sql.MAX_FLOAT64_SQL} AND {column} < {sql.write_float_literal(float(self.value))}"


@dataclass(frozen=True)
class Leaf:
    """Leaf of a policy tree: a group of customers with its level, mean response and mean cost."""

    level: int = 0
    share: float = 0.0  # of customers
    response: float = 0.0  # expected on average
    cost: float = 0.0


@dataclass(frozen=True)
class Split:
    """Inner node of a policy tree: a condition and two child nodes."""

    condition: Condition
    yes: Node
    no: Node


Node: TypeAlias = Leaf | Split
Path: TypeAlias = tuple[tuple[Condition, bool], ...]  # conditions from the root, and whether they hold


@dataclass(frozen=True)
class TreeFidelity:
    """Value and spend per customer of a policy and its tree, and the loss of value − shadow price × spend."""

    policy_value: Estimate
    policy_spend: Estimate
    tree_value: Estimate
    tree_spend: Estimate
    loss: Estimate
    same: float  # share of customers who get the same level from both
    rows: int


@dataclass(frozen=True, eq=False)
class PolicyTree(DisplayMixin):
    """Decision tree of a few conditions that approximates a policy, with its loss against the policy."""

    tree: Node
    levels: Levels
    kinds: Mapping[str, Any]  # of the features in its conditions
    price: float
    budget: float  # limit of the average expected cost
    expected: TreeFidelity  # by the model, on customers outside of the tree's training data
    held_out: TreeFidelity | None = None  # by doubly robust scores, on held-out rows of a log

    def __repr__(self) -> str:
        return f"PolicyTree({len(list_leaves(self.tree))} groups by {', '.join(self.kinds) or 'nothing'})"

    def __str__(self) -> str:
        return "\n".join([*self._write_lines(self.tree, ""), "", *self.describe()])

    def decide(self, customers: Any) -> Array:
        """Return the level (n,) of each customer by the tree.

        Customers are `Customers`, a `Log` or a table with the features of the conditions.
        """
        table = customers.features if isinstance(customers, Customers | Log) else make_feature_table(customers)
        require_customer_columns(table.column_names, tuple(self.kinds))
        return apply_tree(self.tree, make_raw_arrays(table, self.kinds), table.num_rows)

    def to_sql(
        self, dialect: str = "duckdb", *, table: str | Sequence[str] = "customers", customer: str | None = "customer"
    ) -> str:
        """Return a SELECT query that decides like this tree, with each group's mean response and cost.

        `Policy.to_sql` describes the arguments.
        """
        path = sql.check_sql_names(dialect, table, customer, self.kinds)
        read = {"number": sql.cast_to_float, "date": sql.cast_to_seconds, "text": sql.cast_to_text}
        columns = {name: f"f{j}" for j, name in enumerate(self.kinds)}
        first = [
            f"{read[kind](f'customers.{sql.quote_sql_name(name)}')} AS {columns[name]}"
            for name, kind in self.kinds.items()
        ]
        leaves = [leaf for _, leaf in list_leaves(self.tree)]
        numbers = iter(range(len(leaves)))

        def write_node(node: Node) -> str:
            if isinstance(node, Leaf):
                return str(next(numbers))
            condition = node.condition.to_sql(columns[node.condition.feature], dialect)
            return f"CASE WHEN {condition} THEN {write_node(node.yes)} ELSE {write_node(node.no)} END"

        second = [f"{write_node(self.tree)} AS leaf"]
        answers = {
            "level": [sql.quote_sql_text(self.levels.labels[leaf.level]) for leaf in leaves],
            "level_number": [str(leaf.level) for leaf in leaves],
            "expected_response": [sql.write_float_literal(leaf.response) for leaf in leaves],
            "expected_cost": [sql.write_float_literal(leaf.cost) for leaf in leaves],
        }
        last = [
            f"CASE leaf {' '.join(f'WHEN {j} THEN {answer}' for j, answer in enumerate(values))} END AS {sql.quote_sql_name(name)}"
            for name, values in answers.items()
        ]
        if customer is not None:
            first.insert(0, f"customers.{sql.quote_sql_name(customer)} AS id")
            second.insert(0, "id")
            last.insert(0, f"id AS {sql.quote_sql_name(customer)}")
        source = ".".join(map(sql.quote_sql_name, path))
        inner = f"SELECT {', '.join(first or ['1 AS nothing'])} FROM {source} AS customers"  # noqa: S608 -- names are quoted
        outer = f"SELECT {', '.join(second)} FROM t0"  # noqa: S608
        query = f"WITH t0 AS ({inner}),\nt1 AS ({outer})\nSELECT {', '.join(last)}\nFROM t1"
        return sql.translate_sql(query, dialect)

    def describe(self) -> list[str]:
        """Describe the value and the loss of the tree in sentences."""
        by_model = self.expected
        lines = [
            f"Expected on {by_model.rows:,} customers that the tree was not learnt from: response "
            f"{by_model.tree_value.estimate:.4g} at a cost of {by_model.tree_spend.estimate:.4g} (the policy: "
            f"{by_model.policy_value.estimate:.4g} at {by_model.policy_spend.estimate:.4g}). "
            f"{percent(by_model.same)} get the same level. Loss of response − price × cost per customer: "
            f"{_format_number(by_model.loss.estimate)}.",
        ]
        if self.held_out is not None:
            held_out = self.held_out
            lines.append(
                f"On {held_out.rows:,} held-out rows of the log: value {_format_estimate(held_out.tree_value)} at a spend of "
                f"{held_out.tree_spend.estimate:.4g}; the policy: {_format_estimate(held_out.policy_value)} at "
                f"{held_out.policy_spend.estimate:.4g}. Loss of value − price × spend per customer: {_format_estimate(held_out.loss)}. "
                "Models that did not learn from these rows decide here, at the policy's price: they may spend more or less "
                "than the policy itself."
            )
        return lines

    def card(self) -> Card:
        """Return a display card of the tree's customer groups, levels and loss."""
        head = ("customers whose", "get", "share", "expected response", "expected cost")
        rows = [tuple((row | {"share": percent(row["share"], 1)}).values()) for row in self._tabulate_groups()]
        return Card("Policy tree", head, rows, self.describe())

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with a row for each group of customers."""
        import pyarrow as pa

        return pa.Table.from_pylist(self._tabulate_groups())

    def _tabulate_groups(self) -> list[dict[str, Any]]:
        return [
            {
                "conditions": " and ".join(condition.describe(holds) for condition, holds in path) or "all",
                "level": self.levels.labels[leaf.level],
                "share": leaf.share,
                "expected_response": leaf.response,
                "expected_cost": leaf.cost,
            }
            for path, leaf in list_leaves(self.tree)
        ]

    def _write_lines(self, node: Node, indent: str) -> list[str]:
        if isinstance(node, Leaf):
            return [f"{indent}{self.levels.titles[node.level]} ({percent(node.share, 1)} of customers)"]
        return [
            f"{indent}if {node.condition.describe(True)}:",
            *self._write_lines(node.yes, indent + "    "),
            f"{indent}else ({node.condition.describe(False)}):",
            *self._write_lines(node.no, indent + "    "),
        ]


def _format_number(number: float) -> str:
    return f"{number:.3g}".replace("-", "−")


def _format_estimate(estimate: Estimate) -> str:
    if not (np.isfinite(estimate.low) and np.isfinite(estimate.high)):
        return f"{estimate.estimate:.4g} (no interval: too few responses)"
    return f"{estimate.estimate:.4g} (95 % interval {_format_number(estimate.low)} to {_format_number(estimate.high)})"


def apply_tree(node: Node, plain: Mapping[str, Array], n_rows: int) -> Array:
    """Apply a tree to n rows of raw features; return the level (n,) of each row."""
    if isinstance(node, Leaf):
        return np.full(n_rows, node.level, dtype=np.int64)
    return np.where(
        node.condition.holds(plain), apply_tree(node.yes, plain, n_rows), apply_tree(node.no, plain, n_rows)
    )


def list_leaves(node: Node, path: Path = ()) -> list[tuple[Path, Leaf]]:
    """Return every leaf of a tree with the conditions on its path."""
    if isinstance(node, Leaf):
        return [(path, node)]
    sides = ((node.yes, True), (node.no, False))
    return [leaf for side, holds in sides for leaf in list_leaves(side, (*path, (node.condition, holds)))]


# -- learning -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeSettings:
    """Settings of a policy tree's fit: depth, budget, shadow price and seed."""

    depth: int
    budget: float | None  # None: the policy's cost
    price: float
    seed: int

    def check(self, folds: Any) -> None:
        """Validate the tree's settings and the number of a log's folds."""
        problems = [*find_integer_problems(folds, "folds", least=2), *find_integer_problems(self.seed, "the seed")]
        if isinstance(self.depth, bool) or not isinstance(self.depth, int) or not 1 <= self.depth <= MAX_TREE_DEPTH:  # type: ignore[redundant-expr]
            hint = f"give a whole number from 1 to {MAX_TREE_DEPTH}; 2 or 3 can be read"
            problems.append(Problem(f"depth is {repr_short(self.depth)}", hint))
        refuse("policy tree", problems + ([] if self.budget is None else find_budget_problems(self.budget)))


@dataclass(frozen=True, eq=False)
class TreeData:
    """Training data of a policy tree: raw features, and the response and cost of every level, per customer."""

    plain: dict[str, Array]
    kinds: dict[str, Any]
    value: Array  # (n, K)
    cost: Array  # (n, K)

    def take(self, rows: Array) -> TreeData:
        """Return the training data of some rows."""
        plain = {name: column[rows] for name, column in self.plain.items()}
        return TreeData(plain, self.kinds, self.value[rows], self.cost[rows])

    def average_outcomes(self, levels: Array) -> tuple[float, float]:
        """Return the mean response and the mean cost of customers at given levels (n,)."""
        rows = np.arange(len(levels))
        return float(self.value[rows, levels].mean()), float(self.cost[rows, levels].mean())


def make_tree_data(encoder: Encoder, customers: Any, curves: Array, costs: Array, seed: int) -> TreeData:
    """Make a policy tree's training data from the customers, or from a random sample if they are many."""
    table = customers.features if isinstance(customers, Customers | Log) else make_feature_table(customers)
    if len(curves) < 2 * LOSS_FOLDS:
        fail("policy tree", Problem(f"there are {len(curves)} customers", "give a few hundred at least"))
    rows = sample_rows(len(curves), MAX_TREE_ROWS, seed)
    wide = np.broadcast_to(costs, curves.shape)
    return TreeData(encoder.read_raw_features(table.take(rows)), dict(encoder.kinds), curves[rows], wide[rows])


def make_policy_tree(
    levels: Levels, data: TreeData, held: OutOfFoldPolicy | None, settings: TreeSettings
) -> PolicyTree:
    """Fit a policy tree and measure its loss, on held-out customers and on held-out rows of a log."""
    tree, budget = learn_tree(data, settings)
    used = {condition.feature for path, _ in list_leaves(tree) for condition, _ in path}
    kinds = {name: kind for name, kind in data.kinds.items() if name in used}
    held_out = None if held is None else _measure_held_out_loss(held, data.kinds, settings)
    return PolicyTree(tree, levels, kinds, settings.price, budget, _measure_expected_loss(data, settings), held_out)


def learn_tree(data: TreeData, settings: TreeSettings) -> tuple[Node, float]:
    """Fit the tree with the best net value within the budget; return the tree and the budget."""
    chosen = decide_at_price(data.value, np.ascontiguousarray(data.cost), settings.price)
    budget = data.average_outcomes(chosen)[1] if settings.budget is None else settings.budget
    conditions = list_candidate_conditions(data.plain, data.kinds)
    holds = np.array([condition.holds(data.plain) for condition in conditions], dtype=np.float32)
    holds = holds.reshape(len(conditions), -1).T
    net, best = data.value - settings.price * data.cost, None
    for factor in PRICE_FACTORS if settings.price > 0 else (0.0,):
        grown = _grow_tree(conditions, holds, data.value - factor * settings.price * data.cost, settings)
        try:
            tree = _assign_leaf_levels(grown, data, settings.price, budget)
        except BudgetError:
            continue
        levels = apply_tree(tree, data.plain, len(net))
        worth = float(net[np.arange(len(net)), levels].mean())
        if best is None or worth > best[0] + 1e-12 * abs(best[0]):
            best = worth, tree
    return (_assign_leaf_levels(Leaf(), data, settings.price, budget) if best is None else best[1]), budget


def list_candidate_conditions(columns: Mapping[str, Array], kinds: Mapping[str, str]) -> list[Condition]:
    """Return the candidate splits of a tree: conditions that neither too few nor too many customers meet."""
    conditions = []
    for name, kind in kinds.items():
        column, values = columns[name], []
        if kind == "text":
            counts = Counter(word for word in column if word is not None)
            values = sorted(counts, key=lambda word: (-counts[word], word))[:MAX_WORD_CONDITIONS]
        elif len(known := column[np.isfinite(column)]):
            cuts = np.quantile(known, np.arange(1, MAX_CUTS + 1) / (MAX_CUTS + 1))
            rounded = (
                np.ceil(cuts / SECONDS_PER_DAY) * SECONDS_PER_DAY
                if kind == "date"
                else [float(f"{cut:.3g}") for cut in cuts]
            )
            # All quantiles of a 0/1 feature are 0 or 1; 1 splits it.
            values = sorted({float(cut) for cut in rounded} | ({1.0} if set(known) == {0.0, 1.0} else set()))
        conditions += [Condition(name, kind, value) for value in (*values, None)]
    shares = [float(condition.holds(columns).mean()) for condition in conditions]
    return [
        condition for condition, share in zip(conditions, shares, strict=True) if MIN_SHARE <= share <= 1 - MIN_SHARE
    ]


def _grow_tree(conditions: Sequence[Condition], holds: Array, net: Array, settings: TreeSettings) -> Node:
    """Grow a tree's splits with scikit-learn, fitted to each level's net value (n, K) relative to the mean."""
    from sklearn.tree import DecisionTreeRegressor

    if not conditions:
        return Leaf()
    least = max(round(MIN_SHARE * len(net)), 1)
    model = DecisionTreeRegressor(max_depth=settings.depth, min_samples_leaf=least, random_state=0)
    tree = model.fit(holds, net - net.mean(axis=1, keepdims=True)).tree_

    def convert_node(node: int) -> Node:
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            return Leaf()
        return Split(conditions[int(tree.feature[node])], convert_node(right), convert_node(left))  # holds: 1 > 0.5

    return convert_node(0)


def _assign_leaf_levels(grown: Node, data: TreeData, price: float, budget: float) -> Node:
    """Assign to each leaf of a tree the level with the best net value within the budget."""
    paths, n = [path for path, _ in list_leaves(grown)], len(data.value)
    leaf = np.zeros(n, dtype=np.int64)
    for number, path in enumerate(paths):
        in_leaf = np.ones(n, dtype=bool)
        for condition, holds in path:
            in_leaf &= condition.holds(data.plain) == holds
        leaf[in_leaf] = number
    share = np.bincount(leaf, minlength=len(paths)) / n
    value, cost = (
        np.stack([np.bincount(leaf, weights=column, minlength=len(paths)) for column in table.T], axis=1) / n
        for table in (data.value, data.cost)
    )
    levels = allocate(value - price * cost, cost, total=budget * (1 + 1e-12), exact=True).levels
    size, rows = np.maximum(share, 1e-300), np.arange(len(paths))
    means = share, value[rows, levels] / size, cost[rows, levels] / size
    leaves = iter([Leaf(int(level), *map(float, mean)) for level, *mean in zip(levels, *means, strict=True)])

    def fill_node(node: Node) -> Node:
        if isinstance(node, Leaf):
            return next(leaves)
        yes, no = fill_node(node.yes), fill_node(node.no)
        if not (isinstance(yes, Leaf) and isinstance(no, Leaf) and yes.level == no.level):
            return Split(node.condition, yes, no)
        total = yes.share + no.share  # both sides get the same level: drop the condition
        response, spend = (
            (yes.share * a + no.share * b) / max(total, 1e-300)
            for a, b in ((yes.response, no.response), (yes.cost, no.cost))
        )
        return Leaf(yes.level, total, response, spend)

    return fill_node(grown)


def describe_planned_groups(
    encoder: Encoder, features: pa.Table, levels: Array, seed: int = 0
) -> tuple[PlannedGroup, ...]:
    """Summarise a plan's levels (n,) by a few groups of customers, in descending order of size.

    The tree has the level of as many customers as possible; customers with another level are counted.
    """
    rows = sample_rows(len(levels), MAX_TREE_ROWS, seed)
    if len(rows) < 2 * LOSS_FOLDS:
        return ()
    same = np.eye(int(levels.max()) + 1)[levels[rows]]  # of a level, how many of its customers have it
    data = TreeData(encoder.read_raw_features(features.take(rows)), dict(encoder.kinds), same, np.zeros(same.shape))
    tree, _ = learn_tree(data, TreeSettings(DESCRIPTION_DEPTH, None, 0.0, seed))
    groups = [
        PlannedGroup(
            tuple(_make_group_condition(condition, holds, data.plain) for condition, holds in path),
            leaf.share,
            leaf.level,
            leaf.response,
        )
        for path, leaf in list_leaves(tree)
    ]
    return tuple(sorted(groups, key=lambda group: -group.share))


def _make_group_condition(condition: Condition, holds: bool, plain: Mapping[str, Array]) -> GroupCondition:
    """Convert a tree's condition to a `GroupCondition` record."""
    value, kind, column = condition.value, condition.kind, plain[condition.feature]
    if kind == "text" or value is None:
        return GroupCondition(condition.feature, kind, holds, word=value if isinstance(value, str) else None)
    known = np.isfinite(column)
    kind = "flag" if kind == "number" and set(column[known]) <= {0.0, 1.0} else kind
    return GroupCondition(condition.feature, kind, holds, float(value), or_missing=not holds and not known.all())


# -- loss -----------------------------------------------------------------------------------------------------------------


def _measure_expected_loss(data: TreeData, settings: TreeSettings) -> TreeFidelity:
    """Measure a tree's expected loss by the response model, cross-fitted over folds of customers.

    Each fold is decided by a tree learnt from the other customers.
    """
    n = len(data.value)
    fold_of_row = np.random.default_rng(settings.seed).permutation(n) % LOSS_FOLDS
    policy = decide_at_price(data.value, np.ascontiguousarray(data.cost), settings.price)
    levels = np.empty(n, dtype=np.int64)
    for fold in range(LOSS_FOLDS):
        in_fold = fold_of_row == fold
        tree, _ = learn_tree(data.take(~in_fold), settings)
        levels[in_fold] = apply_tree(tree, data.take(in_fold).plain, int(in_fold.sum()))
    value, spend, tree_value, tree_spend = (*data.average_outcomes(policy), *data.average_outcomes(levels))
    loss = (value - tree_value) - settings.price * (spend - tree_spend)
    means = (Estimate(mean, np.nan, np.nan, np.nan) for mean in (value, spend, tree_value, tree_spend, loss))
    return TreeFidelity(*means, float((policy == levels).mean()), n)  # type: ignore[call-arg, arg-type]


def _measure_held_out_loss(held: OutOfFoldPolicy, kinds: dict[str, Any], settings: TreeSettings) -> TreeFidelity:
    """Measure a tree's loss on held-out rows of a log by doubly robust scores.

    Each fold's tree is learnt from curves of a model fitted without the fold.
    """
    scores = held.scores
    plain = make_raw_arrays(held.customers.features, kinds)
    data = TreeData(plain, kinds, scores.curves, scores.expected_costs)
    levels = np.empty(len(held.levels), dtype=np.int64)
    for fold in np.unique(scores.fold):
        rows = np.flatnonzero(scores.fold == fold)
        budget = data.take(rows).average_outcomes(held.levels[rows])[1] if settings.budget is None else settings.budget
        sample = rows[sample_rows(len(rows), MAX_TREE_ROWS, settings.seed)]
        tree, _ = learn_tree(data.take(sample), replace(settings, budget=budget))
        levels[rows] = apply_tree(tree, data.take(rows).plain, len(rows))
    net = replace(scores, gamma=scores.gamma - settings.price * scores.costs)
    loss = estimate_policy_difference(net, held.levels, levels).value
    values = (*estimate_policy_value_and_spend(scores, held.levels), *estimate_policy_value_and_spend(scores, levels))
    return TreeFidelity(*values, loss, same=float((held.levels == levels).mean()), rows=len(levels))
