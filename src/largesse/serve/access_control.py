"""Access control of HTTP requests: host, token, origin and size of the body.

A page of another site may make the user's browser send requests to this server. Four checks stop it: the Host header must be this
server's (another name that points here is refused), a token is required, requests that change something must come from a page of
this server and carry a header that other pages cannot set, and the answers forbid browsers to guess types, to frame pages and to
load anything from elsewhere. Starlette's TrustedHostMiddleware ignores the port, and answers in plain text.
"""

from __future__ import annotations

import asyncio
import html
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from largesse.serve.json_bodies import RequestError, make_error_response

if TYPE_CHECKING:
    from starlette.responses import Response

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_JSON_BYTES = 1 << 24
SAFE_METHODS = ("GET", "HEAD")
SINGLE_HEADERS = {b"host", b"origin", b"authorization", b"content-length"}
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
RAW_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
RAW_NAMES = frozenset(name for name, _ in RAW_HEADERS)


@dataclass(frozen=True)
class AccessPolicy:
    """Access rules of a web application: token, allowed hosts, cookie, required header and body size.

    Parameters
    ----------
    token
        Required in every request; None: no token is required.
    hosts
        Allowed values of the header Host, with the port; None: any.
    cookie
        The cookie that may hold the token, and that ``/?token=…`` sets; None: only ``Authorization: Bearer`` counts.
    required_header
        Name and value of a header that requests need if they change something.
    max_bytes
        Of a body.
    unlimited_paths
        Paths whose bodies are limited elsewhere.
    open_paths
        Paths that need no token, such as a health check.
    hint
        The hint of the error if the token is missing or wrong.
    code
        Sets the cookie once, by ``/?code=…``: other users of the machine can read that address in the list of processes.
    """

    token: str | None = None
    hosts: frozenset[str] | None = None
    cookie: str | None = None
    required_header: tuple[str, str] | None = None
    max_bytes: int = MAX_JSON_BYTES
    unlimited_paths: frozenset[str] = frozenset()
    open_paths: frozenset[str] = frozenset()
    hint: str = "open the address that the command printed, with its token"
    code: str | None = None


class AuthMiddleware:
    """ASGI middleware that enforces an `AccessPolicy`."""

    def __init__(self, app: App, policy: AccessPolicy) -> None:
        self.app, self.policy = app, policy
        self._code = policy.code

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an allowed request to the application; answer any other with an error."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                present = {name.lower() for name, _ in message["headers"]}
                added = RAW_HEADERS
                if not RAW_NAMES.isdisjoint(present):
                    added = [pair for pair in RAW_HEADERS if pair[0] not in present]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        try:
            response = self._check_request(scope)
        except RequestError as error:
            response = make_error_response(error)
            if scope["path"] == "/" and b"text/html" in dict(scope["headers"]).get(b"accept", b""):
                response = _make_error_page(error)
            response.headers["connection"] = "close"  # a body that follows is not read
        limited = scope["path"] not in self.policy.unlimited_paths
        try:
            await (response or self.app)(
                scope, _limit_body_size(receive, self.policy.max_bytes) if limited else receive, send_with_headers
            )
        except asyncio.CancelledError:  # the server stops, and has waited long enough
            if started:
                raise
            stopping = RequestError(503, "the service is stopping", "ask again in a moment")
            await make_error_response(stopping)(scope, receive, send_with_headers)

    def _check_request(self, scope: Scope) -> Response | None:
        """Refuse a request that breaks the access policy; return the response that sets the cookie, if any."""
        policy = self.policy
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name not in headers:
                headers[name] = value
            elif name in SINGLE_HEADERS:
                raise RequestError(400, f"the header {name.decode()} came twice", "send it once")
        if policy.hosts is not None and _decode_header(headers, b"host").lower() not in policy.hosts:
            raise RequestError(421, "this address is not ours", "use the address that the command printed")
        response = self._check_token(scope, headers)
        if scope["method"] not in SAFE_METHODS:
            origin = _decode_header(headers, b"origin")
            if policy.hosts is not None and origin and origin not in {f"http://{host}" for host in policy.hosts}:
                raise RequestError(403, "another page asked for this", "ask from the page itself")
            if policy.required_header is not None:
                name, value = policy.required_header
                if _decode_header(headers, name.lower().encode()) != value:
                    raise RequestError(403, f"the header {name}: {value} is missing", "send it with the request")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            raise RequestError(400, "the length of the body is not a number", "send a whole number of bytes")
        if b"content-length" in headers and b"transfer-encoding" in headers:
            raise RequestError(400, "the body has two lengths", "send Content-Length or chunks")
        if scope["path"] not in policy.unlimited_paths and int(length[:18]) > policy.max_bytes:
            raise _make_body_size_error(policy.max_bytes)
        return response

    def _check_token(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Response | None:
        policy = self.policy
        if policy.token is None or scope["path"] in policy.open_paths:
            return None

        scheme, _, bearer = _decode_header(headers, b"authorization").partition(" ")
        if scheme.lower() == "bearer" and _is_equal(bearer.strip(), policy.token):
            return None

        from starlette.requests import cookie_parser
        from starlette.responses import RedirectResponse

        if policy.cookie is not None:
            if scope["path"] == "/" and scope["method"] == "GET":
                query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
                code, self._code = self._code, None if "code" in query else self._code
                by_code = code is not None and _is_equal(query.get("code", [""])[-1], code)
                if by_code or _is_equal(query.get("token", [""])[-1], policy.token):
                    response = RedirectResponse("/", 303)
                    response.set_cookie(policy.cookie, policy.token, httponly=True, samesite="strict")
                    return response
            if _is_equal(cookie_parser(_decode_header(headers, b"cookie")).get(policy.cookie, ""), policy.token):
                if headers.get(b"sec-fetch-site", b"none") in (b"same-origin", b"none"):
                    return None
                raise RequestError(403, "another page asked for this", "open the address in a window of its own")
        raise RequestError(401, "the token is missing or wrong", policy.hint)


def _decode_header(headers: Mapping[bytes, bytes], name: bytes) -> str:
    """Return the text of a request header; empty if it is missing."""
    return headers.get(name, b"").decode("latin-1")


def _make_error_page(error: RequestError) -> Response:
    """Return an error as an HTML page."""
    from starlette.responses import HTMLResponse

    problem = error.problems[0]
    texts = (html.escape(f"{text[:1].upper()}{text[1:]}.") for text in (problem.what, problem.hint))
    body = "".join(f"<p>{text}</p>" for text in texts)
    return HTMLResponse(f"<!doctype html><meta charset=utf-8><title>largesse</title>{body}", error.status)


def _limit_body_size(receive: Receive, max_bytes: int) -> Receive:
    """Wrap an ASGI `receive` so that it refuses a body above `max_bytes`."""
    n_bytes = 0

    async def receive_limited() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > max_bytes:
            raise _make_body_size_error(max_bytes)
        return message

    return receive_limited


def _is_equal(candidate: str, token: str) -> bool:
    return secrets.compare_digest(candidate.encode("utf-8", "replace"), token.encode())


def _make_body_size_error(max_bytes: int) -> RequestError:
    return RequestError(413, f"the body is larger than {max_bytes:,} bytes", "send less")
