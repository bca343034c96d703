"""How the answer was found: what the model tried, and the plan's value by every estimator."""

from __future__ import annotations

from dataclasses import asdict

from largesse.records import Log, Study
from largesse.report.plain import plain_estimate
from largesse.report.section import FitStep, Part


def describe_choices(step: FitStep) -> Part:
    """Return every candidate of every choice that the model made, with its held-out loss."""
    return {"tried": [asdict(choice) for choice in step.choices]}


def describe_estimates(_log: Log, study: Study) -> Part:
    """Return the plan's value by every estimator."""
    return {"estimates": [{"name": name, **plain_estimate(value)} for name, value in study.estimates.items()]}
