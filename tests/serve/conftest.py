"""A service over the shop's run folder, asked without a network."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from largesse.serve import LedgerSettings, ServiceSettings
from largesse.serve.endpoints import Service, load_service
from support.services import Ask, connect

_SCHEMAS = itertools.count()


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk in this process; tests of crashes have processes of their own."""
    monkeypatch.setattr("largesse.serve.ledger.sqlite.SYNCHRONOUS", "OFF")


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a ledger that is not there yet, in each kind of store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    return str(request.getfixturevalue("server").address(f"ledger_{next(_SCHEMAS)}"))


@pytest.fixture(scope="session")
def customers(ran: Path) -> list[dict[str, Any]]:
    """The shop's customers as JSON has them."""
    rows = pq.read_table(ran.parent / "customers.parquet").to_pylist()
    return [json.loads(json.dumps(row, default=str)) for row in rows]


@pytest.fixture(scope="module")
def ask(ran: Path) -> Iterator[Ask]:
    """A service without a ledger."""
    with load_service(ServiceSettings(ran)) as service:
        yield connect(service)


@pytest.fixture
def booked(ran: Path, tmp_path: Path) -> Iterator[tuple[Ask, Service]]:
    """A service with a ledger of 60 units."""
    ledger = LedgerSettings(f"sqlite:///{tmp_path / 'spring.db'}", "60", "2999-12-31")
    with load_service(ServiceSettings(ran, ledger=ledger)) as service:
        yield connect(service), service
