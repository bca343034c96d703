"""Several processes share a port and a ledger; whichever is killed, no decision is lost and nothing is spent twice."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from largesse.serve import open_ledger

Row = dict[str, Any]


def start(ran: Path, folder: Path, workers: int) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "largesse", "serve", str(ran), "--port", "0", "--workers", str(workers)]
    command += ["--ledger", f"sqlite:///{folder / 'spring.db'}", "--total", "200", "--until", "2999-12-31"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if "http://" not in line:
        process.kill()
        pytest.fail(line + process.communicate()[1])
    return process, int(line.split("http://127.0.0.1:")[1].split("/")[0])


def send(port: int, asked: Row, deadline: float) -> Row:
    """Ask until there is an answer: whoever is cut off asks again with the same id."""
    while True:
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
                connection.request("POST", "/v1/decide", json.dumps(asked), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                content = json.loads(answer.read())
            if answer.status == 200:
                return dict(content)
            assert answer.status == 503, content
        except (OSError, http.client.HTTPException, ValueError):
            pass
        assert time.monotonic() < deadline, "nobody answers any more"
        time.sleep(0.05)


def children(process: int) -> list[int]:
    """Return the worker processes; Python's own resource tracker is another child."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(word) for word in found if b"spawn_main" in Path(f"/proc/{word}/cmdline").read_bytes()]


@pytest.mark.slow  # four starts of Python
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc, to find the processes to kill")
def test_a_worker_that_is_killed_loses_no_decision(ran: Path, tmp_path: Path, customers: list[Row]) -> None:
    process, port = start(ran, tmp_path, workers=2)
    answers: dict[str, Row] = {}
    deadline = time.monotonic() + 120
    try:
        send(port, {"request_id": "first", "customers": customers[:1]}, deadline)

        def shop(name: str) -> None:
            for k in range(40):
                row = customers[k % len(customers)]
                answers[f"{name}{k}"] = send(port, {"request_id": f"{name}{k}", "customers": [row]}, deadline)

        threads = [threading.Thread(target=shop, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        killed: list[int] = []
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.4)
            for worker in children(process.pid)[:1]:
                if len(killed) < 3 and worker not in killed:
                    os.kill(worker, signal.SIGKILL)
                    killed.append(worker)
        for thread in threads:
            thread.join()
        assert killed
        while len(set(children(process.pid)) - set(killed)) < 2:  # until others have taken their places
            assert time.monotonic() < deadline, "a worker was not started again"
            time.sleep(0.05)
        again = send(port, {"request_id": "a7", "customers": [customers[7]]}, deadline)
        assert again == {**answers["a7"], "repeated": True}
    finally:
        process.terminate()
        out, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert "The service has stopped" in out
    assert out.count("died") == len(killed)
    assert len(answers) == 80
    with open_ledger(f"sqlite:///{tmp_path / 'spring.db'}") as ledger:
        booked = {row[0]: row for row in ledger.decisions()}
        assert set(booked) == {*answers, "first"}
        assert ledger.audit().matches
        spent = sum(one["decisions"][0]["expected_cost"] for one in answers.values())
        assert ledger.standing().as_dict()["spent"] <= 200
        assert spent <= ledger.standing().as_dict()["spent"] + 1e-6
