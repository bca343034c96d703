"""Requests to an ASGI application as they come over the wire, however odd: nothing is tidied on the way."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote


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
    kind: str = "http",
    breaks_off: bool = False,
) -> Answer:
    """Send a request and return the answer; the body goes piece by piece, and may break off before its end."""
    raw, _, query = target.partition("?")
    scope = {
        "type": kind,
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
        if kind == "websocket":
            return {"type": "websocket.connect"}
        if not pieces:
            if not breaks_off:
                await over.wait()
            return {"type": "http.disconnect"}
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces) or breaks_off}

    async def send(message: Any) -> None:
        got.append(message)
        if not message.get("more_body", True):
            over.set()

    with ThreadPoolExecutor(1) as apart:  # a thread of its own: the browser of other tests has a loop in this one
        apart.submit(asyncio.run, app(scope, receive, send)).result()  # type: ignore[arg-type]
    if kind == "websocket":
        return Answer(got[0].get("code", 0), {}, b"")
    if not got:
        return Answer(0, {}, b"")
    start = got[0]
    found = {name.decode(): text.decode("latin-1") for name, text in start["headers"]}
    return Answer(start["status"], found, b"".join(one.get("body", b"") for one in got[1:]))
