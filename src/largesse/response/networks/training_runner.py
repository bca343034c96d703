"""Current runner of training jobs.

`train` hands a job to the current runner. The usual runner trains the job at once; `use_runner` puts another in its place
for the calls inside its block, for instance one that collects the jobs of several fits and runs them as one. JAX is
imported only when a job is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from largesse.response.networks.training_types import TrainedNetworks, TrainingJob

Runner = Callable[[TrainingJob], TrainedNetworks]


def run_job(job: TrainingJob) -> TrainedNetworks:
    """Train the models of a job in this thread."""
    from largesse.response.networks.trainer import run

    return run(job)


_runner: ContextVar[Runner] = ContextVar("runner", default=run_job)


def train(job: TrainingJob) -> TrainedNetworks:
    """Train the models of a job by the current runner, with bitwise reproducible results."""
    return _runner.get()(job)


@contextmanager
def use_runner(runner: Runner) -> Iterator[None]:
    """Pass the jobs of this thread to `runner` inside the block."""
    token = _runner.set(runner)
    try:
        yield
    finally:
        _runner.reset(token)
