"""How SQL writes the steps that are more than one operation on every column, and the query of a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from largesse.data import FARTHEST
from largesse.policy.export.dialects import LARGEST, Dialect
from largesse.policy.export.layers import SqlWriter, Term, WriteStep
from largesse.policy.export.rule import Rule
from largesse.policy.export.values import Value

TREES_AT_ONCE = 40  # columns of one layer
FEW_WORDS = 64  # are compared one by one; of more, a table is joined


def write_sql(rule: Rule, dialect: Dialect, table: Sequence[str], customer: str | None) -> str:
    """Return the query that gives every customer of a table a level."""
    writer = SqlWriter(rule, dialect, STEPS)
    level, response, cost = (writer.write(value)[0] for value in (rule.level, rule.response, rule.cost))
    return writer.finish(table, customer, (level, response, cost))


def _write_constant(writer: SqlWriter, value: Value) -> list[Term]:
    return [Term(writer.number(number)) for number in value.facts["row"]]


def _write_number(writer: SqlWriter, value: Value) -> list[Term]:
    return [writer.add_source(value.facts["name"], writer.dialect.as_float)]


def _write_seconds(writer: SqlWriter, value: Value) -> list[Term]:
    return [writer.add_source(value.facts["name"], writer.dialect.as_seconds)]


def _write_text(writer: SqlWriter, value: Value) -> list[Term]:
    return [writer.add_source(value.facts["name"], writer.dialect.as_text)]


def _is_known(writer: SqlWriter, column: str) -> str:
    most = writer.number(float(LARGEST))
    least = writer.number(-float(LARGEST))
    return f"{column} BETWEEN {least} AND {most}"


def _write_scaled(writer: SqlWriter, value: Value) -> list[Term]:
    scale, unit = value.facts["scale"], value.facts["unit"]
    raw = writer.write(value.needs[0])[0]
    known, terms = _is_known(writer, raw.text), []
    if scale.spread > 0:
        # Held within what the encoder lets through anyway, so that no difference is beyond all numbers.
        reach = 2 * FARTHEST * scale.spread
        low, high = (writer.number((scale.centre + way * reach) * unit) for way in (-1, 1))
        held = f"LEAST(GREATEST({raw.text}, {low}), {high})"
        there = held if unit == 1.0 else f"{held} / {writer.number(unit)}"
        apart = f"({there} - {writer.number(scale.centre)}) / {writer.number(scale.spread)}"
        far, near = writer.number(FARTHEST), writer.number(-FARTHEST)
        text = f"CASE WHEN {known} THEN LEAST(GREATEST({apart}, {near}), {far}) ELSE {writer.number(0.0)} END"
        wide = writer.named(Term(text, raw.needs), early=True)
        terms.append(writer.named(Term(writer.dialect.round_to_float32(wide.text), wide.needs), early=True))
    if scale.missing:
        text = f"CASE WHEN {known} THEN {writer.number(0.0)} ELSE {writer.number(1.0)} END"
        terms.append(Term(text, raw.needs))
    return terms


def _write_wave(writer: SqlWriter, value: Value) -> list[Term]:
    raw = writer.write(value.needs[0])[0]
    per, zero = writer.number(value.facts["per_second"]), writer.number(0.0)
    known = f"CASE WHEN {_is_known(writer, raw.text)} THEN {raw.text} ELSE {zero} END"
    wide = writer.named(Term(f"{value.facts['wave'].upper()}({known} * {per})", raw.needs), early=True)
    return [writer.named(Term(writer.dialect.round_to_float32(wide.text), wide.needs), early=True)]


def _write_words(writer: SqlWriter, value: Value) -> list[Term]:
    column, dialect = value.facts["column"], writer.dialect
    raw = writer.write(value.needs[0])[0]
    yes, no = writer.number(1.0), writer.number(0.0)
    literals = [dialect.quote_text(word) for word in column.words if dialect.can_hold(word)]

    def indicator(condition: str) -> Term:
        return Term(f"CASE WHEN {condition} THEN {yes} ELSE {no} END", raw.needs)

    terms = [
        indicator(f"{raw.text} = {dialect.quote_text(word)}") if dialect.can_hold(word) else Term(no)
        for word in column.shown
    ]
    if column.other:
        listed = f" AND {raw.text} NOT IN ({', '.join(literals)})" if literals else ""
        terms.append(indicator(f"{raw.text} IS NOT NULL{listed}"))
    if column.missing:
        terms.append(indicator(f"{raw.text} IS NULL"))
    return terms


def _write_means(writer: SqlWriter, value: Value) -> list[Term]:
    """Return the means of a word: joined from a table of all words, those never seen and missing text apart."""
    column, dialect = value.facts["column"], writer.dialect
    table = np.asarray(column.table, dtype=np.float32).astype(np.float64)
    rows = [j for j, word in enumerate(column.words) if dialect.can_hold(word)]
    words = [dialect.quote_text(column.words[j]) for j in rows]
    raw = writer.write(value.needs[0])[0]
    terms = []
    joined = f"w{len(writer.joins)}"
    for j in range(value.width):
        missing, unseen = writer.number(table[len(column.words), j]), writer.number(table[-1, j])
        rest = unseen if missing == unseen else f"CASE WHEN {raw.text} IS NULL THEN {missing} ELSE {unseen} END"
        if len(rows) > FEW_WORDS:
            found = writer.add_joined(f"{joined}.m{j}")
            terms.append(Term(f"COALESCE({found.text}, {rest})", found.needs | raw.needs))
        else:
            listed = " ".join(
                f"WHEN {word} THEN {writer.number(table[row, j])}" for word, row in zip(words, rows, strict=True)
            )
            terms.append(Term(f"CASE {raw.text} {listed} ELSE {rest} END" if listed else rest, raw.needs))
    if len(rows) > FEW_WORDS:
        numbers = [[writer.number(table[row, j]) for row in rows] for j in range(value.width)]
        listed = dialect.list_words(joined, words, numbers)
        writer.joins.append(f"LEFT JOIN {listed} ON {joined}.word = {writer.source[raw.text]}")
    return terms


def _write_join(writer: SqlWriter, value: Value) -> list[Term]:
    return [term for need in value.needs for term in writer.write(need)]


def _write_pick(writer: SqlWriter, value: Value) -> list[Term]:
    terms = writer.write(value.needs[0])
    return [terms[column] for column in value.facts["columns"]]


def _write_take(writer: SqlWriter, value: Value) -> list[Term]:
    table, place = writer.write(value.needs[0]), writer.write(value.needs[1])[0]
    listed = " ".join(f"WHEN {writer.number(k)} THEN {term.text}" for k, term in enumerate(table))
    needs = frozenset().union(place.needs, *(term.needs for term in table))
    return [Term(f"CASE {place.text} {listed} END", needs)]


def _write_affine(writer: SqlWriter, value: Value) -> list[Term]:
    terms, weights, bias = writer.write(value.needs[0]), value.facts["weights"], value.facts["bias"]
    found = []
    for column, shift in zip(weights.T, bias, strict=True):
        parts = [
            term.inner if weight == 1.0 else f"{term.inner} * {writer.number(weight)}"
            for term, weight in zip(terms, column, strict=True)
            if weight != 0.0
        ]
        needs = frozenset().union(*(term.needs for term, weight in zip(terms, column, strict=True) if weight != 0.0))
        parts += [writer.number(shift)] if shift != 0.0 or not parts else []
        found.append(Term(" + ".join(parts), needs, whole=len(parts) == 1 and parts[0] in needs))
    return found


def _write_trees(writer: SqlWriter, value: Value) -> list[Term]:
    """Return the sums (K) of trees: the trees of a layer are columns, added in their order in the next layer."""
    terms, trees, K = writer.write(value.needs[0]), value.facts["trees"], value.width
    sums = [Term(writer.number(value.facts["baseline"]))] * K
    for first in range(0, len(trees.roots), TREES_AT_ONCE):
        parts: list[list[Term]] = [[total] for total in sums]
        for root in trees.roots[first : first + TREES_AT_ONCE]:
            own: dict[str, Term] = {}
            for k in range(K):
                grown = _write_tree(writer, terms, trees, int(root), k)
                if grown.text not in own:
                    own[grown.text] = writer.named(grown)
                parts[k].append(own[grown.text])
        sums = [writer.named(_sum(part)) for part in parts]
    return sums


def _sum(parts: Sequence[Term]) -> Term:
    return Term(" + ".join(part.inner for part in parts), frozenset().union(*(part.needs for part in parts)), False)


def _write_tree(writer: SqlWriter, terms: Sequence[Term], trees: Any, node: int, level: int) -> Term:
    """Return one tree at a level, from a node downwards."""
    if trees.left[node] < 0:
        return Term(writer.number(trees.value[node]))
    feature, threshold = int(trees.feature[node]), float(trees.threshold[node])
    left, right = int(trees.left[node]), int(trees.right[node])
    if feature == len(terms):
        return _write_tree(writer, terms, trees, left if level <= threshold else right, level)
    below, above = (_write_tree(writer, terms, trees, child, level) for child in (left, right))
    if below == above:
        return below
    own = terms[feature]
    text = f"CASE WHEN {own.text} <= {writer.number(threshold)} THEN {below.text} ELSE {above.text} END"
    return Term(text, below.needs | above.needs | own.needs)


STEPS: Mapping[str, WriteStep] = MappingProxyType(
    {
        "constant": _write_constant,
        "number": _write_number,
        "seconds": _write_seconds,
        "text": _write_text,
        "scaled": _write_scaled,
        "wave": _write_wave,
        "words": _write_words,
        "means": _write_means,
        "join": _write_join,
        "pick": _write_pick,
        "take": _write_take,
        "affine": _write_affine,
        "trees": _write_trees,
    }
)
