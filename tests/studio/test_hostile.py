"""Hostile and invalid requests to the studio: each is refused with a message, and nothing changes on the disk."""

import re
from typing import Any

import pytest

from largesse.studio.background_jobs import Job
from support.folders import everything_in
from support.services import knock
from support.studios import OWN, House

HOST, BEARER, MARK = OWN
TOKEN = BEARER[1].removeprefix("Bearer ")
NO_TABLE = {"table": "0" * 16}
RUNS, TABLE, WHAT_IF = "/api/runs", "/api/tables?name=a.csv", "/api/runs/run/what-if"
MEGABYTE = 1 << 20

# Requests without the token, from another host or from another page: status, method, address, headers.
STRANGERS: list[tuple[int, str, str, list[tuple[str, str]]]] = [
    (401, "GET", "/api/state", [HOST]),
    (401, "GET", "/api/state", [HOST, ("Authorization", "Bearer x")]),
    (401, "GET", f"/api/state?token={TOKEN}", [HOST]),
    (401, "GET", "/", [HOST, ("Cookie", f"largesse-8138={TOKEN}")]),
    (401, "GET", "/runs/run/report.html", [HOST]),
    (401, "GET", "/static/app.js", [HOST]),
    (421, "GET", "/", [("Host", "evil.example:8137"), BEARER]),
    (421, "POST", "/api/doctor", [("Host", "evil.example"), BEARER, MARK]),
    (403, "POST", RUNS, [*OWN, ("Origin", "https://evil.example")]),
    (403, "POST", RUNS, [*OWN, ("Origin", "null")]),
    (403, "DELETE", "/api/tables/x", [*OWN, ("Origin", "http://127.0.0.1:1")]),
    (403, "POST", RUNS, [HOST, BEARER]),
    (403, "DELETE", "/api/jobs/x", [HOST, BEARER]),
    (403, "POST", TABLE, [HOST, BEARER]),
    (403, "OPTIONS", RUNS, [HOST, BEARER, ("Origin", "https://evil.example")]),
]
OTHER_METHODS = """
    GET /api/doctor, GET /api/tables, GET /api/runs/run/what-if, POST /api/state, POST /, PUT /api/runs, PUT /api/runs/run,
    DELETE /api/runs, PATCH /runs/run/report.html, TRACE /, CONNECT /, PROPFIND /api/runs
"""
ELSEWHERE = """
    /static/../app.py /static/..%2fapp.py /static/%2e%2e%2fapp.py /static/..%252fapp.py /static/..%5capp.py
    /static/%00index.html /static/index.html%00.css /static//etc/passwd /static/%2fetc%2fpasswd /static/.hidden.js /static/page
    /runs/../outside/run/report.html /runs/..%2foutside%2frun/report.html /runs/%2e%2e/report.html
    /runs/..%252foutside%252frun/report.html /runs/..%5coutside%5crun/report.html /runs/run%00/report.html /runs/./report.html
    /runs/.private/report.html /runs//report.html /runs/linked/report.html /runs/tampered/report.html /runs/photos/report.html
    /runs/table.csv/report.html /runs/%ff%fe/report.html /api/runs/linked /api/runs/.. /api/runs/bare
    /api/runs/run/files/..%2f..%2foutside%2fsecret.csv /api/runs/run/files/%2fetc%2fpasswd /api/runs/run/files/.env
    /api/runs/tampered/files/report.html /api/runs/photos/files/me.jpg /api/runs/run/what-if/x/plan.csv
    /api/runs/run/what-if/..%2f..%2f/plan.parquet /api/tables/..%2f..%2fx /api/jobs/x/events /api/jobs/.. /etc/passwd
    //evil.example/ /docs /openapi.json
"""
OUTSIDE = [
    *(
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
    )
]
NAMES = [
    *("run", "photos", "table.csv", "linked", "link.csv", "damaged", "bare"),
    *("", ".", "..", ".hidden", "a/b", "a\\b", "/tmp/x", "../x", "a\0b", "a\nb", "<b>x</b>", "x" * 81, "ä" * 150),
    *("con", "NUL.txt", " a", "a ", "a.", "-rf", "a:b", "a*b", "a?b", 'a"b', "\u202etxt", "a%2fb", "~", "$HOME"),
    *(None, 5, ["a"], {"a": 1}, True),
]
INVALID_JSON = [
    *(b"[1]", b"null", b'"x"', b"{", b"\xff", b'{"budget": NaN}', b'{"budget": 1e999}', b""),
    b'{"a":' * 100 + b"1" + b"}" * 100,
]

# Requests of the page itself: accepted statuses, method, address, body (bytes, or what is sent as JSON), further headers.
Case = tuple[tuple[int, ...], str, str, Any, list[tuple[str, str]]]
CASES: list[Case] = [
    *(((405,), *line.split(), None, []) for line in OTHER_METHODS.split(",")),  # type: ignore[misc]
    *(((404,), "GET", target, None, []) for target in [*ELSEWHERE.split(), "/runs/" + "x" * 3000 + "/report.html"]),
    *(((400, 404), "POST", "/api/tables/pick", {"file": file}, []) for file in OUTSIDE),
    ((413,), "POST", RUNS, [], [("Content-Length", str(1 << 30))]),
    ((413,), "POST", RUNS, [b"x" * MEGABYTE] * 20, []),
    ((413,), "POST", TABLE, [], [("Content-Length", "1001")]),
    ((413,), "POST", TABLE, [], [("Content-Length", "9" * 25)]),
    ((413,), "POST", TABLE, [b"x" * 400] * 3, []),
    ((413,), "POST", TABLE, [b"x" * 400] * 3, [("Content-Length", "10")]),
    ((413,), "POST", TABLE, [b"x" * 2 * MEGABYTE], []),
    ((400,), "POST", TABLE, [b""], []),
    *(((400,), "POST", f"/api/tables{query}", [b""], []) for query in ("", "?name=", "?name=" + "x" * 300)),
    *(
        ((400,), "POST", target, [body], [])
        for target in (RUNS, "/api/doctor", "/api/campaign", "/api/tables/pick", WHAT_IF)
        for body in INVALID_JSON
    ),
    ((404,), "POST", "/api/campaign", NO_TABLE, []),
    ((404,), "POST", "/api/campaign", {}, []),
    ((404,), "POST", "/api/campaign", {"table": ["x"]}, []),
    ((404,), "POST", "/api/doctor", NO_TABLE, []),
    ((404,), "POST", "/api/tables/0000/look", {"roles": {}}, []),
    ((404,), "POST", "/api/runs/gone/what-if", {"budget": 1}, []),
    ((404,), "POST", f"{WHAT_IF}/0000/keep", {"name": "new"}, []),
    *(((400, 409), "POST", RUNS, {"name": name, "draft": NO_TABLE}, []) for name in NAMES),
    *(  # valid names: only the table is missing
        ((404,), "POST", RUNS, {"name": name, "draft": NO_TABLE}, [])
        for name in ("a", "Spring 2026", "größer-2_b.1", "0", "new")
    ),
    *(
        ((400,), "POST", WHAT_IF, body, [])
        for body in ({"plan": 5}, {"plan": []}, {"rules": {}}, {"budget": 1, "__class__": "x"})
    ),
]


def test_strangers_are_refused(house: House) -> None:
    for status, method, target, headers in STRANGERS:
        answer = knock(house.app, target, method=method, headers=headers)
        assert (answer.status, bool(answer.json["error"]["message"])) == (status, True), (method, target, headers)


def test_invalid_requests_are_refused_and_change_nothing(house: House) -> None:
    before = everything_in(house.folder)
    for case in CASES:
        statuses, method, target, body, headers = case
        answer = house.ask(target, method, body, headers=headers)
        assert answer.status in statuses, case
        assert not re.search(b"root:|secret" if method == "GET" else b"root:", answer.body), case
        assert answer.json["error"]["message"], case
        assert answer.status != 404 or answer.json["error"]["problems"][0]["hint"], case
        assert answer.status != 405 or method not in answer.headers["allow"].split(", "), case
        assert list(house.private.iterdir()) == [], case
    assert everything_in(house.folder) == before


def test_a_broken_upload_leaves_nothing(house: House) -> None:
    length = ("Content-Length", "900")
    knock(house.app, TABLE, method="POST", headers=[*OWN, length], body=[b"a,b\n"], breaks_off=True)
    assert list(house.private.iterdir()) == []


def test_old_tables_are_removed_and_the_one_in_use_stays(own_house: House) -> None:
    tables = own_house.studio.tables
    used = tables.busy = tables.add(tables.prepare_table("used.csv", ".csv")).id
    last = [tables.add(tables.prepare_table(f"{k}.csv", ".csv")) for k in range(25)][-1]
    assert len(list(own_house.private.iterdir())) == 10
    assert {used, last.id} <= {path.name for path in own_house.private.iterdir()}


# -- valid requests ------------------------------------------------------------------------------------------------------


def test_damaged_runs_are_listed_with_their_problems_and_links_are_not(house: House) -> None:
    listed = {line["name"]: line for line in house.ask(RUNS).json}
    assert set(listed) == {"run", "damaged", "tampered"}
    assert listed["run"]["headline"]
    assert listed["run"]["problems"] == []
    assert listed["damaged"]["headline"] is None
    assert "TOML" in listed["damaged"]["problems"][0]["what"]
    assert "report.html" not in listed["tampered"]["files"]


def test_a_report_is_sandboxed(house: House) -> None:
    answer = house.ask("/runs/run/report.html")
    policy = answer.headers["content-security-policy"]
    assert answer.status == 200
    assert policy.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy


def test_the_files_of_a_run_can_be_downloaded(house: House) -> None:
    for part in ("plan.parquet", "plan.csv", "campaign.toml", "evaluation.json", "frontier.parquet", "report.html"):
        answer = house.ask(f"/api/runs/run/files/{part}")
        assert answer.status == 200
        assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''run-{part}"
        assert len(answer.body) == int(answer.headers["content-length"]) > 0
        assert "sandbox" in answer.headers["content-security-policy"]


def test_a_run_that_misses_a_table_or_has_a_damaged_plan_is_409(own_house: House) -> None:
    run = own_house.folder / "run"
    (run / "plan.parquet").write_bytes(b"PAR1 nonsense PAR1")
    assert own_house.ask("/api/runs/run/files/plan.csv").status == 409
    text = (run / "campaign.toml").read_text("utf-8").replace("log.parquet", "gone.parquet")
    (run / "campaign.toml").write_text(text, "utf-8")
    assert own_house.ask(WHAT_IF, "POST", {"budget": 1}).status == 409
    assert list(own_house.private.iterdir()) == []


def test_a_run_is_renamed_with_all_its_files_and_nothing_is_replaced(own_house: House) -> None:
    files = {path.name: path.read_bytes() for path in (own_house.folder / "run").iterdir()}
    renamed = own_house.ask("/api/runs/run", "PATCH", {"name": "Spring 2026"})
    assert (renamed.status, renamed.json["name"], renamed.json["problems"]) == (200, "Spring 2026", [])
    assert {path.name: path.read_bytes() for path in (own_house.folder / "Spring 2026").iterdir()} == files
    names = [run["name"] for run in own_house.ask("/api/runs").json]
    assert "Spring 2026" in names
    assert "run" not in names
    before = everything_in(own_house.folder)
    for name in NAMES[1:]:
        answer = own_house.ask("/api/runs/Spring%202026", "PATCH", {"name": name})
        assert answer.status in (400, 409), name
    for target in ("run", "linked", "photos", "..", "table.csv"):
        assert own_house.ask(f"/api/runs/{target}", "PATCH", {"name": "new"}).status in (404, 405)
        assert own_house.ask(f"/api/runs/{target}", "DELETE").status in (404, 405)
    assert everything_in(own_house.folder) == before


def test_a_run_is_deleted_unless_it_is_in_use_or_holds_other_files(own_house: House) -> None:
    run, jobs = own_house.folder / "run", own_house.studio.jobs
    jobs.current = Job("what-if", lambda: None, "key", paths=frozenset([str(run)]))
    for method in ("DELETE", "PATCH"):
        assert own_house.ask("/api/runs/run", method, {"name": "new"}).status == 409
    assert own_house.ask("/api/runs/damaged", "DELETE").status == 200  # another run is not in use
    jobs.current = None
    (run / "notes.txt").write_text("mine")
    assert own_house.ask("/api/runs/run", "DELETE").status == 409
    assert (run / "policy.largesse").exists()
    (run / "notes.txt").unlink()
    assert own_house.ask("/api/runs/run", "DELETE").status == 200
    assert not run.exists()
    assert list(own_house.private.iterdir()) == []
    assert own_house.ask("/api/runs/run").status == 404


def test_an_unexpected_error_is_json_without_details(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(house.studio.tables, "find", fail)
    answer = house.ask("/api/tables/x")
    assert answer.status == 500
    assert answer.json["error"]["problems"]
    assert b"secret" not in answer.body  # the server logs it
