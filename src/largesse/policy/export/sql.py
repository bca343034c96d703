"""SQL of a policy: one query for DuckDB; sqlglot translates it for other databases.

Columns are computed in layers, each a SELECT from the one before. An expression that is used once is inlined, any other becomes a
column of a layer. A layer passes on only the columns that a later one needs. Sums of trees keep their order, so that their bits
equal the policy's. Names and text are always quoted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

import numpy as np

from largesse.data import MAX_STANDARD_DEVIATIONS
from largesse.errors import Problem, fail, import_optional_package, refuse, repr_short, suggest
from largesse.policy.export.expression_graph import Value
from largesse.policy.export.graph_compiler import OUTPUT, USE_TREE, DecisionGraph, compile_policy

DIALECTS = {"duckdb": "duckdb", "postgresql": "postgres", "spark": "spark", "bigquery": "bigquery"}  # → name in sqlglot
MAX_LENGTH = {"bigquery": 1_000_000}  # characters of a query, the database's limit
MAX_ANY_LENGTH = 8_000_000
CASE_SENSITIVE = ("postgresql",)  # names of columns
MAX_FLOAT64_SQL = "1.7976931348623157e308"
VELTKAMP_FACTOR = (
    repr(2.0**29 + 1.0) + "e0"
)  # splits off the 29 bits of a float64 that a float32 does not have (Veltkamp)
MAX_ZERO = "7.006492321624085e-46"  # largest number that is zero in float32
MAX_INLINE_LENGTH = 2_000  # characters
TREES_PER_LAYER = 40
MAX_LISTED_WORDS = 64  # in a CASE; more words become a joined table
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
FUNCTIONS = {"max": "GREATEST", "min": "LEAST", "exp": "EXP", "log": "LN", "tanh": "TANH"}


def write_policy_sql(policy: Any, price: float, dialect: str, table: str | Sequence[str], customer: str | None) -> str:
    """Write a SELECT query that makes the decisions of a policy at a shadow price."""
    names = [*policy.model.encoder_.features, *(policy.levels.cost_columns or ())]
    path = check_sql_names(dialect, table, customer, names)
    graph = compile_policy(policy, price)
    writer = SqlWriter(graph, dialect)
    level, response, cost = (writer.write(value)[0] for value in (graph.level, graph.response, graph.cost))
    return translate_sql(writer.write_query(path, customer, (level, response, cost)), dialect)


# -- names, text and numbers ----------------------------------------------------------------------------------------------


def quote_sql_name(name: str) -> str:
    """Quote the name of a column or table for SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_sql_text(text: str) -> str:
    """Quote a text as an SQL literal."""
    parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"


def can_store_text(dialect: str, text: str) -> bool:
    """Test if a database can hold this text: PostgreSQL and BigQuery have no zero byte."""
    return "\0" not in text or dialect in ("duckdb", "spark")


def write_float_literal(number: float) -> str:
    """Write a float64 as an SQL literal, without loss of digits."""
    text = repr(min(max(float(number), -float(MAX_FLOAT64_SQL)), float(MAX_FLOAT64_SQL)))
    return text if "e" in text else text + "e0"


def cast_to_float(column: str) -> str:
    """Write the SQL that casts a column of numbers or booleans to float64."""
    return f"CAST({column} AS DOUBLE)"


def cast_to_text(column: str) -> str:
    """Write the SQL that casts a column to text."""
    return f"CAST({column} AS VARCHAR)"


def cast_to_seconds(column: str) -> str:
    """Write the SQL that converts a column of dates or times to seconds since 1970."""
    return f"epoch_us({column}) / 1e6"


def check_sql_names(dialect: Any, table: Any, customer: Any, columns: Collection[str]) -> list[str]:
    """Check the dialect and the names of table and columns; return the parts of the table's name."""
    if not isinstance(dialect, str) or dialect not in DIALECTS:
        fail("export", Problem(f"dialect {repr_short(dialect)} is not known", suggest(str(dialect), DIALECTS)))
    path = table.split(".") if isinstance(table, str) else list(table) if isinstance(table, Sequence) else []
    problems = []
    if not path or not all(_is_valid_name(dialect, part) for part in path):
        problems.append(
            Problem(f"the table is {repr_short(table)}", "name it: table='customers', or table='shop.customers'")
        )
    if customer is not None and not _is_valid_name(dialect, customer):
        problems.append(Problem(f"the customer column is {repr_short(customer)}", "name it, or give None for none"))
    if isinstance(customer, str) and customer.casefold() in OUTPUT:
        problems.append(
            Problem(f"the customer column is called {customer!r}", "the query gives that name to its answer")
        )
    for name in columns:
        if not _is_valid_name(dialect, name):
            got = f"{dialect} cannot have a column of the name {repr_short(name)}"
            problems.append(Problem(got, "rename it in the log, and fit again"))
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in {*columns}:
        alike[name.casefold()].append(name)
    for same in alike.values():
        if dialect not in CASE_SENSITIVE and len(same) > 1:
            got = f"features {', '.join(map(repr, sorted(same)))} have one name in {dialect}"
            problems.append(Problem(got, "rename one of them in the log, and fit again"))
    refuse("export", problems)
    return path


def _is_valid_name(dialect: str, name: Any) -> bool:
    """Test if a name is valid in a database: text without NUL or surrogates; in BigQuery, also without quotes."""
    if not isinstance(name, str) or name == "" or any(c == "\0" or "\ud800" <= c <= "\udfff" for c in name):
        return False
    return dialect != "bigquery" or not any(c in "`\\\"'" for c in name)


# -- other databases ------------------------------------------------------------------------------------------------------


def translate_sql(query: str, dialect: str) -> str:
    """Translate a query for DuckDB into another dialect."""
    limit = MAX_LENGTH.get(dialect, MAX_ANY_LENGTH)
    if len(query) <= limit and dialect != "duckdb":
        sqlglot = import_optional_package("sqlglot", "export", "export")
        tree = sqlglot.parse_one(query, read="duckdb").transform(lambda node: _adapt_node(node, dialect), copy=False)
        query = tree.sql(dialect=DIALECTS[dialect], pretty=False)
    if len(query) > limit:
        _refuse_long_query(dialect, limit)
    return query


def _adapt_node(node: Any, dialect: str) -> Any:
    """Replace a node of a parsed query if sqlglot's own translation of it is not exact."""
    from sqlglot import exp, parse_one

    def parse(text: str, **parts: Any) -> Any:
        return exp.replace_placeholders(parse_one(text, read="duckdb"), **parts)

    if isinstance(node, exp.CTE) and dialect != "postgresql":
        node.set("materialized", None)
    if isinstance(node, exp.Anonymous) and node.name.lower() == "epoch_us":
        column = node.expressions[0]
        if dialect == "postgresql":
            return parse("CAST(EXTRACT(EPOCH FROM :column) * 1000000 AS DOUBLE)", column=column)
        name = {"spark": "unix_micros", "bigquery": "UNIX_MICROS"}[dialect]
        return exp.Anonymous(
            this=name, expressions=[exp.cast(column, "timestamptz" if dialect == "bigquery" else "timestamp")]
        )
    if dialect == "bigquery" and isinstance(node, exp.Cast) and node.is_type("float"):
        # BigQuery has no float32; without rounding, 2 of a million customers get another level from boosting.
        return parse(f"(:x * {VELTKAMP_FACTOR}) - ((:x * {VELTKAMP_FACTOR}) - :x)", x=node.this)
    if dialect != "postgresql":
        return node
    if isinstance(node, exp.Literal) and not node.is_string and "e" in node.name:
        return exp.var(f"float8 '{node.name}'")  # a bare number would be a decimal
    if isinstance(node, exp.Cast) and node.is_type("double") and isinstance(node.this, exp.Column) and node.this.table:
        # There is no cast from boolean, and text keeps every digit; but that of a float32 is another float64.
        column = node.this.sql("duckdb")
        text = f"CAST({column} AS VARCHAR)"
        cases = f"WHEN {text} = 'true' THEN 1 WHEN {text} = 'false' THEN 0"
        cases += f" WHEN CAST(PG_TYPEOF({column}) AS VARCHAR) = 'real' THEN CAST(CAST({text} AS REAL) AS DOUBLE)"
        return parse_one(f"CASE {cases} ELSE CAST({text} AS DOUBLE) END", read="duckdb")
    if (
        isinstance(node, exp.Cast)
        and node.is_type("float")
        and not isinstance(node.parent, exp.When | exp.If | exp.Case)
    ):
        # A number too small for float32 is an error, elsewhere zero.
        return parse(f"CASE WHEN ABS(:x) <= {MAX_ZERO} THEN 0 ELSE CAST(:x AS REAL) END", x=node.this)
    return node


def _refuse_long_query(dialect: str, limit: int) -> NoReturn:
    got = f"as SQL the policy is longer than the {limit:,} characters that are sensible in {dialect}"
    fail("export", Problem(got, f"{USE_TREE}; or policy.to_onnx()"))


# -- expressions and layers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SqlExpression:
    """SQL expression: its text, the columns it reads, and a flag for text that needs no brackets."""

    text: str
    needs: frozenset[str] = frozenset()
    whole: bool = True

    @property
    def operand_text(self) -> str:
        """The expression's text, in brackets unless it needs none as an operand."""
        return self.text if self.whole else f"({self.text})"


Layer: TypeAlias = list[tuple[str, SqlExpression]]  # columns that are computed together


class SqlWriter:
    """Writer of an expression graph as a chain of SELECTs, each with a layer of computed columns."""

    def __init__(self, graph: DecisionGraph, dialect: str) -> None:
        self.graph, self.dialect = graph, dialect
        self.source: dict[str, str] = {}  # column of the first layer → its expression
        self.joins: list[str] = []
        self.layers: list[Layer] = [[]]
        self.place: dict[str, int] = {}  # the layer of every column
        self.size = 0
        self.known: dict[int, list[SqlExpression]] = {}
        self.uses = _count_uses([graph.level, graph.response, graph.cost])

    # -- values -------------------------------------------------------------------------------------------------------

    def write(self, value: Value) -> list[SqlExpression]:
        """Return the SQL expressions of a graph node's columns; each node is written once."""
        if id(value) not in self.known:
            write = SQL_WRITERS.get(value.step)
            terms = write(self, value) if write else self._write_elementwise(value)
            is_reused = self.uses[id(value)] > 1
            self.known[id(value)] = [
                self.add_layer_column(term) if is_reused or len(term.text) > MAX_INLINE_LENGTH else term
                for term in terms
            ]
        return self.known[id(value)]

    def add_layer_column(self, term: SqlExpression, *, early: bool = False) -> SqlExpression:
        """Add an expression as a computed column of a SELECT, and return the column.

        It is the last SELECT, or, if `early`, the first that can compute the expression.

        A number or a column is returned unchanged.
        """
        if not term.needs or term.text in term.needs:
            return term
        name = f"c{len(self.place)}"
        after = max((self.place[need] + 1 for need in term.needs if need in self.place), default=0)
        if after >= len(self.layers):
            self.layers.append([])
        self.place[name] = after if early else len(self.layers) - 1
        self.layers[self.place[name]].append((name, term))
        self.size += len(term.text)
        limit = MAX_LENGTH.get(self.dialect, MAX_ANY_LENGTH)
        if self.size > limit:
            _refuse_long_query(self.dialect, limit)
        return SqlExpression(name, frozenset([name]))

    def _write_elementwise(self, value: Value) -> list[SqlExpression]:
        needs = [self._repeat_column(operand, value.width) for operand in value.needs]
        return [self._apply_operation(value.step, parts) for parts in zip(*needs, strict=True)]

    def _repeat_column(self, value: Value, width: int) -> list[SqlExpression]:
        """Return the column expressions of a graph node; a single column is repeated `width` times."""
        terms = self.write(value)
        if len(terms) == width:
            return terms
        return [self.add_layer_column(terms[0])] * width

    def _apply_operation(self, step: str, parts: Sequence[SqlExpression]) -> SqlExpression:
        needs = frozenset().union(*(term.needs for term in parts))
        if step in SIGNS:
            return SqlExpression(f" {SIGNS[step]} ".join(term.operand_text for term in parts), needs, whole=False)
        if step == "where_less":
            a, b, then, other = (term.operand_text for term in parts)
            return SqlExpression(f"CASE WHEN {a} < {b} THEN {then} ELSE {other} END", needs)
        return SqlExpression(f"{FUNCTIONS[step]}({', '.join(term.text for term in parts)})", needs)

    # -- sources ------------------------------------------------------------------------------------------------------

    def add_source_column(self, name: str, kind: Callable[[str], str]) -> SqlExpression:
        """Add a converted column of the customer table to the first SELECT, and return its expression."""
        text = kind(f"customers.{quote_sql_name(name)}")
        column = next((column for column, known in self.source.items() if known == text), None)
        return self.add_first_layer_column(text) if column is None else SqlExpression(column, frozenset([column]))

    def add_first_layer_column(self, text: str) -> SqlExpression:
        """Add an SQL expression as a new column of the first SELECT."""
        column = f"f{len(self.source)}"
        self.source[column] = text
        return SqlExpression(column, frozenset([column]))

    # -- the query ----------------------------------------------------------------------------------------------------

    def write_query(
        self, table: Sequence[str], customer: str | None, chosen: tuple[SqlExpression, SqlExpression, SqlExpression]
    ) -> str:
        """Write the whole query: id, level, expected response and expected cost of each customer."""
        level, response, cost = (self.add_layer_column(term) for term in chosen)
        guards = [self.write(value)[0] for value in self.graph.own_costs]
        used = frozenset().union(level.needs, response.needs, cost.needs, *(guard.needs for guard in guards))
        first = [f"{text} AS {name}" for name, text in self.source.items()]
        carried = [] if customer is None else ["id"]
        if customer is not None:
            first.insert(0, f"customers.{quote_sql_name(customer)} AS id")
        source = ".".join(quote_sql_name(part) for part in table)
        joins = "".join(f"\n  {line}" for line in self.joins)
        parts = [_write_select(first or ["1 AS nothing"], f"{source} AS customers{joins}")]
        for j, (layer, earlier) in enumerate(zip(self.layers, self._find_carried_columns(used), strict=True)):
            earlier = [*carried, *earlier]
            added = [f"{term.text} AS {name}" for name, term in layer]
            parts.append(_write_select([*earlier, *added] or ["1 AS nothing"], f"t{j}"))
        # Without MATERIALIZED, a database may inline a column wherever it is used; DuckDB needs it in the last layer only.
        last = len(parts) - 1
        kinds = ["MATERIALIZED " if j == last or self.dialect == "postgresql" else "" for j in range(len(parts))]
        steps = ",\n".join(f"t{j} AS {kind}({part})" for j, (kind, part) in enumerate(zip(kinds, parts, strict=True)))
        return f"WITH {steps}\n{self._write_last_select(customer, (level, response, cost), guards, last)}"

    def _find_carried_columns(self, used: frozenset[str]) -> list[list[str]]:
        """Return, for each SELECT, the earlier columns that later SELECTs need."""
        later, needed = set(used), []
        for layer in reversed(self.layers):
            needed.append(frozenset(later))
            later.update(*(term.needs for _, term in layer))
        before, carried = list(self.source), []
        for layer, later_needed in zip(self.layers, reversed(needed), strict=True):
            before = [name for name in before if name in later_needed]
            carried.append(before)
            before = [*before, *(name for name, _ in layer)]
        return carried

    def _write_last_select(
        self,
        customer: str | None,
        chosen: tuple[SqlExpression, SqlExpression, SqlExpression],
        guards: Sequence[SqlExpression],
        layer: int,
    ) -> str:
        level, response, cost = chosen
        names = " ".join(
            f"WHEN {write_float_literal(k)} THEN {quote_sql_text(label)}" for k, label in enumerate(self.graph.labels)
        )
        columns = [f"CASE {level.text} {names} END", f"CAST({level.text} AS INTEGER)", response.text, cost.text]
        if guards:
            costs_known = " AND ".join(f"{guard.text} BETWEEN 0e0 AND {MAX_FLOAT64_SQL}" for guard in guards)
            columns = [f"CASE WHEN {costs_known} THEN {column} END" for column in columns]
        lines = [f"{column} AS {quote_sql_name(name)}" for column, name in zip(columns, OUTPUT, strict=True)]
        if customer is not None:
            lines.insert(0, f"id AS {quote_sql_name(customer)}")
        return "SELECT\n  " + ",\n  ".join(lines) + f"\nFROM t{layer}"


def _write_select(columns: Sequence[str], source: str) -> str:
    return "\n  SELECT " + ",\n    ".join(columns) + f"\n  FROM {source}\n"  # noqa: S608 -- names are quoted


def _count_uses(outputs: Sequence[Value]) -> Counter[int]:
    """Count the uses of each graph node, to inline expressions used once; several columns count as two uses."""
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


# -- operations that are not elementwise ---------------------------------------------------------------


def _write_finite_test(column: str) -> str:
    return f"{column} BETWEEN -{MAX_FLOAT64_SQL} AND {MAX_FLOAT64_SQL}"


def _round_to_float32(column: str) -> str:
    """Write the SQL that rounds a float64 to float32."""
    return f"CAST(CAST({column} AS REAL) AS DOUBLE)"


def _refuse_network(_writer: SqlWriter, _value: Value) -> NoReturn:
    fail("export", Problem("a network is not written as SQL", f"use policy.to_onnx(); or {USE_TREE}"))


def _write_scaled_number(writer: SqlWriter, value: Value) -> list[SqlExpression]:
    scale, unit = value.facts["scale"], value.facts["unit"]
    raw = writer.write(value.needs[0])[0]
    known, terms = _write_finite_test(raw.text), []
    if scale.spread > 0:
        # Clipped beyond the encoder's own limits, so that no difference overflows.
        reach = 2 * MAX_STANDARD_DEVIATIONS * scale.spread
        low, high = (write_float_literal((scale.centre + way * reach) * unit) for way in (-1, 1))
        clipped = f"LEAST(GREATEST({raw.text}, {low}), {high})"
        days = clipped if unit == 1.0 else f"{clipped} / {write_float_literal(unit)}"
        deviations = f"({days} - {write_float_literal(scale.centre)}) / {write_float_literal(scale.spread)}"
        far, near = write_float_literal(MAX_STANDARD_DEVIATIONS), write_float_literal(-MAX_STANDARD_DEVIATIONS)
        text = (
            f"CASE WHEN {known} THEN LEAST(GREATEST({deviations}, {near}), {far}) ELSE {write_float_literal(0.0)} END"
        )
        wide = writer.add_layer_column(SqlExpression(text, raw.needs), early=True)
        terms.append(writer.add_layer_column(SqlExpression(_round_to_float32(wide.text), wide.needs), early=True))
    if scale.missing:
        text = f"CASE WHEN {known} THEN {write_float_literal(0.0)} ELSE {write_float_literal(1.0)} END"
        terms.append(SqlExpression(text, raw.needs))
    return terms


def _write_condition_test(writer: SqlWriter, value: Value) -> list[SqlExpression]:
    condition, raw = value.facts["condition"], writer.write(value.needs[0])[0]
    if condition.kind == "words":
        words = [quote_sql_text(word) for word in condition.words if can_store_text(writer.dialect, word)]
        test = f"{raw.text} IN ({', '.join(words)})" if words else "FALSE"
    elif condition.kind == "missing":
        test = f"{raw.text} IS NULL"
        if value.needs[0].step != "text":  # NaN is missing, too
            test = f"{test} OR NOT ({_write_finite_test(raw.text)})"
    else:
        test = f"{raw.text} BETWEEN {write_float_literal(condition.low)} AND {write_float_literal(condition.high)}"
    return [
        SqlExpression(
            f"CASE WHEN {test} THEN {write_float_literal(1.0)} ELSE {write_float_literal(0.0)} END", raw.needs
        )
    ]


def _write_cyclic_feature(writer: SqlWriter, value: Value) -> list[SqlExpression]:
    raw = writer.write(value.needs[0])[0]
    per, zero = write_float_literal(value.facts["per_second"]), write_float_literal(0.0)
    known = f"CASE WHEN {_write_finite_test(raw.text)} THEN {raw.text} ELSE {zero} END"
    wide = writer.add_layer_column(
        SqlExpression(f"{value.facts['wave'].upper()}({known} * {per})", raw.needs), early=True
    )
    return [writer.add_layer_column(SqlExpression(_round_to_float32(wide.text), wide.needs), early=True)]


def _write_word_indicators(writer: SqlWriter, value: Value) -> list[SqlExpression]:
    column = value.facts["column"]
    raw = writer.write(value.needs[0])[0]
    yes, no = write_float_literal(1.0), write_float_literal(0.0)
    literals = [quote_sql_text(word) for word in column.words if can_store_text(writer.dialect, word)]

    def write_indicator(condition: str) -> SqlExpression:
        return SqlExpression(f"CASE WHEN {condition} THEN {yes} ELSE {no} END", raw.needs)

    terms = [
        write_indicator(f"{raw.text} = {quote_sql_text(word)}")
        if can_store_text(writer.dialect, word)
        else SqlExpression(no)
        for word in column.indicator_words
    ]
    if column.other:
        listed = f" AND {raw.text} NOT IN ({', '.join(literals)})" if literals else ""
        terms.append(write_indicator(f"{raw.text} IS NOT NULL{listed}"))
    if column.missing:
        terms.append(write_indicator(f"{raw.text} IS NULL"))
    return terms


def _write_word_means(writer: SqlWriter, value: Value) -> list[SqlExpression]:
    """Write the encoding of text by one mean per word, as a CASE or as a joined table of words."""
    column = value.facts["column"]
    table = np.asarray(column.table, dtype=np.float32).astype(np.float64)
    rows = [j for j, word in enumerate(column.words) if can_store_text(writer.dialect, word)]
    words = [quote_sql_text(column.words[j]) for j in rows]
    raw = writer.write(value.needs[0])[0]
    terms = []
    joined = f"w{len(writer.joins)}"
    for j in range(value.width):
        missing, unseen = write_float_literal(table[len(column.words), j]), write_float_literal(table[-1, j])
        rest = unseen if missing == unseen else f"CASE WHEN {raw.text} IS NULL THEN {missing} ELSE {unseen} END"
        if len(rows) > MAX_LISTED_WORDS:
            joined_mean = writer.add_first_layer_column(f"{joined}.m{j}")
            terms.append(SqlExpression(f"COALESCE({joined_mean.text}, {rest})", joined_mean.needs | raw.needs))
        else:
            listed = " ".join(
                f"WHEN {word} THEN {write_float_literal(table[row, j])}" for word, row in zip(words, rows, strict=True)
            )
            terms.append(SqlExpression(f"CASE {raw.text} {listed} ELSE {rest} END" if listed else rest, raw.needs))
    if len(rows) > MAX_LISTED_WORDS:
        numbers = [[write_float_literal(table[row, j]) for row in rows] for j in range(value.width)]
        heads = ", ".join(["word", *(f"m{j}" for j in range(value.width))])
        values = ", ".join(f"({', '.join(row)})" for row in zip(words, *numbers, strict=True))
        listed = f"(VALUES {values}) AS {joined}({heads})"
        writer.joins.append(f"LEFT JOIN {listed} ON {joined}.word = {writer.source[raw.text]}")
    return terms


def _write_indexed_column(writer: SqlWriter, value: Value) -> list[SqlExpression]:
    table, place = writer.write(value.needs[0]), writer.write(value.needs[1])[0]
    listed = " ".join(f"WHEN {write_float_literal(k)} THEN {term.text}" for k, term in enumerate(table))
    needs = frozenset().union(place.needs, *(term.needs for term in table))
    return [SqlExpression(f"CASE {place.text} {listed} END", needs)]


def _write_affine(writer: SqlWriter, value: Value) -> list[SqlExpression]:
    terms, weights, bias = writer.write(value.needs[0]), value.facts["weights"], value.facts["bias"]
    columns_out = []
    for column, shift in zip(weights.T, bias, strict=True):
        parts = [
            term.operand_text if weight == 1.0 else f"{term.operand_text} * {write_float_literal(weight)}"
            for term, weight in zip(terms, column, strict=True)
            if weight != 0.0
        ]
        needs = frozenset().union(*(term.needs for term, weight in zip(terms, column, strict=True) if weight != 0.0))
        parts += [write_float_literal(shift)] if shift != 0.0 or not parts else []
        columns_out.append(SqlExpression(" + ".join(parts), needs, whole=len(parts) == 1 and parts[0] in needs))
    return columns_out


def _write_trees(writer: SqlWriter, value: Value) -> list[SqlExpression]:
    """Write the sum of boosted trees at each level (K), in the order in which the model adds the trees.

    Trees are columns of a layer, and the next layer adds them.
    """
    terms, trees, K = writer.write(value.needs[0]), value.facts["trees"], value.width
    sums = [SqlExpression(write_float_literal(value.facts["baseline"]))] * K
    for first in range(0, len(trees.roots), TREES_PER_LAYER):
        parts: list[list[SqlExpression]] = [[total] for total in sums]
        for root in trees.roots[first : first + TREES_PER_LAYER]:
            tree_columns: dict[str, SqlExpression] = {}
            for k in range(K):
                tree = _write_tree(writer, terms, trees, int(root), k)
                if tree.text not in tree_columns:
                    tree_columns[tree.text] = writer.add_layer_column(tree)
                parts[k].append(tree_columns[tree.text])
        sums = [writer.add_layer_column(_write_sum(part)) for part in parts]
    return sums


def _write_sum(parts: Sequence[SqlExpression]) -> SqlExpression:
    return SqlExpression(
        " + ".join(term.operand_text for term in parts), frozenset().union(*(term.needs for term in parts)), False
    )


def _write_tree(writer: SqlWriter, terms: Sequence[SqlExpression], trees: Any, node: int, level: int) -> SqlExpression:
    """Write the subtree below a node, at a fixed level, as nested CASE expressions."""
    if trees.left[node] < 0:
        return SqlExpression(write_float_literal(trees.value[node]))
    feature, threshold = int(trees.feature[node]), float(trees.threshold[node])
    left, right = int(trees.left[node]), int(trees.right[node])
    if feature == len(terms):
        return _write_tree(writer, terms, trees, left if level <= threshold else right, level)
    below, above = (_write_tree(writer, terms, trees, child, level) for child in (left, right))
    if below == above:
        return below
    feature_term = terms[feature]
    text = f"CASE WHEN {feature_term.text} <= {write_float_literal(threshold)} THEN {below.text} ELSE {above.text} END"
    return SqlExpression(text, below.needs | above.needs | feature_term.needs)


SQL_WRITERS: Mapping[str, Callable[[SqlWriter, Value], list[SqlExpression]]] = MappingProxyType(
    {
        "constant": lambda _, value: [SqlExpression(write_float_literal(number)) for number in value.facts["row"]],
        "number": lambda writer, value: [writer.add_source_column(value.facts["name"], cast_to_float)],
        "seconds": lambda writer, value: [writer.add_source_column(value.facts["name"], cast_to_seconds)],
        "text": lambda writer, value: [writer.add_source_column(value.facts["name"], cast_to_text)],
        "inside": _write_condition_test,
        "scaled": _write_scaled_number,
        "wave": _write_cyclic_feature,
        "words": _write_word_indicators,
        "means": _write_word_means,
        "network": _refuse_network,
        "join": lambda writer, value: [term for need in value.needs for term in writer.write(need)],
        "pick": lambda writer, value: [writer.write(value.needs[0])[column] for column in value.facts["columns"]],
        "take": _write_indexed_column,
        "affine": _write_affine,
        "trees": _write_trees,
    }
)
