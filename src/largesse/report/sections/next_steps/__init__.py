"""What to do next."""

from largesse.report.sections.next_steps.view import SECTION as SECTION
