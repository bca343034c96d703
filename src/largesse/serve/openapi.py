"""OpenAPI description of the service for its policy's features, as JSON and as an HTML page."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from largesse.serve.decision_requests import MAX_REQUEST_CUSTOMERS
from largesse.serve.ledger.ledger_records import ID_LETTER, MAX_ID_LENGTH
from largesse.serve.served_policy import ServedPolicy
from largesse.version import __version__

Schema = dict[str, Any]
DAY = (  # of the Gregorian calendar, by year and month
    r"^([12][0-9]{3}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
    r"|[12][0-9](0[48]|[2468][048]|[13579][26])-02-29|(1[26]|2[048])00-02-29)$"
)
FEATURE_SCHEMAS: dict[str, Schema] = {
    "number": {"type": ["number", "boolean", "null"]},
    "text": {"type": ["string", "null"]},
    "date": {"type": ["string", "null"], "pattern": DAY, "description": "2026-01-31; null if it is unknown."},
}
ID_TEXT: Schema = {"minLength": 1, "maxLength": MAX_ID_LENGTH, "pattern": f"^{ID_LETTER}+$"}
ID_NUMBER: Schema = {"minimum": -(2**63), "maximum": 2**64 - 1}  # larger integers are floats to most readers of JSON
LEDGER_PATHS = ("/v1/redeem", "/v1/budget")


def describe_api(served: ServedPolicy, *, needs_token: bool, has_ledger: bool) -> Schema:
    """Return the OpenAPI description of a service, with the features and levels of its policy."""
    api: Schema = json.loads(_read_package_file("openapi.json"))
    policy, costs = served.policy, served.policy.levels.cost_columns or ()
    features = {column.name: column.kind for column in policy.model.encoder_.columns}
    api["info"] |= {
        "version": __version__,
        "description": f"Policy {served.version}. Levels, the cheapest first: {', '.join(served.labels)}.",
    }
    ids: Schema = {"type": ["string", "integer"], **ID_TEXT, **ID_NUMBER}
    if not has_ledger:
        ids = {"type": ["string", "integer", "null"], **ID_NUMBER}
    schemas, decide = api["components"]["schemas"], api["paths"]["/v1/decide"]["post"]
    schemas["customer"] = {
        "type": "object",
        "properties": {
            served.id_field: {**ids, "description": "The customer's id."},
            **{name: FEATURE_SCHEMAS.get(kind, FEATURE_SCHEMAS["text"]) for name, kind in features.items()},
            **{name: {"type": "number", "description": "Cost of a level."} for name in costs},
        },
        "required": [*([served.id_field] if has_ledger else []), *features, *costs],
    }
    schemas["decision"]["properties"]["level"]["enum"] = list(served.labels)
    body = decide["requestBody"]["content"]["application/json"]
    body["schema"]["properties"]["customers"]["maxItems"] = MAX_REQUEST_CUSTOMERS
    for path in ("/v1/decide", "/v1/redeem"):
        properties = api["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
        properties["request_id"] |= ID_TEXT
    properties["customer"] |= ids
    if has_ledger:
        body["schema"]["required"].append("request_id")
    else:
        body["schema"]["properties"]["request_id"]["type"] = ["string", "null"]
        api["paths"] = {path: item for path, item in api["paths"].items() if path not in LEDGER_PATHS}
    if not needs_token:
        del api["security"], api["components"]["securitySchemes"]
    body["example"]["customers"] = [{served.id_field: "c1", **_make_example_customer(served)}]
    decide["responses"]["200"]["content"]["application/json"]["example"] = _make_example_answer(served)
    return api


def _make_example_customer(served: ServedPolicy) -> Schema:
    """Return an example value for each feature, and for each customer cost of a level."""
    example: Schema = {}
    for column in served.policy.model.encoder_.columns:
        categories, scale = getattr(column, "words", None), getattr(column, "scale", None)
        if column.kind == "number":
            example[column.name] = float(f"{scale.centre:.3g}") if scale is not None else 1.0
        else:
            example[column.name] = "2026-01-31" if column.kind == "date" else categories[0] if categories else "text"
    return example | dict.fromkeys(served.policy.levels.cost_columns or (), 1.0)


def _make_example_answer(served: ServedPolicy) -> Schema:
    price = served.policy.price or 0.0
    expected = served.policy.expect(served.encode([_make_example_customer(served)]))
    level = int((expected.responses[0] - price * expected.costs[0]).argmax())
    decision = {
        "customer": "c1",
        "level": served.labels[level],
        "level_number": level,
        "propensity": 1.0,
        "expected_response": float(f"{expected.responses[0, level]:.4g}"),
        "expected_cost": float(f"{expected.costs[0, level]:.4g}"),
    }
    answer = {"request_id": "order-1", "policy": served.version, "price": float(f"{price:.4g}")}
    return {**answer, "decisions": [decision], "repeated": False}


def render_docs(api: Schema) -> str:
    """Render an OpenAPI description as an HTML page without external resources."""
    from jinja2 import Environment

    template = Environment(autoescape=True, trim_blocks=True).from_string(_read_package_file("docs.html"))
    return template.render(api=api, to_json=lambda content: json.dumps(content, indent=2, ensure_ascii=False))


@lru_cache
def _read_package_file(name: str) -> str:
    return (files("largesse.serve") / name).read_text(encoding="utf-8")
