"""The answer in words, from the numbers of all steps."""

from __future__ import annotations

from largesse.report.formats import Units
from largesse.report.profits import write_sentences
from largesse.report.section import Numbers, Part
from largesse.report.words import warn_of_spending


def write_answer(numbers: Numbers) -> Part:
    """Return the verdict in one sentence, what stands behind it, and all warnings."""
    units = Units.of(numbers)
    return {
        **write_sentences(units, numbers),
        "warnings": [*warn_of_spending(units, numbers), *numbers["warnings"]],
    }
