"""The answer: what the plan brings and costs, what one more unit of budget buys, and what the plan gains."""

from largesse.report.sections.answer.view import SECTION as SECTION
