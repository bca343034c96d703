"""What an answer over HTTP, or a command's JSON, must be: JSON without words for numbers, and errors for people."""

from __future__ import annotations

import json
import math
from typing import Any

from harness import Outcome, judge_message


def read_strictly(raw: bytes | str) -> Any:
    """Return what JSON says; ValueError where it holds NaN or infinities, or is not UTF-8."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no JSON")

    return json.loads(raw.decode("utf-8") if isinstance(raw, bytes) else raw, parse_constant=refuse)


def find_infinite(tree: Any) -> bool:
    """Whether a number somewhere in a tree is not finite."""
    if isinstance(tree, dict | list):
        return any(map(find_infinite, tree.values() if isinstance(tree, dict) else tree))
    return isinstance(tree, float) and not math.isfinite(tree)


def judge_error(status: int, body: Any, longest: int = 2000) -> Outcome:
    """Judge an answer that refuses: it says what is wrong and what to do, at no great length."""
    if status >= 500:
        return Outcome("traceback", f"status {status}: {str(body)[:200]}")
    try:
        error = body["error"]
        problems = [(one["what"], one["hint"]) for one in error["problems"]]
        said = "\n".join([error["message"], *(f"{what} → {hint}" for what, hint in problems)])
    except (TypeError, KeyError, ValueError):
        return Outcome("wrong", f"status {status}, but no error that can be read: {str(body)[:200]}")
    if not error["message"] or not problems or not all(what.strip() and hint.strip() for what, hint in problems):
        return Outcome("wrong", f"status {status} does not say what is wrong and what to do: {said[:200]}")
    if len(said) > longest:
        return Outcome("wrong", f"status {status} says {len(said)} letters: {said[:100]}")
    return judge_message(said)
