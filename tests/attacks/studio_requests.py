"""Requests to the studio, random and mutated: each is refused in words or answered, and nothing changes on the disk.

No job is started: drafts name a table that is not there, or break a rule, and looks at tables are answered by another process,
which these attacks do not start.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from commands import own_folder
from folders import everything_in
from harness import FINE, Outcome
from houses import OWN, TOKEN
from knocks import Answer, knock
from loops import ran
from mutations import ODD, change
from strict_json import judge_error, read_strictly

Rng = np.random.Generator
HOST, BEARER, MARK = OWN
WORDS = (
    "run", "..", ".", "", "outside", "linked", "photos", "report.html", "plan.csv", "%2e%2e", "%2f", "%00", "a" * 3000, "é",
    "\x1b[2J", "api", "runs",
    "files", "what-if", "static", "tables", "jobs", "events", "keep", "look", "%ff", "..%2foutside", "campaign.toml",
    "index.html", "state", "CON",
)  # fmt: skip
METHODS = ("GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "get", "\xff", "X" * 200)
DRAFT = {
    "table": "0" * 16, "roles": {"level": "coupon", "response": "bought", "customer": "id", "features": ["age", "city"]},
    "levels": {"names": ["0", "5", "10"], "costs": [0, 5, 10], "on_redemption": False}, "budget": 2.5, "unit": "€",
    "title": "x", "model": "linear",
    "seed": 0, "plan": {"caps": {"5": 3}}, "parse": {},
}  # fmt: skip
RULES = {"budget": 1.5, "plan": {"caps": {"5": 20}, "explore": 0.1, "least_return": 0.0, "segment": "city"}}
RAW = (
    b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"a": NaN}', b'{"a": 1e999}', b"[" * 100_000,
    b'{"a":' * 100 + b"1" + b"}" * 100, b'{"\\ud800": 1}',
    b"x" * (1 << 20), b"{}{}", b"1" * 5000,
)  # fmt: skip
HEADERS: tuple[tuple[tuple[str, str], ...], ...] = (
    (HOST,), (HOST, BEARER), (HOST, MARK), (BEARER, MARK), (("Host", "evil.example:8137"), BEARER, MARK), (*OWN, ("Origin",
    "https://evil.example")),
    (*OWN, ("Origin", "null")), (*OWN, HOST), (*OWN, ("Content-Length", "x")), (*OWN, ("Content-Length", "9" * 25)), (HOST,
    ("Authorization", "Bearer x"), MARK),
    (HOST, ("Cookie", f"largesse-8138={TOKEN}"), MARK), (HOST, ("Cookie", "largesse-8137=x"), MARK), (*OWN[:2], ("X-Largesse", "other")),
    (*OWN, ("Content-Length", "5"), ("Transfer-Encoding", "chunked")), (HOST, ("Cookie", "=;=;;;" * 300), MARK),
)  # fmt: skip
REFUSALS = {400, 401, 403, 404, 405, 409, 413, 421}


def attack(seed: int) -> Outcome:
    """Ask a studio eight things."""
    rng = np.random.default_rng([seed, 95])
    with own_folder() as folder:
        app, home = build(folder)
        before = everything_in(home)
        for _ in range(8):
            ask = ASKS[rng.integers(len(ASKS))]
            found = ask(app, rng)
            if not found.good:
                return Outcome(found.kind, f"{ask.__name__}: {found.detail}")
            if everything_in(home) != before:
                return Outcome("half-written", f"{ask.__name__} changed the folder")
        return found


def build(folder: Path) -> tuple[Any, Path]:
    """Return a studio over a folder with a run, a folder of one's own, and links that lead outside."""
    from largesse.serve import AuthMiddleware
    from largesse.studio.app import access_policy, make_app
    from largesse.studio.handlers import Studio, StudioSettings
    from largesse.studio.paths import Place

    home, outside = folder / "home", folder / "outside"
    for path in (home, home / ".private", outside, home / "photos"):
        path.mkdir()
    (outside / "secret.csv").write_text("nobody may read this\n1\n")
    shutil.copytree(ran("plain"), home / "run")
    (home / "linked").symlink_to(outside)
    (home / "link.csv").symlink_to(outside / "secret.csv")
    os.mkfifo(home / "pipe.csv")
    (home / "table.csv").write_text("a,b\n1,2\n")
    studio = Studio(StudioSettings(Place(home, home / ".private"), upload_bytes=1000))
    studio._warm_up = lambda _: None  # type: ignore[method-assign]  # no process is started ahead
    return AuthMiddleware(make_app(studio), access_policy(TOKEN, 8137)), home


def judge(answer: Answer, method: str = "GET", allowed: Any = REFUSALS) -> Outcome:
    """Judge an answer: no secret, and if it refuses, words that say why."""
    if b"nobody may read" in answer.body:
        return Outcome("wrong", "a file outside the folder was sent")
    if answer.headers.get("x-content-type-options") != "nosniff":
        return Outcome("wrong", f"{answer.status} without the header that forbids to guess types")
    if answer.status in (200, 201, 202, 204, 303):
        return FINE
    if method == "HEAD":
        return FINE if answer.status < 500 else Outcome("traceback", f"HEAD: {answer.status}")
    try:
        body = read_strictly(answer.body)
    except ValueError:
        return Outcome("traceback" if answer.status >= 500 else "wrong", f"{answer.status}: {answer.body[:200]!r}")
    found = judge_error(answer.status, body)
    if found.kind == "refused" and answer.status not in allowed:
        return Outcome("wrong", f"status {answer.status}: {found.detail}")
    return found


def ask_for_odd_addresses(app: Any, rng: Rng) -> Outcome:
    """Addresses of words that are known, and of some that lead elsewhere; nothing is changed by asking."""
    target = "/" + "/".join(WORDS[i] for i in rng.integers(0, len(WORDS), int(rng.integers(0, 6))))
    target += str(rng.choice(np.array(["", "?name=x", f"?token={TOKEN}", "?token=x", "?%00"], dtype=object)))
    method = METHODS[rng.integers(len(METHODS))] if rng.random() < 0.3 else "GET"
    headers = HEADERS[rng.integers(len(HEADERS))] if rng.random() < 0.2 else OWN
    if target.startswith("/api/runs/run") and target.count("/") == 3:
        return FINE  # this one would start a process that looks at the table
    answer = knock(app, target, method=method, headers=headers)
    if method not in ("GET", "HEAD") and answer.status < 300:
        return Outcome("wrong", f"{method} {target[:100]}: {answer.status}")
    found = judge(answer, method)
    return found if found.good else Outcome(found.kind, f"{method} {target[:100]}: {found.detail}")


def come_by_the_wrong_door(app: Any, rng: Rng) -> Outcome:
    """Another token, host, origin or mark: nobody gets in."""
    method, target = (
        ("POST", "/api/doctor"),
        ("POST", "/api/runs"),
        ("POST", "/api/tables?name=a.csv"),
        ("DELETE", "/api/tables/x"),
    )[rng.integers(4)]
    answer = knock(app, target, method=method, headers=HEADERS[rng.integers(len(HEADERS))], body=[b"{}"])
    found = judge(answer, method)
    return Outcome("wrong", f"{method} {target}: {answer.status}") if answer.status < 300 and found.good else found


def send_mutated(app: Any, rng: Rng) -> Outcome:
    """Drafts, rules and names in which something is odd: refused, because the table or the run is not there, or a rule broken."""
    kinds: tuple[tuple[str, Any], ...] = (
        ("/api/campaign", DRAFT), ("/api/doctor", DRAFT), ("/api/runs", {"name": "new", "draft": DRAFT}),
        ("/api/tables/0000/look", {"roles": DRAFT["roles"]}),
        ("/api/runs/gone/what-if", RULES), ("/api/runs/photos/what-if", RULES), ("/api/runs/run/what-if/0000/keep", {"name": "new"}),
    )  # fmt: skip
    target, sound = kinds[rng.integers(len(kinds))]
    body: Any = sound
    for _ in range(1 + int(rng.integers(3))):
        body = change(body, rng) if isinstance(body, dict | list) and body else body
    answer = knock(app, target, method="POST", headers=OWN, body=[json.dumps(body).encode()])
    return refuse_all(answer, f"{target} {str(body)[:150]}")


def send_odd_bytes(app: Any, rng: Rng) -> Outcome:
    target = ("/api/campaign", "/api/doctor", "/api/runs", "/api/tables/pick", "/api/runs/run/what-if")[rng.integers(5)]
    raw = RAW[rng.integers(len(RAW))]
    pieces = [raw[: len(raw) // 2], raw[len(raw) // 2 :]]
    return refuse_all(
        knock(app, target, method="POST", headers=OWN, body=pieces, breaks_off=bool(rng.random() < 0.1)),
        f"{target} {raw[:50]!r}",
    )


def name_odd_runs(app: Any, rng: Rng) -> Outcome:
    """A new run gets a plain name; whatever else is asked for is refused."""
    name = ODD[rng.integers(len(ODD))] if rng.random() < 0.5 else WORDS[rng.integers(len(WORDS))]
    answer = knock(
        app, "/api/runs", method="POST", headers=OWN, body=[json.dumps({"name": name, "draft": DRAFT}).encode()]
    )
    return refuse_all(answer, f"name {name!r:.80}")


def pick_odd_files(app: Any, rng: Rng) -> Outcome:
    choices: tuple[Any, ...] = (
        *ODD,
        "../outside/secret.csv",
        "link.csv",
        "/etc/passwd",
        ".private",
        "run",
        "pipe.csv",
        "a\0b",
        "photos",
        "gone.csv",
    )
    name = choices[rng.integers(len(choices))]
    answer = knock(app, "/api/tables/pick", method="POST", headers=OWN, body=[json.dumps({"file": name}).encode()])
    return refuse_all(answer, f"file {name!r:.80}")


def send_odd_tables(app: Any, rng: Rng) -> Outcome:
    """Tables that are too large, empty or break off are refused, and leave nothing."""
    name = str(rng.choice(np.array(["a.csv", "", "x" * 300, "../a.csv", "a\0b.csv", "a", "a.exe"], dtype=object)))
    pieces: list[list[bytes]] = [[b""], [b"x" * 400] * 3, [b"x" * 2000], [b"a,b\n"]]
    body, breaks = pieces[rng.integers(len(pieces))], True
    if len(b"".join(body)) > 1000 or not body[0]:
        breaks = False
    answer = knock(app, f"/api/tables?name={name}", method="POST", headers=OWN, body=body, breaks_off=breaks)
    return FINE if answer.status == 0 else refuse_all(answer, f"table {name[:50]!r}")


def refuse_all(answer: Answer, what: str) -> Outcome:
    if answer.status in (200, 201, 202):
        return Outcome("wrong", f"accepted: {what}")
    found = judge(answer) if answer.status else FINE
    return found if found.good else Outcome(found.kind, f"{what}: {found.detail}")


ASKS: tuple[Callable[[Any, Rng], Outcome], ...] = (
    ask_for_odd_addresses, ask_for_odd_addresses, come_by_the_wrong_door, send_mutated, send_mutated, send_odd_bytes,
    name_odd_runs, pick_odd_files,
    send_odd_tables,
)  # fmt: skip
