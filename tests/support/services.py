"""Requests to a service or an ASGI application without a network: as a client sends them, and as odd bytes."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx

from largesse.serve import AuthMiddleware, ServiceSettings
from largesse.serve.endpoints import Service, make_service_app

TOKEN = "t0ken-that-nobody-can-guess"
Ask = Callable[..., httpx.Response]


def connect(service: Service, token: str | None = TOKEN) -> Ask:
    """Return what asks a service as over HTTP."""
    app = AuthMiddleware(make_service_app(service), ServiceSettings(Path()).make_access_policy(token, 8000))

    async def send(method: str, path: str, headers: dict[str, str], **more: Any) -> httpx.Response:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            return await client.request(method, path, headers=headers, **more)

    def ask(path: str, content: Any = None, *, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        given = {"authorization": f"Bearer {TOKEN}"} if headers is None else headers
        method = more.pop("method", "GET" if content is None else "POST")
        if isinstance(content, dict):
            more["json"] = content
        elif content is not None:
            more["content"] = content
        with ThreadPoolExecutor(1) as apart:  # a thread of its own: a browser's tests may have a loop in this one
            return apart.submit(asyncio.run, send(method, path, given, **more)).result()

    return ask


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def knock(
    app: Callable[..., Awaitable[None]],
    target: str = "/",
    *,
    method: str = "GET",
    headers: Sequence[tuple[str, str]] = (),
    body: Sequence[bytes] = (),
    breaks_off: bool = False,
) -> Answer:
    """Send a request and return the answer; the body goes piece by piece, and may break off before its end."""
    raw, _, query = target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(raw),
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in headers],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8137),
    }
    pieces, got = list(body) or [b""], []
    over = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if not pieces:
            if not breaks_off:
                await over.wait()
            return {"type": "http.disconnect"}
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces) or breaks_off}

    async def send(message: Any) -> None:
        got.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            over.set()

    with ThreadPoolExecutor(1) as apart:  # a thread of its own: the browser of other tests has a loop in this one
        done = apart.submit(asyncio.run, app(scope, receive, send))  # type: ignore[arg-type]
        error = done.exception()
    if error is not None and not over.is_set():
        raise error  # after a whole answer, the server would log it
    if not got:
        return Answer(0, {}, b"")
    start = got[0]
    found = {name.decode(): text.decode("latin-1") for name, text in start["headers"]}
    return Answer(start["status"], found, b"".join(one.get("body", b"") for one in got[1:]))
