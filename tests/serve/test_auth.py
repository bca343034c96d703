"""The guard lets in those who bring the token from the right place, and nobody else."""

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from largesse.errors import InputError, Problem
from largesse.serve import AccessPolicy, AuthMiddleware, error_handlers, read_json, write_json
from support.services import knock

TOKEN = "a-token-that-nobody-guesses"
HOST = ("Host", "127.0.0.1:8137")
BEARER = ("Authorization", f"Bearer {TOKEN}")
COOKIE = ("Cookie", f"largesse-8137={TOKEN}")
MARK = ("X-Largesse", "studio")
POLICY = AccessPolicy(TOKEN, frozenset({"127.0.0.1:8137", "localhost:8137"}), "largesse-8137", MARK, max_bytes=100)


async def echo(request: Request) -> Response:
    """Answer with the body; break if the path says so."""
    body = await request.body()
    if request.url.path == "/broken":
        raise RuntimeError("a secret")
    if request.url.path == "/wrong":
        raise InputError("log", [Problem("a is missing", "add it"), Problem("b is missing")])
    return Response(body, media_type="text/plain")


METHODS = ["GET", "POST", "PUT", "DELETE"]
ECHO = Starlette(routes=[Route("/{rest:path}", echo, methods=METHODS)], exception_handlers=error_handlers("", ""))
GUARDED = AuthMiddleware(ECHO, POLICY)


def test_the_token_in_the_first_address_becomes_a_cookie_that_scripts_cannot_read() -> None:
    answer = knock(GUARDED, f"/?token={TOKEN}", headers=[HOST])
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert f"largesse-8137={TOKEN}" in cookie
    assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.lower().split("; "))


@pytest.mark.parametrize("key", [BEARER, COOKIE, ("Cookie", f'odd={{"a":1}}; b; =c; {COOKIE[1]}; d=')])
@pytest.mark.parametrize("host", ["127.0.0.1:8137", "localhost:8137", "LOCALHOST:8137"])
def test_cookie_or_bearer_opens(key: tuple[str, str], host: str) -> None:
    assert knock(GUARDED, "/api", headers=[("Host", host), key]).status == 200


@pytest.mark.parametrize(
    ("target", "headers"),
    [
        ("/", [HOST]),
        ("/", [HOST, ("Cookie", "largesse-8137=")]),
        ("/", [HOST, ("Cookie", f"largesse-8138={TOKEN}")]),
        ("/", [HOST, ("Cookie", "largesse-8137")]),
        ("/", [HOST, ("Authorization", "Bearer ")]),
        ("/", [HOST, ("Authorization", f"Basic {TOKEN}")]),
        ("/", [HOST, ("Authorization", f"Bearer {TOKEN}x")]),
        ("/", [HOST, ("Authorization", f"Bearer {TOKEN[:-1]}")]),
        ("/", [HOST, ("Authorization", "Bearer \xe4")]),
        ("/?token=", [HOST]),
        ("/?token=wrong", [HOST]),
        (f"/api?token={TOKEN}", [HOST]),
        (f"/%3Ftoken={TOKEN}", [HOST]),
        ("/", [HOST, ("X-Token", TOKEN)]),
    ],
)
def test_without_the_token_nothing_is_said(target: str, headers: list[tuple[str, str]]) -> None:
    answer = knock(GUARDED, target, headers=headers)
    assert answer.status == 401
    assert "token" in answer.json["error"]["message"]
    assert TOKEN.encode() not in answer.body


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "evil.example:8137", "", "127.0.0.1:8137."]
)
def test_a_name_that_a_stranger_points_here_is_refused(host: str) -> None:
    assert knock(GUARDED, "/", headers=[("Host", host), BEARER]).status == 421


@pytest.mark.parametrize(
    "headers",
    [
        [("Origin", "http://evil.example"), MARK],
        [("Origin", "null"), MARK],
        [("Origin", "http://127.0.0.1:8138"), MARK],
        [("Origin", "https://127.0.0.1:8137"), MARK],
        [("Origin", "http://127.0.0.1:8137")],
        [],
        [("X-Largesse", "serve")],
    ],
)
@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT"])
def test_what_changes_something_must_come_from_our_own_page(method: str, headers: list[tuple[str, str]]) -> None:
    assert knock(GUARDED, "/api", method=method, headers=[HOST, COOKIE, *headers]).status == 403


def test_our_own_page_may_change_something() -> None:
    headers = [HOST, COOKIE, MARK, ("Origin", "http://127.0.0.1:8137")]
    assert knock(GUARDED, "/api", method="POST", headers=headers, body=[b"a", b"b"]).body == b"ab"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_the_cookie_does_not_count_where_another_page_asks(site: str) -> None:
    assert knock(GUARDED, "/api", headers=[HOST, COOKIE, ("Sec-Fetch-Site", site)]).status == 403
    assert knock(GUARDED, "/api", headers=[HOST, BEARER, ("Sec-Fetch-Site", site)]).status == 200


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([("Content-Length", "101")], []),
        ([("Content-Length", "1" + "0" * 30)], []),
        ([], [b"x" * 60, b"x" * 60]),
        ([("Content-Length", "5")], [b"x" * 60, b"x" * 60]),
    ],
)
def test_a_body_that_is_too_large_is_refused_as_soon_as_that_is_known(
    headers: list[tuple[str, str]], body: list[bytes]
) -> None:
    answer = knock(GUARDED, "/api", method="POST", headers=[HOST, BEARER, MARK, *headers], body=body)
    assert answer.status == 413
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("length", ["-1", "ten", "1_0", "٣", "1.5", " "])
def test_a_length_that_is_no_number_is_refused(length: str) -> None:
    try:
        headers = [HOST, BEARER, MARK, ("Content-Length", length)]
        assert knock(GUARDED, "/api", method="POST", headers=headers).status == 400
    except UnicodeEncodeError:  # no header can hold it
        pass


@pytest.mark.parametrize("twice", [HOST, BEARER, ("Origin", "http://127.0.0.1:8137"), ("Content-Length", "0")])
def test_a_header_that_counts_comes_once(twice: tuple[str, str]) -> None:
    assert knock(GUARDED, "/", headers=[HOST, BEARER, twice, twice]).status == 400


def test_every_answer_forbids_browsers_to_guess_frame_and_load() -> None:
    for headers in ([HOST], [HOST, BEARER], [("Host", "evil")]):
        answer = knock(GUARDED, "/", headers=headers)
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers


def test_a_mistake_of_ours_says_nothing_about_itself() -> None:
    answer = knock(GUARDED, "/broken", headers=[HOST, BEARER])
    assert answer.status == 500
    assert b"secret" not in answer.body


def test_problems_of_people_are_told_with_hints() -> None:
    answer = knock(GUARDED, "/wrong", headers=[HOST, BEARER])
    assert answer.status == 400
    assert answer.json["error"] == {
        "message": "log: 2 things are wrong",
        "problems": [{"what": "a is missing", "hint": "add it"}, {"what": "b is missing", "hint": ""}],
    }


def test_a_door_without_a_token_lets_everybody_in() -> None:
    assert knock(AuthMiddleware(ECHO, AccessPolicy()), "/", headers=[("Host", "anything")]).status == 200


def test_paths_that_are_open_need_no_token() -> None:
    guarded = AuthMiddleware(ECHO, AccessPolicy(TOKEN, open_paths=frozenset({"/health"})))
    assert [knock(guarded, path).status for path in ("/health", "/health/", "/")] == [200, 401, 401]


# -- JSON --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"text"',
        b"1",
        b"null",
        b"{",
        b"\xff\xfe",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a":' * 60 + b"1" + b"}" * 60,
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=range(14),
)
def test_a_body_that_is_no_plain_object_is_refused(body: bytes) -> None:
    with pytest.raises(InputError):
        read_json(body)


def test_json_goes_both_ways() -> None:
    content = {"a": [1, 2.5, None, True], "b": {"ü": "<script>"}}
    assert read_json(write_json(content)) == content
    assert write_json({"half": "\ud800"})  # what no text can hold does not break an answer
