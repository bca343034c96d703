"""Who gets what."""

from largesse.report.sections.who.view import SECTION as SECTION
