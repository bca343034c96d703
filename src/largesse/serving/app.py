"""The addresses of a service: which request asks for what. `Guard` has let in whoever gets here."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from largesse.errors import LargesseError, LedgerError
from largesse.serving.page import describe_api, write_page
from largesse.serving.service import Service
from largesse.web import RequestError, describe_error, read_json, status_of, to_json

THREADS = 4  # requests that are worked on at once; those that wait for the ledger do not hold up the others
TEXT = "text/plain; version=0.0.4; charset=utf-8"  # of Prometheus


def make_app(service: Service) -> Starlette:
    """Return the application of a service."""
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="decide")

    @asynccontextmanager
    async def live(_: Starlette) -> AsyncIterator[None]:
        yield
        pool.shutdown(wait=True)

    views = Views(service, pool)
    routes = [
        Route("/v1/decide", views.post(service.decide), methods=["POST"]),
        Route("/v1/redeem", views.post(service.redeem), methods=["POST"]),
        Route("/v1/budget", views.get(service.budget), methods=["GET"]),
        Route("/healthz", views.health, methods=["GET"]),
        Route("/metrics", views.metrics, methods=["GET"]),
        Route("/openapi.json", views.openapi, methods=["GET"]),
        Route("/", views.page, methods=["GET"]),
        Route("/docs", views.page, methods=["GET"]),
    ]
    handlers: dict[Any, Any] = {LargesseError: _refuse, ClientDisconnect: _gone, Exception: _refuse}
    handlers |= {404: _missing, 405: _other_method}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=live)
    app.router.redirect_slashes = False  # another address is not found; nothing sends anybody elsewhere
    return app


class Views:
    """A request in, an answer out; what takes time is done in threads."""

    def __init__(self, service: Service, pool: ThreadPoolExecutor) -> None:
        self._service, self._pool = service, pool

    def post(self, work: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
        """Return a view that hands a JSON object on, and answers with one."""

        async def view(request: Request) -> Response:
            begun = time.perf_counter()
            body = await request.body()
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()

            def answer() -> tuple[int, bytes]:
                if kind != "application/json":  # a page of somebody else cannot send this without asking first
                    raise RequestError(415, "the body is not said to be JSON", "send Content-Type: application/json")
                return 200, to_json(work(read_json(body)))

            return await self._answer(request, answer, begun)

        return view

    def get(self, work: Callable[[], dict[str, Any]]) -> Any:
        """Return a view that answers with a JSON object."""

        async def view(request: Request) -> Response:
            return await self._answer(request, lambda: (200, to_json(work())), time.perf_counter())

        return view

    async def _answer(self, request: Request, work: Callable[[], tuple[int, bytes]], begun: float) -> Response:
        loop = asyncio.get_running_loop()
        status, body = await loop.run_in_executor(self._pool, _guarded, work)
        self._service.metrics.count_answer(request.url.path, status, time.perf_counter() - begun)
        headers = {"retry-after": "1"} if status == 503 else None
        return Response(body, status, headers, "application/json")

    async def health(self, _: Request) -> Response:
        """Answer whether there is anything to decide by; the ledger is not asked."""
        return Response(to_json(self._service.health()), media_type="application/json")

    async def metrics(self, _: Request) -> Response:
        """Answer with what was counted."""
        loop = asyncio.get_running_loop()
        status, body = await loop.run_in_executor(
            self._pool, _guarded, lambda: (200, self._service.write_metrics().encode())
        )
        return Response(body, status, media_type=TEXT if status == 200 else "application/json")

    async def openapi(self, _: Request) -> Response:
        """Answer with the description that programs read."""
        return Response(to_json(describe_api(self._service.watched.current)), media_type="application/json")

    async def page(self, _: Request) -> Response:
        """Answer with the description that people read."""
        headers = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(write_page(describe_api(self._service.watched.current)), 200, headers, "text/html")


def _guarded(work: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
    """Do the work; an error becomes an answer."""
    try:
        return work()
    except Exception as error:
        if not isinstance(error, LargesseError):
            traceback.print_exception(error, file=sys.stderr)
        return _status(error), to_json({"error": describe_error(error)})


def _status(error: Exception) -> int:
    """Return 503 where the ledger cannot be reached, 409 where it does not allow what was asked."""
    if isinstance(error, LedgerError):
        return 409 if error.__cause__ is None else 503
    return status_of(error)


async def _refuse(_: Request, error: Exception) -> Response:
    return Response(to_json({"error": describe_error(error)}), _status(error), media_type="application/json")


async def _gone(request: Request, _: Exception) -> Response:
    return await _refuse(request, RequestError(400, "the request broke off", "send it again"))


async def _missing(request: Request, _: Exception) -> Response:
    error = RequestError(404, f"there is no {request.url.path[:80]}", "see / for what there is")
    return await _refuse(request, error)


async def _other_method(request: Request, _: Exception) -> Response:
    error = RequestError(405, f"{request.url.path[:80]} does not take {request.method[:10]}", "see / for what it takes")
    return await _refuse(request, error)
