"""A studio in a process of its own: from a table to a run, a what-if and a download; and what is sent to harm it."""

import io
import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pytest

from largesse.campaign import read_campaign
from largesse.pipeline import plan, run
from support.folders import everything_in
from support.shops import shop_table
from support.studios import NASTY, Running, start

DEMANDING = 3000  # rows of a log that is not learnt from at once


def send(running: Running, name: str, content: bytes) -> Any:
    return running.post(f"/api/tables?name={name}", content)


def as_csv(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    csv.write_csv(table, sink)
    return sink.getvalue()


def start_long(running: Running, draft: dict[str, Any], name: str) -> Any:
    table = send(running, "long.csv", as_csv(shop_table(DEMANDING, seed=3))).json()
    own = {**draft, "table": table["id"], "roles": table["roles"], "model": "auto"}
    return running.post("/api/runs", {"name": name, "draft": own})


def test_a_table_is_looked_at_and_guessed(running: Running, draft: dict[str, Any]) -> None:
    table = running.client.get(f"/api/tables/{draft['table']}").json()
    assert (table["name"], table["rows"], table["problems"]) == (f"{NASTY}.csv", 120, [])
    roles = {column["name"]: column["role"] for column in table["columns"]}
    assert roles == {
        "id": "customer",
        "age": "feature",
        NASTY: "feature",
        "since": "feature",
        "coupon": "level",
        "bought": "response",
    }
    assert [level["name"] for level in table["levels"]] == ["0", "5", "10"]
    assert table["order_known"]
    assert table["suggested_costs"] == [0, 5, 10]
    picked = running.post("/api/tables/pick", {"file": "log.csv"}).json()
    assert {**picked, "id": 0, "name": 0} == {**table, "id": 0, "name": 0}
    again = running.post(f"/api/tables/{picked['id']}/look", {"roles": {"level": NASTY, "response": "bought"}}).json()
    assert {level["name"] for level in again["levels"]} == {"Oslo", "Rome", "Lima"}
    assert not again["order_known"]
    assert running.client.delete(f"/api/tables/{picked['id']}").status_code == 204
    assert (running.folder / "log.csv").is_file()


def test_a_draft_is_a_campaign_file_or_a_list_of_problems(running: Running, draft: dict[str, Any]) -> None:
    found = running.post("/api/campaign", draft).json()
    assert found["problems"] == []
    assert 'log = "log.parquet"' in found["toml"]
    wrong = {**draft, "budget": -1, "levels": {**draft["levels"], "costs": [0, 5]}, "seed": "x"}
    found = running.post("/api/campaign", wrong).json()
    assert found["toml"] is None
    assert len(found["problems"]) == 3
    blank = {**draft, "budget": None, "levels": {}}
    assert "costs is left blank" in running.post("/api/campaign", blank).json()["problems"][0]["what"]


def test_a_log_is_examined_and_run_as_on_the_command_line_and_plans_are_tried_and_kept(
    running: Running, draft: dict[str, Any], tmp_path: Path
) -> None:
    job = running.wait(running.post("/api/doctor", {**draft, "budget": None, "levels": {}}))
    assert job["state"] == "done"
    assert job["result"]["verdict"] in ("fine", "careful", "no")
    assert sum(level["rows"] for level in job["result"]["levels"]) == 120
    job = running.wait(running.post("/api/runs", {"name": "first", "draft": draft}))
    assert (job["state"], job["result"], job["error"]) == ("done", {"run": "first"}, None)
    first = running.folder / "first"
    run(read_campaign(first / "campaign.toml"), tmp_path / "again")
    for name in ("plan.parquet", "plan.json", "policy.largesse", "evaluation.json", "frontier.parquet"):
        assert (first / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert NASTY not in running.client.get("/runs/first/report.html").text
    line = running.client.get("/api/runs/first").json()
    assert line["kept"]
    assert set(line["segments"]) == {NASTY}
    again = running.post("/api/tables/pick", {"run": "first"}).json()
    assert (again["draft"]["budget"], again["draft"]["costs"]) == ("2.5", {"0": "0", "5": "5", "10": "10"})
    assert again["roles"] == {**draft["roles"], "features": again["roles"]["features"]}
    other = running.post("/api/campaign", {**draft, "table": again["id"], "budget": 1.0}).json()
    assert (other["problems"], "budget = 1" in other["toml"]) == ([], True)
    assert running.post("/api/tables/pick", {"run": "../first"}).status_code == 404
    before = everything_in(first)
    asked = {"budget": 1.5, "plan": {"caps": {"10": 9}}, "fixed": {"c00007": "5"}, "barred": {NASTY: {"Lima": ["10"]}}}
    tried = running.wait(running.post("/api/runs/first/what-if", asked))["result"]
    assert tried["before"]["planned"]["spend"] == line["planned"]["spend"]
    assert next(level for level in tried["levels"] if level["name"] == "10")["customers"] <= 9
    got = running.client.get(f"/api/runs/first/what-if/{tried['id']}/plan.csv").content
    levels = {row["customer"]: row["level"] for row in csv.read_csv(io.BytesIO(got)).to_pylist()}
    assert (len(levels), levels["c00007"]) == (120, 5)
    described = running.client.get("/api/runs/first").json()
    for kind in described["simpler"]:
        drawn = running.client.get(f"/api/runs/first/files/{kind}.csv").content
        assert len(csv.read_csv(io.BytesIO(drawn))) == 120
    assert set(described["simpler"]) >= {"mix"}
    assert everything_in(first) == before
    kept = running.post(f"/api/runs/first/what-if/{tried['id']}/keep", {"name": "second"})
    assert (kept.status_code, kept.json()["name"], kept.json()["budget"]) == (201, "second", 1.5)
    assert running.post(f"/api/runs/first/what-if/{tried['id']}/keep", {"name": "second"}).status_code == 409
    assert plan(running.folder / "second")["planned"]["price"] == tried["planned"]["price"]
    assert {"first", "second"} <= {line["name"] for line in running.client.get("/api/runs").json()}
    refused = running.wait(running.post("/api/runs/first/what-if", {"budget": 1, "plan": {"caps": {"11": 1}}}))
    assert (refused["state"], refused["error"]["message"]) == ("failed", "plan.caps names the level '11'")
    assert running.hidden() == []


def test_a_run_that_is_cancelled_leaves_nothing_and_one_runs_at_a_time(running: Running, draft: dict[str, Any]) -> None:
    answer = start_long(running, draft, "stopped")
    job = answer.json()
    second = running.post("/api/doctor", draft)
    assert (second.status_code, second.json()["error"]["message"]) == (409, "a run is under way")
    while running.client.get(f"/api/jobs/{job['id']}").json()["stage"] != "learning the response":
        time.sleep(0.05)
    assert running.client.get("/api/state").json()["job"]["id"] == job["id"]  # the studio still answers
    for _ in range(2):
        assert running.client.delete(f"/api/jobs/{job['id']}").status_code == 200
    ended = running.wait(answer)
    assert (ended["state"], ended["result"]) == ("cancelled", None)
    with running.client.stream("GET", f"/api/jobs/{job['id']}/events") as events:
        said = [json.loads(line[6:]) for line in events.iter_lines() if line]
    assert [one["state"] for one in said] == ["cancelled"]
    assert not (running.folder / "stopped").exists()
    assert running.hidden() == []


# -- tables that harm ----------------------------------------------------------------------------------------------------


def damaged_arrow() -> bytes:
    sink = io.BytesIO()
    table = pa.table({"a": ["x"] * 50, "b": list(range(50))})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    content = bytearray(sink.getvalue())
    content[200:260] = b"\xff" * 60
    return bytes(content)


UNREADABLE = {
    "cut.arrow": damaged_arrow(),
    "cut.parquet": b"PAR1" + b"\x00" * 100,
    "no.csv.gz": b"\x1f\x8b nonsense",
    "program": b"\x7fELF" + b"\x00" * 200,
    "..%2f..%2fescape.csv": b"\x00\x01\x02",
    "one.csv": b"a,b\n",
    "twice.csv": b"a,a\n1,2\n",
    "campaign.xlsx": b"PK\x03\x04",
    "campaign": b"a,b\n1,2\n",
}


def test_unreadable_tables_are_refused_and_removed_and_thousands_of_columns_are_listed(running: Running) -> None:
    private = next(path for path in running.folder.iterdir() if path.name.startswith(".largesse-studio-"))
    before = set(private.iterdir())
    for name, content in UNREADABLE.items():
        answer = send(running, name, content)
        assert answer.status_code == 400, name
        assert answer.json()["error"]["problems"][0]["what"], name
        assert set(private.iterdir()) == before, name
        assert str(private) not in answer.text, name
    wide = ",".join(f"c{k}" for k in range(3000)) + "\n" + "\n".join(",".join(["1"] * 3000) for _ in range(3))
    table = send(running, "wide.csv", wide.encode()).json()
    assert len(table["columns"]) == 3000
    assert running.post(f"/api/tables/{table['id']}/look", {"roles": {"level": "nothing"}}).status_code == 400


# -- over the wire -------------------------------------------------------------------------------------------------------


ODD_REQUESTS: list[tuple[str, list[str], tuple[int, ...]]] = [
    ("GET /static/../../etc/passwd HTTP/1.1", [], (404,)),
    ("GET /static/%2e%2e%2f%2e%2e%2fetc/passwd HTTP/1.1", [], (404,)),
    ("GET http://evil.example/ HTTP/1.1", [], (303, 400, 401, 404, 421, 200)),
    ("GET / HTTP/1.1", ["Host: evil.example"], (400, 421)),
    ("POST /api/runs HTTP/1.1", ["Content-Length: 999999999999"], (413,)),
    ("POST /api/runs HTTP/1.1", ["Content-Length: -5"], (400,)),
    ("POST /api/runs HTTP/1.1", ["Content-Length: 5", "Transfer-Encoding: chunked"], (400,)),
    ("GET / HTTP/1.1", ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: x"], (200, 400, 426)),
    ("GET / HTTP/1.1", ["X: " + "x" * 100_000], (200, 400, 431)),
    ("NONSENSE", [], (400,)),
]


def test_odd_requests_over_the_wire_are_answered_or_dropped(running: Running) -> None:
    address = running.client.base_url
    cookie = "; ".join(f"{name}={value}" for name, value in running.client.cookies.items())
    own = [f"Host: {address.host}:{address.port}", f"Cookie: {cookie}", "X-Largesse: studio", "Connection: close"]
    for request_line, headers, statuses in ODD_REQUESTS:
        with socket.create_connection((address.host, address.port), timeout=10) as wire:
            wire.sendall("\r\n".join([request_line, *own, *headers, "", ""]).encode())
            answer = b""
            while piece := wire.recv(65536):
                answer += piece
                if b"\r\n\r\n" in answer:
                    break
        assert int(answer.split(b" ")[1]) in statuses, request_line
        assert b"root:" not in answer
    assert running.client.get("/api/state").status_code == 200


# -- the end -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_studio_that_stops_takes_its_work_along_and_leaves_nothing(draft: dict[str, Any], tmp_path: Path) -> None:
    with start(tmp_path) as other:
        job = start_long(other, draft, "new").json()
        while other.client.get(f"/api/jobs/{job['id']}").json()["stage"] != "learning the response":
            time.sleep(0.05)
        children = list_children(other.process.pid)
        assert len(children) == 2
    assert list(tmp_path.iterdir()) == []
    assert not any(map(is_alive, children))


@pytest.mark.slow
def test_a_studio_that_is_killed_is_cleaned_up_after_and_another_one_is_left_alone(tmp_path: Path) -> None:
    with start(tmp_path, code=-signal.SIGKILL) as killed:
        send(killed, "log.csv", as_csv(shop_table(60, seed=3)))
        children = list_children(killed.process.pid)
        killed.process.send_signal(signal.SIGKILL)
    (left,) = tmp_path.iterdir()
    with start(tmp_path):
        assert not left.exists()
        (own,) = tmp_path.iterdir()
        with start(tmp_path):
            assert own.exists()
    assert list(tmp_path.iterdir()) == []
    end = time.monotonic() + 20
    while (alive := [pid for pid in children if is_alive(pid)]) and time.monotonic() < end:
        time.sleep(0.05)
    assert alive == []


def list_children(pid: int) -> list[str]:
    return [
        found.parent.name
        for found in Path("/proc").glob("[0-9]*/stat")
        if (text := read_quietly(found)) and text.rsplit(")", 1)[1].split()[1] == str(pid)
    ]


def is_alive(pid: str) -> bool:
    text = read_quietly(Path("/proc") / pid / "stat")
    return bool(text) and text.rsplit(")", 1)[1].split()[0] != "Z"


def read_quietly(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists() or os.name != "posix", reason="looks at /proc")
