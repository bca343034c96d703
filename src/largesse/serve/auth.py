"""The guard before an application: who may ask, from where, and how much they may send.

A page in the user's own browser may be told by a stranger's page to ask this server something. Four things keep it from
harm: the host must be this server's (a name that a stranger points here is refused), a token must come along, what changes
something must come from a page of this server and carry a header that other pages cannot set, and answers forbid
browsers to guess types, to frame pages or to load anything from elsewhere.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from largesse.errors import LargesseError
from largesse.serve.json_errors import RequestError, describe_error, status_of, tell_mistake, to_json

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

JSON_BYTES = 1 << 24  # of a body that is not an upload
SAFE = ("GET", "HEAD")
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


def make_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Door:
    """What a guard lets in.

    Parameters
    ----------
    token
        What every request must bring along; None: anybody may ask.
    hosts
        What the header Host may say, with the port; None: anything.
    cookie
        The cookie that may hold the token, and that ``/?token=…`` sets; None: only ``Authorization: Bearer`` counts.
    mark
        Header and value that every request that changes something must have, if any.
    most_bytes
        Of a body.
    free
        Paths whose bodies are limited elsewhere.
    open_paths
        Paths that need no token, such as a health check.
    hint
        What to do where the token is missing or wrong.
    """

    token: str | None = None
    hosts: frozenset[str] | None = None
    cookie: str | None = None
    mark: tuple[str, str] | None = None
    most_bytes: int = JSON_BYTES
    free: frozenset[str] = frozenset()
    open_paths: frozenset[str] = frozenset()
    hint: str = "open the address that the command printed, with its token"


class Guard:
    """An ASGI application around another one. See `Door`."""

    def __init__(self, app: App, door: Door) -> None:
        self.app, self.door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        sent = _Sent(send)
        try:
            headers = _read_headers(scope)
            cookie = self._check(scope, headers)
            if cookie is not None:
                await _answer(sent, 303, b"", {"location": "/", "set-cookie": cookie})
                return
            await self.app(scope, self._limit(scope, headers, receive), sent)
        except Exception as error:
            if not isinstance(error, LargesseError):
                tell_mistake(error)
            if sent.ended:
                return
            if sent.started:
                raise
            body = to_json({"error": describe_error(error)})
            await _answer(sent, status_of(error), body, {"content-type": "application/json", "connection": "close"})

    def _check(self, scope: Scope, headers: dict[str, str]) -> str | None:
        """Refuse who may not ask; return the cookie to set where the token came in the address of the first page."""
        door = self.door
        if door.hosts is not None and headers.get("host", "").lower() not in door.hosts:
            raise RequestError(421, "this address is not ours", "use the address that the command printed")
        cookie = self._check_token(scope, headers)
        if scope["method"] not in SAFE:
            own = {f"http://{host}" for host in door.hosts or ()}
            if door.hosts is not None and headers.get("origin", "") not in ("", *own):
                raise RequestError(403, "another page asked for this", "ask from the page itself")
            if door.mark is not None and headers.get(door.mark[0].lower()) != door.mark[1]:
                raise RequestError(
                    403, f"the header {door.mark[0]}: {door.mark[1]} is missing", "send it with the request"
                )
        return cookie

    def _check_token(self, scope: Scope, headers: dict[str, str]) -> str | None:
        door = self.door
        if door.token is None or scope["path"] in door.open_paths:
            return None
        site = headers.get("sec-fetch-site", "none")
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(bearer.strip(), door.token):
            return None
        if door.cookie is not None:
            if scope["path"] == "/" and scope["method"] == "GET":
                given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[-1]
                if _same(given, door.token):
                    return f"{door.cookie}={door.token}; HttpOnly; SameSite=Strict; Path=/"
            if _same(_read_cookie(headers.get("cookie", ""), door.cookie), door.token):
                if site in ("same-origin", "none"):
                    return None
                raise RequestError(403, "another page asked for this", "open the address in a window of its own")
        raise RequestError(401, "the token is missing or wrong", door.hint)

    def _limit(self, scope: Scope, headers: dict[str, str], receive: Receive) -> Receive:
        """Return a `receive` that refuses a body that is too large, as soon as that is known."""
        if scope["path"] in self.door.free:
            return receive
        most, got = self.door.most_bytes, 0
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise RequestError(400, "the length of the body is no number", "send a whole number of bytes")
        if len(length) > 18 or int(length) > most:
            raise _too_large(most)

        async def limited() -> Message:
            nonlocal got
            message = await receive()
            got += len(message.get("body", b""))
            if got > most:
                raise _too_large(most)
            return message

        return limited


class _Sent:
    """Sends messages on, with the headers that every answer has; knows whether an answer has begun, and ended."""

    def __init__(self, send: Send) -> None:
        self._send, self.started, self.ended = send, False, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            own = {bytes(name).lower() for name, _ in message.get("headers", [])}
            more = [(name.encode(), text.encode()) for name, text in HEADERS.items() if name.encode() not in own]
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await self._send(message)
        if message["type"] == "http.response.body":
            self.ended = not message.get("more_body", False)


def _read_headers(scope: Scope) -> dict[str, str]:
    """Return the headers; refuse two of one name where it would matter which one counts."""
    found: dict[str, str] = {}
    for raw, text in scope["headers"]:
        name = bytes(raw).decode("latin-1").lower()
        if name in found and name in ("host", "origin", "content-length", "authorization", "transfer-encoding"):
            raise RequestError(400, f"the header {name} came twice", "send it once")
        found[name] = f"{found[name]}; {text.decode('latin-1')}" if name in found else bytes(text).decode("latin-1")
    if "content-length" in found and "transfer-encoding" in found:
        raise RequestError(400, "the body has two lengths", "send Content-Length or chunks")
    return found


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _read_cookie(header: str, name: str) -> str:
    """Return the value of a cookie; those of other servers on this machine may be written in any way."""
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return next((value for key, _, value in pairs if key == name), "")


def _too_large(most: int) -> RequestError:
    return RequestError(413, f"the body is larger than {most:,} bytes", "send less")


async def _answer(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    listed = [(name.encode(), text.encode()) for name, text in {**headers, "content-length": str(len(body))}.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})
