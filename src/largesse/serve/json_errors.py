"""What is said over HTTP: JSON in, JSON out, and errors for people."""

from __future__ import annotations

import json
import math
import sys
import traceback
from collections import Counter
from contextlib import suppress
from itertools import islice
from typing import Any, NoReturn

from largesse.errors import LargesseError, OutputError, Problem, fail, join_some, repr_short

DEEPEST = 40  # lists and tables within each other
MOST_KEYS = 20  # of a body that are looked for a second time: no request has as many
NESTS = frozenset({dict, list})


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


def tell_mistake(error: Exception) -> None:
    """Print an error that is a mistake of ours; where nobody reads it any more, go on."""
    with suppress(OSError, ValueError):
        traceback.print_exception(error, file=sys.stderr)


def to_json(content: Any, *, ordered: bool = False) -> bytes:
    """Write JSON; numbers that are not finite become null, for JSON has no word for them.

    With `ordered`, objects with the same keys are written alike.

    >>> to_json({"b": "é", "a": float("nan")}, ordered=True).decode()
    '{"a":null,"b":"é"}'
    """
    import orjson

    try:
        return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS | (orjson.OPT_SORT_KEYS if ordered else 0))
    except TypeError:  # whole numbers beyond 64 bits, halves of letters
        text = json.dumps(_plain(content), ensure_ascii=False, separators=(",", ":"), sort_keys=ordered)
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
    import orjson

    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if str(error).startswith("depth limit"):
            _refuse_depth()
        place = f"line {error.lineno} column {error.colno}"
        if "infinity" in error.msg:
            fail("request", Problem(f"the body holds too large a number: {place}", "send numbers below 1e308"))
        if "surrogate in string" in error.msg:
            got = f"a text holds half of a letter, one of two escapes \\ud800 to \\udfff: {place}"
            fail("request", Problem(got, "send both, or the letter itself as UTF-8"))
        why = error.msg.partition(":")[0]
        fail("request", Problem(f"the body is not JSON: {why}: {place}", "send a JSON object in UTF-8"))
    if not isinstance(found, dict):
        fail("request", Problem("the body is JSON, but not an object", "send a JSON object: {…}"))
    _check_depth(found)
    _check_keys(body, found)
    return found


def _check_keys(body: bytes, found: dict[str, Any]) -> None:
    """Refuse a body that has a key twice, where it would matter which one counts: an amount, an id."""
    suspects = [key for key in islice(found, MOST_KEYS) if body.count(f'"{key}"'.encode()) > 1]
    if not suspects:
        return
    pairs = json.loads(body, object_pairs_hook=tuple, parse_int=str, parse_float=str)  # only now: it takes longer
    twice = [key for key, many in Counter(key for key, _ in pairs).items() if many > 1]
    if twice:
        fail(
            "request",
            Problem(f"the body has {join_some([repr_short(key) for key in twice])} twice", "send every key once"),
        )


def _check_depth(value: Any) -> None:
    layer = [value]
    for _ in range(DEEPEST):
        insides = (outer.values() if type(outer) is dict else outer for outer in layer)
        layer = [
            inner
            for inside in insides
            if not NESTS.isdisjoint(map(type, inside))
            for inner in inside
            if type(inner) in NESTS
        ]
        if not layer:
            return
    _refuse_depth()


def _refuse_depth() -> NoReturn:
    fail("request", Problem("the body nests lists or objects too deeply", "send a flatter object"))
