"""A ledger in PostgreSQL: what its address may be, and what it does when the server cuts it off."""

import time
from typing import Any

import pytest
from ledgers import fixed_terms
from postgres import Server

from largesse.errors import InputError, LedgerError
from largesse.serve import open_ledger
from largesse.serve.ledger.ledger import make_store

pytest.importorskip("psycopg")


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    with pytest.raises(LedgerError, match="does not answer") as caught:
        open_ledger("postgresql://me:secret@127.0.0.1:1/db?schema=x", fixed_terms(), timeout=0.05)
    assert "secret" not in str(caught.value)
    assert "me@127.0.0.1:1/db" in str(caught.value)
    with pytest.raises(InputError, match="schema is named"):
        open_ledger("postgresql://host/db?schema=x;drop")


@pytest.mark.parametrize("secret", ["zx/cy", "12/34", "zx?cy", "zx#cy", "[zx"])
def test_a_password_is_not_shown_where_it_cuts_the_address(secret: str) -> None:
    with pytest.raises(InputError, match="cannot be read") as caught:
        open_ledger(f"postgresql://me:{secret}@host:5432/db", fixed_terms())
    assert secret[:2] not in str(caught.value)


def test_several_servers_may_be_named() -> None:
    store = make_store("postgresql://me:a@b@[::1]:5432,second:5433/db?schema=spring")
    assert store.shown == "postgresql://me@[::1]:5432,second:5433/db (schema spring)"


def test_a_transaction_that_was_stopped_for_too_long_is_repeated(server: Server) -> None:
    attempts = []

    def work(session: Any) -> int:
        attempts.append(session.now())
        if len(attempts) == 1:
            session.run("SET LOCAL idle_in_transaction_session_timeout = 50")
            time.sleep(0.5)
        return int(session.fetch("SELECT total FROM ledger")[0][0])

    with open_ledger(server.address("stopped"), fixed_terms()) as ledger:
        assert ledger._work(work) == 100_000_000
    assert len(attempts) == 2
