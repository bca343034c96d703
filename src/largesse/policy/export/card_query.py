"""The query of a score card: its conditions as nested CASEs, in every dialect exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from largesse.policy.card_tree import Leaf, Node, list_leaves
from largesse.policy.conditions import Condition
from largesse.policy.export.dialects import LARGEST, Dialect, find_dialect
from largesse.policy.export.layers import OUTPUT
from largesse.policy.export.query import check_names


def card_sql(card: Any, dialect: str, table: str | Sequence[str], customer: str | None) -> str:
    """Return one SELECT that decides like a score card."""
    known = find_dialect(dialect)
    path = check_names(known, table, customer, card.kinds)
    quote = known.quote_name
    reading = {"number": known.as_float, "date": known.as_seconds, "text": known.as_text}
    columns = {name: f"f{j}" for j, name in enumerate(card.kinds)}
    first = [f"{reading[kind](f'customers.{quote(name)}')} AS {columns[name]}" for name, kind in card.kinds.items()]
    tree = _Writer(known, columns).write(card.tree, count())
    leaves = [leaf for _, leaf in list_leaves(card.tree)]
    whole = "INT64" if known.name == "bigquery" else "INTEGER"
    answers = (
        [known.quote_text(card.levels.labels[leaf.level]) for leaf in leaves],
        [f"CAST({leaf.level} AS {whole})" for leaf in leaves],
        [known.number(leaf.response) for leaf in leaves],
        [known.number(leaf.cost) for leaf in leaves],
    )
    last = [
        f"CASE leaf {' '.join(f'WHEN {j} THEN {answer}' for j, answer in enumerate(own))} END AS {quote(name)}"
        for own, name in zip(answers, OUTPUT, strict=True)
    ]
    second = [f"{tree} AS leaf"]
    if customer is not None:
        first.insert(0, f"customers.{quote(customer)} AS id")
        second.insert(0, "id")
        last.insert(0, f"id AS {quote(customer)}")
    source = ".".join(quote(part) for part in path)
    steps = (
        _select(first or ["1 AS nothing"], f"{source} AS customers{known.fence}"),
        _select(second, f"t0{known.fence}"),
    )
    return "WITH " + ",\n".join(f"t{j} AS (\n  {step}\n)" for j, step in enumerate(steps)) + "\n" + _select(last, "t1")


def _select(columns: Sequence[str], source: str) -> str:
    return "SELECT " + ",\n    ".join(columns) + f"\n  FROM {source}"  # noqa: S608 -- names are quoted


class _Writer:
    """Writes a tree: the number of the leaf that a customer comes to."""

    def __init__(self, dialect: Dialect, columns: dict[str, str]) -> None:
        self.dialect, self.columns = dialect, columns

    def write(self, node: Node, numbers: Iterator[int], indent: str = "    ") -> str:
        if isinstance(node, Leaf):
            return str(next(numbers))
        deeper = indent + "  "
        yes, no = (self.write(side, numbers, deeper) for side in (node.yes, node.no))
        return f"CASE WHEN {self._condition(node.condition)}\n{deeper}THEN {yes}\n{deeper}ELSE {no} END"

    def _condition(self, condition: Condition) -> str:
        column = self.columns[condition.feature]
        if condition.kind == "text":
            if condition.value is None:
                return f"{column} IS NULL"
            text = str(condition.value)
            return f"{column} = {self.dialect.quote_text(text)}" if self.dialect.can_hold(text) else "1 = 0"
        least, most = self.dialect.number(-float(LARGEST)), self.dialect.number(float(LARGEST))
        if condition.value is None:
            return f"({column} IS NULL OR NOT ({column} BETWEEN {least} AND {most}))"
        return f"{column} >= {least} AND {column} < {self.dialect.number(float(condition.value))}"
