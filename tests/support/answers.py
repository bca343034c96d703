"""Checks of what the product says when it refuses: messages for people, and strict JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from largesse.errors import LargesseError

MAX_LETTERS = 2000  # of one error over HTTP


def check_message(text: str) -> None:
    """Check that a refusal says something, and that it can be printed."""
    assert text.strip(), "an error without a message"
    odd = sorted({char for char in text if (ord(char) < 32 and char not in "\n\t") or 127 <= ord(char) < 160})
    assert not odd, f"the message holds {odd}: {text[:200]!r}"


@contextmanager
def refusals() -> Iterator[None]:
    """Accept an error that is a message for people; every other exception fails the test."""
    try:
        yield
    except LargesseError as error:
        check_message(str(error))


def read_strictly(raw: bytes | str) -> Any:
    """Return the content of JSON; ValueError where it holds NaN or infinities, or is not UTF-8."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no JSON")

    return json.loads(raw.decode("utf-8") if isinstance(raw, bytes) else raw, parse_constant=refuse)


def check_error(status: int, raw: bytes, allowed: set[int]) -> None:
    """Check an answer over HTTP that refuses: it says in strict JSON what is wrong and what to do, at no great length."""
    assert status in allowed, f"status {status}: {raw[:200]!r}"
    error = read_strictly(raw)["error"]
    problems = [(problem["what"], problem["hint"]) for problem in error["problems"]]
    text = "\n".join([error["message"], *(f"{what} → {hint}" for what, hint in problems)])
    assert error["message"], text
    assert problems, text
    assert all(what.strip() and hint.strip() for what, hint in problems), text
    assert len(text) <= MAX_LETTERS, f"{len(text)} letters: {text[:100]}"
    check_message(text)
