"""What is said over HTTP: JSON in, JSON out, and errors for people."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from largesse.errors import LargesseError, OutputError, Problem, fail

DEEPEST = 40  # lists and tables within each other
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # half of a letter that is written in two escapes
_HUGE = re.compile(rb"[eE]\+?0*[0-9]{3}|[0-9]{300}")  # only such numbers are too large for a float


class RequestError(LargesseError):
    """A request that is not answered as asked; `status` is that of HTTP."""

    def __init__(self, status: int, what: str, hint: str = "") -> None:
        super().__init__("request", [Problem(what, hint)])
        self.status = status


def status_of(error: Exception) -> int:
    """Return the status that an error is answered with.

    >>> status_of(RequestError(404, "there is no such page")), status_of(ValueError("a bug"))
    (404, 500)
    """
    if isinstance(error, RequestError):
        return error.status
    if isinstance(error, OutputError):
        return 409
    return 400 if isinstance(error, LargesseError) else 500


def describe_error(error: Exception) -> dict[str, Any]:
    """Return what a client is told of an error: a sentence, and what to do about each problem.

    >>> describe_error(RequestError(404, "there is no run 'x'", "reload the page"))["message"]
    "there is no run 'x'"
    """
    if not isinstance(error, LargesseError):
        hint = "the terminal shows the details; trying again may help"
        return {
            "message": "something went wrong here",
            "problems": [{"what": "this is a mistake of ours", "hint": hint}],
        }
    problems = [{"what": problem.what, "hint": problem.hint} for problem in error.problems]
    more = "" if len(problems) == 1 else f"{error.subject}: {len(problems)} things are wrong"
    return {"message": more or problems[0]["what"], "problems": problems}


def to_json(content: Any) -> bytes:
    """Write JSON; numbers that are not finite become null, for JSON has no word for them.

    >>> to_json({"a": float("nan"), "b": "é"}).decode()
    '{"a":null,"b":"é"}'
    """
    try:
        text = _ENCODER.encode(content)
    except ValueError:
        text = _ENCODER.encode(_plain(content))
    return text.encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def read_json(body: bytes) -> dict[str, Any]:
    """Read a body that must be a JSON object of finite numbers, not nested too deeply.

    >>> read_json(b'{"budget": 1.5}')
    {'budget': 1.5}
    """
    try:
        floats = _read_float if _HUGE.search(body) else None  # a function for every number takes its time
        found = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, parse_float=floats)
        if _HALF.search(body):  # no file and no answer could hold such text
            _ENCODER.encode(found).encode("utf-8")
    except RecursionError:
        _refuse_depth()
    except UnicodeEncodeError:
        got = "a text holds half of a letter: one of two escapes \\ud800 to \\udfff"
        fail("request", Problem(got, "send both, or the letter itself as UTF-8"))
    except ValueError as error:  # no UTF-8, no JSON, a number of too many digits
        fail("request", Problem(f"the body is not JSON: {error}", "send a JSON object"))
    if not isinstance(found, dict):
        fail("request", Problem("the body is JSON, but not an object", "send a JSON object: {…}"))
    _check_depth(found)
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _read_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:20]} is too large a number")
    return value


def _check_depth(value: Any) -> None:
    layer = [value]
    for _ in range(DEEPEST):
        layer = [
            inner
            for outer in layer
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not layer:
            return
    _refuse_depth()


def _refuse_depth() -> NoReturn:
    fail("request", Problem("the body nests lists or objects too deeply", "send a flatter object"))
