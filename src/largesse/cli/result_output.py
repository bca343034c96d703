"""Output of results: summaries or JSON, warnings, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from largesse.errors import make_visible
from largesse.records import EXIT_CODES, SERIOUS_ANSWERS
from largesse.report import print_warnings


def present(
    numbers: Mapping[str, Any],
    show: Callable[[], None],
    *,
    as_json: bool,
    quiet: bool,
    warnings: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Print numbers as JSON or as `show` does; a quiet command prints only warnings, on the standard error."""
    if as_json:
        echo_json(numbers)
    elif not quiet:
        show()
    elif warnings:
        print_warnings(warnings, to_stderr=True)


def exit_by_answers(findings: Sequence[Mapping[str, Any]], verdict: Mapping[str, Any] | None = None) -> None:
    """Exit with the code of the most serious answer of the checks; a verdict that the log cannot say counts as "no"."""
    answers = {finding["answer"] for finding in findings}
    if verdict is not None and verdict["recommended"] is None:
        answers.add("no")
    if serious := [answer for answer in SERIOUS_ANSWERS if answer in answers]:
        raise typer.Exit(EXIT_CODES[serious[0]])


def echo(content: Mapping[str, Any], text: str, *, as_json: bool, quiet: bool) -> None:
    """Print a text, or its numbers as JSON; a quiet command prints only the JSON."""
    if as_json:
        echo_json(content)
    elif not quiet:
        typer.echo(make_visible(text))


def echo_json(content: Mapping[str, Any]) -> None:
    """Print JSON with characters that the terminal can show, and escapes for others."""
    text = json.dumps(content, ensure_ascii=False)
    typer.echo(text if make_visible(text) == text else json.dumps(content))
