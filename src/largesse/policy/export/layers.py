"""Steps as one SQL query: columns are computed layer by layer, each layer a SELECT from the one before.

A number that is used once is written where it is used, any other becomes a column of a layer. A layer carries on only the
columns that a later one needs. Sums of trees keep their order, so that they have the same bits as the policy's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from largesse.errors import Problem, fail
from largesse.policy.export.curves import SCORE_CARD
from largesse.policy.export.dialects import LARGEST, Dialect
from largesse.policy.export.rule import Rule
from largesse.policy.export.values import Value

LONG = 2_000  # characters of an expression that is written where it is used
OUTPUT = ("level", "level_number", "expected_response", "expected_cost")
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
NAMES = {"max": "GREATEST", "min": "LEAST", "exp": "EXP", "log": "LN", "tanh": "TANH"}


@dataclass(frozen=True)
class Term:
    """An expression: its text, the columns it needs, and whether it may stand anywhere without brackets."""

    text: str
    needs: frozenset[str] = frozenset()
    whole: bool = True

    @property
    def inner(self) -> str:
        """The text as a part of another expression."""
        return self.text if self.whole else f"({self.text})"


@dataclass
class Layer:
    """Columns that are computed together, and what they need of the layers before."""

    columns: list[tuple[str, Term]] = field(default_factory=list)


class SqlWriter:
    """Writes values as columns of layers."""

    def __init__(self, rule: Rule, dialect: Dialect, steps: Mapping[str, WriteStep]) -> None:
        self.rule, self.dialect, self.steps = rule, dialect, steps
        self.source: dict[str, str] = {}  # column of the first layer → its expression
        self.joins: list[str] = []
        self.layers: list[Layer] = [Layer()]
        self.place: dict[str, int] = {}  # the layer of every column
        self.size = 0
        self.known: dict[int, list[Term]] = {}
        self.uses = _count_uses([rule.level, rule.response, rule.cost])

    # -- values -------------------------------------------------------------------------------------------------------

    def write(self, value: Value) -> list[Term]:
        """Return the expressions of a value's columns, each computed once."""
        if id(value) not in self.known:
            write = self.steps.get(value.step)
            terms = write(self, value) if write else self._elementwise(value)
            often = self.uses[id(value)] > 1
            self.known[id(value)] = [self.named(term) if often or len(term.text) > LONG else term for term in terms]
        return self.known[id(value)]

    def named(self, term: Term, *, early: bool = False) -> Term:
        """Return a column that holds an expression; a number or a column stays what it is.

        It goes into the last layer, close to where it is needed, or, if `early`, into the first that can compute it.
        """
        if not term.needs or term.text in term.needs:
            return term
        name = f"c{len(self.place)}"
        after = max((self.place[need] + 1 for need in term.needs if need in self.place), default=0)
        if after >= len(self.layers):
            self.layers.append(Layer())
        self.place[name] = after if early else len(self.layers) - 1
        self.layers[self.place[name]].columns.append((name, term))
        self.size += len(term.text)
        if self.size > self.dialect.most:
            _refuse_length(self.dialect)
        return Term(name, frozenset([name]))

    def number(self, number: float) -> str:
        """Return a number in this dialect."""
        return self.dialect.number(number)

    def _elementwise(self, value: Value) -> list[Term]:
        needs = [self._spread(one, value.width) for one in value.needs]
        return [self._combine(value.step, parts) for parts in zip(*needs, strict=True)]

    def _spread(self, value: Value, width: int) -> list[Term]:
        """Return the columns of a value, one column as many times as needed."""
        terms = self.write(value)
        if len(terms) == width:
            return terms
        return [self.named(terms[0])] * width

    def _combine(self, step: str, parts: Sequence[Term]) -> Term:
        needs = frozenset().union(*(part.needs for part in parts))
        if step in SIGNS:
            return Term(f" {SIGNS[step]} ".join(part.inner for part in parts), needs, whole=False)
        if step == "where_less":
            a, b, then, other = (part.inner for part in parts)
            return Term(f"CASE WHEN {a} < {b} THEN {then} ELSE {other} END", needs)
        return Term(f"{NAMES[step]}({', '.join(part.text for part in parts)})", needs)

    # -- sources ------------------------------------------------------------------------------------------------------

    def add_source(self, name: str, kind: Callable[[str], str]) -> Term:
        """Return the column of the first layer that holds a column of the table."""
        text = kind(f"customers.{self.dialect.quote_name(name)}")
        for column, known in self.source.items():
            if known == text:
                return Term(column, frozenset([column]))
        column = f"f{len(self.source)}"
        self.source[column] = text
        return Term(column, frozenset([column]))

    def add_joined(self, text: str) -> Term:
        """Return a column of the first layer that comes from a joined table."""
        column = f"f{len(self.source)}"
        self.source[column] = text
        return Term(column, frozenset([column]))

    # -- the query ----------------------------------------------------------------------------------------------------

    def finish(self, table: Sequence[str], customer: str | None, chosen: tuple[Term, Term, Term]) -> str:
        """Return the whole query."""
        quote = self.dialect.quote_name
        level, response, cost = (self.named(term) for term in chosen)
        guards = [self.write(value)[0] for value in self.rule.own_costs]
        used = frozenset().union(level.needs, response.needs, cost.needs, *(guard.needs for guard in guards))
        first = [f"{text} AS {name}" for name, text in self.source.items()]
        carried = [] if customer is None else ["id"]
        if customer is not None:
            first.insert(0, f"customers.{quote(customer)} AS id")
        source = ".".join(quote(part) for part in table)
        joins = "".join(f"\n  {line}" for line in self.joins)
        parts = [_select(first or ["1 AS nothing"], f"{source} AS customers{joins}", self.dialect.fence)]
        for j, (layer, kept) in enumerate(zip(self.layers, self._carried(used), strict=True)):
            kept = [*carried, *kept]
            own = [f"{term.text} AS {name}" for name, term in layer.columns]
            parts.append(_select([*kept, *own] or ["1 AS nothing"], f"t{j}", self.dialect.fence))
        kinds = [""] * (len(parts) - 1) + [self.dialect.kept]
        steps = ",\n".join(f"t{j} AS {kind}({part})" for j, (kind, part) in enumerate(zip(kinds, parts, strict=True)))
        text = f"WITH {steps}\n{self._last(customer, (level, response, cost), guards, len(parts) - 1)}"
        if len(text) > self.dialect.most:
            _refuse_length(self.dialect)
        return text

    def _carried(self, used: frozenset[str]) -> list[list[str]]:
        """Return, for every layer, the columns from before it that are needed after it."""
        later, needed = set(used), []
        for layer in reversed(self.layers):
            needed.append(frozenset(later))
            later.update(*(term.needs for _, term in layer.columns))
        before, kept = list(self.source), []
        for layer, later_needed in zip(self.layers, reversed(needed), strict=True):
            before = [name for name in before if name in later_needed]
            kept.append(before)
            before = [*before, *(name for name, _ in layer.columns)]
        return kept

    def _last(self, customer: str | None, chosen: tuple[Term, Term, Term], guards: Sequence[Term], layer: int) -> str:
        level, response, cost = chosen
        names = " ".join(
            f"WHEN {self.number(k)} THEN {self.dialect.quote_text(label)}" for k, label in enumerate(self.rule.labels)
        )
        whole = "INT64" if self.dialect.name == "bigquery" else "INTEGER"
        columns = [f"CASE {level.text} {names} END", f"CAST({level.text} AS {whole})", response.text, cost.text]
        if guards:
            zero, most = self.number(0.0), self.number(float(LARGEST))
            known = " AND ".join(f"{guard.text} BETWEEN {zero} AND {most}" for guard in guards)
            columns = [f"CASE WHEN {known} THEN {column} END" for column in columns]
        quote = self.dialect.quote_name
        lines = [f"{column} AS {quote(name)}" for column, name in zip(columns, OUTPUT, strict=True)]
        if customer is not None:
            lines.insert(0, f"id AS {quote(customer)}")
        return "SELECT\n  " + ",\n  ".join(lines) + f"\nFROM t{layer}"


def _refuse_length(dialect: Dialect) -> NoReturn:
    got = f"as SQL the policy is longer than the {dialect.most:,} characters that are sensible in {dialect.name}"
    fail("export", Problem(got, f"{SCORE_CARD}; or policy.to_onnx()"))


def _select(columns: Sequence[str], source: str, fence: str) -> str:
    return "\n  SELECT " + ",\n    ".join(columns) + f"\n  FROM {source}{fence}\n"  # noqa: S608 -- names are quoted


def _count_uses(outputs: Sequence[Value]) -> Counter[int]:
    """Return by how many steps each value is used; one that is spread over several columns counts as used twice."""
    uses: Counter[int] = Counter()
    seen: set[int] = set()
    waiting = list(outputs)
    for value in outputs:
        uses[id(value)] += 2
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        several = value.step in ("trees", "scaled", "words", "means", "take") or (
            value.step == "affine" and value.width > 1
        )
        for need in value.needs:
            uses[id(need)] += 2 if several else 1
            waiting.append(need)
    return uses


WriteStep: TypeAlias = Callable[[SqlWriter, Value], list[Term]]
