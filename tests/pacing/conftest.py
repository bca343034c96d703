"""Ledgers of both kinds."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres import Server, run_server, why_not

_SCHEMAS = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server; tests that need one are skipped where there is none."""
    missing = why_not()
    if missing:
        pytest.skip(missing)
    with run_server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a ledger that is not there yet, in each kind of store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    return str(request.getfixturevalue("server").address(f"ledger_{next(_SCHEMAS)}"))
