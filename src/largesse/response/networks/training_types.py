"""Records of batched training: program, length, data and result.

A job holds the program and the data that the models share, and the arrays that differ between them. This module
does not import JAX, so importing it is fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from largesse.records import Array


@dataclass(frozen=True)
class TrainingProgram:
    """Functions of a training program: initial state, random batches, training step, loss and result.

    All models share `data`; each has its part of `model_data`.

    Programs compare by identity of their functions: make each one once (`functools.lru_cache`), or it compiles again.
    """

    start: Callable[..., Any]  # seeds (M,), model_data of all models → first state of all models
    draw: Callable[
        ..., Iterator[Any]
    ]  # seed, model_data of one model, stretches of looks → draws (steps, …) of each stretch
    step: Callable[..., Any]  # state, data, model_data, draw of the step → state; for one model
    loss: Callable[..., Any]  # state, data, model_data → held-out loss; for one model
    keep: Callable[..., Any]  # state → the part of it to return
    rows: tuple[int, ...] = ()  # positions in `model_data` of row sets, the last to stop by; weights follow each one
    width: int = 1  # numbers per row in all layers, for the estimate of memory
    at_once: int | None = None  # most models in one program on a CPU, where groups of them run side by side


@dataclass(frozen=True)
class TrainingLoop:
    """Settings of the training loop: number of evaluations, steps between evaluations, and early stopping."""

    looks: int
    steps: int
    patience: int = 10
    stretch: int = 5  # looks between two checks of the host whether all models have stopped
    last: bool = False  # keep the last weights rather than the best


@dataclass(frozen=True, eq=False)
class TrainingJob:
    """Training job of M models: program, length, shared data and data per model.

    Models with the same log and seed have the same start and the same random draws.
    """

    program: TrainingProgram
    loop: TrainingLoop
    data: tuple[Array, ...]  # each (n, …)
    model_data: tuple[Any, ...]  # each (M, …), or a dict of such arrays
    seeds: Array  # (M,)
    log: Array | None = None  # (M,) index of the log that each model learns from, if there are several

    def log_index_by_model(self) -> Array:
        """Return the index (M,) of the log on which each model is trained."""
        return np.zeros(len(self.seeds), dtype=np.int64) if self.log is None else self.log


@dataclass(frozen=True, eq=False)
class TrainedNetworks:
    """Result of a training job: each model's best weights, held-out loss and best evaluation number."""

    params: Any  # dict of arrays (M, …), or what the program keeps
    loss: Array  # (M,)
    look: Array  # (M,)
