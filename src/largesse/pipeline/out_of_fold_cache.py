"""Cache of a run's out-of-fold predictions and propensities (`scores.parquet`).

Scores do not depend on the budget, the estimator or the rules of a plan. The table holds, in the order of the log's rows,
out-of-fold curves and folds, expected costs where these are observed, and propensities; of some rows also the curves after
single features were shuffled. Its key names the log, the model and the seed. Where the key does not fit, the cache is not used.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.campaign import Campaign
from largesse.data import digest_log, read_table
from largesse.errors import LargesseError
from largesse.records import Array, HeldOutPredictions, Log, Propensities, ShuffledPredictions

if TYPE_CHECKING:
    import pyarrow as pa

SCORES_FORMAT = 1
FLOAT = np.dtype("<f4")
METADATA_KEY = b"largesse"  # of the schema of the table


def make_cache_key(campaign: Campaign, log: Log) -> str:
    """Return a hash of the log, the model and the seed that out-of-fold predictions depend on."""
    facts = json.dumps([SCORES_FORMAT, digest_log(log), campaign.model, campaign.seed])
    return hashlib.blake2b(facts.encode(), digest_size=16).hexdigest()


def tabulate_scores(key: str, held: HeldOutPredictions, propensities: Propensities | None) -> pa.Table:
    """Return out-of-fold predictions and propensities as the table of the cache."""
    import pyarrow as pa

    columns: dict[str, Any] = {"fold": held.fold.astype(np.int32)}
    columns |= {f"curve_{k}": column for k, column in enumerate(held.curves.T)}
    if held.costs is not None:
        columns |= {f"cost_{k}": column for k, column in enumerate(held.costs.T)}
    facts: dict[str, Any] = {"key": key}
    if held.shuffled is not None:
        columns["shuffled"] = _pack_shuffled(held.shuffled, len(held.fold))
        facts["shuffled"] = list(held.shuffled.features)
    if propensities is not None:
        columns["propensity"] = propensities.own
        names = ("source", "model", "clipped", "clipped_weight")
        facts["propensities"] = {name: getattr(propensities, name) for name in names}
    return pa.table(columns).replace_schema_metadata({METADATA_KEY: json.dumps(facts)})


def read_scores(path: Path, key: str, log: Log) -> tuple[HeldOutPredictions, Propensities | None] | None:
    """Read the cached predictions and propensities of a log; None without a valid cache."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            facts = json.loads((pq.read_schema(file).metadata or {}).get(METADATA_KEY, b"{}"))
        if facts.get("key") != key:
            return None
        table = read_table(path, what="run folder")
        held = HeldOutPredictions(_read_matrix(table, "curve", log), _read_column(table, "fold", log).astype(np.int64))
        if log.levels.observed:
            held = replace(held, costs=_read_matrix(table, "cost", log))
        if "shuffled" in facts:
            held = replace(held, shuffled=_unpack_shuffled(table.column("shuffled"), facts["shuffled"], log))
        settings = facts.get("propensities")
        return held, None if settings is None else Propensities(_read_propensities(table, log), **settings)
    except (LargesseError, OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
        return None


def _pack_shuffled(shuffled: ShuffledPredictions, n: int) -> pa.Array:
    """Return the curves predicted with shuffled features as a column of bytes."""
    import pyarrow as pa

    cells: list[bytes | None] = [None] * n
    for row, part in zip(shuffled.rows.tolist(), shuffled.curves.transpose(1, 0, 2).astype(FLOAT), strict=True):
        cells[row] = part.tobytes()
    return pa.array(cells, type=pa.binary())


def _unpack_shuffled(column: pa.ChunkedArray, features: Any, log: Log) -> ShuffledPredictions:
    """Read the curves predicted with shuffled features from their column.

    ValueError if they do not belong to the log.
    """
    rows = np.flatnonzero(np.asarray(column.is_valid()))
    shape = (len(rows), len(features), len(log.levels))
    curves = np.frombuffer(b"".join(column.drop_null().to_pylist()), dtype=FLOAT).reshape(shape)
    known = all(name in log.seen.features.column_names for name in features)
    if len(column) != len(log) or not known or not np.isfinite(curves).all():
        raise ValueError("the shuffled rows do not belong to the log")
    return ShuffledPredictions(tuple(features), rows, np.ascontiguousarray(curves.transpose(1, 0, 2), dtype=np.float32))


def _read_matrix(table: pa.Table, word: str, log: Log) -> Array:
    return np.column_stack([_read_column(table, f"{word}_{k}", log) for k in range(len(log.levels))])


def _read_propensities(table: pa.Table, log: Log) -> Array:
    propensity = _read_column(table, "propensity", log)
    if (propensity <= 0).any() or (propensity > 1).any():
        raise ValueError("a propensity is not in (0, 1]")
    return propensity


def _read_column(table: pa.Table, name: str, log: Log) -> Array:
    """Return a column of finite numbers per log row; ValueError otherwise."""
    values = np.asarray(table.column(name).to_numpy(), dtype=np.float64)
    if len(values) != len(log) or not np.isfinite(values).all():
        raise ValueError(f"{name} does not belong to the log")
    return values
