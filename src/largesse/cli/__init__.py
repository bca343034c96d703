"""One command per verb. Errors are one message and exit code 2; what was there before stays as it was."""

from largesse.cli.entry import main as main
from largesse.cli.entry import terminate as terminate
from largesse.cli.verbs import app as app
