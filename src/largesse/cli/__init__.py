"""Command-line interface, with one command per verb.

Errors are one message and exit code 2; existing files stay unchanged.
"""

from largesse.cli.command_line import app as app
from largesse.cli.command_line import exit_on_signal as exit_on_signal
from largesse.cli.command_line import main as main
