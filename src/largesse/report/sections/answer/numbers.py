"""The answer in words, from the numbers of all steps."""

from __future__ import annotations

from largesse.report.formats import Units
from largesse.report.section import Numbers, Part
from largesse.report.words import warn_of_spending, write_headline, write_verdict


def write_answer(numbers: Numbers) -> Part:
    """Return the verdict in one sentence, what stands behind it, and all warnings."""
    units = Units.of(numbers)
    return {
        "headline": write_headline(units, numbers),
        "verdict": write_verdict(units, numbers),
        "warnings": [*warn_of_spending(units, numbers), *numbers["warnings"]],
    }
