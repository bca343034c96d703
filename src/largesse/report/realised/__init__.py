"""The page of a campaign's check: promise against result, whether the plan was followed, and what has changed."""

from largesse.report.realised.numbers import describe_check as describe_check
from largesse.report.realised.view import view_check as view_check
