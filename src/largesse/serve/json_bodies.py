"""JSON bodies of HTTP requests, responses and errors."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from largesse.errors import BudgetError, LargesseError, LedgerError, OutputError, Problem, fail, repr_short
from largesse.io import to_json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MAX_JSON_DEPTH = 40
MAX_LISTED_PROBLEMS = 20
NESTED_TYPES = frozenset({dict, list})

logger = logging.getLogger(__name__)


class RequestError(LargesseError):
    """Error of an invalid HTTP request, with the status of the response."""

    def __init__(self, status: int, what: str, hint: str = "") -> None:
        super().__init__("request", [Problem(what, hint)])
        self.status = status


def find_http_status(error: Exception) -> int:
    """Return the HTTP status for an error: 503 if the ledger cannot be reached, 409 if the ledger refuses.

    >>> find_http_status(RequestError(404, "there is no such page")), find_http_status(ValueError("a bug"))
    (404, 500)
    """
    if isinstance(error, RequestError):
        return error.status
    if isinstance(error, BudgetError | LedgerError):
        return 409 if error.__cause__ is None else 503
    if isinstance(error, OutputError):
        return 409
    return 400 if isinstance(error, LargesseError) else 500


def describe_error(error: Exception) -> dict[str, Any]:
    """Return an error as JSON types: a message, and each problem with its hint.

    >>> describe_error(RequestError(404, "there is no run 'x'", "reload the page"))["message"]
    "there is no run 'x'"
    """
    if not isinstance(error, LargesseError):
        problem = {"what": "this is a bug in largesse", "hint": "the terminal shows the details; trying again may help"}
        return {"message": "internal error", "problems": [problem]}
    n_problems = len(error.problems)
    problems = [{"what": problem.what, "hint": problem.hint} for problem in error.problems[:MAX_LISTED_PROBLEMS]]
    if n_problems > MAX_LISTED_PROBLEMS:
        problems.append({"what": f"and {n_problems - MAX_LISTED_PROBLEMS:,} more", "hint": ""})
    summary = "" if n_problems == 1 else f"{error.subject}: {n_problems:,} things are wrong"
    return {"message": summary or problems[0]["what"], "problems": problems}


def make_error_response(error: Exception) -> Response:
    """Return the HTTP response for an error.

    Unexpected errors, and those of a database, are logged: only the operator sees them.
    """
    if not isinstance(error, LargesseError):
        logger.error("a request failed", exc_info=error)
    status = find_http_status(error)
    if status == 503 and not isinstance(error, RequestError):  # it names the database, its user and its server
        logger.warning(str(error))
        error = RequestError(503, "the ledger cannot be reached", "ask again in a moment, with the same id")
    headers = {503: {"retry-after": "1"}, 413: {"connection": "close"}}.get(status)  # the rest of a body is not read
    return make_json_response({"error": describe_error(error)}, status, headers)


def make_json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an HTTP response with JSON content."""
    from starlette.responses import Response

    return Response(write_json(content), status, headers, "application/json")


def make_error_handlers(missing: str, hint: str) -> dict[Any, Any]:
    """Return an application's error handlers; `missing` and `hint` form the message for unknown addresses."""
    from starlette.requests import ClientDisconnect

    async def refuse(_: Request, error: Exception) -> Response:
        return make_error_response(error)

    async def report_bug(_: Request, error: Exception) -> Response:
        # Starlette raises the error again, and uvicorn logs it.
        return make_json_response({"error": describe_error(error)}, 500)

    async def refuse_address(request: Request, _: Exception) -> Response:
        return make_error_response(RequestError(404, missing.format(path=request.url.path[:80]), hint))

    async def refuse_method(request: Request, error: Any) -> Response:
        problem = f"{request.url.path[:80]} does not take {request.method[:10]}"
        response = make_error_response(RequestError(405, problem, hint))
        response.headers["allow"] = error.headers["Allow"]
        return response

    async def refuse_disconnected(_: Request, __: Exception) -> Response:
        return make_error_response(RequestError(400, "the request broke off", "send it again"))

    handlers: dict[Any, Any] = {LargesseError: refuse, ClientDisconnect: refuse_disconnected, Exception: report_bug}
    return {**handlers, 404: refuse_address, 405: refuse_method}


def write_json(content: Any, *, ordered: bool = False) -> bytes:
    """Write content as JSON bytes; numbers that are not finite become null.

    With `ordered`, keys are sorted.

    >>> write_json({"b": "é", "a": float("nan")}, ordered=True).decode()
    '{"a":null,"b":"é"}'
    """
    import orjson

    try:
        return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS | (orjson.OPT_SORT_KEYS if ordered else 0))
    except TypeError:  # integers beyond 64 bits, unpaired surrogates
        text = json.dumps(to_json(content), ensure_ascii=False, separators=(",", ":"), sort_keys=ordered)
        return text.encode("utf-8", "replace")


def read_json(body: bytes) -> dict[str, Any]:
    """Parse a request body; refuse all but a JSON object of finite numbers with limited nesting.

    >>> read_json(b'{"budget": 1.5}')
    {'budget': 1.5}
    """
    import orjson

    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if str(error).startswith("depth limit"):
            fail("request", Problem("the body nests lists or objects too deeply", "send a flatter object"))
        place = f"line {error.lineno} column {error.colno}"
        if "infinity" in error.msg:
            fail("request", Problem(f"the body holds too large a number: {place}", "send numbers below 1e308"))
        if "surrogate in string" in error.msg:
            problem = f"a text contains an unpaired surrogate, \\ud800 to \\udfff: {place}"
            fail("request", Problem(problem, "send both of the pair, or the character itself as UTF-8"))
        why = error.msg.partition(":")[0]
        fail("request", Problem(f"the body is not JSON: {why}: {place}", "send a JSON object in UTF-8"))
    if not isinstance(content, dict):
        fail("request", Problem("the body is JSON, but not an object", "send a JSON object: {…}"))
    if _count_keys(content) != body.count(b":"):  # a key came twice, or a text contains a colon
        json.loads(body, object_pairs_hook=_refuse_duplicate_keys, parse_int=str, parse_float=str)
    return content


def _count_keys(value: Any, depth: int = 1) -> int:
    """Count the keys of all objects in JSON content; refuse content that is nested too deeply."""
    if depth > MAX_JSON_DEPTH:
        fail("request", Problem("the body nests lists or objects too deeply", "send a flatter object"))
    n_keys, inside = (len(value), value.values()) if type(value) is dict else (0, value)
    if not NESTED_TYPES.isdisjoint(map(type, inside)):  # faster than a loop over the values of a row
        n_keys += sum(_count_keys(inner, depth + 1) for inner in inside if type(inner) in NESTED_TYPES)
    return n_keys


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a JSON object that contains a key twice.

    Readers differ in which one counts.
    """
    if len(dict(pairs)) < len(pairs):
        names = [name for name, _ in pairs]
        doubled = next(name for name in names if names.count(name) > 1)
        fail("request", Problem(f"the key {repr_short(doubled)} comes twice in an object", "send it once"))
