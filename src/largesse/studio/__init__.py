"""A page in the browser for people who do not write Python, on this machine alone.

`open_studio` starts it. A request passes `app` and `handlers`. Long work is a job (`jobs`) in a worker process (`worker`), which runs
the functions of the command line (`tasks`) and can be stopped at any time; a job that is stopped leaves nothing behind. Tables wait in
a private folder (`paths`) until they become the log of a run.
"""

from largesse.studio.studio_app import open_studio as open_studio
