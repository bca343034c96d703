"""From what was done to this plan."""

from largesse.report.sections.changes.view import SECTION as SECTION
