"""The service described: OpenAPI for programs, with the features of the policy that decides, and a page for people."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from largesse.serve.decisions import MOST_CUSTOMERS, REASONS
from largesse.serve.ledger.terms import PROMISES
from largesse.serve.policy_store import Served
from largesse.version import __version__

Schema = dict[str, Any]
KINDS: dict[str, Schema] = {
    "number": {"type": ["number", "boolean", "null"]},
    "text": {"type": ["string", "null"]},
    "date": {"type": ["string", "null"], "description": "A date or a time: 2026-01-31; null where it is not known."},
}
NAMES = {"string": "text", "integer": "whole number"}
STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 48rem; margin: 2rem auto 4rem; padding: 0 1rem; }
h1 { margin: 0 0 .3rem; font-size: 1.6rem; line-height: 1.2; }
h2 { margin: 2.5rem 0 .3rem; font-size: 1.15rem; overflow-wrap: anywhere; }
h2 code { font-size: 1em; }
h3 { margin: 1rem 0 .3rem; font-size: .95rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .875rem; }
pre { margin: .3rem 0; padding: .7rem 1rem; overflow-x: auto; border: 1px solid #8886; border-radius: .5rem; }
p { margin: .3rem 0; }
table { width: 100%; border-collapse: collapse; margin: .5rem 0; }
th, td { padding: .35rem .75rem .35rem 0; border-bottom: 1px solid #8884; text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; }
"""


def describe_api(served: Served) -> Schema:
    """Return what the service does, as OpenAPI 3.1."""
    asked = _object(
        {
            "request_id": _text("Sent again, it gets the same answer. A ledger needs it."),
            "customers": {"type": "array", "minItems": 1, "maxItems": MOST_CUSTOMERS, "items": _customer(served)},
        },
        ["customers"],
        {"request_id": "order-1", "customers": [{served.key: "c1", **_examples(served)}]},
    )
    redeemed = _object(
        {
            "request_id": _text("The request that the level was decided by."),
            "customer": {"type": ["string", "integer"], "description": "As in the decision."},
            "amount": _number("What was paid; the face value, unless it is given."),
        },
        ["request_id", "customer"],
        {"request_id": "order-1", "customer": "c1"},
    )
    levels = ", ".join(served.labels)
    about = f"Policy {served.version}. Levels, the cheapest first: {levels}."
    metrics = _call("Counts requests, decisions, seconds and budget, as Prometheus text.", {"text/plain": {}})
    return {
        "openapi": "3.1.0",
        "info": {"title": "largesse", "version": __version__, "description": about},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": {
            "/v1/decide": {"post": _call("Gives each customer a level.", _decided(served), asked)},
            "/v1/redeem": {"post": _call("Counts what a customer redeemed. Needs a ledger.", _paid(), redeemed)},
            "/v1/budget": {"get": _call("Says where the budget stands. Needs a ledger.", _budget())},
            "/healthz": {"get": {**_call("Says which policy decides. Needs no token.", _health()), "security": []}},
            "/metrics": {"get": metrics},
        },
    }


def _decided(served: Served) -> Schema:
    policy = served.opened.policy
    expected = policy.expect(served.prepare([_examples(served)]))
    level = int((expected.responses[0] - (policy.price or 0.0) * expected.costs[0]).argmax())
    example = {
        "customer": "c1",
        "level": served.labels[level],
        "level_number": level,
        "propensity": 1.0,
        "expected_response": float(f"{expected.responses[0, level]:.4g}"),
        "expected_cost": float(f"{expected.costs[0, level]:.4g}"),
    }
    one = _object(
        {
            "customer": {"type": ["string", "integer", "null"]},
            "level": {"type": "string", "enum": list(served.labels)},
            "level_number": {"type": "integer", "description": "0 is the cheapest level."},
            "propensity": _number("The probability that this level was drawn with: keep it for the next log."),
            "expected_response": _number("What the model expects at this level."),
            "expected_cost": _number("What the level is expected to cost."),
            "price": _number("With a ledger: the price that decided."),
            "reason": {"type": "string", "enum": list(REASONS.values()), "description": "With a ledger: why."},
        }
    )
    parts = {
        "request_id": _text(""),
        "policy": _text("The version that decided."),
        "price": _number(""),
        "decisions": {"type": "array", "items": one},
        "repeated": {"type": "boolean", "description": "Whether this request was answered before."},
    }
    whole = {"request_id": "order-1", "policy": served.version, "price": float(f"{policy.price or 0.0:.4g}")}
    return _json(_object(parts, [], {**whole, "decisions": [example], "repeated": False}))


def _paid() -> Schema:
    parts = {
        "request_id": _text(""),
        "customer": {"type": ["string", "integer"]},
        "paid": _number("What was counted."),
        "late": {"type": "boolean", "description": "Whether the promise's time was over."},
        "repeated": {"type": "boolean"},
    }
    return _json(_object(parts))


def _budget() -> Schema:
    money = {"total": "", "spent": "", "promised": "Given and not yet redeemed."}
    money |= {"held": "What is kept back for promises.", "room": "What may still be given."}
    counts = ("requests", "decisions", "redemptions", "expired")
    times = ("starts", "ends", "now")
    return _json(
        _object(
            {name: _number(words) for name, words in money.items()}
            | {name: {"type": "integer"} for name in counts}
            | {name: {"type": "string", "format": "date-time"} for name in times}
            | {"promises": {"type": "string", "enum": list(PROMISES)}}
        )
    )


def _health() -> Schema:
    parts = {
        "status": {"type": "string", "enum": ["ok", "outdated"]},
        "version": _text("Of largesse."),
        "policy": _text("The version that decides."),
        "price": _number("Of the policy."),
        "ledger": {"type": "boolean"},
        "problem": _text("Why a newer policy is not served."),
    }
    return _json(_object(parts))


def _features(served: Served) -> dict[str, str]:
    return {learnt.name: learnt.kind for learnt in served.opened.policy.model.encoder_.columns}


def _examples(served: Served) -> Schema:
    """Return a value for every feature that the policy knows, and for every cost that a customer has."""
    found: Schema = {}
    for learnt in served.opened.policy.model.encoder_.columns:
        words, scale = getattr(learnt, "words", None), getattr(learnt, "scale", None)
        if learnt.kind == "number":
            found[learnt.name] = float(f"{scale.centre:.3g}") if scale is not None else 1.0
        else:
            found[learnt.name] = "2026-01-31" if learnt.kind == "date" else words[0] if words else "text"
    return found | dict.fromkeys(served.opened.policy.levels.cost_columns or (), 1.0)


def _customer(served: Served) -> Schema:
    features = _features(served)
    costs = served.opened.policy.levels.cost_columns or ()
    properties: Schema = {served.key: {"type": ["string", "integer"], "description": "The customer's id."}}
    properties |= {name: KINDS.get(kind, KINDS["text"]) for name, kind in features.items()}
    properties |= {name: _number("What a level costs.") for name in costs}
    return _object(properties, [*features, *costs])


def _object(properties: Schema, required: list[str] | None = None, example: Schema | None = None) -> Schema:
    found: Schema = {"type": "object", "properties": properties}
    found |= {"required": required} if required else {}
    return found | ({"example": example} if example is not None else {})


def _text(words: str) -> Schema:
    return {"type": "string"} | ({"description": words} if words else {})


def _number(words: str) -> Schema:
    return {"type": "number"} | ({"description": words} if words else {})


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _call(summary: str, answer: Schema, body: Schema | None = None) -> Schema:
    problem = _object({"what": _text("What is wrong."), "hint": _text("What to do.")})
    error = _object({"message": _text(""), "problems": {"type": "array", "items": problem}})
    refused = {"description": "What is wrong, and what to do.", "content": _json(_object({"error": error}))}
    found: Schema = {"summary": summary, "responses": {"200": {"description": "The answer.", "content": answer}}}
    found["responses"]["default"] = refused
    if body is not None:
        found["requestBody"] = {"required": True, "content": _json(body)}
    return found


def write_page(api: Schema) -> str:
    """Return the description as a page; it loads nothing."""
    decide = api["paths"]["/v1/decide"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    customer = decide["properties"]["customers"]["items"]
    parts = [
        f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(call['summary'])}</p>{_write_examples(call)}"
        for path, calls in api["paths"].items()
        for method, call in calls.items()
    ]
    title = "largesse decides over HTTP"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{title}</title><style>{STYLE}</style><main><h1>{title}</h1>"
        f"<p>{escape(api['info']['description'])}</p>"
        "<p>Send <code>Content-Type: application/json</code> and, if the service was started with a token, "
        "<code>Authorization: Bearer TOKEN</code>. <a href='openapi.json'>openapi.json</a> says the same for programs.</p>"
        f"{''.join(parts)}<h2>What a customer has</h2>{_write_properties(customer)}"
        f"<p>largesse {escape(api['info']['version'])}</p></main></html>"
    )


def _write_examples(call: Schema) -> str:
    asked = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    given = call["responses"]["200"]["content"].get("application/json", {}).get("schema", {})
    shown = [(words, part["example"]) for words, part in (("Send", asked), ("Answer", given)) if "example" in part]
    return "".join(
        f"<h3>{words}</h3><pre tabindex=0>{escape(json.dumps(example, indent=2, ensure_ascii=False))}</pre>"
        for words, example in shown
    )


def _write_properties(customer: Schema) -> str:
    needed = customer.get("required", [])
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{_kind(part)}</td>"
        f"<td>{escape(part.get('description') or ('null where it is not known' if name in needed else ''))}</td></tr>"
        for name, part in customer["properties"].items()
    )
    return f"<table><tr><th>name</th><th>kind</th><th></th></tr>{rows}</table>"


def _kind(part: Schema) -> str:
    given: list[str] = part["type"] if isinstance(part["type"], list) else [part["type"]]
    return " or ".join(NAMES.get(word, word) for word in given if word != "null")
