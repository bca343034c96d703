"""Answers as bytes, for the way from one machine to another: arrays and whole numbers, nothing that runs when it is opened."""

from __future__ import annotations

import io
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

Answer = TypeVar("Answer")


def pack_answer(answer: Any) -> bytes:
    """Return an answer, a record of arrays and whole numbers, as bytes: a few kilobytes, for most is zeros."""
    held = io.BytesIO()
    parts: dict[str, Any] = {field.name: np.asarray(getattr(answer, field.name)) for field in fields(answer)}
    np.savez_compressed(held, **parts)
    return held.getvalue()


def unpack_answer(kind: type[Answer], packed: bytes) -> Answer:
    """Return the answer of this kind that was packed."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as held:
        parts = {field.name: held[field.name] for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: part if part.ndim else int(part) for name, part in parts.items()})
