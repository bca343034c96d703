"""A service over the shop's run folder, asked without a network."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from services import Ask, connect

from largesse.serving import LedgerSettings, Settings
from largesse.serving.answering import open_parts
from largesse.serving.service import Service


@pytest.fixture(scope="session")
def customers(ran: Path) -> list[dict[str, Any]]:
    """The shop's customers as JSON has them."""
    rows = pq.read_table(ran.parent / "customers.parquet").to_pylist()
    return [json.loads(json.dumps(row, default=str)) for row in rows]


@pytest.fixture
def ask(ran: Path) -> Iterator[Ask]:
    """A service without a ledger."""
    with ExitStack() as stack:
        watched, _ = open_parts(Settings(ran), stack)
        yield connect(Service(watched))


@pytest.fixture
def booked(ran: Path, tmp_path: Path) -> Iterator[tuple[Ask, Service]]:
    """A service with a ledger of 60 units."""
    ledger = LedgerSettings(f"sqlite:///{tmp_path / 'spring.db'}", "60", "2999-12-31")
    with ExitStack() as stack:
        watched, books = open_parts(Settings(ran, ledger=ledger), stack)
        assert books is not None
        service = Service(watched, books)
        yield connect(service), service
