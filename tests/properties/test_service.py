"""A service under sound and hostile requests, and while its policy, its campaign and its ledger change under it.

Each answer is JSON that says what is wrong, or decisions that the policy itself makes of the same rows; money adds up; a
repeated request gets the same answer; and in the end the ledger agrees with what was answered.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from largesse.errors import LargesseError
from largesse.io import archive
from largesse.policy import policy
from largesse.serve import AuthMiddleware, LedgerSettings, ServiceSettings, make_terms, open_ledger
from largesse.serve.endpoints import load_service, make_service_app
from largesse.serve.served_policy import VERSION_DIGITS
from oracles.service import ServiceModel, check_decisions, compare_standing, settle
from support.answers import check_error, read_strictly
from support.commands import list_files, working_folder
from support.examples import RNGS, examples
from support.mutations import ODD, change, change_array
from support.services import Answer, knock
from support.shops import AT_RANDOM, KINDS, OWN_COSTS, copy_run, customers_of, policy_of, run_folder

Rng = np.random.Generator
FEATURES = ("age", "city", "since")
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
    b"", b"null", b"[]", b'"x"', b"1", b"{", b"\xff\xfe", b"\xef\xbb\xbf{}", b"{}" + b" " * 1000, b"{}{}",
    b'{"customers": NaN}', b'{"request_id": "a", "customers": [{"age": Infinity}]}', b'{"customers": 1e999}',
    b'{"a":' * 200 + b"1" + b"}" * 200, b"[" * 100_000, b'{"customers": [' + b"{}," * 10_001 + b"{}]}",
    b'{"customers": [{"age": 1' + b"0" * 5000 + b"}]}", b'{"customers": [{"age": 1, "age": 2}], "customers": []}',
    b"x" * (1 << 24), b"y" * ((1 << 24) + 1), b'{"\\ud800": 1}', b'{"customers": "' + b"a" * 100_000 + b'"}',
)  # fmt: skip
ODD_HEADERS: tuple[tuple[tuple[str, str], ...], ...] = (
    SOUND[:1], (*SOUND[:1], ("Authorization", "Bearer x"), SOUND[2]),
    (*SOUND[:1], ("Authorization", f"Basic {TOKEN}"), SOUND[2]),
    (*SOUND[:1], ("Authorization", "Bearer \xff\xfe"), SOUND[2]), (("Host", "evil.example"), *SOUND[1:]), SOUND[1:],
    (*SOUND, ("Origin", "https://evil.example")), (*SOUND, ("Origin", "null")),
    (*SOUND, ("Authorization", "Bearer x")), (*SOUND, ("Host", "127.0.0.1:8000")), (*SOUND, ("Content-Length", "abc")),
    (*SOUND, ("Content-Length", "-1")), (*SOUND, ("Content-Length", "9" * 30)),
    (*SOUND, ("Content-Length", "5"), ("Transfer-Encoding", "chunked")),
)  # fmt: skip
BODY_TYPES = (
    "text/plain", "", "application/x-www-form-urlencoded", "application/json2", "multipart/form-data", "\xff",
)  # fmt: skip
METHODS = ("GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "get", "POSTT", "\xff", "X" * 300)
PATHS = (
    "/", "/openapi.json", "/healthz", "/metrics", "/v1/budget", "/v1/decide", "/v1/redeem", "/v1", "/v1/decide/", "//v1/decide",
    "/v1/%2e%2e/", "/V1/DECIDE", "/v1/decide%00", "/" + "x" * 5000, "/v1/decide?token=x", "/../etc/passwd", "/%ff",
    "/docs", "/static/x", "/v1/\x1b[2J",
)  # fmt: skip
REFUSALS = {400, 401, 403, 404, 405, 409, 413, 415, 421}


@dataclass
class Served:
    """A service over a shop, its application, and the model of its answers."""

    kind: str
    service: Any
    app: Any
    model: ServiceModel


@contextmanager
def serve(kind: str, folder: Path, ledger: LedgerSettings | None) -> Iterator[Served]:
    """Open a service over a shop, with a ledger or with none."""
    service = load_service(ServiceSettings(run_folder(kind), ledger=ledger))
    try:
        app = AuthMiddleware(make_service_app(service), ServiceSettings(folder).make_access_policy(TOKEN, 8000))
        total = None if ledger is None else int(float(ledger.total) * 1e6)
        features = (*FEATURES, *(OWN_COSTS if kind == "own costs" else ()))
        kept = ledger is None or ledger.promises == "kept"
        model = ServiceModel(policy_of(kind), features, AT_RANDOM.get(kind, 0.0), total, kept)
        yield Served(kind, service, app, model)
    finally:
        service.close()


@st.composite
def ledgers(draw: st.DrawFn) -> LedgerSettings | None:
    """A small ledger in the folder at hand, or none."""
    if not draw(st.booleans()):
        return None
    total, customers = draw(st.sampled_from([30.0, 0.0, 7.0, 200.0, 1e12])), draw(st.sampled_from([20.0, 1.0, 1000.0]))
    promises = draw(st.sampled_from(["kept", "while_it_lasts"]))
    return LedgerSettings("sqlite:///l.db", str(total), "2999-12-31", customers=customers, promises=promises)


def send(app: Any, path: str, body: Any, headers: Any = SOUND, method: str = "POST") -> Answer:
    """Send a body: bytes as they are, all else as JSON, with NaN as Python writes it."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return knock(app, path, method=method, headers=headers, body=[raw[: len(raw) // 2], raw[len(raw) // 2 :]])


def check_response(answer: Answer, allowed: set[int] = REFUSALS) -> None:
    """Check an answer as such: JSON, and if it refuses, words that say why."""
    if answer.status == 200 and answer.headers.get("content-type", "").startswith(("text/html", "text/plain")):
        return
    assert answer.headers.get("x-content-type-options") == "nosniff", answer.headers
    if answer.status == 200:
        read_strictly(answer.body)
    else:
        check_error(answer.status, answer.body, allowed)


# -- what is asked -------------------------------------------------------------------------------------------------------


def draw_rows(served: Served, rng: Rng, most: int = 4) -> list[dict[str, Any]]:
    """Return some customers of the shop."""
    known = customers_of(served.kind)
    return [dict(known[i]) for i in rng.permutation(len(known))[: int(rng.integers(1, most + 1))]]


def odd_rows(served: Served, rng: Rng) -> list[dict[str, Any]]:
    """Return customers with odd features."""
    rows = draw_rows(served, rng)
    values = {
        "age": (-5, 0, 1e300, -1e308, 2**53 + 1, True, None, "31", "x", 10**400, 5e-324, [], {}, "NaN"),
        "city": ("never seen", "", None, "\ud800", "a\0b", 5, True, "Oslo ", "x" * 10_000, [], "\x1b[2J", "日本"),
        "since": ("2024-02-30", "2024-02-29", "0001-01-01", "9999-12-31", None, "yesterday", 5, "2024-02-29T10:00:00", "", True,
                  "10000-01-01"),
        **{name: (0, -1, 1e13, None, "5", "x", 1e308, True, 0.1 + 0.2, []) for name in OWN_COSTS},
    }  # fmt: skip
    for row in rows:
        for name in FEATURES if served.kind != "own costs" else (*FEATURES, *OWN_COSTS):
            if rng.random() < 0.3:
                choices = values[name]
                row[name] = choices[rng.integers(len(choices))]
        if rng.random() < 0.05:
            row[str(rng.choice(["more", "", "AGE", "customer", "level"]))] = ODD[rng.integers(len(ODD))]
    return rows


def ask_soundly(served: Served, rng: Rng) -> None:
    """Ask for customers as they are: they are decided, or the budget does not allow it."""
    return decide(served, {"request_id": f"r{rng.integers(10**9)}", "customers": draw_rows(served, rng, 8)}, sound=True)


def ask_with_odd_features(served: Served, rng: Rng) -> None:
    return decide(served, {"request_id": f"r{rng.integers(10**9)}", "customers": odd_rows(served, rng)})


def ask_with_odd_ids(served: Served, rng: Rng) -> None:
    """Request ids and customers' ids of all sorts; some customers come twice."""
    rows = draw_rows(served, rng)
    for row in rows:
        if rng.random() < 0.5:
            row["id"] = IDS[rng.integers(len(IDS))]
    if rng.random() < 0.2:
        rows = rows + [dict(rows[0])] * int(rng.choice([1, 3, 2000]))
    asked: dict[str, Any] = {"request_id": IDS[rng.integers(len(IDS))], "customers": rows}
    if rng.random() < 0.1:
        del asked["request_id"]
    return decide(served, asked)


def ask_mutated(served: Served, rng: Rng) -> None:
    asked: Any = {"request_id": f"r{rng.integers(10**9)}", "customers": draw_rows(served, rng)}
    for _ in range(1 + int(rng.integers(2))):
        asked = change(asked, rng)
    return decide(served, asked)


def ask_with_odd_bytes(served: Served, rng: Rng) -> None:
    """A body that is no JSON, or JSON that was cut or flipped."""
    if rng.random() < 0.5:
        raw = ODD_BODIES[rng.integers(len(ODD_BODIES))]
    else:
        raw = json.dumps({"request_id": f"r{rng.integers(10**9)}", "customers": draw_rows(served, rng)}).encode()
        at = int(rng.integers(len(raw)))
        raw = raw[:at] if rng.random() < 0.5 else raw[:at] + bytes([rng.integers(256)]) + raw[at + 1 :]
    path = "/v1/decide" if rng.random() < 0.8 else "/v1/redeem"
    answer = send(served.app, path, raw)
    if answer.status == 200 and path == "/v1/decide":
        return understand(served, read_strictly(raw), answer)
    check_response(answer)
    return None


def ask_again(served: Served, rng: Rng) -> None:
    """Repeat a request: the same answer comes back; the same id with something else is refused where a ledger knows it."""
    answers, booked = served.model.answers, served.model.total is not None
    if not answers:
        return ask_soundly(served, rng)
    name = sorted(answers)[rng.integers(len(answers))]
    asked, said = answers[name]
    if rng.random() < 0.5:
        other: Any = change({"customers": copy.deepcopy(asked["customers"])}, rng)
        answer = send(served.app, "/v1/decide", {"request_id": name, **(other if isinstance(other, dict) else {})})
        if booked and answer.status == 200:
            assert other == {"customers": asked["customers"]}, f"the id {name!r} was answered twice"
        return check_response(answer)
    turned = {"customers": [dict(reversed(row.items())) for row in asked["customers"]], "request_id": name}
    answer = send(served.app, "/v1/decide", turned)
    assert answer.status == 200, answer.body[:200]
    assert answer.json == {**said, "repeated": booked}
    return None


def ask_together(served: Served, rng: Rng) -> None:
    """Several requests at once, some of them the same: each id is decided once, and whoever repeats it gets that answer."""
    booked = served.model.total is not None
    names = [f"r{rng.integers(10**9)}" for _ in range(3)]
    asks = [{"request_id": name, "customers": draw_rows(served, rng)} for name in names]
    asks += [asks[0], {**asks[1], "customers": draw_rows(served, rng)}, asks[2], asks[0]]
    order = [asks[i] for i in rng.permutation(len(asks))]
    answers = send_together(served.app, order)
    first: dict[str, tuple[Any, Any]] = {}
    for asked, answer in zip(order, answers, strict=True):
        check_response(answer)
        if answer.status == 200 and not answer.json["repeated"] and booked:
            assert asked["request_id"] not in first, "decided twice"
            first[asked["request_id"]] = (asked, answer)
    decided = [entry[0] for entry in served.service.ledger.decisions()] if booked else []
    for name in sorted(first, key=decided.index):
        understand(served, *first[name])
    for asked, answer in zip(order, answers, strict=True):
        if answer.status == 200 and (not booked or answer.json["repeated"]):
            understand(served, asked, answer)


def send_together(app: Any, bodies: list[Any]) -> list[Answer]:
    """Send requests to one application at the same time."""

    async def send_all() -> list[Answer]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            posts = (client.post("/v1/decide", json=body, headers=dict(SOUND[1:])) for body in bodies)
            return [Answer(one.status_code, dict(one.headers), one.content) for one in await asyncio.gather(*posts)]

    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, send_all()).result()


def redeem(served: Served, rng: Rng) -> None:
    """Redeem promises, and what was never promised."""
    asked: Any = {"request_id": IDS[rng.integers(len(IDS))], "customer": IDS[rng.integers(len(IDS))]}
    if served.model.promises and rng.random() < 0.7:
        request, customer = sorted(served.model.promises)[rng.integers(len(served.model.promises))]
        asked = {"request_id": request, "customer": customer}
    if rng.random() < 0.7:
        asked["amount"] = AMOUNTS[rng.integers(len(AMOUNTS))]
    if rng.random() < 0.1:
        asked = change(asked, rng)
    answer = send(served.app, "/v1/redeem", asked)
    if answer.status != 200:
        check_response(answer)
        return None
    return settle(served.model, asked, answer.json)


def send_oddly(served: Served, rng: Rng) -> None:
    """Another token, host, origin, length, type, method or address."""
    body = {"request_id": f"r{rng.integers(10**9)}", "customers": draw_rows(served, rng, 1)}
    how = rng.integers(4)
    if how == 0:
        answer = send(served.app, "/v1/decide", body, ODD_HEADERS[rng.integers(len(ODD_HEADERS))])
    elif how == 1:
        kind = ("Content-Type", BODY_TYPES[rng.integers(len(BODY_TYPES))])
        answer = send(served.app, "/v1/decide", body, (*SOUND[:2], kind))
    elif how == 2:
        path, method = PATHS[rng.integers(1, len(PATHS))], METHODS[rng.integers(1, len(METHODS))]
        answer = send(served.app, path, b"", method=method)
        if method == "HEAD":
            assert answer.status < 500
            return None
    else:
        return check_response(send(served.app, PATHS[rng.integers(len(PATHS))], b"", method="GET"))
    assert answer.status != 200, answer.body[:200]
    check_response(answer)
    return None


def read_standing(served: Served, rng: Rng) -> None:
    """The budget stands where the answers add up to."""
    answer = knock(served.app, str(rng.choice(["/v1/budget", "/metrics", "/healthz"])), headers=SOUND)
    if answer.status != 200:
        assert served.model.total is None, answer.body[:200]
        return check_response(answer)
    if answer.body.startswith(b"#"):
        lines = [line for line in answer.body.decode().splitlines() if not line.startswith("#")]
        values = np.array([float(line.rpartition(" ")[2]) for line in lines])
        assert (np.isfinite(values) & (values >= 0)).all(), lines
    elif "spent" in (said := read_strictly(answer.body)):
        compare_standing(served.model, said)
    return None


def check_ledger(served: Served) -> None:
    """In the end the ledger adds up, and stands where the answers say."""
    if served.model.total is None:
        return
    ledger = served.service.ledger
    assert ledger.audit().matches, ledger.audit().differences
    compare_standing(served.model, ledger.standing().as_dict())
    answered = sum(len(said["decisions"]) for _, said in served.model.answers.values())
    assert len(list(ledger.decisions())) == answered


# -- what is answered ----------------------------------------------------------------------------------------------------


def decide(served: Served, asked: Any, *, sound: bool = False) -> None:
    """Ask for decisions and check them."""
    answer = send(served.app, "/v1/decide", asked)
    if answer.status == 200:
        return understand(served, asked, answer)
    if sound and served.kind != "own costs":
        assert answer.status == 409, answer.body[:300]
        assert b"budget" in answer.body
    check_response(answer)
    return None


def understand(served: Served, asked: Any, answer: Answer) -> None:
    """Check decisions by the policy itself, and count them."""
    check_response(answer)
    said, rows, model = answer.json, asked["customers"], served.model
    name, made = said["request_id"], said["decisions"]
    assert len(made) == len(rows)
    assert asked.get("request_id") in (None, name)
    if said["repeated"]:
        assert name in model.answers
        assert (model.answers[name][0]["customers"], model.answers[name][1]["decisions"]) == (rows, made)
        return
    assert [one["customer"] for one in made] == [row.get("id") for row in rows]
    assert name not in model.answers or model.total is None, f"{name!r} is decided twice"
    check_decisions(model, rows, said)
    model.answers[name] = (asked, said)


ASKS: tuple[Callable[[Served, Rng], None], ...] = (
    ask_soundly, ask_together, ask_with_odd_features, ask_with_odd_ids, ask_mutated, ask_with_odd_bytes, ask_again, redeem,
    send_oddly, read_standing,
)  # fmt: skip


@examples(5)
@given(st.data(), st.sampled_from(list(KINDS)), ledgers(), RNGS)
def test_requests_are_decided_as_the_policy_does_or_refused(
    data: st.DataObject, kind: str, ledger: LedgerSettings | None, rng: Rng
) -> None:
    with working_folder() as folder, serve(kind, folder, ledger) as served:
        for ask in data.draw(st.lists(st.sampled_from(ASKS), min_size=12, max_size=12)):
            ask(served, rng)
        check_ledger(served)


# -- changes under a service ----------------------------------------------------------------------------------------------


def check_current_policy(service: Any, app: Any, file: Path) -> None:
    """Check a service whose policy was replaced: what is refused changes nothing, what is not is what decides."""
    before = service.store.current.version
    service.store.reload_if_changed()
    now, problem = service.store.current.version, service.store.problem
    health = knock(app, "/healthz", headers=SOUND)
    assert (health.status, health.json["policy"]) == (200, now)
    assert (health.json["status"] == "outdated") == (problem is not None)
    if problem is not None:
        assert now == before
        assert str(problem).strip()
    elif file.is_file():
        assert now == hashlib.sha256(file.read_bytes()).hexdigest()[:VERSION_DIGITS]


def ask_current_policy(service: Any, app: Any, name: str, rows: list[dict[str, Any]]) -> None:
    """Ask for some customers: decisions are those of the policy that is said to decide."""
    answer = send(app, "/v1/decide", {"request_id": name, "customers": rows})
    if answer.status != 200:
        return check_response(answer, {400, 409})
    current = service.store.current
    assert answer.json["policy"] == current.version
    expected, levels = current.policy.expect(current.encode(rows)), current.policy.levels
    for at, one in enumerate(answer.json["decisions"]):
        level = one["level_number"]
        cost = expected.costs[at, level]
        if service.ledger is not None and levels.on_redemption:  # never more than the face value
            cost = min(cost, levels.costs[level] + (levels.contact_cost if level else 0.0))
        near = (expected.responses[at, level], cost)
        np.testing.assert_allclose((one["expected_response"], one["expected_cost"]), near, rtol=1e-9, atol=2e-6)
        assert one["level"] == levels.labels[level]
        assert 0 < one["propensity"] <= 1 + 1e-9
    return None


def take_ledger(service: Any, app: Any, folder: Path, kind: str, how: Callable[..., None], rng: Rng) -> None:
    """Do something to the ledger's file. What is decided after that is in the file, or it is refused with 503."""
    if rng.random() < 0.3:
        service.ledger._store.disconnect()
    before = list_files(folder)
    how(folder / "l.db", rng)
    before |= list_files(folder)
    decided = set()
    for at in range(3):
        answer = send(app, "/v1/decide", {"request_id": f"t{at}", "customers": [dict(customers_of(kind)[at])]})
        if answer.status == 200:
            decided.add(f"t{at}")
        elif answer.status != 503:
            check_response(answer, {400, 409})
    assert list_files(folder) - before <= {"l.db-wal", "l.db-shm"}
    service.ledger.close()
    try:
        with open_ledger(f"sqlite:///{folder}/l.db") as ledger:
            assert decided <= {row[0] for row in ledger.decisions()}
            assert ledger.audit().matches
    except LargesseError:
        assert not decided, "decided, and the ledger cannot be read"


# -- what is done to a policy's file --------------------------------------------------------------------------------------


def clear(path: Path) -> None:
    """Take away whatever is at a path."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def put(path: Path, raw: bytes, rng: Rng) -> None:
    """Write a file in one step, or in place."""
    if rng.random() < 0.5 or path.is_symlink() or path.is_dir():
        path.with_suffix(".new").write_bytes(raw)
        clear(path)
        path.with_suffix(".new").replace(path)
    else:
        path.write_bytes(raw)


def put_another(path: Path, kind: str, rng: Rng) -> None:
    """Put a sound policy there: this shop's, or another's."""
    other = sorted(KINDS)[rng.integers(len(KINDS))] if rng.random() < 0.6 else kind
    put(path, (run_folder(other) / "policy.largesse").read_bytes(), rng)


def put_damaged(path: Path, kind: str, rng: Rng) -> None:
    """Put a file there that was cut or flipped."""
    raw = bytearray((run_folder(kind) / "policy.largesse").read_bytes())
    if rng.random() < 0.5:
        raw = raw[: rng.integers(len(raw))]
    else:
        for _ in range(int(rng.integers(1, 20))):
            raw[rng.integers(len(raw))] = rng.integers(256)
    put(path, bytes(raw), rng)


def put_sealed(path: Path, kind: str, rng: Rng) -> None:
    """Put a file there whose digests are right and whose content is not."""
    manifest, arrays = policy_of(kind)._state()
    for _ in range(1 + int(rng.integers(2))):
        if rng.random() < 0.4:
            arrays = change_array(arrays, rng)
        else:
            manifest = change(manifest, rng)
    try:
        with tempfile.TemporaryDirectory() as folder:
            archive.write_archive(f"{folder}/sealed", policy.POLICY_FORMAT, manifest, arrays)
            raw = Path(f"{folder}/sealed").read_bytes()
        put(path, raw, rng)
    except (ValueError, RecursionError, TypeError):  # no file can hold this
        return


def put_nothing(path: Path, _kind: str, rng: Rng) -> None:
    """Take the file away, or put there what is no file."""
    clear(path)
    how = rng.integers(5)
    if how == 0:
        path.mkdir()
    elif how == 1:
        path.symlink_to("nowhere")
    elif how == 2:
        path.symlink_to(path.name)
    elif how == 3:
        path.touch()


def change_campaign(path: Path, _kind: str, rng: Rng) -> None:
    """Damage the campaign beside the policy, and touch the policy."""
    file = path.parent / "campaign.toml"
    lines = file.read_text(encoding="utf-8").splitlines()
    at = int(rng.integers(len(lines)))
    lines[at] = str(rng.choice(["", "x", "[plan]", "budget = nan", 'customer = "age"', "caps = 5", "\x00"]))
    file.write_text("\n".join(lines), encoding="utf-8")
    if path.is_file():
        os.utime(path, ns=(0, int(rng.integers(2**40))))


CHANGES: tuple[Callable[[Path, str, Rng], None], ...] = (
    *(put_another, put_another, put_damaged, put_sealed, put_sealed, put_nothing, change_campaign),
)

# -- what is done to a ledger's file --------------------------------------------------------------------------------------


def delete(path: Path, rng: Rng) -> None:
    """Delete the file, what lies beside it, or both."""
    names = (("",), ("-wal",), ("-shm",), ("", "-wal", "-shm"), ("-wal", "-shm"))[rng.integers(5)]
    for name in names:
        Path(f"{path}{name}").unlink(missing_ok=True)


def move(path: Path, rng: Rng) -> None:
    """Move the file away, and perhaps back again."""
    path.rename(path.with_suffix(".old"))
    if rng.random() < 0.5:
        path.with_suffix(".old").rename(path)


def replace(path: Path, rng: Rng) -> None:
    """Put a copy, another ledger or something else in the place of the file."""
    new, how = path.with_suffix(".new"), rng.integers(4)
    if how == 0:
        shutil.copy(path, new)
    elif how == 1:
        open_ledger(f"sqlite:///{new}", make_terms(10**6, "2999-12-31")).close()
    else:
        new.write_bytes(b"" if how == 2 else bytes(rng.integers(0, 256, 5000, dtype=np.uint8)))
    new.replace(path)


def put_folder(path: Path, _: Rng) -> None:
    """Put a folder in the place of the file."""
    path.unlink()
    path.mkdir()


def leave(_path: Path, _rng: Rng) -> None:
    """Do nothing."""


TAKEN: tuple[Callable[[Path, Rng], None], ...] = (delete, delete, move, replace, replace, put_folder, leave)


@examples(5)
@given(st.sampled_from(["plain", "coupons"]), st.booleans(), st.data(), RNGS)
def test_a_service_decides_by_the_policy_it_names_whatever_changes(
    kind: str, booked: bool, data: st.DataObject, rng: Rng
) -> None:
    ledger = LedgerSettings("sqlite:///l.db", "500", "2999-12-31", customers=100.0) if booked else None
    with working_folder() as folder:
        settings = ServiceSettings(copy_run(folder, kind), ledger=ledger, quiet=True)
        service = load_service(settings)
        try:
            app = AuthMiddleware(make_service_app(service), settings.make_access_policy(TOKEN, 8000))
            for at in range(5):
                data.draw(st.sampled_from(CHANGES))(folder / "run" / "policy.largesse", kind, rng)
                check_current_policy(service, app, folder / "run" / "policy.largesse")
                rows = customers_of("own costs" if rng.random() < 0.2 else kind)
                ask_current_policy(service, app, f"r{at}", [dict(rows[i]) for i in rng.permutation(len(rows))[:3]])
            if booked:
                take_ledger(service, app, folder, kind, data.draw(st.sampled_from(TAKEN)), rng)
        finally:
            service.close()
