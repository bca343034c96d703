"""How it was done, and what must be true for it to hold."""

from largesse.report.sections.method.view import SECTION as SECTION
