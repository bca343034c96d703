"""Fits that are finished and would be lost if the whole were stopped.

`keep_jobs` hands the fold models of a model to the current keeper, if there is one, as soon as they are fitted, and takes
them from it where they are kept already. They are kept under a digest of all that they are learnt from. `keep_fits` names
the keeper of its block.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from largesse.data import Encoder
from largesse.errors import InputError
from largesse.progress import send_message
from largesse.records import Array, Log
from largesse.response.archive import Arrays, Reader, State, pack, pack_settings
from largesse.response.base import ResponseModel

Models = tuple[ResponseModel, ...]
Job = Callable[[], list[ResponseModel]]  # fits some of the fold models of a model


@dataclass(frozen=True, eq=False)
class Ready:
    """A job that is done already."""

    models: Models

    def __call__(self) -> list[ResponseModel]:
        """Return its models."""
        return list(self.models)


class Keeper(Protocol):
    """Keeps models as JSON and arrays; any thread may hand it some."""

    known: Mapping[str, type[ResponseModel]]  # classes, by name, that may be kept

    def recall(self, key: str) -> tuple[State, Arrays] | None:
        """Return what is kept under a key; None if nothing is."""

    def keep(self, key: str, state: State, arrays: Arrays) -> None:
        """Keep something under a key."""


_keeper: ContextVar[Keeper | None] = ContextVar("keeper", default=None)


@contextmanager
def keep_fits(keeper: Keeper | None) -> Iterator[None]:
    """Let `keeper` keep what is fitted inside the block."""
    token = _keeper.set(keeper)
    try:
        yield
    finally:
        _keeper.reset(token)


def keep_jobs(
    models: Sequence[ResponseModel], jobs: Sequence[Sequence[Job]], X: Array, log: Log, fold: Array, encoder: Encoder
) -> list[list[Job]]:
    """Return the jobs of some models on encoded features (n, p), a log and its folds (n,); what is kept is not done again."""
    keeper, rows, found = _keeper.get(), None, 0
    kept: list[list[Job]] = [list(each) for each in jobs]
    if keeper is None:
        return kept
    for model, each in zip(models, kept, strict=True):
        try:
            settings = json.dumps([type(model).__name__, pack_settings(model)], sort_keys=True)
        except InputError:  # a model that cannot be saved
            continue
        rows = rows or _digest_rows(X, log, fold)
        for j, job in enumerate(each):
            key = hashlib.blake2b(f"{rows}{settings}{j}/{len(each)}".encode(), digest_size=16).hexdigest()
            ready = _recall(keeper, key, encoder, len(log.levels))
            each[j] = partial(_fit_and_keep, keeper, key, job) if ready is None else Ready(ready)
            found += ready is not None
    if found:
        send_message(f"{found} of {sum(map(len, kept))} fits are as the run that was stopped had finished them")
    return kept


def _fit_and_keep(keeper: Keeper, key: str, job: Job) -> list[ResponseModel]:
    models, arrays = job(), dict[str, Array]()
    keeper.keep(key, {"models": pack(tuple(models), Models, "models", arrays)}, arrays)
    return models


def _recall(keeper: Keeper, key: str, encoder: Encoder, levels: int) -> Models | None:
    """Return models that are kept; None if there are none, or none that can be used."""
    kept = keeper.recall(key)
    if kept is None:
        return None
    state, arrays = kept
    try:
        found: Models = Reader(arrays, keeper.known, encoder).unpack(state["models"], Models, "models", {"K": levels})
    except (ValueError, KeyError, TypeError):
        return None
    return found


def _digest_rows(X: Array, log: Log, fold: Array) -> str:
    """Return a digest of what models learn from."""
    found = hashlib.blake2b(json.dumps([X.shape, str(X.dtype), len(log.levels)]).encode(), digest_size=16)
    for values in (X, log.level, log.response, log.weight, log.cluster, fold):
        found.update(b"\0" if values is None else np.ascontiguousarray(values).data)
    return found.hexdigest()
