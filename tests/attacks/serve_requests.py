"""Requests to a service, sound and hostile, judged by a plain model of what it decides and spends.

Each seed is one service with a ledger of its own (or none), and a dozen requests. Whatever is asked, the answer is JSON that
says what is wrong, or decisions that the policy itself makes of the same rows; money adds up; a repeated request gets the
same answer; and in the end the ledger agrees with what was answered.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from commands import own_folder
from harness import FINE, Outcome
from knocks import Answer, knock
from loops import OWN_COSTS, customers_of, ran
from mutations import ODD, change
from serve_model import FEATURES, Model, check_policy, compare, settle
from strict_json import judge_error, read_strictly

Rng = np.random.Generator
TOKEN = "t0ken-that-nobody-can-guess"
SOUND = (("Host", "127.0.0.1:8000"), ("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/json"))
IDS: tuple[Any, ...] = (
    "a", "é", "日本", "x" * 200, "x" * 201, "", " ", "a\0b", "\ud800", "\u202eabc", "'; DROP TABLE decision; --", "c1", 17, -1, 0, 10**18,
    10**300, 1.5, True, None, [], {}, "\x1b[2J", "a\nb", "NaN", "%s", "../x", "👩‍👩‍👧", "e\u0301",
)  # fmt: skip
AMOUNTS: tuple[Any, ...] = (
    0.1 + 0.2, 1.1 * 3, 0.29 * 100,
    0, 1, 5, 4.99, 5.000001, 10, 11, -1, -0.0, 1e-7, 1e12, 1e13, 1e308, "5", "5.0", "5,0", "1_0", "５", "", "nan", "inf", True, [], {},
    10**30, 10**400, "x" * 3000, 5e-324, " 5 ", "1e1", "0x5",
)  # fmt: skip
ODD_BODIES = (
    b"", b"null", b"[]", b'"x"', b"1", b"{", b"\xff\xfe", b"\xef\xbb\xbf{}", b"{}" + b" " * 1000, b"{}{}", b'{"customers": NaN}',
    b'{"request_id": "a", "customers": [{"age": Infinity}]}', b'{"customers": 1e999}', b'{"a":' * 200 + b"1" + b"}" * 200,
    b"[" * 100_000, b'{"customers": [' + b"{}," * 10_001 + b"{}]}", b'{"customers": [{"age": 1' + b"0" * 5000 + b"}]}",
    b'{"customers": [{"age": 1, "age": 2}], "customers": []}', b"x" * (1 << 24), b"y" * ((1 << 24) + 1), b'{"\\ud800": 1}',
    b'{"customers": "' + b"a" * 100_000 + b'"}',
)  # fmt: skip
DOORS: tuple[tuple[tuple[str, str], ...], ...] = (
    SOUND[:1], (*SOUND[:1], ("Authorization", "Bearer x"), SOUND[2]), (*SOUND[:1], ("Authorization", f"Basic {TOKEN}"), SOUND[2]),
    (*SOUND[:1], ("Authorization", "Bearer \xff\xfe"), SOUND[2]), (("Host", "evil.example"), *SOUND[1:]), SOUND[1:],
    (*SOUND, ("Origin", "https://evil.example")), (*SOUND, ("Origin", "null")), (*SOUND, ("Authorization", "Bearer x")),
    (*SOUND, ("Host", "127.0.0.1:8000")), (*SOUND, ("Content-Length", "abc")), (*SOUND, ("Content-Length", "-1")),
    (*SOUND, ("Content-Length", "9" * 30)), (*SOUND, ("Content-Length", "5"), ("Transfer-Encoding", "chunked")),
)  # fmt: skip
KINDS_OF_BODY = (
    "text/plain",
    "",
    "application/x-www-form-urlencoded",
    "application/json2",
    "multipart/form-data",
    "\xff",
)
METHODS = ("GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "get", "POSTT", "\xff", "X" * 300)
PATHS = (
    "/", "/openapi.json", "/healthz", "/metrics", "/v1/budget", "/v1/decide", "/v1/redeem", "/v1", "/v1/decide/", "//v1/decide",
    "/v1/%2e%2e/", "/V1/DECIDE", "/v1/decide%00", "/" + "x" * 5000, "/v1/decide?token=x", "/../etc/passwd", "/%ff",
    "/docs", "/static/x", "/v1/\x1b[2J",
)  # fmt: skip
REFUSALS = {400, 401, 403, 404, 405, 409, 413, 415, 421}


def attack(seed: int) -> Outcome:
    """Ask a service a dozen things."""
    rng = np.random.default_rng([seed, 21])
    kind = ("plain", "coupons", "explored", "own costs")[seed // 2 % 4 if seed > 3 else 0]
    with own_folder() as folder, open_app(kind, folder, rng, ledger=bool(seed % 2)) as (app, model, service):
        found = FINE
        for _ in range(12):
            ask = ASKS[rng.choice(len(ASKS), p=WEIGHTS)]
            outcome = ask(app, model, rng)
            if not outcome.good:
                return Outcome(outcome.kind, f"{kind}, {ask.__name__}: {outcome.detail}")
            found = outcome
        return check_books(model, service) or found


@contextmanager
def open_app(kind: str, folder: Path, rng: Rng, *, ledger: bool) -> Iterator[tuple[Any, Model, Any]]:
    """Open a service over a shop, with a small ledger of its own or with none."""
    from largesse.serve import AuthMiddleware, LedgerSettings, Settings
    from largesse.serve.app import load_service, make_app

    total = float(rng.choice([0, 7, 30, 200, 1e12]))
    customers = float(rng.choice([1, 20, 1000]))
    promises = str(rng.choice(["kept", "while_it_lasts"]))
    given: dict[str, Any] = {"customers": customers, "promises": promises}
    book = LedgerSettings(f"sqlite:///{folder}/l.db", str(total), "2999-12-31", **given) if ledger else None
    with ExitStack() as stack:
        service = load_service(Settings(ran(kind), ledger=book))
        stack.callback(service.close)
        app = AuthMiddleware(make_app(service), Settings(folder).access(TOKEN, 8000))
        yield app, Model(kind, int(total * 1e6) if ledger else None, promises == "kept", service), service


def send(app: Any, path: str, body: Any, headers: Any = SOUND, method: str = "POST") -> Answer:
    """Send a body: bytes as they are, all else as JSON, with NaN as Python writes it."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return knock(app, path, method=method, headers=headers, body=[raw[: len(raw) // 2], raw[len(raw) // 2 :]])


def judge(answer: Answer, allowed: set[int] = REFUSALS) -> Outcome:
    """Judge an answer as such: JSON, and if it refuses, words that say why."""
    if answer.headers.get("content-type", "").startswith(("text/html", "text/plain")) and answer.status == 200:
        return FINE
    if answer.headers.get("x-content-type-options") != "nosniff":
        return Outcome("wrong", f"no header that forbids to guess types: {answer.headers}")
    try:
        body = read_strictly(answer.body)
    except (ValueError, RecursionError) as error:
        return Outcome("wrong", f"status {answer.status}, no strict JSON: {error}: {answer.body[:200]!r}")
    if answer.status == 200:
        return FINE
    found = judge_error(answer.status, body)
    if found.kind == "refused" and answer.status not in allowed:
        return Outcome("wrong", f"status {answer.status}: {found.detail}")
    return found


# -- what is asked -------------------------------------------------------------------------------------------------------


def draw_rows(model: Model, rng: Rng, most: int = 4) -> list[dict[str, Any]]:
    """Return some customers of the shop."""
    known = customers_of(model.kind)
    return [dict(known[i]) for i in rng.permutation(len(known))[: int(rng.integers(1, most + 1))]]


def odd_rows(model: Model, rng: Rng) -> list[dict[str, Any]]:
    """Return customers with odd features."""
    rows = draw_rows(model, rng)
    values = {
        "age": (-5, 0, 1e300, -1e308, 2**53 + 1, True, None, "31", "x", 10**400, 5e-324, [], {}, "NaN"),
        "city": ("never seen", "", None, "\ud800", "a\0b", 5, True, "Oslo ", "x" * 10_000, [], "\x1b[2J", "日本"),
        "since": ("2024-02-30", "2024-02-29", "0001-01-01", "9999-12-31", None, "yesterday", 5, "2024-02-29T10:00:00", "", True,
                  "10000-01-01"),
        **{name: (0, -1, 1e13, None, "5", "x", 1e308, True, 0.1 + 0.2, []) for name in OWN_COSTS},
    }  # fmt: skip
    for row in rows:
        for name in FEATURES if model.kind != "own costs" else (*FEATURES, *OWN_COSTS):
            if rng.random() < 0.3:
                choices = values[name]
                row[name] = choices[rng.integers(len(choices))]
        if rng.random() < 0.05:
            row[str(rng.choice(["more", "", "AGE", "customer", "level"]))] = ODD[rng.integers(len(ODD))]
    return rows


def ask_soundly(app: Any, model: Model, rng: Rng) -> Outcome:
    """Ask for customers as they are: they are decided, or the budget does not allow it."""
    return decide(
        app, model, {"request_id": f"r{rng.integers(10**9)}", "customers": draw_rows(model, rng, 8)}, sound=True
    )


def ask_with_odd_features(app: Any, model: Model, rng: Rng) -> Outcome:
    return decide(app, model, {"request_id": f"r{rng.integers(10**9)}", "customers": odd_rows(model, rng)})


def ask_with_odd_ids(app: Any, model: Model, rng: Rng) -> Outcome:
    """Request ids and customers' ids of all sorts; some customers come twice."""
    rows = draw_rows(model, rng)
    for row in rows:
        if rng.random() < 0.5:
            row["id"] = IDS[rng.integers(len(IDS))]
    if rng.random() < 0.2:
        rows = rows + [dict(rows[0])] * int(rng.choice([1, 3, 2000]))
    asked: dict[str, Any] = {"request_id": IDS[rng.integers(len(IDS))], "customers": rows}
    if rng.random() < 0.1:
        del asked["request_id"]
    return decide(app, model, asked)


def ask_mutated(app: Any, model: Model, rng: Rng) -> Outcome:
    asked: Any = {"request_id": f"r{rng.integers(10**9)}", "customers": draw_rows(model, rng)}
    for _ in range(1 + int(rng.integers(2))):
        asked = change(asked, rng)
    return decide(app, model, asked)


def ask_with_odd_bytes(app: Any, model: Model, rng: Rng) -> Outcome:
    """A body that is no JSON, or JSON that was cut or flipped."""
    if rng.random() < 0.5:
        raw = ODD_BODIES[rng.integers(len(ODD_BODIES))]
    else:
        raw = json.dumps({"request_id": f"r{rng.integers(10**9)}", "customers": draw_rows(model, rng)}).encode()
        at = int(rng.integers(len(raw)))
        raw = raw[:at] if rng.random() < 0.5 else raw[:at] + bytes([rng.integers(256)]) + raw[at + 1 :]
    path = "/v1/decide" if rng.random() < 0.8 else "/v1/redeem"
    answer = send(app, path, raw)
    if answer.status == 200 and path == "/v1/decide":
        return understand(model, read_strictly(raw), answer)
    return judge(answer)


def ask_again(app: Any, model: Model, rng: Rng) -> Outcome:
    """Repeat a request: the same answer comes back; the same id with something else is refused where a ledger knows it."""
    if not model.answers:
        return ask_soundly(app, model, rng)
    name = sorted(model.answers)[rng.integers(len(model.answers))]
    asked, said = model.answers[name]
    if rng.random() < 0.5:
        other: Any = change({"customers": copy.deepcopy(asked["customers"])}, rng)
        answer = send(app, "/v1/decide", {"request_id": name, **(other if isinstance(other, dict) else {})})
        if model.total is not None and answer.status == 200 and other != {"customers": asked["customers"]}:
            return Outcome("wrong", f"the id {name!r} was answered twice, with other content: {str(other)[:200]}")
        return judge(answer)
    turned = {"customers": [dict(reversed(row.items())) for row in asked["customers"]], "request_id": name}
    answer = send(app, "/v1/decide", turned)
    if answer.status != 200:
        return Outcome("wrong", f"{name!r} asked again: {answer.status}: {answer.body[:200]!r}")
    again = answer.json
    if again.pop("repeated") != (model.total is not None) or again != {
        k: v for k, v in said.items() if k != "repeated"
    }:
        return Outcome("wrong", f"{name!r} asked again gets {str(again)[:300]} instead of {str(said)[:300]}")
    return FINE


def ask_together(app: Any, model: Model, rng: Rng) -> Outcome:
    """Several requests at once, some of them the same: each id is decided once, and whoever repeats it gets that answer."""
    names = [f"r{rng.integers(10**9)}" for _ in range(3)]
    asks = [{"request_id": name, "customers": draw_rows(model, rng)} for name in names]
    asks += [asks[0], {**asks[1], "customers": draw_rows(model, rng)}, asks[2], asks[0]]
    order = [asks[i] for i in rng.permutation(len(asks))]
    answers = send_together(app, order)
    first: dict[str, tuple[Any, Any]] = {}
    for asked, answer in zip(order, answers, strict=True):
        found = judge(answer)
        if not found.good:
            return found
        if answer.status == 200 and not answer.json["repeated"] and model.total is not None:
            if asked["request_id"] in first:
                return Outcome("wrong", f"{asked['request_id']} was decided twice")
            first[asked["request_id"]] = (asked, answer)
    booked = [entry[0] for entry in model.service.ledger.decisions()] if model.total is not None else []
    for name in sorted(first, key=booked.index):
        found = understand(model, *first[name])
        if not found.good:
            return found
    for asked, answer in zip(order, answers, strict=True):
        if answer.status == 200 and (model.total is None or answer.json["repeated"]):
            found = understand(model, asked, answer)
            if not found.good:
                return found
    return FINE


def send_together(app: Any, bodies: list[Any]) -> list[Answer]:
    """Send requests to one application at the same time."""

    async def send_all() -> list[Answer]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            posts = (client.post("/v1/decide", json=body, headers=dict(SOUND[1:])) for body in bodies)
            return [Answer(one.status_code, dict(one.headers), one.content) for one in await asyncio.gather(*posts)]

    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, send_all()).result()


def redeem(app: Any, model: Model, rng: Rng) -> Outcome:
    """Redeem promises, and what was never promised."""
    asked: Any = {"request_id": IDS[rng.integers(len(IDS))], "customer": IDS[rng.integers(len(IDS))]}
    if model.promises and rng.random() < 0.7:
        request, customer = sorted(model.promises)[rng.integers(len(model.promises))]
        asked = {"request_id": request, "customer": customer}
    if rng.random() < 0.7:
        asked["amount"] = AMOUNTS[rng.integers(len(AMOUNTS))]
    if rng.random() < 0.1:
        asked = change(asked, rng)
    answer = send(app, "/v1/redeem", asked)
    if answer.status != 200:
        return judge(answer)
    return settle(model, asked, answer.json)


def knock_oddly(app: Any, model: Model, rng: Rng) -> Outcome:
    """Another token, host, origin, length, type, method or address."""
    body = {"request_id": f"r{rng.integers(10**9)}", "customers": draw_rows(model, rng, 1)}
    how = rng.integers(4)
    if how == 0:
        answer = send(app, "/v1/decide", body, DOORS[rng.integers(len(DOORS))])
    elif how == 1:
        answer = send(
            app, "/v1/decide", body, (*SOUND[:2], ("Content-Type", KINDS_OF_BODY[rng.integers(len(KINDS_OF_BODY))]))
        )
    elif how == 2:
        path, method = PATHS[rng.integers(1, len(PATHS))], METHODS[rng.integers(1, len(METHODS))]
        answer = send(app, path, b"", method=method)
        if method == "HEAD":
            return FINE if answer.status < 500 else Outcome("traceback", f"HEAD {path}: {answer.status}")
    else:
        return judge(send(app, PATHS[rng.integers(len(PATHS))], b"", method="GET"))
    if answer.status == 200:
        return Outcome("wrong", f"{how}: answered: {answer.body[:200]!r}")
    return judge(answer)


def look(app: Any, model: Model, rng: Rng) -> Outcome:
    """Where the budget stands is what the answers add up to."""
    answer = knock(app, str(rng.choice(["/v1/budget", "/metrics", "/healthz"])), headers=SOUND)
    if answer.status != 200:
        return judge(answer) if model.total is None else Outcome("wrong", f"{answer.status}: {answer.body[:200]!r}")
    text = answer.body.decode()
    if text.startswith("#"):
        values = [line.rpartition(" ")[2] for line in text.splitlines() if not line.startswith("#")]
        odd = [value for value in values if not np.isfinite(float(value)) or float(value) < 0]
        return Outcome("wrong", f"metrics hold {odd}") if odd else FINE
    said = read_strictly(answer.body)
    return FINE if "spent" not in said else compare(model, said)


def check_books(model: Model, service: Any) -> Outcome | None:
    """In the end the ledger adds up, and stands where the answers say."""
    if model.total is None:
        return None
    audit = service.ledger.audit()
    if not audit.fine:
        return Outcome("wrong", f"the audit differs: {audit.differences}")
    found = compare(model, service.ledger.standing().as_dict())
    kept = list(service.ledger.decisions())
    many = sum(len(said["decisions"]) for _, said in model.answers.values())
    if len(kept) != many:
        return Outcome("wrong", f"the ledger holds {len(kept)} decisions, {many} were answered")
    return None if found.good else found


# -- what is answered ----------------------------------------------------------------------------------------------------


def decide(app: Any, model: Model, asked: Any, *, sound: bool = False) -> Outcome:
    """Ask for decisions and judge them."""
    answer = send(app, "/v1/decide", asked)
    if answer.status == 200:
        return understand(model, asked, answer)
    if sound and not (answer.status == 409 and b"budget" in answer.body) and model.kind != "own costs":
        return Outcome("wrong", f"a sound request gets {answer.status}: {answer.body[:300]!r}")
    return judge(answer)


def understand(model: Model, asked: Any, answer: Answer) -> Outcome:
    """Check decisions by the policy itself, and count them."""
    fine = judge(answer)
    if not fine.good:
        return fine
    said, rows = answer.json, asked["customers"]
    name, made = said["request_id"], said["decisions"]
    if len(made) != len(rows) or (asked.get("request_id") is not None and name != asked["request_id"]):
        return Outcome("wrong", f"{len(rows)} customers of {asked.get('request_id')!r} get {str(said)[:200]}")
    if said["repeated"]:
        known = model.answers.get(name)
        same = known is not None and known[0]["customers"] == rows and known[1]["decisions"] == made
        return FINE if same else Outcome("wrong", f"{name!r} is said to be repeated: {str(said)[:200]}")
    if [one["customer"] for one in made] != [row.get("id") for row in rows]:
        return Outcome("wrong", f"other customers than asked: {str(said)[:300]}")
    if name in model.answers and model.total is not None:
        return Outcome("wrong", f"{name!r} is decided twice")
    wrong = check_policy(model, rows, said)
    model.answers[name] = (asked, said)
    return wrong or FINE


ASKS = (
    ask_together, ask_soundly, ask_with_odd_features, ask_with_odd_ids, ask_mutated, ask_with_odd_bytes, ask_again, redeem,
    knock_oddly, look,
)  # fmt: skip
WEIGHTS = np.array([0.08, 0.12, 0.12, 0.12, 0.12, 0.08, 0.12, 0.12, 0.08, 0.04])
