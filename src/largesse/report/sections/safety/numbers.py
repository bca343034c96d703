"""The plan and a simple rule: what each brings, gains over everyone the same, and brings at least."""

from __future__ import annotations

from largesse.records import Log, Option, Study
from largesse.report.plain import plain_estimate
from largesse.report.section import Part


def describe_safety(_log: Log, study: Study) -> Part:
    """Return every option with its bounds, and which is recommended."""
    safety = study.evaluation.safety
    assert safety is not None  # every evaluation of a run has one
    return {
        "options": [describe_option(option) for option in safety.options],
        "recommended": safety.recommended,
        "excuse": safety.excuse,
    }


def describe_option(option: Option) -> Part:
    """Return an option as a dict."""
    return {
        "name": option.name,
        "detail": option.detail,
        "value": plain_estimate(option.value),
        "spend": plain_estimate(option.spend),
        "gain": plain_estimate(option.gain),
        "at_least": option.at_least,
        "guaranteed": option.guaranteed,
        **({} if option.profit is None else {"profit": plain_estimate(option.profit)}),
    }
