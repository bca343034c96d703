"""Decide over HTTP, one customer at a time or many: `open_service` answers until it is stopped.

`Service` decides by a policy that is loaded again when its file changes, and books what it decides in a ledger, if there is
one. Several processes may share a port and a ledger; a process that dies is started again.
"""

from largesse.serving.answering import Settings as Settings
from largesse.serving.ledgers import LedgerSettings as LedgerSettings
from largesse.serving.ledgers import read_book as read_book
from largesse.serving.start import open_service as open_service
