"""Hashes of customer ids that are equal on every machine.

Imported inside functions only: the module loads numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa


def hash_ids(ids: pa.Array) -> Array:
    """Return the 64-bit hash (n,) of each customer id."""
    import pyarrow as pa

    if pa.types.is_integer(ids.type):
        # Signed or not, wide or narrow: the same number is the same id in every file.
        return _mix_bits(np.asarray(ids.cast(pa.int64(), safe=False)).view(np.uint64))
    texts = ids.cast(pa.large_binary() if pa.types.is_binary(ids.type) else pa.string()).cast(pa.large_binary())
    _, starts, content = texts.buffers()
    ends = np.frombuffer(starts, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.frombuffer(content, dtype=np.uint8) if content is not None else np.zeros(0, np.uint8)
    return _mix_bits(_hash_bytes(ends, letters))


@njit(cache=True, nogil=True)
def _hash_bytes(ends: Array, letters: Array) -> Array:
    hashes = np.empty(len(ends) - 1, dtype=np.uint64)
    for i in range(len(hashes)):
        number = np.uint64(14695981039346656037)  # FNV-1a
        for k in range(ends[i], ends[i + 1]):
            number = (number ^ np.uint64(letters[k])) * np.uint64(1099511628211)
        hashes[i] = number
    return hashes


@njit(cache=True, nogil=True)
def _mix_bits(numbers: Array) -> Array:
    """Mix the bits of 64-bit numbers without collisions (the finaliser of MurmurHash3)."""
    hashes = np.empty(len(numbers), dtype=np.uint64)
    for i in range(len(numbers)):
        x = np.uint64(numbers[i])
        x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        hashes[i] = x ^ (x >> np.uint64(33))
    return hashes
