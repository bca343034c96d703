"""The page of a log's checkup: whether the log can answer the question, before anything is fitted."""

from largesse.report.checkup.numbers import describe_checkup as describe_checkup
from largesse.report.checkup.view import view_checkup as view_checkup
