"""A digest of a log: whether what was computed from a log still belongs to it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data.columns import as_floats, as_seconds, count_words, kind_of, word_codes
from largesse.records import Log

if TYPE_CHECKING:
    import pyarrow as pa


def digest_log(log: Log) -> str:
    """Return a digest of all that a log holds: features, levels, responses, and what else its table knew.

    Values count, not how they are stored: the same table read from another kind of file has the same digest.

    >>> from largesse.data import log_from_arrays
    >>> one, other = (log_from_arrays([[1.0], [x]], [0, 1], [0, 1]) for x in (2.0, 3.0))
    >>> digest_log(one) == digest_log(one), digest_log(one) == digest_log(other)
    (True, False)
    """
    found = hashlib.blake2b(digest_size=16)
    found.update(json.dumps(asdict(log.levels), sort_keys=True).encode())
    if log.sample is not None:  # whose features are elsewhere: what was learnt depends on the rows that were drawn
        found.update(f"\0{log.sample.digest}\0".encode() + log.sample.rows.tobytes())
    for name in log.features.column_names:
        found.update(f"\0{name}\0".encode("utf-8", "surrogatepass"))
        _add_column(found, log.features.column(name))
    for word in ("level", "response", "propensity", "logger", "cluster", "weight", "costs", "paid"):
        values = getattr(log, word)
        found.update(f"\0{word}\0".encode())
        if values is not None:
            found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()


def _add_column(found: Any, column: pa.ChunkedArray) -> None:
    """Add the values of a column: numbers as they are; text as codes of its words in their order."""
    kind = kind_of(column.type)
    found.update(kind.encode())
    if kind == "text":
        words = sorted(count_words(column))
        found.update("\0".join(words).encode("utf-8", "surrogatepass"))
        found.update(np.asarray(word_codes(column, words), dtype=np.int64).tobytes())
    elif kind not in ("nothing", "other"):
        found.update((as_seconds(column) if kind == "date" else as_floats(column)).tobytes())
