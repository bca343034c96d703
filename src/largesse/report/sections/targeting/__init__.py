"""Whether choosing who gets what pays, over all budgets."""

from largesse.report.sections.targeting.view import SECTION as SECTION
