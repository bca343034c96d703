"""Workers are killed and databases restart: no decision is lost, and nothing is spent twice."""

import random
import time
from pathlib import Path

import pytest

from largesse.serve import make_terms, open_ledger
from support.ledger_worker import CUSTOMERS, Workers, check_ledger
from support.postgres import Server


def begin(address: str, total: float) -> None:
    open_ledger(address, make_terms(total, "2999-12-31", starts="2020-01-01", valid_days=30)).close()


def check(address: str, workers: Workers, total: float) -> None:
    workers.join()
    check_ledger(address, workers, int(total * 1e6))


def test_two_processes_share_a_file_and_one_is_killed(tmp_path: Path) -> None:
    # Half of the customers could get the dearest level: the budget runs out while both workers decide.
    address, requests = f"sqlite:///{tmp_path}/ledger.db", 60
    total = 0.5 * 10 * CUSTOMERS * 2 * requests
    begin(address, total)
    workers = Workers(address, tmp_path, 2, requests)
    try:
        workers.wait_for(20)
        workers.kill_one(random.Random(1))
        check(address, workers, total)
    finally:
        workers.stop()


def test_four_processes_share_a_server_that_restarts(server: Server, tmp_path: Path) -> None:
    address, requests = server.address("crash"), 25
    total = 0.5 * 10 * CUSTOMERS * 4 * requests
    begin(address, total)
    workers = Workers(address, tmp_path, 4, requests)
    try:
        workers.wait_for(20)
        server.stop("fast")
        server.start()
        check(address, workers, total)
    finally:
        workers.stop()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_workers_are_killed_all_the_time(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server = request.getfixturevalue("server") if kind == "postgres" else None
    address = f"sqlite:///{tmp_path}/ledger.db" if server is None else server.address("killed")
    rng, requests, many = random.Random(2), 1500, 2 if server is None else 4
    total = 0.5 * 10 * CUSTOMERS * many * requests
    begin(address, total)
    workers = Workers(address, tmp_path, many, requests)
    try:
        for i in range(25):
            time.sleep(rng.uniform(0.2, 1.5))
            workers.kill_one(rng)
            if server is not None and i % 8 == 4:
                server.stop(rng.choice(["fast", "immediate"]))
                time.sleep(rng.uniform(0, 1))
                server.start()
        check(address, workers, total)
    finally:
        workers.stop()
