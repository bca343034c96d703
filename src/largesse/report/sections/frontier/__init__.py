"""What each budget would bring."""

from largesse.report.sections.frontier.view import SECTION as SECTION
