"""Why a customer gets a level, and what would change it."""

from largesse.report.sections.why.view import SECTION as SECTION
