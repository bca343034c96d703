"""Who gets what: the features that go with the planned levels most, and the levels within their groups."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data import as_floats, kind_of
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 4
GROUPS = 5
ROWS = 200_000  # groups of this many rows are known to a third of a per cent
LEAST = 0.005  # a feature that explains less of the plan than this is not worth a picture


def who_gets_what(features: pa.Table, levels: Array, costs: Array, K: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return the features that explain most of the plan, each with its groups' customers and shares of levels.

    `levels` (n,) are the planned levels and `costs` (n,) what they are expected to cost. How much a feature explains
    is the share of the levels' variance that lies between its groups.
    """
    if features.num_rows > ROWS:
        rows = np.sort(np.random.default_rng(seed).permutation(features.num_rows)[:ROWS])
        features, levels, costs = features.take(rows), levels[rows], costs[rows]
    found = []
    for name in features.column_names:
        code, labels = grouped(features.column(name))
        explains = _explained(code, levels, len(labels))
        if explains >= LEAST:
            found.append({"feature": name, "explains": explains, "groups": _groups(code, labels, levels, costs, K)})
    return sorted(found, key=lambda row: (-row["explains"], row["feature"]))[:SHOWN]


def grouped(column: pa.ChunkedArray) -> tuple[Array, list[str]]:
    """Return each row's group (n,) and the groups' labels: a few ranges, or the most frequent words."""
    import pyarrow as pa

    kind = kind_of(column.type)
    if kind == "text":
        return _words(column)
    if kind == "nothing":
        return np.zeros(len(column), dtype=np.int64), ["missing"]
    if pa.types.is_boolean(column.type):
        return _few(as_floats(column), lambda v: "yes" if v else "no")
    if kind == "date":
        days = as_floats(
            column.cast(pa.timestamp("s", tz=getattr(column.type, "tz", None)), safe=False).cast(pa.int64())
        )
        return _ranges(days, lambda s: str(np.datetime64(int(s), "s"))[:10])
    values = as_floats(column)
    known = values[np.isfinite(values)]
    if len(known) and len(np.unique(known[:1000])) <= GROUPS and len(np.unique(known)) <= GROUPS:
        return _few(values, _short)
    return _ranges(values, _short)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else f"{value:.3g}"


def _few(values: Array, label: Any) -> tuple[Array, list[str]]:
    known = np.isfinite(values)
    distinct, inverse = np.unique(values[known], return_inverse=True)
    code = np.full(len(values), len(distinct))
    code[known] = inverse
    return code, [label(v) for v in distinct] + ["missing"] * bool((~known).any())


def _ranges(values: Array, label: Any) -> tuple[Array, list[str]]:
    known = np.isfinite(values)
    if not known.any():
        return np.zeros(len(values), dtype=np.int64), ["missing"]
    inside = values[known]
    cuts = np.unique(np.quantile(inside, np.linspace(0, 1, GROUPS + 1)[1:-1], method="inverted_cdf"))
    cuts = cuts[cuts < inside.max()]
    code = np.full(len(values), len(cuts) + 1)
    code[known] = np.searchsorted(cuts, inside, side="left")
    texts = [label(cut) for cut in cuts]
    labels = (
        [f"up to {texts[0]}", *(f"{a} – {b}" for a, b in pairwise(texts)), f"over {texts[-1]}"] if texts else ["all"]
    )
    return code, labels + ["missing"] * bool((~known).any())


def _words(column: pa.ChunkedArray) -> tuple[Array, list[str]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = column.cast(pa.string())
    tally = pc.value_counts(text.drop_null())
    pairs = sorted(
        zip(tally.field("counts").to_pylist(), tally.field("values").to_pylist(), strict=True),
        key=lambda p: (-p[0], p[1]),
    )
    top = sorted(word for _, word in pairs[:GROUPS])
    code = np.asarray(
        pc.fill_null(pc.index_in(text, value_set=pa.array(top, type=pa.string())), len(top)), dtype=np.int64
    )
    labels = [*top, "other"] if len(pairs) > GROUPS else list(top)
    if text.null_count:
        code[np.asarray(text.is_null())] = len(labels)
        labels.append("missing")
    return code, labels


def _explained(code: Array, levels: Array, groups: int) -> float:
    total = float(levels.var())
    if total == 0:
        return 0.0
    size = np.bincount(code, minlength=groups)
    mean = np.bincount(code, weights=levels, minlength=groups) / np.maximum(size, 1)
    return float(size @ (mean - levels.mean()) ** 2 / len(levels) / total)


def _groups(code: Array, labels: list[str], levels: Array, costs: Array, K: int) -> list[dict[str, Any]]:
    groups = []
    for g, label in enumerate(labels):
        here = code == g
        if here.any():
            shares = np.bincount(levels[here], minlength=K) / here.sum()
            groups.append(
                {
                    "label": label,
                    "customers": int(here.sum()),
                    "shares": shares.tolist(),
                    "average_cost": float(costs[here].mean()),
                }
            )
    return groups
