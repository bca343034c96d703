"""What is left after costs."""

from largesse.report.sections.profit.view import SECTION as SECTION
