"""Types of training jobs: the program, its length, the arrays of its M models, and the result.

A job names the program and the data that the models share, and what differs between them. Nothing here imports JAX, so
that the types of a job cost nothing to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.records import Array


@dataclass(frozen=True)
class TrainingProgram:
    """Functions of a training; `data` is shared by all models, `own` differs between them.

    Programs compare by identity of their functions: make each one once (`functools.lru_cache`), or it compiles again.
    """

    start: Callable[..., Any]  # seeds (M,), own of all models → first state of all models
    draw: Callable[..., Iterator[Any]]  # seed, own of one model, stretches of looks → draws (steps, …) of each stretch
    step: Callable[..., Any]  # state, data, own, draw of the step → state; for one model
    loss: Callable[..., Any]  # state, data, own → held-out loss; for one model
    keep: Callable[..., Any]  # state → the part of it to return
    rows: tuple[int, ...] = ()  # positions in `own` of row sets, the last to stop by; weights follow each one
    width: int = 1  # numbers that one row becomes on its way through the model: for the use of memory
    at_once: int | None = None  # most models in one program on a CPU, where groups of them run side by side


@dataclass(frozen=True)
class Loop:
    """Length of a training: number of evaluations, steps between two of them, and evaluations without gain before a model stops."""

    looks: int
    steps: int
    patience: int = 10
    stretch: int = 5  # looks between two checks of the host whether all models have stopped
    last: bool = False  # keep the last weights rather than the best


@dataclass(frozen=True, eq=False)
class TrainingJob:
    """Training of M models; models with the same log and seed have the same start and the same draws."""

    program: TrainingProgram
    loop: Loop
    data: tuple[Array, ...]  # each (n, …)
    own: tuple[Any, ...]  # each (M, …), or a dict of such arrays
    seeds: Array  # (M,)
    log: Array | None = None  # (M,) which log each model learns from, if there are several

    def logs(self) -> Array:
        """Return the index (M,) of each model's log."""
        return np.zeros(len(self.seeds), dtype=np.int64) if self.log is None else self.log


@dataclass(frozen=True, eq=False)
class TrainedNetworks:
    """Best weights of every model, their held-out loss, and the evaluation at which they were reached."""

    params: Any  # dict of arrays (M, …), or what the program keeps
    loss: Array  # (M,)
    look: Array  # (M,)
