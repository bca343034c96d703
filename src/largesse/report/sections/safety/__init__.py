"""How safe the plan is: beside a simple rule and giving everyone the same, and what each brings at least."""

from largesse.report.sections.safety.view import SECTION as SECTION
