"""Requests that mean harm, or are only wrong: each is refused in words, and nothing changes on the disk."""

from typing import Any

import pytest
from folders import everything_in
from houses import OWN, House
from knocks import knock

HOST, BEARER, MARK = OWN
NO_TABLE = {"table": "0" * 16}
DEEP = [b'{"a":' * 100 + b"1" + b"}" * 100]
WRONG_DOOR: list[tuple[str, int, str, str, list[tuple[str, str]]]] = [
    ("no token", 401, "GET", "/api/state", [HOST]),
    ("wrong token", 401, "GET", "/api/state", [HOST, ("Authorization", "Bearer x")]),
    ("token in the address of the API", 401, "GET", "/api/state?token=a-token-that-nobody-guesses", [HOST]),
    (
        "token of another port's cookie",
        401,
        "GET",
        "/",
        [HOST, ("Cookie", "largesse-8138=a-token-that-nobody-guesses")],
    ),
    ("report without a token", 401, "GET", "/runs/run/report.html", [HOST]),
    ("page's part without a token", 401, "GET", "/static/app.js", [HOST]),
    ("another host", 421, "GET", "/", [("Host", "evil.example:8137"), BEARER]),
    ("another host by rebinding", 421, "POST", "/api/doctor", [("Host", "evil.example"), BEARER, MARK]),
    ("another origin", 403, "POST", "/api/runs", [*OWN, ("Origin", "https://evil.example")]),
    ("null origin", 403, "POST", "/api/runs", [*OWN, ("Origin", "null")]),
    ("origin of another port", 403, "DELETE", "/api/tables/x", [*OWN, ("Origin", "http://127.0.0.1:1")]),
    ("no mark", 403, "POST", "/api/runs", [HOST, BEARER]),
    ("no mark to delete", 403, "DELETE", "/api/jobs/x", [HOST, BEARER]),
    ("no mark to send", 403, "POST", "/api/tables?name=a.csv", [HOST, BEARER]),
    ("preflight of another page", 403, "OPTIONS", "/api/runs", [HOST, BEARER, ("Origin", "https://evil.example")]),
]
OTHER_METHODS = [
    ("GET", "/api/doctor"),
    ("GET", "/api/tables"),
    ("GET", "/api/runs/run/what-if"),
    ("POST", "/api/state"),
    ("POST", "/"),
    ("PUT", "/api/runs/run"),
    ("DELETE", "/api/runs/run"),
    ("DELETE", "/api/runs"),
    ("PATCH", "/runs/run/report.html"),
    ("TRACE", "/"),
    ("CONNECT", "/"),
    ("PROPFIND", "/api/runs"),
]
ELSEWHERE = [
    "/static/../app.py",
    "/static/..%2fapp.py",
    "/static/%2e%2e%2fapp.py",
    "/static/..%252fapp.py",
    "/static/..%5capp.py",
    "/static/%00index.html",
    "/static/index.html%00.css",
    "/static//etc/passwd",
    "/static/%2fetc%2fpasswd",
    "/static/.hidden.js",
    "/static/page",
    "/runs/../outside/run/report.html",
    "/runs/..%2foutside%2frun/report.html",
    "/runs/%2e%2e/report.html",
    "/runs/..%252foutside%252frun/report.html",
    "/runs/..%5coutside%5crun/report.html",
    "/runs/run%00/report.html",
    "/runs/./report.html",
    "/runs/.private/report.html",
    "/runs//report.html",
    "/runs/linked/report.html",
    "/runs/tampered/report.html",
    "/runs/photos/report.html",
    "/runs/table.csv/report.html",
    "/runs/" + "x" * 3000 + "/report.html",
    "/runs/%ff%fe/report.html",
    "/api/runs/linked",
    "/api/runs/..",
    "/api/runs/bare",
    "/api/runs/run/files/..%2f..%2foutside%2fsecret.csv",
    "/api/runs/run/files/%2fetc%2fpasswd",
    "/api/runs/run/files/.env",
    "/api/runs/tampered/files/report.html",
    "/api/runs/photos/files/me.jpg",
    "/api/runs/run/what-if/x/plan.csv",
    "/api/runs/run/what-if/..%2f..%2f/plan.parquet",
    "/api/tables/..%2f..%2fx",
    "/api/jobs/x/events",
    "/api/jobs/..",
    "/etc/passwd",
    "//evil.example/",
    "/docs",
    "/openapi.json",
]


@pytest.mark.parametrize(
    ("status", "method", "target", "headers"), [one[1:] for one in WRONG_DOOR], ids=[o[0] for o in WRONG_DOOR]
)
def test_who_may_not_ask_is_told_so(
    house: House, status: int, method: str, target: str, headers: list[tuple[str, str]]
) -> None:
    answer = knock(house.app, target, method=method, headers=headers)
    assert answer.status == status
    assert answer.json["error"]["message"]


@pytest.mark.parametrize(("method", "target"), OTHER_METHODS)
def test_another_method_does_nothing(house: House, method: str, target: str) -> None:
    before = everything_in(house.folder)
    answer = house.ask(target, method)
    assert answer.status == 405
    assert method not in answer.headers["allow"].split(", ")
    assert everything_in(house.folder) == before


@pytest.mark.parametrize("target", ELSEWHERE)
def test_no_path_leads_elsewhere(house: House, target: str) -> None:
    answer = house.ask(target)
    assert answer.status == 404
    assert b"secret" not in answer.body
    assert answer.json["error"]["problems"][0]["hint"]


@pytest.mark.parametrize(
    "file",
    [
        "../outside/secret.csv",
        "link.csv",
        "/etc/passwd",
        ".private",
        "run",
        "x.csv",
        "a\0b",
        "..",
        "photos/me.jpg",
        5,
        None,
    ],
)
def test_a_picked_table_lies_in_the_folder(house: House, file: Any) -> None:
    answer = house.ask("/api/tables/pick", "POST", {"file": file})
    assert answer.status in (400, 404)
    assert b"root:" not in answer.body


# -- sending too much ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "headers", "body"),
    [
        ("/api/runs", [("Content-Length", str(1 << 30))], []),
        ("/api/runs", [], [b"x" * (1 << 20)] * 20),
        ("/api/tables?name=a.csv", [("Content-Length", "1001")], []),
        ("/api/tables?name=a.csv", [("Content-Length", "9" * 25)], []),
        ("/api/tables?name=a.csv", [], [b"x" * 400] * 3),
        ("/api/tables?name=a.csv", [("Content-Length", "10")], [b"x" * 400] * 3),
        ("/api/tables?name=a.csv", [], [b"x" * 2_000_000]),
    ],
    ids=range(7),
)
def test_what_is_too_large_is_refused_and_leaves_nothing(
    house: House, target: str, headers: list[tuple[str, str]], body: list[bytes]
) -> None:
    answer = house.ask(target, "POST", body, headers=headers)
    assert answer.status == 413
    assert list(house.private.iterdir()) == []


@pytest.mark.parametrize(
    "target", ["/api/tables?name=a.csv", "/api/tables?name=", "/api/tables", "/api/tables?name=" + "x" * 300]
)
def test_an_empty_file_or_name_is_refused_and_leaves_nothing(house: House, target: str) -> None:
    assert house.ask(target, "POST", [b""]).status == 400
    assert list(house.private.iterdir()) == []


def test_a_table_that_breaks_off_leaves_nothing(house: House) -> None:
    length = ("Content-Length", "900")
    knock(house.app, "/api/tables?name=a.csv", method="POST", headers=[*OWN, length], body=[b"a,b\n"], breaks_off=True)
    assert list(house.private.iterdir()) == []


def test_tables_do_not_pile_up_and_the_one_in_use_stays(house: House) -> None:
    tables = house.studio.tables
    used = tables.busy = tables.add(tables.prepare("used.csv", ".csv")).id
    last = [tables.add(tables.prepare(f"{k}.csv", ".csv")) for k in range(25)][-1]
    assert len(list(house.private.iterdir())) == 10
    assert {used, last.id} <= {path.name for path in house.private.iterdir()}


# -- bodies that are no drafts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", ["/api/runs", "/api/doctor", "/api/campaign", "/api/tables/pick", "/api/runs/run/what-if"]
)
@pytest.mark.parametrize(
    "body",
    [[b"[1]"], [b"null"], [b'"x"'], [b"{"], [b"\xff"], [b'{"budget": NaN}'], [b'{"budget": 1e999}'], DEEP, [b""]],
    ids=range(9),
)
def test_a_body_that_is_no_plain_object_is_refused(house: House, target: str, body: list[bytes]) -> None:
    assert house.ask(target, "POST", body).status == 400


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("/api/campaign", NO_TABLE),
        ("/api/campaign", {}),
        ("/api/campaign", {"table": ["x"]}),
        ("/api/doctor", NO_TABLE),
        ("/api/runs", {"name": "new", "draft": NO_TABLE}),
        ("/api/tables/0000/look", {"roles": {}}),
        ("/api/runs/gone/what-if", {"budget": 1}),
        ("/api/runs/run/what-if/0000/keep", {"name": "new"}),
    ],
)
def test_what_is_not_there_is_not_found(house: House, target: str, body: Any) -> None:
    before = everything_in(house.folder)
    assert house.ask(target, "POST", body).status == 404
    assert everything_in(house.folder) == before


NAMES = [
    *("run", "photos", "table.csv", "linked", "link.csv", "damaged", "bare"),
    *("", ".", "..", ".hidden", "a/b", "a\\b", "/tmp/x", "../x", "a\0b", "a\nb", "<b>x</b>", "x" * 81, "ä" * 150),
    *("con", "NUL.txt", " a", "a ", "a.", "-rf", "a:b", "a*b", "a?b", 'a"b', "\u202etxt", "a%2fb", "~", "$HOME"),
]


@pytest.mark.parametrize("name", [*NAMES, None, 5, ["a"], {"a": 1}, True])
def test_a_run_gets_a_new_and_plain_name_or_none(house: House, name: Any) -> None:
    before = everything_in(house.folder)
    answer = house.ask("/api/runs", "POST", {"name": name, "draft": NO_TABLE})
    assert answer.status in (400, 409)
    assert everything_in(house.folder) == before


@pytest.mark.parametrize("name", ["a", "Spring 2026", "größer-2_b.1", "0"])
def test_a_plain_name_is_taken(house: House, name: str) -> None:
    assert house.ask("/api/runs", "POST", {"name": name, "draft": NO_TABLE}).status == 404  # only the table is missing


@pytest.mark.parametrize("body", [{"plan": 5}, {"plan": []}, {"rules": {}}, {"budget": 1, "__class__": "x"}])
def test_a_what_if_of_another_shape_is_refused(house: House, body: Any) -> None:
    assert house.ask("/api/runs/run/what-if", "POST", body).status == 400


# -- what the studio still does ------------------------------------------------------------------------------------------


def test_runs_that_are_damaged_are_listed_with_what_is_wrong_and_links_are_not(house: House) -> None:
    listed = {line["name"]: line for line in house.ask("/api/runs").json}
    assert set(listed) == {"run", "damaged", "tampered"}
    assert listed["run"]["headline"]
    assert listed["run"]["problems"] == []
    assert listed["damaged"]["headline"] is None
    assert "not valid TOML" in listed["damaged"]["problems"][0]["what"]
    assert "report.html" not in listed["tampered"]["files"]


def test_a_report_is_shown_apart_from_the_page(house: House) -> None:
    answer = house.ask("/runs/run/report.html")
    policy = answer.headers["content-security-policy"]
    assert answer.status == 200
    assert policy.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy


@pytest.mark.parametrize(
    "part", ["plan.parquet", "plan.csv", "campaign.toml", "evaluation.json", "frontier.parquet", "report.html"]
)
def test_a_run_can_be_taken_along(house: House, part: str) -> None:
    answer = house.ask(f"/api/runs/run/files/{part}")
    assert answer.status == 200
    assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''run-{part}"
    assert len(answer.body) == int(answer.headers["content-length"]) > 0
    assert "sandbox" in answer.headers["content-security-policy"]


def test_a_plan_that_is_damaged_is_not_sent_as_csv(house: House) -> None:
    (house.folder / "run" / "plan.parquet").write_bytes(b"PAR1 nonsense PAR1")
    assert house.ask("/api/runs/run/files/plan.csv").status == 409


def test_a_what_if_needs_the_tables_of_its_run(house: House) -> None:
    text = (house.folder / "run" / "campaign.toml").read_text("utf-8").replace("log.parquet", "gone.parquet")
    (house.folder / "run" / "campaign.toml").write_text(text, "utf-8")
    answer = house.ask("/api/runs/run/what-if", "POST", {"budget": 1})
    assert (answer.status, list(house.private.iterdir())) == (409, [])


def test_a_mistake_of_ours_is_json_too(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(house.studio.tables, "find", fail)
    answer = house.ask("/api/tables/x")
    assert (answer.status, answer.json["error"]["message"]) == (500, "something went wrong here")
    assert b"secret" not in answer.body  # the server logs it
