"""Asking a service as over HTTP, without a network."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from largesse.serve import AuthMiddleware, Settings
from largesse.serve.app import make_app
from largesse.serve.service import Service

TOKEN = "t0ken-that-nobody-can-guess"
Ask = Callable[..., httpx.Response]


def connect(service: Service, token: str | None = TOKEN) -> Ask:
    """Return what asks a service as over HTTP."""
    app = AuthMiddleware(make_app(service), Settings(Path()).access(token, 8000))

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
