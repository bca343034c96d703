"""A page in the browser for people who do not write Python, on this machine alone.

`open_studio` starts it. The server keeps nothing in mind that a run folder could hold: tables wait in a private folder until
they become the log of a run, and work is done by child processes that run the same functions as the command line. A child can
be stopped at any time and stops with its studio; what it was writing is then as if it had never begun.
"""

from largesse.studio.start import open_studio as open_studio
