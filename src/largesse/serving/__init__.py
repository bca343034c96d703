"""Decide over HTTP, one customer at a time or many: `open_service` answers until it is stopped.

A request walks from `app`, the addresses, to `decisions`, which reads it and lets the policy of `policies` say what to expect.
With a ledger (`ledgers`), `clerk` books requests that come at once in one transaction: `largesse.pacing` decides. `decisions`
writes the answer. `start` opens a port for one process (`answering`), or for several that `workers` looks after.
"""

from largesse.serving.answering import Settings as Settings
from largesse.serving.ledgers import LedgerSettings as LedgerSettings
from largesse.serving.ledgers import read_book as read_book
from largesse.serving.start import open_service as open_service
