"""The ASGI application of a service.

Starlette, not FastAPI: the schema of a request follows from the policy that is served and changes with it; FastAPI's page of
documentation loads scripts from the network; and an empty handler took 8.2 instead of 1.1 ms for 1,000 customers of 20 features.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import Route

from largesse.errors import Problem, fail, join_some
from largesse.serve.json_errors import error_handlers
from largesse.serve.ledger_context import open_ledger_context, require_max_costs
from largesse.serve.policy_store import PolicyStore, ServedPolicy
from largesse.serve.service import Service
from largesse.serve.settings import Settings


def load_service(settings: Settings) -> Service:
    """Load the policy and open the ledger."""
    labels: list[tuple[str, ...]] = []

    def check(served: ServedPolicy) -> None:
        """Refuse rules that a price cannot keep, and levels that the ledger cannot count or did not count before."""
        if served.rules and not settings.without_rules:
            hint = "plan without them; or serve without them all the same: --without-rules"
            fail("serve", Problem(f"a served policy cannot keep the plan's rules: {join_some(served.rules)}", hint))
        if settings.ledger is None:
            return
        if labels and served.labels != labels[0]:
            hint = "stop the service, and start it with a new ledger"
            fail("serve", Problem("the new policy has other levels than the ledger's decisions", hint))
        require_max_costs(served, settings.ledger.most)

    store = PolicyStore(settings.source, check)
    labels.append(store.current.labels)
    if settings.ledger is None:
        return Service(store)
    return Service(store, open_ledger_context(store.current, settings.source, settings.ledger))


def make_app(service: Service) -> Starlette:
    """Return the application of a service, which closes it at the end."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        service.store.watch()
        yield
        service.close()

    routes = [
        Route("/v1/decide", service.decide, methods=["POST"]),
        Route("/v1/redeem", service.redeem, methods=["POST"]),
        Route("/v1/budget", service.budget, methods=["GET"]),
        Route("/healthz", service.health, methods=["GET"]),
        Route("/metrics", service.measure, methods=["GET"]),
        Route("/openapi.json", service.openapi, methods=["GET"]),
        Route("/", service.docs, methods=["GET"]),
        Route("/docs", service.docs, methods=["GET"]),
    ]
    handlers = error_handlers("there is no {path}", "see / for what there is")
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    app.router.redirect_slashes = False  # another address is not found
    return app
