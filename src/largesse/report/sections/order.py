"""The sections of the report, in the order of the page."""

from __future__ import annotations

from largesse.report.sections import (
    answer,
    changes,
    curve,
    frontier,
    glossary,
    method,
    money,
    next_steps,
    profit,
    safety,
    support,
    targeting,
    who,
    why,
)

SECTIONS = tuple(
    folder.SECTION
    for folder in (
        answer,
        frontier,
        profit,
        targeting,
        safety,
        curve,
        who,
        why,
        money,
        changes,
        next_steps,
        support,
        method,
        glossary,
    )
)
