"""What each level brings."""

from largesse.report.sections.curve.view import SECTION as SECTION
