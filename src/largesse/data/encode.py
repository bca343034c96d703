"""Features of any kind → one matrix of finite numbers, learnt on the log, safe for values never seen before.

Numbers are standardised, with an indicator where some were missing. Text with few values is one-hot, rare values
pooled; text with many values becomes a smoothed mean of a target (scikit-learn's cross-fitted `TargetEncoder`). Dates
become elapsed days and places on the circles of year, week and day. What was learnt is plain JSON: `state`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data.columns import as_floats, as_seconds, count_words, kind_of, word_codes
from largesse.errors import Problem, nearest, refuse
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

FEW = 40  # text with at most this many frequent values is one-hot
RARE = 10  # values seen less often than this are pooled
POOLED = 0.2  # share of rows whose words may be pooled as rare
TARGET_FOLDS = 5
DAY = 86_400.0
# The circles on which a date moves: name, length in days.
CIRCLES = (("year", 365.2425), ("week", 7.0), ("day", 1.0))
FARTHEST = 1e6  # standard deviations; a value farther out says no more, and float32 ends
PLURAL = {"number": "numbers", "date": "dates", "other": "lists or bytes"}


class Encoder:
    """Turns a table of features into a float32 matrix.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": [20.0, None, 40.0], "city": pa.array(["Oslo", "Rome", "Oslo"]).dictionary_encode()})
    >>> encoder = Encoder(rare=1)
    >>> encoder.fit_transform(table, target=np.array([0.0, 1.0, 1.0])).shape
    (3, 3)
    >>> encoder.names
    ('age', 'age missing', 'city = Oslo')
    """

    def __init__(self, few: int = FEW, rare: int = RARE) -> None:
        self.few = few
        self.rare = rare
        self.columns: list[dict[str, Any]] = []
        self.width = 0  # columns of the table it was learnt on, those that say nothing among them

    # -- learning -----------------------------------------------------------------------------------------------

    def fit_transform(self, table: pa.Table, target: Array, *, discrete: bool = False, seed: int = 0) -> Array:
        """Learn the encoding and return the matrix (n, p).

        `target` (n,) is what text with many values is averaged over: responses, or (``discrete=True``) levels. For
        these columns the rows of the log get cross-fitted averages, so that no row is encoded by its own target.
        """
        self.columns, self.width = [], table.num_columns
        blocks = []
        for name in table.column_names:
            learnt, block = self._learn(name, table.column(name), target, discrete, seed)
            if block.shape[1]:
                self.columns.append(learnt)
                blocks.append(block)
        return _stacked(blocks, table.num_rows)

    def _learn(
        self, name: str, column: pa.ChunkedArray, target: Array, discrete: bool, seed: int
    ) -> tuple[dict[str, Any], Array]:
        kind = kind_of(column.type)
        if kind == "number":
            learnt = {"name": name, "kind": kind, **_scale(as_floats(column))}
        elif kind == "date":
            learnt = {"name": name, "kind": kind, **_scale(as_seconds(column) / DAY)}
            learnt["circles"] = _used_circles(as_seconds(column))
        elif kind == "text":
            learnt, means = self._learn_text(name, column, target, discrete, seed)
            if means is not None:  # cross-fitted: the log's own rows differ from what `transform` would give
                return learnt, means
        else:
            learnt = {"name": name, "kind": "nothing"}
        return learnt, _encode(learnt, column)

    def _learn_text(
        self, name: str, column: pa.ChunkedArray, target: Array, discrete: bool, seed: int
    ) -> tuple[dict[str, Any], Array | None]:
        tally = count_words(column)  # the most frequent first
        known = len(column) - column.null_count
        rare = min(self.rare, max(1, len(column) // 50))  # in a small log ten rows are not few
        frequent = [word for word, times in tally.items() if times >= rare]
        others = known - sum(tally[word] for word in frequent)
        # Few words, or few rows beyond the frequent ones: one-hot. Else (a thousand postcodes) the words need means.
        # A word that hardly ever comes back has no mean to learn.
        if len(frequent) <= self.few and (len(tally) <= self.few or others <= POOLED * known or known < 2 * len(tally)):
            return _one_hot_state(name, frequent, others > 0, column.null_count > 0), None
        words = list(tally)
        means, table = _target_means(word_codes(column, words), target, discrete, seed)
        centre, spread = means.mean(axis=0), means.std(axis=0)
        spread[spread == 0] = 1.0
        learnt = {"name": name, "kind": "means", "words": words}
        learnt["table"] = ((table - centre) / spread).tolist()  # last row: values never seen
        return learnt, ((means - centre) / spread).astype(np.float32)

    # -- applying -----------------------------------------------------------------------------------------------

    def transform(self, table: pa.Table) -> Array:
        """Return the matrix (n, p) of new rows; refuses a table that lacks a column or holds another kind."""
        self.check(table)
        return _stacked([_encode(learnt, table.column(learnt["name"])) for learnt in self.columns], table.num_rows)

    def check(self, table: pa.Table) -> None:
        """Name every column that is missing, there twice, or of another kind than in the log."""
        problems = []
        times = Counter(table.column_names)
        for learnt in self.columns:
            name = learnt["name"]
            if times[name] > 1:
                problems.append(Problem(f"two columns have the name {name!r}", "rename one of them"))
                continue
            if name not in times:
                problems.append(Problem(f"the feature {name!r} is not in the table", nearest(name, table.column_names)))
                continue
            kind, asked = kind_of(table.column(name).type), _kind_learnt(learnt)
            if kind not in (asked, "nothing"):
                problems.append(
                    Problem(
                        f"the feature {name!r} holds {PLURAL.get(kind, kind)}; in the log it held {PLURAL.get(asked, asked)}",
                        "write it as in the log",
                    )
                )
        refuse("customers", problems)

    @property
    def names(self) -> tuple[str, ...]:
        """What each column of the matrix is."""
        return tuple(name for learnt in self.columns for name in _names(learnt))

    @property
    def sources(self) -> tuple[str, ...]:
        """The feature each column of the matrix comes from."""
        return tuple(learnt["name"] for learnt in self.columns for _ in _names(learnt))

    @property
    def features(self) -> tuple[str, ...]:
        """The features that a table of customers must have."""
        return tuple(learnt["name"] for learnt in self.columns)

    @property
    def state(self) -> dict[str, Any]:
        """What was learnt, as JSON."""
        return {"few": self.few, "rare": self.rare, "width": self.width, "columns": self.columns}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Encoder:
        """Return the encoder that `state` describes."""
        encoder = cls(state["few"], state["rare"])
        encoder.columns, encoder.width = state["columns"], state["width"]
        return encoder


def _one_hot_state(name: str, words: list[str], other: bool, missing: bool) -> dict[str, Any]:
    if not words and other != missing:  # one and the same everywhere
        return {"name": name, "kind": "nothing"}
    learnt: dict[str, Any] = {"name": name, "kind": "words", "words": words, "other": other, "missing": missing}
    if not other and not missing:
        learnt["drop_last"] = True  # the last word is where all the others are zero
    return learnt


def _kind_learnt(learnt: dict[str, Any]) -> str:
    return {"words": "text", "means": "text"}.get(learnt["kind"], learnt["kind"])


def _scale(values: Array) -> dict[str, Any]:
    known = values[np.isfinite(values)]
    if not len(known) or known.min() == known.max():
        centre, spread = (float(known[0]) if len(known) else 0.0), 0.0
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            centre, spread = float(known.mean()), float(known.std())
    if not (math.isfinite(centre) and math.isfinite(spread)):  # sums or squares beyond float64
        unit = float(np.abs(known).max())
        centre, spread = unit * float((known / unit).mean()), unit * float((known / unit).std())
    return {"centre": centre, "spread": spread, "missing": len(known) < len(values)}


def _used_circles(seconds: Array) -> list[str]:
    """A circle is worth having when the log goes round it at least once, and the day only if times are given."""
    known = seconds[np.isfinite(seconds)]
    span = (known.max() - known.min()) / DAY if len(known) else 0.0
    clock = bool(len(known) and np.any(known % DAY))
    return [name for name, days in CIRCLES if span >= days and (name != "day" or clock)]


def _target_means(codes: Array, target: Array, discrete: bool, seed: int) -> tuple[Array, Array]:
    """Return cross-fitted means for the rows (n, t) and the table of means by code (words + 1, t)."""
    from sklearn.model_selection import KFold
    from sklearn.preprocessing import TargetEncoder

    kind = ("multiclass" if len(np.unique(target)) > 2 else "binary") if discrete else "continuous"
    cv = KFold(TARGET_FOLDS, shuffle=True, random_state=seed)
    encoder = TargetEncoder(categories=[np.arange(codes.max() + 2)], target_type=kind, cv=cv)
    means = encoder.fit_transform(codes[:, None], target)
    everything = np.arange(int(codes.max()) + 2)
    return means, encoder.transform(everything[:, None])


def _encode(learnt: dict[str, Any], column: pa.ChunkedArray) -> Array:
    """Return the block of float32 columns (n, q) that one feature becomes."""
    kind, n = learnt["kind"], len(column)
    if kind == "nothing":
        return np.zeros((n, 0), dtype=np.float32)
    absent = kind_of(column.type) == "nothing"
    if kind == "number":
        return _scaled(learnt, np.full(n, np.nan) if absent else as_floats(column))
    if kind == "date":
        seconds = np.full(n, np.nan) if absent else as_seconds(column)
        return np.concatenate([_scaled(learnt, seconds / DAY), *_circle_columns(learnt, seconds)], axis=1)
    codes = word_codes(column, learnt["words"])
    if kind == "means":
        table = np.asarray(learnt["table"], dtype=np.float32)
        unseen = (codes == len(learnt["words"])) & ~_missing(column)
        return table[np.where(unseen, len(table) - 1, np.minimum(codes, len(table) - 1))]
    return _one_hot(learnt, codes, _missing(column))


def _scaled(learnt: dict[str, Any], values: Array) -> Array:
    known = np.isfinite(values)
    columns = []
    if learnt["spread"] > 0:
        with np.errstate(over="ignore", invalid="ignore"):
            apart = (values - learnt["centre"]) / learnt["spread"]
        columns.append(np.where(known, np.clip(apart, -FARTHEST, FARTHEST), 0.0))
    if learnt["missing"]:
        columns.append(~known)
    return np.column_stack(columns).astype(np.float32) if columns else np.zeros((len(values), 0), dtype=np.float32)


def _circle_columns(learnt: dict[str, Any], seconds: Array) -> list[Array]:
    columns = []
    for name, days in CIRCLES:
        if name in learnt["circles"]:
            angle = np.where(np.isfinite(seconds), seconds, 0.0) * (2 * math.pi / (days * DAY))
            columns.append(np.column_stack([np.sin(angle), np.cos(angle)]).astype(np.float32))
    return columns


def _missing(column: pa.ChunkedArray) -> Array:
    return np.asarray(column.is_null())


def _one_hot(learnt: dict[str, Any], codes: Array, missing: Array) -> Array:
    width = len(learnt["words"])
    shown = width - 1 if learnt.get("drop_last") else width
    columns = [codes == k for k in range(shown)]
    if learnt["other"]:
        columns.append((codes == width) & ~missing)
    if learnt["missing"]:
        columns.append(missing)
    return np.column_stack(columns).astype(np.float32) if columns else np.zeros((len(codes), 0), dtype=np.float32)


def _names(learnt: dict[str, Any]) -> list[str]:
    name, kind = learnt["name"], learnt["kind"]
    if kind == "means":
        width = len(learnt["table"][0])
        return [f"{name} (mean)"] if width == 1 else [f"{name} (mean {j})" for j in range(width)]
    if kind == "words":
        shown: Iterable[str] = learnt["words"][:-1] if learnt.get("drop_last") else learnt["words"]
        return (
            [f"{name} = {word}" for word in shown]
            + [f"{name} other"] * learnt["other"]
            + [f"{name} missing"] * learnt["missing"]
        )
    names = ([name] if learnt["spread"] > 0 else []) + [f"{name} missing"] * learnt["missing"]
    return names + [f"{name} {wave} of {circle}" for circle in learnt.get("circles", ()) for wave in ("sine", "cosine")]


def _stacked(blocks: list[Array], rows: int) -> Array:
    matrix = np.empty((rows, sum(block.shape[1] for block in blocks)), dtype=np.float32)
    place = 0
    for block in blocks:
        matrix[:, place : place + block.shape[1]] = block
        place += block.shape[1]
    return matrix
