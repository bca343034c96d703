"""The sections of the report: one folder each, with the numbers it takes, its view and its template.

To add one: make a folder, and name it in `order`.
"""

from largesse.report.sections.order import SECTIONS as SECTIONS
