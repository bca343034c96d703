from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse.errors import InputError
from largesse.levels import Levels
from largesse.policy import Policy, PolicyTree
from largesse.policy.policy_tree import (
    Condition,
    Leaf,
    Split,
    TreeData,
    TreeSettings,
    apply_tree,
    learn_tree,
    list_leaves,
)
from largesse.response import Linear
from support.exports import draw_log, expect, make_policy, odd_customers, run_duckdb

pytest.importorskip("duckdb", reason="DuckDB is not installed")


@pytest.mark.parametrize("budget", [0.2, 0.8, 1.5])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_tree_keeps_its_budget_and_its_depth(budget: float, depth: int) -> None:
    rng = np.random.default_rng(1)
    plain = {f"x{j}": rng.random(200) for j in range(6)}
    value = np.cumsum(rng.exponential(size=(200, 3)) * rng.integers(0, 2, (200, 1)), axis=1)
    data = TreeData(plain, dict.fromkeys(plain, "number"), value, np.tile(np.arange(3.0), (200, 1)))
    tree, _ = learn_tree(data, TreeSettings(depth, budget, 0.3, 0))
    levels = apply_tree(tree, plain, 200)
    assert levels.mean() <= budget * (1 + 1e-9)
    assert max(len(path) for path, _ in list_leaves(tree)) <= depth
    assert sum(leaf.share for _, leaf in list_leaves(tree)) == pytest.approx(1.0)
    assert sum(leaf.share * leaf.cost for _, leaf in list_leaves(tree)) == pytest.approx(levels.mean())


def test_a_policy_that_is_a_rule_is_found_again() -> None:
    rng = np.random.default_rng(0)
    old, city = rng.random(600) < 0.5, rng.integers(0, 3, 600)
    best = old & (city == 1)
    plain = {"age": np.where(old, 60.0, 30.0), "city": np.array(["a", "b", "c"], dtype=object)[city]}
    data = TreeData(
        plain,
        {"age": "number", "city": "text"},
        np.column_stack([np.zeros(600), best * 1.0]),
        np.tile([0.0, 1.0], (600, 1)),
    )
    tree, _ = learn_tree(data, TreeSettings(2, 0.3, 0.5, 0))
    assert np.array_equal(apply_tree(tree, plain, 600), best.astype(int))


def test_a_tree_says_what_it_loses() -> None:
    policy, log = make_policy("boosting"), draw_log()
    tree = policy.to_tree(log, depth=2, folds=2)
    assert tree.expected.loss.estimate >= -1e-9
    assert tree.expected.tree_spend.estimate < tree.expected.policy_spend.estimate * 1.1
    assert tree.held_out is not None
    assert tree.held_out.rows == len(log)
    assert tree.held_out.loss.low < tree.held_out.loss.estimate < tree.held_out.loss.high
    assert tree.describe()[-1].count("95 % interval") == 3  # of the tree, of the policy, and of the loss
    deeper = policy.to_tree(log.features, depth=3)
    assert deeper.held_out is None
    assert deeper.expected.loss.estimate <= tree.expected.loss.estimate + 0.01
    assert np.array([0, 5, 10, 20])[deeper.decide(log)].mean() <= deeper.budget + 1e-9
    assert deeper.budget == pytest.approx(expect(policy, log)[2].mean())


@pytest.fixture(scope="module")
def odd_tree() -> PolicyTree:
    return make_policy("linear").to_tree(odd_customers(), depth=3)


def test_databases_decide_like_the_tree(odd_tree: PolicyTree) -> None:
    table = odd_customers()
    found = run_duckdb(odd_tree.to_sql("duckdb"), table)
    assert np.array_equal(np.asarray(found["level_number"]), odd_tree.decide(table))
    assert len(np.unique(odd_tree.decide(table))) > 1
    for dialect in ("postgresql", "spark"):
        assert odd_tree.to_sql(dialect, customer=None).startswith("WITH t0 AS")


def test_a_tree_of_every_kind_of_condition_is_the_same_in_a_database(odd_tree: PolicyTree) -> None:
    day = float(np.datetime64("2023-05-01").astype("datetime64[s]").astype(int))
    conditions = [
        Condition("age", "number", 45.0),
        Condition("age", "number", None),
        Condition("group by", "text", "O'Brien\\town"),
        Condition("group by", "text", None),
        Condition("since", "date", day),
        Condition("since", "date", None),
        Condition("member", "number", 1.0),
    ]
    table, kinds = odd_customers(), {"age": "number", "group by": "text", "since": "date", "member": "number"}
    for first, second in product(conditions, conditions[:2]):
        nodes = Split(first, Leaf(0), Split(second, Leaf(1), Leaf(2)))
        made = PolicyTree(nodes, odd_tree.levels, kinds, odd_tree.price, odd_tree.budget, odd_tree.expected)
        found = run_duckdb(made.to_sql("duckdb"), table)
        assert np.array_equal(np.asarray(found["level_number"]), made.decide(table))
        assert first.describe(True) in str(made)


def test_a_tree_can_be_read_and_invalid_arguments_are_refused(odd_tree: PolicyTree) -> None:
    assert str(odd_tree).startswith("if ")
    assert "of customers" in str(odd_tree)
    assert odd_tree.to_arrow().num_rows == len(list_leaves(odd_tree.tree))
    assert "DROP TABLE customers; --</" not in odd_tree._repr_html_()
    assert Policy.to_score_card is Policy.to_tree
    with pytest.raises(InputError, match="table"):
        odd_tree.decide(pa.table({"x": [1.0]}))
    policy = make_policy("linear")
    with pytest.raises(InputError, match="depth is 9"):
        policy.to_tree(odd_customers(), depth=9)
    with pytest.raises(InputError, match="there are 1 customers"):
        policy.to_tree(odd_customers().slice(0, 1))


def test_costs_per_customer_are_kept_within_the_budget() -> None:
    levels = Levels(costs=["cost a", 'cost "b"', "order"])
    log: Any = draw_log("yes or no", levels)
    policy = Policy(Linear(penalty=0.01).fit(log), levels).calibrate(log, 6.0)
    tree = policy.to_tree(log, depth=2, folds=2)
    spend = log.costs[np.arange(len(log)), tree.decide(log)].mean()
    assert spend <= tree.budget * (1 + 1e-9)
