"""Output of command results as a summary or as JSON, with warnings and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from largesse.errors import make_visible
from largesse.records import EXIT_CODES, SERIOUS_ANSWERS
from largesse.report import print_warnings


def print_json_or_summary(
    numbers: Mapping[str, Any],
    show: Callable[[], None],
    *,
    as_json: bool,
    quiet: bool,
    warnings: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Print a result as JSON or as a summary; a quiet command prints only warnings."""
    if as_json:
        print_json(numbers)
    elif not quiet:
        show()
    elif warnings:
        print_warnings(warnings, to_stderr=True)


def exit_by_severity(findings: Sequence[Mapping[str, Any]], verdict: Mapping[str, Any] | None = None) -> None:
    """Exit with the code of the most serious finding or verdict."""
    answers = {finding["answer"] for finding in findings}
    if verdict is not None and verdict["recommended"] is None:
        answers.add("no")
    if serious := [answer for answer in SERIOUS_ANSWERS if answer in answers]:
        raise typer.Exit(EXIT_CODES[serious[0]])


def print_text_or_json(content: Mapping[str, Any], text: str, *, as_json: bool, quiet: bool) -> None:
    """Print a result as text or as JSON; a quiet command prints no text."""
    if as_json:
        print_json(content)
    elif not quiet:
        typer.echo(make_visible(text))


def print_json(content: Mapping[str, Any]) -> None:
    """Print a result as JSON, with escapes for characters that terminals do not show."""
    text = json.dumps(content, ensure_ascii=False)
    typer.echo(text if make_visible(text) == text else json.dumps(content))
