"""Hook that replaces the function that runs network training inside a with-block.

`train_networks` passes a job to the current runner. The default runner trains the job at once; `use_training_runner` replaces it inside a
block, for instance by one that collects the jobs of several fits and runs them as one. JAX is imported only when a job
is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from largesse.response.networks.training_types import TrainedNetworks, TrainingJob

Runner = Callable[[TrainingJob], TrainedNetworks]


def train_in_thread(job: TrainingJob) -> TrainedNetworks:
    """Train the models of a training job in the current thread."""
    from largesse.response.networks.batched_training import train_in_groups

    return train_in_groups(job)


_runner: ContextVar[Runner] = ContextVar("runner", default=train_in_thread)


def train_networks(job: TrainingJob) -> TrainedNetworks:
    """Train the models of a training job with the current training function.

    Results are bitwise reproducible.
    """
    return _runner.get()(job)


@contextmanager
def use_training_runner(runner: Runner) -> Iterator[None]:
    """Replace the training function of the current thread inside the with-block."""
    token = _runner.set(runner)
    try:
        yield
    finally:
        _runner.reset(token)
