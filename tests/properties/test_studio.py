"""Requests to the studio, odd and hostile: each is refused in words or answered, and nothing changes on the disk.

No job is started: drafts name a table that is not there, or break a rule.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from largesse.serve import AuthMiddleware
from largesse.studio.studio_app import make_access_policy, make_studio_app
from largesse.studio.studio_files import StudioFolder
from largesse.studio.studio_handlers import Studio
from support.answers import check_error
from support.commands import working_folder
from support.examples import RNGS, examples
from support.folders import everything_in
from support.mutations import ODD, change
from support.services import Answer, knock
from support.shops import run_folder
from support.studios import OWN, TOKEN

Rng = np.random.Generator
HOST, BEARER, MARK = OWN
WORDS = (
    "run", "..", ".", "", "outside", "linked", "photos", "report.html", "plan.csv", "%2e%2e", "%2f", "%00", "a" * 3000,
    "é", "\x1b[2J", "api", "runs", "files", "what-if", "static", "tables", "jobs", "events", "keep", "look", "%ff",
    "..%2foutside", "campaign.toml", "index.html", "state", "CON",
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


def build(folder: Path) -> tuple[Any, Path]:
    """Return a studio over a folder with a run, a folder of one's own, and links that lead outside."""
    home, outside = folder / "home", folder / "outside"
    for path in (home, home / ".private", outside, home / "photos"):
        path.mkdir()
    (outside / "secret.csv").write_text("nobody may read this\n1\n")
    shutil.copytree(run_folder("plain"), home / "run")
    (home / "linked").symlink_to(outside)
    (home / "link.csv").symlink_to(outside / "secret.csv")
    os.mkfifo(home / "pipe.csv")
    (home / "table.csv").write_text("a,b\n1,2\n")
    studio = Studio(StudioFolder(home, home / ".private"), max_upload_bytes=1000)
    studio._warm_up = lambda _: None  # type: ignore[method-assign]  # no process is started ahead
    return AuthMiddleware(make_studio_app(studio), make_access_policy(TOKEN, 8137)), home


def check_response(answer: Answer, method: str = "GET") -> None:
    """Check an answer: no secret, and if it refuses, words that say why."""
    assert b"nobody may read" not in answer.body, "a file outside the folder was sent"
    assert answer.headers.get("x-content-type-options") == "nosniff", answer.status
    if method == "HEAD":
        assert answer.status < 500
    elif answer.status not in (200, 201, 202, 204, 303):
        check_error(answer.status, answer.body, REFUSALS)


def check_refusal(answer: Answer) -> None:
    assert answer.status not in (200, 201, 202), answer.body[:200]
    if answer.status:
        check_response(answer)


def ask_for_odd_addresses(app: Any, rng: Rng) -> None:
    """Addresses of words that are known, and of some that lead elsewhere; nothing is changed by asking."""
    target = "/" + "/".join(WORDS[i] for i in rng.integers(0, len(WORDS), int(rng.integers(0, 6))))
    target += str(rng.choice(np.array(["", "?name=x", f"?token={TOKEN}", "?token=x", "?%00"], dtype=object)))
    method = METHODS[rng.integers(len(METHODS))] if rng.random() < 0.3 else "GET"
    headers = HEADERS[rng.integers(len(HEADERS))] if rng.random() < 0.2 else OWN
    if target.startswith("/api/runs/run") and target.count("/") == 3:
        return  # this one would start a process that looks at the table
    answer = knock(app, target, method=method, headers=headers)
    assert method in ("GET", "HEAD") or answer.status >= 300, f"{method} {target[:100]}"
    check_response(answer, method)
    return


def come_without_access(app: Any, rng: Rng) -> None:
    """Another token, host, origin or mark: nobody gets in."""
    method, target = (
        ("POST", "/api/doctor"),
        ("POST", "/api/runs"),
        ("POST", "/api/tables?name=a.csv"),
        ("DELETE", "/api/tables/x"),
    )[rng.integers(4)]
    answer = knock(app, target, method=method, headers=HEADERS[rng.integers(len(HEADERS))], body=[b"{}"])
    assert answer.status >= 300
    check_response(answer, method)


def send_mutated(app: Any, rng: Rng) -> None:
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
    check_refusal(answer)


def send_odd_bytes(app: Any, rng: Rng) -> None:
    target = ("/api/campaign", "/api/doctor", "/api/runs", "/api/tables/pick", "/api/runs/run/what-if")[rng.integers(5)]
    raw = RAW[rng.integers(len(RAW))]
    pieces = [raw[: len(raw) // 2], raw[len(raw) // 2 :]]
    check_refusal(knock(app, target, method="POST", headers=OWN, body=pieces, breaks_off=bool(rng.random() < 0.1)))


def name_odd_runs(app: Any, rng: Rng) -> None:
    """A new run gets a plain name; whatever else is asked for is refused."""
    name = ODD[rng.integers(len(ODD))] if rng.random() < 0.5 else WORDS[rng.integers(len(WORDS))]
    answer = knock(
        app, "/api/runs", method="POST", headers=OWN, body=[json.dumps({"name": name, "draft": DRAFT}).encode()]
    )
    check_refusal(answer)


def pick_odd_files(app: Any, rng: Rng) -> None:
    choices: tuple[Any, ...] = (
        *ODD, "../outside/secret.csv", "link.csv", "/etc/passwd", ".private", "run", "pipe.csv", "a\0b", "photos",
        "gone.csv",
    )  # fmt: skip
    name = choices[rng.integers(len(choices))]
    answer = knock(app, "/api/tables/pick", method="POST", headers=OWN, body=[json.dumps({"file": name}).encode()])
    check_refusal(answer)


def send_odd_tables(app: Any, rng: Rng) -> None:
    """Tables that are too large, empty or break off are refused, and leave nothing."""
    name = str(rng.choice(np.array(["a.csv", "", "x" * 300, "../a.csv", "a\0b.csv", "a", "a.exe"], dtype=object)))
    pieces: list[list[bytes]] = [[b""], [b"x" * 400] * 3, [b"x" * 2000], [b"a,b\n"]]
    body, breaks = pieces[rng.integers(len(pieces))], True
    if len(b"".join(body)) > 1000 or not body[0]:
        breaks = False
    answer = knock(app, f"/api/tables?name={name}", method="POST", headers=OWN, body=body, breaks_off=breaks)
    check_refusal(answer)


ASKS: tuple[Callable[[Any, Rng], None], ...] = (
    ask_for_odd_addresses, come_without_access, send_mutated, send_odd_bytes, name_odd_runs, pick_odd_files, send_odd_tables,
)  # fmt: skip


@examples(8)
@given(st.lists(st.sampled_from(ASKS), min_size=8, max_size=8), RNGS)
def test_odd_requests_are_refused_or_change_nothing(asks: list[Callable[[Any, Rng], None]], rng: Rng) -> None:
    with working_folder() as folder:
        app, home = build(folder)
        before = everything_in(home)
        for ask in asks:
            ask(app, rng)
            assert everything_in(home) == before, ask.__name__
