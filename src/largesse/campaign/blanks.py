"""Settings that are left blank in a campaign file: what nobody but its owner can know is asked for, never guessed.

A first campaign file leaves costs, budget and, where names do not state it, the order of levels blank: ``costs = []``, with
a comment beside it that says what to fill in and may suggest a line. The comment is what a refused run shows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from largesse.errors import Problem

ASKS = {
    "log": 'fill in: the table to learn from, like log = "log.parquet"',
    "columns.level": 'fill in: the column that says what each customer got, like level = "coupon"',
    "columns.response": 'fill in: the column that says what happened, like response = "bought"',
    "levels.names": "fill in: the levels as the log writes them, the cheapest first",
    "levels.doses": "fill in: the amounts as the log writes them, the smallest first",
    "levels.costs": "fill in: what each level costs you, the cheapest first, like costs = [0, 5, 10]",
    "plan.budget": "fill in: what may be spent per customer on average, like budget = 1.7; or remove the line",
    "plan.total": "fill in: what may be spent on all customers together, like total = 50000; or remove the line",
}
BUDGETS = ("plan.budget", "plan.total")
LINE = re.compile(r'^\s*([\w-]+)\s*=\s*(?:""|\'\'|\[\s*\])\s*#\s*(fill in:.*?)\s*$')


def find_blanks(given: Mapping[str, Any], text: str = "") -> dict[str, Problem]:
    """Return the blank settings of what a campaign file holds, each with its comment in the file's text as the hint."""
    comments = _read_comments(text)
    found = {}
    for name, ask in ASKS.items():
        section, _, key = name.rpartition(".")
        inner = given.get(section, {}) if section else given
        if isinstance(inner, Mapping) and inner.get(key) in ("", []):
            found[name] = Problem(f"{name} is left blank", comments.get(name, ask))
    return found


def drop_blanks(given: Mapping[str, Any], blanks: Mapping[str, Problem]) -> dict[str, Any]:
    """Return what a campaign file holds without the blank settings."""
    kept = {key: dict(value) if isinstance(value, Mapping) else value for key, value in given.items()}
    for name in blanks:
        section, _, key = name.rpartition(".")
        del (kept[section] if section else kept)[key]
    return kept


def _read_comments(text: str) -> dict[str, str]:
    """Return setting → the comment beside its blank value."""
    section, found = "", {}
    for line in text.split("\n"):
        if head := re.match(r"^\s*\[\s*([\w.-]+)\s*\]", line):
            section = head[1] + "."
        elif match := LINE.match(line):
            found[section + match[1]] = match[2]
    return found
