"""The service described: OpenAPI for programs, with the features of the policy that decides, and a page for people."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from largesse.serving.policies import Served
from largesse.version import __version__

KINDS: dict[str, list[str]] = {
    "number": ["number", "boolean", "null"],
    "text": ["string", "null"],
    "date": ["string", "null"],
}
EXAMPLES: dict[str, Any] = {"number": 1.0, "text": "text", "date": "2026-01-31"}
STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin: 2.5rem 0 .3rem; font-size: 1.15rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .9rem; }
pre { padding: .8rem 1rem; overflow-x: auto; border: 1px solid #8886; border-radius: .5rem; }
p { margin: .3rem 0; }
"""


def describe_api(served: Served) -> dict[str, Any]:
    """Return what the service does, as OpenAPI 3.1."""
    customer = _customer(served)
    example = {name: EXAMPLES[kind] for name, kind in _features(served).items()}
    asked = {
        "type": "object",
        "required": ["customers"],
        "properties": {
            "request_id": {"type": "string", "description": "Sent again, it gets the same answer. A ledger needs it."},
            "customers": {"type": "array", "minItems": 1, "items": customer},
        },
        "example": {"request_id": "order-1", "customers": [{served.key: "c1", **example}]},
    }
    redeemed = {
        "type": "object",
        "required": ["request_id", "customer"],
        "properties": {
            "request_id": {"type": "string"},
            "customer": {"type": ["string", "integer"]},
            "amount": {"type": "number", "description": "What was paid; the face value, unless it is given."},
        },
        "example": {"request_id": "order-1", "customer": "c1"},
    }
    text = "Prometheus text."
    return {
        "openapi": "3.1.0",
        "info": {"title": "largesse", "version": __version__, "description": f"Policy {served.version}."},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": {
            "/v1/decide": {"post": _call("Give each customer a level.", asked)},
            "/v1/redeem": {"post": _call("Count what a customer redeemed. Needs a ledger.", redeemed)},
            "/v1/budget": {"get": _call("Where the budget stands. Needs a ledger.")},
            "/healthz": {"get": _call("What is served. Needs no token.")},
            "/metrics": {"get": _call(f"Requests, decisions, seconds, budget. {text}")},
        },
    }


def _features(served: Served) -> dict[str, str]:
    return {learnt.name: learnt.kind for learnt in served.opened.policy.model.encoder_.columns}


def _customer(served: Served) -> dict[str, Any]:
    features = _features(served)
    costs = served.opened.policy.levels.cost_columns or ()
    properties: dict[str, Any] = {served.key: {"type": ["string", "integer"], "description": "The customer's id."}}
    properties |= {name: {"type": KINDS.get(kind, ["string", "null"])} for name, kind in features.items()}
    properties |= {name: {"type": "number", "description": "What a level costs."} for name in costs}
    return {"type": "object", "required": [*features, *costs], "properties": properties}


def _call(summary: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"summary": summary, "responses": {"200": {"description": "The answer."}}}
    if body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return found


def write_page(api: dict[str, Any]) -> str:
    """Return the description as a page; it loads nothing."""
    parts = []
    for path, calls in api["paths"].items():
        for method, call in calls.items():
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(call['summary'])}</p>")
            if "requestBody" in call:
                schema = call["requestBody"]["content"]["application/json"]["schema"]
                example = json.dumps(schema["example"], indent=2, ensure_ascii=False)
                parts.append(f"<pre>{escape(example)}</pre>")
    intro = (
        "<p>Send <code>Authorization: Bearer TOKEN</code>, if the service was started with a token, and "
        "<code>Content-Type: application/json</code>. <a href='openapi.json'>OpenAPI</a> says which features customers have."
    )
    title = f"largesse {escape(api['info']['version'])}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{title}</title><style>{STYLE}</style><h1>{title}</h1>"
        f"<p>{escape(api['info']['description'])}</p>{intro}{''.join(parts)}</html>"
    )
