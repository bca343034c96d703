"""The glossary needs no numbers of its own."""

from __future__ import annotations

from largesse.report.formats import Units
from largesse.report.section import Numbers, Part, Section


def view_glossary(_numbers: Numbers, _units: Units) -> Part:
    """Return nothing: the words stand in the template."""
    return {}


SECTION = Section("glossary", view_glossary, "Glossary")
