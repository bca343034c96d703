"""Where the money goes."""

from largesse.report.sections.money.view import SECTION as SECTION
