"""Whether the log can support the answer."""

from largesse.report.sections.support.view import SECTION as SECTION
