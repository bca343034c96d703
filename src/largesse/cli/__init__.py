"""The command line: one command per verb.

Errors are one message and exit code 2; what was there before stays as it was.
"""

from largesse.cli.entry import app as app
from largesse.cli.entry import main as main
from largesse.cli.entry import terminate as terminate
