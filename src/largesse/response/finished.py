"""Fits that are finished and would be lost if the whole were stopped.

`fit_once` hands the fold models of a member to the current keeper, if there is one, and takes them from it where they are
kept already. They are kept under a digest of all that they were learnt from. `keep_fits` names the keeper of its block.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import numpy as np

from largesse.data import Encoder
from largesse.errors import InputError
from largesse.progress import note
from largesse.records import Array, Log
from largesse.response.archive import Arrays, Reader, State, pack, pack_settings
from largesse.response.base import ResponseModel

Models = tuple[ResponseModel, ...]


class Keeper(Protocol):
    """Keeps models as JSON and arrays."""

    known: Mapping[str, type[ResponseModel]]  # classes, by name, that may be kept

    def recall(self, key: str) -> tuple[State, Arrays] | None:
        """Return what is kept under a key; None if nothing is."""

    def keep(self, key: str, state: State, arrays: Arrays) -> None:
        """Keep something under a key."""


_keeper: ContextVar[Keeper | None] = ContextVar("keeper", default=None)


@contextmanager
def keep_fits(keeper: Keeper | None) -> Iterator[None]:
    """Let `keeper` keep what is fitted inside the block, in this thread."""
    token = _keeper.set(keeper)
    try:
        yield
    finally:
        _keeper.reset(token)


def fit_once(
    model: ResponseModel, X: Array, log: Log, fold: Array, fit: Callable[[], list[ResponseModel]], encoder: Encoder
) -> list[ResponseModel]:
    """Return the fold models of a model: those that are kept for these rows, or those that `fit` returns."""
    keeper = _keeper.get()
    if keeper is None:
        return fit()
    try:
        key = _digest(model, X, log, fold)
    except InputError:  # a model that cannot be saved
        return fit()
    if (found := _recall(keeper, key, encoder, len(log.levels))) is not None:
        note(f"{type(model).__name__} is as the run that was stopped had fitted it")
        return found
    models, arrays = fit(), dict[str, Array]()
    keeper.keep(key, {"models": pack(tuple(models), Models, "models", arrays)}, arrays)
    return models


def _recall(keeper: Keeper, key: str, encoder: Encoder, levels: int) -> list[ResponseModel] | None:
    """Return models that are kept; None if there are none, or none that can be used."""
    kept = keeper.recall(key)
    if kept is None:
        return None
    state, arrays = kept
    reader = Reader(arrays, keeper.known, encoder)
    try:
        return list(reader.unpack(state["models"], Models, "models", {"K": levels}))
    except (ValueError, KeyError, TypeError):
        return None


def _digest(model: ResponseModel, X: Array, log: Log, fold: Array) -> str:
    """Return a digest of a model's settings and of the rows that it learns from."""
    facts = [type(model).__name__, pack_settings(model), list(X.shape), str(X.dtype), len(log.levels)]
    found = hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16)
    for values in (X, log.level, log.response, log.weight, log.cluster, fold):
        found.update(b"\0" if values is None else np.ascontiguousarray(values).data)
    return found.hexdigest()
