"""Studio: a local web page for campaigns, for people who do not write Python.

`open_studio` starts it. A request passes `studio_app` and `studio_handlers`. Long work is a job (`background_jobs`) in a `worker_process`
that runs the functions of the command line and can be stopped at any time; a stopped job leaves nothing behind. Uploaded tables
wait in a private folder (`studio_files`) until they become the log of a run.
"""

from largesse.studio.studio_app import open_studio as open_studio
