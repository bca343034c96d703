"""What the words mean."""

from largesse.report.sections.glossary.view import SECTION as SECTION
