from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from tests.helpers.exports import draw_log, expect, make_policy, odd_customers, run_duckdb

from largesse.errors import InputError
from largesse.levels import Levels
from largesse.policy import Policy
from largesse.policy.card_tree import PRICES, Leaf, Rows, Split, _best_two, follow, learn_tree, list_leaves
from largesse.policy.conditions import Condition, list_conditions
from largesse.records import Array
from largesse.response import Linear

DIALECT = pytest.importorskip("duckdb", reason="DuckDB is not installed")


def random_rows(seed: int, n: int = 60, S: int = 6, K: int = 3) -> Rows:
    rng = np.random.default_rng(seed)
    value = np.cumsum(rng.exponential(size=(n, K)) * rng.integers(0, 2, (n, 1)), axis=1)
    return Rows(rng.random((n, S)) < 0.5, value, np.tile(np.arange(K) * 1.0, (n, 1)), least=3.0)


def best_by_trying(rows: Rows, price: float) -> float:
    """Return what the best tree of depth two brings: every tree is tried."""
    worth, holds = rows.value - price * rows.cost, rows.holds
    n, S = holds.shape
    best = worth.sum(axis=0).max()

    def leaf(mine: Array) -> float:
        return float(worth[mine].sum(axis=0).max())

    def side(mine: Array) -> float:
        found = [leaf(mine)]
        for t in range(S):
            a, b = mine & holds[:, t], mine & ~holds[:, t]
            if min(a.sum(), b.sum()) >= rows.least:
                found.append(leaf(a) + leaf(b))
        return max(found)

    for s in range(S):
        yes = holds[:, s]
        if min(yes.sum(), n - yes.sum()) >= rows.least:
            best = max(best, side(yes) + side(~yes))
    return float(best)


@pytest.mark.parametrize("seed", range(5))
def test_two_conditions_are_the_best_of_all_pairs(seed: int) -> None:
    rows = random_rows(seed)
    for price in (0.0, 0.5, 1.5):
        first, (yes, no) = _best_two(rows, price, depth=2)
        worth = rows.value - price * rows.cost
        parts = [np.ones(len(worth), dtype=bool)]
        if first >= 0:
            true = rows.holds[:, first]
            parts = [
                part
                for mine, then in ((true, yes), (~true, no))
                for part in ([mine] if then < 0 else [mine & rows.holds[:, then], mine & ~rows.holds[:, then]])
            ]
        found = sum(float(worth[part].sum(axis=0).max()) for part in parts)
        assert found == pytest.approx(best_by_trying(rows, price))


@pytest.mark.parametrize("budget", [0.2, 0.8, 1.5])
def test_a_tree_keeps_its_budget(budget: float) -> None:
    rows = random_rows(1, n=200)
    conditions = [Condition(f"x{j}", "number", 0.5) for j in range(6)]
    for depth in (1, 2, 3):
        tree, levels = learn_tree(rows, conditions, depth, 0.3, budget)
        assert rows.cost[np.arange(200), levels].mean() <= budget * (1 + 1e-9)
        assert max(len(path) for path, _ in list_leaves(tree)) <= depth
        plain = {f"x{j}": np.where(rows.holds[:, j], 0.0, 1.0) for j in range(6)}
        assert np.array_equal(follow(tree, plain, 200), levels)
        shares = [leaf.share for _, leaf in list_leaves(tree)]
        assert sum(shares) == pytest.approx(1.0)
    assert 1.0 in PRICES


def test_a_policy_that_is_a_rule_is_found_again() -> None:
    rng = np.random.default_rng(0)
    old, city = rng.random(600) < 0.5, rng.integers(0, 3, 600)
    level = rng.integers(0, 2, 600)
    gain = 0.8 * (level * (old & (city == 1)))
    table = pa.table({"age": np.where(old, 60.0, 30.0), "city": np.array(["a", "b", "c"], dtype=object)[city]})
    value = np.column_stack([np.zeros(600), np.where(old & (city == 1), 1.0, 0.0)])
    plain = {"age": table["age"].to_numpy(), "city": np.array(table["city"].to_pylist(), dtype=object)}
    conditions = list_conditions(plain, {"age": "number", "city": "text"})
    rows = Rows(np.stack([one.holds(plain) for one in conditions], axis=1), value, np.tile([0.0, 1.0], (600, 1)), 6.0)
    _, levels = learn_tree(rows, conditions, 2, 0.5, 0.3)
    assert np.array_equal(levels, (old & (city == 1)).astype(int))
    assert gain.max() > 0


def test_a_card_says_what_it_loses() -> None:
    policy, log = make_policy("boosting"), draw_log()
    card = policy.to_score_card(log, depth=2, folds=2)
    assert card.promised.loss >= -1e-9
    assert card.promised.card_cost < card.promised.policy_cost * 1.1
    assert card.honest is not None
    assert card.honest.rows == len(log)
    assert card.honest.loss.low < card.honest.loss.estimate < card.honest.loss.high
    assert card.words()[-1].count("95 % interval") == 3  # of the card, of the policy, and of what is lost
    assert "they may spend more or less than the policy itself" in str(card)
    deeper = policy.to_score_card(log.features, depth=3)
    assert deeper.honest is None
    assert deeper.promised.loss <= card.promised.loss + 0.01
    own = deeper.decide(log)
    cost = np.array([0, 5, 10, 20])[own].mean()
    assert cost <= deeper.budget + 1e-9
    assert deeper.budget == pytest.approx(expect(policy, log)[2].mean())


@pytest.fixture(scope="module")
def odd_card() -> object:
    return make_policy("linear").to_score_card(odd_customers(), depth=3)


def test_databases_decide_like_the_card(odd_card) -> None:
    table = odd_customers()
    found = run_duckdb(odd_card.to_sql("duckdb"), table)
    assert np.array_equal(np.asarray(found["level_number"]), odd_card.decide(table))
    assert len(np.unique(odd_card.decide(table))) > 1
    for dialect in ("postgresql", "spark", "bigquery"):
        assert odd_card.to_sql(dialect, customer=None).startswith("WITH t0 AS")


def test_a_card_of_every_kind_of_condition_is_the_same_in_a_database() -> None:
    day = float(np.datetime64("2023-05-01").astype("datetime64[s]").astype(int))
    conditions = [
        Condition("age", "number", 45.0, gaps=True),
        Condition("age", "number", None),
        Condition("group by", "text", "O'Brien\\town"),
        Condition("group by", "text", None),
        Condition("since", "date", day),
        Condition("since", "date", None),
        Condition("member", "number", 1.0, whether=True),
    ]
    table = odd_customers()
    card = make_policy("linear").to_score_card(table, depth=1)
    kinds = {"age": "number", "group by": "text", "since": "date", "member": "number"}
    for one, other in product(conditions, conditions[:2]):
        tree = Split(one, Leaf(0), Split(other, Leaf(1), Leaf(2)))
        made = type(card)(tree, card.levels, kinds, card.price, card.budget, card.promised)
        found = run_duckdb(made.to_sql("duckdb"), table)
        assert np.array_equal(np.asarray(found["level_number"]), made.decide(table))
        assert one.words(True) in str(made)


def test_a_card_can_be_read(odd_card) -> None:
    assert str(odd_card).startswith("if ")
    assert "of customers" in str(odd_card)
    page = odd_card.to_html()
    assert "<script" not in page
    assert "DROP TABLE customers; --</" not in page or "&#x27;" in page
    assert odd_card.to_arrow().num_rows == len(list_leaves(odd_card.tree))
    assert "Score card" in odd_card._repr_html_()


def test_what_makes_no_card_is_refused() -> None:
    policy = make_policy("linear")
    with pytest.raises(InputError, match="depth is 9"):
        policy.to_score_card(odd_customers(), depth=9)
    with pytest.raises(InputError, match="there are 1 customers"):
        policy.to_score_card(odd_customers().slice(0, 1))
    with pytest.raises(InputError, match="is not in the table"):
        policy.to_score_card(odd_customers(), depth=3).decide(pa.table({"x": [1.0]}))


def test_costs_per_customer_are_kept_within_the_budget() -> None:
    levels = Levels(costs=["cost a", 'cost "b"', "order"])
    log = draw_log("yes or no", levels)
    policy = Policy(Linear(penalty=0.01).fit(log), levels).calibrate(log, 6.0)
    card = policy.to_score_card(log, depth=2, folds=2)
    assert log.costs is not None
    spend = log.costs[np.arange(len(log)), card.decide(log)].mean()
    assert spend <= card.budget * (1 + 1e-9)
