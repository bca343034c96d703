"""Requests need the token, the right host and origin, and a body of limited size; others are refused."""

from dataclasses import replace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from largesse.errors import InputError, Problem
from largesse.serve import AccessPolicy, AuthMiddleware, make_error_handlers, read_json, write_json
from support.services import Answer, knock

TOKEN = "a-token-that-nobody-guesses"
HOST = ("Host", "127.0.0.1:8137")
BEARER = ("Authorization", f"Bearer {TOKEN}")
COOKIE = ("Cookie", f"largesse-8137={TOKEN}")
ORIGIN = ("Origin", "http://127.0.0.1:8137")
MARK = ("X-Largesse", "studio")
POLICY = AccessPolicy(TOKEN, frozenset({"127.0.0.1:8137", "localhost:8137"}), "largesse-8137", MARK, max_bytes=100)
CHANGING = [HOST, BEARER, MARK]


async def echo(request: Request) -> Response:
    """Answer with the body; break if the path says so."""
    body = await request.body()
    if request.url.path == "/broken":
        raise RuntimeError("a secret")
    if request.url.path == "/wrong":
        raise InputError("log", [Problem("a is missing", "add it"), Problem("b is missing")])
    return Response(body, media_type="text/plain")


METHODS = ["GET", "POST", "PUT", "DELETE"]
ECHO = Starlette(routes=[Route("/{rest:path}", echo, methods=METHODS)], exception_handlers=make_error_handlers("", ""))
GUARDED = AuthMiddleware(ECHO, POLICY)


def send(target: str, *headers: tuple[str, str], **more: Any) -> Answer:
    return knock(GUARDED, target, headers=headers, **more)


def test_the_token_in_the_first_address_becomes_a_cookie_that_scripts_cannot_read() -> None:
    answer = send(f"/?token={TOKEN}", HOST)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert f"largesse-8137={TOKEN}" in cookie
    assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.lower().split("; "))


def test_the_code_in_a_browsers_command_line_counts_once() -> None:
    for first in ("right", "wrong"):
        app = AuthMiddleware(ECHO, replace(POLICY, code="right"))
        answers = [knock(app, f"/?code={code}", headers=[HOST]) for code in (first, "right", "")]
        assert [answer.status for answer in answers] == [303 if first == "right" else 401, 401, 401]
    assert f"largesse-8137={TOKEN}" not in answers[1].headers.get("set-cookie", "")
    assert send("/?code=", HOST).status == 401
    assert send("/?code=None", HOST).status == 401


@pytest.mark.parametrize("key", [BEARER, COOKIE, ("Cookie", f'odd={{"a":1}}; b; =c; {COOKIE[1]}; d=')])
@pytest.mark.parametrize("host", ["127.0.0.1:8137", "localhost:8137", "LOCALHOST:8137"])
def test_cookie_or_bearer_opens(key: tuple[str, str], host: str) -> None:
    assert send("/api", ("Host", host), key).status == 200


@pytest.mark.parametrize(
    ("target", "headers"),
    [
        *(("/", [("Cookie", text)]) for text in ("largesse-8137=", f"largesse-8138={TOKEN}", "largesse-8137")),
        *(("/", [("Authorization", f"Bearer {text}")]) for text in ("", f"{TOKEN}x", TOKEN[:-1], "\xe4")),
        ("/", [("Authorization", f"Basic {TOKEN}")]),
        ("/", [("X-Token", TOKEN)]),
        *((target, []) for target in ("/", "/?token=", "/?token=wrong", f"/api?token={TOKEN}", f"/%3Ftoken={TOKEN}")),
    ],
)
def test_without_the_token_the_answer_is_401(target: str, headers: list[tuple[str, str]]) -> None:
    answer = send(target, HOST, *headers)
    assert answer.status == 401
    assert "token" in answer.json["error"]["message"]
    assert TOKEN.encode() not in answer.body
    page = send(target, HOST, *headers, ("Accept", "text/html"))  # a page for people at the address that they open
    assert page.status == 401
    assert (page.body.startswith(b"<!doctype html>"), b"token" in page.body) == (target.partition("?")[0] == "/", True)


HOSTS = ("evil.example", "127.0.0.1", "127.0.0.1:80", "evil.example:8137", "", "127.0.0.1:8137.")
ORIGINS = ("http://evil.example", "null", "http://127.0.0.1:8138", "https://127.0.0.1:8137")


@pytest.mark.parametrize(
    ("status", "method", "headers"),
    [
        *((421, "GET", [("Host", host), BEARER]) for host in HOSTS),
        *((403, "POST", [HOST, COOKIE, ("Origin", origin), MARK]) for origin in ORIGINS),
        *((403, method, [HOST, COOKIE]) for method in METHODS[1:]),
        *((403, method, [HOST, COOKIE, ORIGIN]) for method in METHODS[1:]),
        (403, "POST", [HOST, COOKIE, ("X-Largesse", "serve")]),
        # The cookie does not count if another page asks; the bearer token does.
        *((403, "GET", [HOST, COOKIE, ("Sec-Fetch-Site", site)]) for site in ("cross-site", "same-site")),
        *((200, "GET", [HOST, BEARER, ("Sec-Fetch-Site", site)]) for site in ("cross-site", "same-site")),
        *((400, "POST", [*CHANGING, ("Content-Length", text)]) for text in ("-1", "ten", "1_0", "1.5", " ", "\xb2")),
        *((400, "GET", [HOST, BEARER, twice, twice]) for twice in (HOST, BEARER, ORIGIN, ("Content-Length", "0"))),
        *((413, "POST", [*CHANGING, ("Content-Length", text)]) for text in ("101", "1" + "0" * 30)),
    ],
)
def test_requests_from_elsewhere_and_invalid_headers_are_refused(
    status: int, method: str, headers: list[tuple[str, str]]
) -> None:
    answer = send("/api", *headers, method=method)
    assert answer.status == status
    assert status != 413 or answer.headers["connection"] == "close"


def test_our_own_page_may_change_something() -> None:
    answer = send("/api", HOST, COOKIE, MARK, ORIGIN, method="POST", body=[b"a", b"b"])
    assert answer.body == b"ab"


@pytest.mark.parametrize("length", [[], [("Content-Length", "5")]])
def test_a_body_that_is_too_large_is_refused_as_soon_as_that_is_known(length: list[tuple[str, str]]) -> None:
    answer = send("/api", *CHANGING, *length, method="POST", body=[b"x" * 60, b"x" * 60])
    assert (answer.status, answer.headers["connection"]) == (413, "close")


def test_every_answer_forbids_browsers_to_guess_frame_and_load() -> None:
    for headers in ([HOST], [HOST, BEARER], [("Host", "evil")]):
        answer = send("/", *headers)
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers


def test_errors_of_people_have_hints_and_errors_of_ours_no_details() -> None:
    broken, wrong = send("/broken", HOST, BEARER), send("/wrong", HOST, BEARER)
    assert (broken.status, wrong.status) == (500, 400)
    assert b"secret" not in broken.body
    assert wrong.json["error"] == {
        "message": "log: 2 things are wrong",
        "problems": [{"what": "a is missing", "hint": "add it"}, {"what": "b is missing", "hint": ""}],
    }


def test_without_a_token_or_on_open_paths_all_are_answered() -> None:
    assert knock(AuthMiddleware(ECHO, AccessPolicy()), "/", headers=[("Host", "anything")]).status == 200
    guarded = AuthMiddleware(ECHO, AccessPolicy(TOKEN, open_paths=frozenset({"/health"})))
    assert [knock(guarded, path).status for path in ("/health", "/health/", "/")] == [200, 401, 401]


# -- JSON --------------------------------------------------------------------------------------------------------------


def test_a_body_that_is_no_plain_object_is_refused() -> None:
    for body in (
        *(b"", b"[]", b'"text"', b"1", b"null", b"{", b"\xff\xfe"),
        *(b'{"a": NaN}', b'{"a": Infinity}', b'{"a": -Infinity}', b'{"a": 1e999}', b'{"a": ' + b"9" * 5000 + b"}"),
        *(
            b'{"a": 1, "a": 1}',
            rb'{"a": 1, "\u0061": 1}',
            b'{"b": [{"a": ":", "c": {"a": 1, "a": 2}}]}',
            b'{":": 1, ":": 1}',
        ),
        *(b'{"a":' * 60 + b"1" + b"}" * 60, b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    ):
        with pytest.raises(InputError):
            read_json(body)


def test_json_goes_both_ways() -> None:
    content = {"a": [1, 2.5, None, True], "b": {"ü": "<script>", ":": "10:30", "a": {"a": {}}}}
    assert read_json(write_json(content)) == content
    assert write_json({"half": "\ud800"})  # an unpaired surrogate does not break an answer
