"""The addresses of a service: which request asks for what. `Guard` has let in whoever gets here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from largesse.errors import BudgetError, LargesseError, LedgerError
from largesse.serve.batching import Clerk
from largesse.serve.json_errors import RequestError, describe_error, read_json, status_of, tell_mistake, to_json
from largesse.serve.openapi import describe_api, write_page
from largesse.serve.service import Service

THREADS = 4  # requests that are worked on at once, besides small ones
QUICK = 16_000  # bytes of a request that is decided without a thread of its own
T = TypeVar("T")
TEXT = "text/plain; version=0.0.4; charset=utf-8"  # of Prometheus


def make_app(service: Service) -> Starlette:
    """Return the application of a service."""
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="decide")
    clerk = None if service.books is None else Clerk(service.books)

    @asynccontextmanager
    async def live(_: Starlette) -> AsyncIterator[None]:
        yield
        if clerk is not None:
            clerk.stop()
        pool.shutdown(wait=True)

    views = Views(service, pool, clerk)
    routes = [
        Route("/v1/decide", views.decide, methods=["POST"]),
        Route("/v1/redeem", views.redeem, methods=["POST"]),
        Route("/v1/budget", views.budget, methods=["GET"]),
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

    def __init__(self, service: Service, pool: ThreadPoolExecutor, clerk: Clerk | None) -> None:
        self._service, self._pool, self._clerk = service, pool, clerk

    async def decide(self, request: Request) -> Response:
        """Give customers levels. A few are read and answered here and now; more go to a thread, and others need not wait."""
        service, body = self._service, await request.body()
        do = self._here if len(body) <= QUICK else self._aside

        async def answer() -> bytes:
            _check_kind(request)
            read = await do(lambda: service.read(read_json(body)))
            decided = None if self._clerk is None or read.ask is None else await self._clerk.book(read.ask)
            return await do(lambda: to_json(service.answer(read, decided)))

        return await self._answer(request, answer())

    async def redeem(self, request: Request) -> Response:
        """Count a redemption."""
        service, body = self._service, await request.body()

        async def answer() -> bytes:
            _check_kind(request)
            return await self._aside(lambda: to_json(service.redeem(read_json(body))))

        return await self._answer(request, answer())

    async def budget(self, request: Request) -> Response:
        """Say where the budget stands."""
        return await self._answer(request, self._aside(lambda: to_json(self._service.budget())))

    async def _here(self, work: Callable[[], T]) -> T:
        return work()

    async def _aside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _answer(self, request: Request, work: Awaitable[bytes], kind: str = "application/json") -> Response:
        """Wait for an answer; an error becomes one. Count it."""
        begun = time.perf_counter()
        try:
            status, body = 200, await work
        except Exception as error:
            if not isinstance(error, LargesseError):
                tell_mistake(error)
            status, body, kind = _status(error), to_json({"error": describe_error(error)}), "application/json"
        self._service.metrics.count_answer(request.url.path, status, time.perf_counter() - begun)
        return Response(body, status, {"retry-after": "1"} if status == 503 else None, kind)

    async def health(self, _: Request) -> Response:
        """Answer whether there is anything to decide by; the ledger is not asked."""
        return Response(to_json(self._service.health()), media_type="application/json")

    async def metrics(self, request: Request) -> Response:
        """Answer with what was counted."""
        # Apart from the pool: requests that wait for a ledger may hold all of it.
        return await self._answer(request, asyncio.to_thread(lambda: self._service.write_metrics().encode()), TEXT)

    async def openapi(self, _: Request) -> Response:
        """Answer with the description that programs read."""
        return Response(to_json(describe_api(self._service.watched.current)), media_type="application/json")

    async def page(self, _: Request) -> Response:
        """Answer with the description that people read."""
        headers = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(write_page(describe_api(self._service.watched.current)), 200, headers, "text/html")


def _check_kind(request: Request) -> None:
    """Refuse a body that is not said to be JSON: a page of somebody else cannot send this without asking first."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestError(415, "the body is not said to be JSON", "send Content-Type: application/json")


def _status(error: Exception) -> int:
    """Return 503 where the ledger cannot be reached, 409 where it does not allow what was asked."""
    if isinstance(error, BudgetError | LedgerError):
        return 409 if error.__cause__ is None else 503
    return status_of(error)


async def _refuse(_: Request, error: Exception) -> Response:
    return Response(to_json({"error": describe_error(error)}), _status(error), media_type="application/json")


async def _gone(request: Request, _: Exception) -> Response:
    return await _refuse(request, RequestError(400, "the request broke off", "send it again"))


async def _missing(request: Request, _: Exception) -> Response:
    error = RequestError(404, f"there is no {request.url.path[:80]}", "see / for what there is")
    return await _refuse(request, error)


async def _other_method(request: Request, error: Any) -> Response:
    what = f"{request.url.path[:80]} does not take {request.method[:10]}"
    answer = await _refuse(request, RequestError(405, what, "see / for what it takes"))
    answer.headers["allow"] = error.headers["Allow"]
    return answer
