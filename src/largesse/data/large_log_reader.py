"""Reader of logs larger than memory: role columns of all rows, and the features of a random sample.

The first pass over the files keeps the columns with a role and collects statistics of the features, so that rules and messages
are those of `read_log`. The second pass reads the features of a sample, drawn from every level or of whole clusters. Later
passes, through `LogSample.batches`, score the other rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.data.arrow_columns import (
    MIN_ROWS_FOR_IDENTIFIER,
    MIN_UNIQUE_SHARE,
    convert_to_floats,
    convert_to_seconds,
    decode_dictionary,
    find_feature_kind,
    is_number_type,
)
from largesse.data.column_roles import RoleSpec, read_role_columns
from largesse.data.table_batches import TableBatches, bound_value_and_row_counts, open_batches
from largesse.data.table_checks import TableChecker
from largesse.data.table_reader import check_column_names, list_reading_notes, read_memory_limit
from largesse.data.text_parsing import (
    DATE_NAME,
    EXCEL_DAYS,
    SAMPLED_CELLS,
    convert_words,
    detect_word_notation,
    find_parse_setting_problems,
    look_like_numbers_or_dates,
    parse_column,
    parse_text_columns,
    parse_words,
    replace_words,
    write_excel_date_note,
)
from largesse.errors import Problem, fail, find_row_limit_problems, join_some, plural, refuse
from largesse.progress import advance
from largesse.records import Array, Log, LogSample, RowTask
from largesse.stats import draw_clusters, draw_rows_by_level

if TYPE_CHECKING:
    import pyarrow as pa

FIT_BYTES_PER_NUMBER = 64  # memory of a fit per number of the encoded log, measured
ENCODED_WIDTHS = {"text": 12, "date": 5}  # typical columns of the encoded matrix; other kinds have one
FIT_MEMORY_SHARE = 0.5
MIN_UNSAMPLED_PART = 6  # at least one row in six stays outside the sample
MAX_COUNTED_VALUES = 1 << 20  # per column


def read_large_log(source: Any, spec: RoleSpec, most_rows: int | str, seed: int = 0) -> Log | None:
    """Read a log of more than `most_rows` rows with the features of a sample; return None for a smaller log.

    "auto" stands for the number of rows that fit into memory.
    """
    refuse("log", find_row_limit_problems(most_rows, "most_rows"))
    cells = FIT_MEMORY_SHARE * read_memory_limit() / FIT_BYTES_PER_NUMBER
    max_cells, max_rows = bound_value_and_row_counts(source, "log")
    if max_cells <= cells / max(ENCODED_WIDTHS.values()) if isinstance(most_rows, str) else max_rows <= most_rows:
        return None
    batches = open_batches(source, what="log", plain=spec.plain_text_columns, texts=spec.columns_read_as_text)
    width = sum(ENCODED_WIDTHS.get(find_feature_kind(field.type), 1) for field in batches.schema)
    max_sample = int(cells / max(width, 1)) if isinstance(most_rows, str) else int(most_rows)
    if batches.rows <= max_sample:
        return None
    check_column_names(batches.schema.names, batches.rows, "log")
    first_pass = _scan_columns(batches, spec)
    log = _check_first_pass(batches, spec, first_pass)
    return _draw_sample_log(log, batches, first_pass, max_sample, seed)


# -- the first pass ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _FirstPass:
    """Results of the first pass over a large log: columns with a role for all rows, and statistics of each feature."""

    roles: pa.Table  # (n rows) the columns that have a role
    profiles: dict[str, ColumnProfile]  # of the possible features
    readings: dict[str, FeatureNotation]


def _scan_columns(batches: TableBatches, spec: RoleSpec) -> _FirstPass:
    """Read a large log once; keep the role columns and collect statistics of each feature."""
    import pyarrow as pa

    names = batches.schema.names
    paid = spec.levels.cost_columns or ()
    with_role = {*spec.named.values(), *paid, *spec.protected}
    role_columns = [name for name in names if name in with_role]
    strata = spec.named.get("propensity_strata")
    possible_features = (
        [n for n in names if n not in with_role or n == strata] if spec.features is None else spec.features
    )
    possible_features = [*possible_features, *spec.protected, *(name for name in spec.parse if name not in with_role)]
    profiles = {
        name: ColumnProfile(
            name, batches.schema.field(name).type, batches.rows, spec.parse.get(name), name in spec.plain_text_columns
        )
        for name in names
        if name in possible_features
    }
    parts, done = [], 0
    for batch in batches.read([name for name in names if name in with_role or name in profiles]):
        parts.append(batch.select(role_columns))
        for name, profile in profiles.items():
            profile.add(batch.column(name))
        done += len(batch)
        advance(done / batches.rows)
    roles = pa.concat_tables(parts).unify_dictionaries()
    return _FirstPass(roles, profiles, {name: choose_notation(profile) for name, profile in profiles.items()})


def _check_first_pass(batches: TableBatches, spec: RoleSpec, first_pass: _FirstPass) -> Log:
    """Check the role columns and the feature statistics of a large log by the rules of `read_log`.

    The features of the returned log are null columns.
    """
    import pyarrow as pa

    names = batches.schema.names
    problems, columns = find_parse_setting_problems(spec.parse, names), []
    notes = list_reading_notes(batches.schema)
    for name in names:
        if name in first_pass.roles.column_names:
            parsed, more_notes, more_problems = parse_text_columns(
                first_pass.roles.select([name]), spec.parse, spec.plain_text_columns
            )
            notes += more_notes
            problems += more_problems
            columns.append(parsed.column(0))
        else:
            if name in first_pass.readings:
                notes += first_pass.readings[name].notes
                problems += first_pass.readings[name].problems
            columns.append(pa.chunked_array([pa.nulls(batches.rows)]))
    stand_ins = {
        name: make_stand_in_column(profile, first_pass.readings[name]) for name, profile in first_pass.profiles.items()
    }
    check = TableChecker(pa.Table.from_arrays(columns, names=names), problems, notes, stand_ins)
    log = read_role_columns(check, spec)
    refuse("log", check.problems)
    return log


# -- the sample ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _BatchedFeatures:
    """Features of a large log, read in batches, for the rows with a response."""

    batches: TableBatches
    first_pass: _FirstPass
    names: Sequence[str]  # the protected columns come last
    known: Array  # (rows of the table,) True where a row has a response

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the features of all rows in batches; `columns` selects features."""
        start, all_known = 0, bool(self.known.all())
        for batch in self.batches.read(self.names if columns is None else columns):
            known = self.known[start : start + len(batch)]
            start += len(batch)
            readings = [self.first_pass.readings[name] for name in batch.column_names]
            yield convert_feature_columns(batch if all_known else batch.filter(known), readings)

    def map(self, task: RowTask, columns: Sequence[str] | None, rows: Array) -> Iterator[Array]:
        """Apply a task to the selected rows batch by batch, and yield the results.

        Rows are rising indices among those with a response.
        """
        names = list(columns or self.names[:1]) if columns is not None else list(self.names)  # Arrow needs a column
        wanted = np.zeros(len(self.known), dtype=bool)
        wanted[np.flatnonzero(self.known)[rows]] = True
        readings = tuple(self.first_pass.readings[name] for name in names)
        return self.batches.map(partial(run_on_converted_features, task, readings), names, wanted)

    def take(self, rows: Array) -> pa.Table:
        """Return the features of the selected rows.

        Rows are rising indices among those with a response.
        """
        import pyarrow as pa

        parts, start = [], 0
        for batch in self.read():
            batch_rows = rows[slice(*np.searchsorted(rows, [start, start + len(batch)]))] - start
            start += len(batch)
            parts.append(batch.take(batch_rows))
            advance(start / len(self.known))
        return pa.concat_tables(parts).unify_dictionaries().combine_chunks()

    @property
    def digest(self) -> str:
        """Hash of all feature values."""
        digest = hashlib.blake2b(digest_size=16)
        for name in self.names:
            digest.update(f"{self.first_pass.profiles[name].digest} {self.first_pass.readings[name].way}\0".encode())
        return digest.hexdigest()


def _draw_sample_log(log: Log, batches: TableBatches, first_pass: _FirstPass, max_rows: int, seed: int) -> Log:
    """Return a large log with the features of a random sample of its rows."""
    known = np.isfinite(log.response)
    # The columns with roles are in the log, so the features need not keep them in memory.
    features_pass = replace(first_pass, roles=first_pass.roles.schema.empty_table())
    names = log.confounders.column_names
    features = _BatchedFeatures(batches, features_pass, names, known)
    log = log if known.all() else log.take(known)
    m = min(max_rows, len(log) - len(log) // MIN_UNSAMPLED_PART)
    rows, stand_for = _draw_sample_rows(log, m, seed)
    note = f"models learn from a random sample of {len(rows):,} of {len(log):,} rows; all rows judge them"
    learnt = log.features.column_names
    log = replace(log, features=log.features.select([]), notes=(*log.notes, note))
    sample = log.take(rows)
    weight = sample.weight if stand_for is None else sample.weights * stand_for / stand_for.mean()
    sample = replace(sample, features=features.take(rows).select(learnt), weight=weight)
    return replace(log, sample=LogSample(sample, rows, features.read, features.map, features.digest, max_rows))


def _draw_sample_rows(log: Log, max_rows: int, seed: int) -> tuple[Array, Array | None]:
    """Draw the sample rows of a large log; return them with the number of rows that each one represents.

    The number is None if it is the same for all. A sample without one of the levels is refused.
    """
    K = len(log.levels)
    rows, stand_for = (
        draw_rows_by_level(log.level, K, max_rows, seed)
        if log.cluster is None
        else (draw_clusters(log.cluster, max_rows, seed), None)
    )
    empty = [log.levels.labels[k] for k in np.flatnonzero(np.bincount(log.level[rows], minlength=K) == 0)]
    if empty:
        in_clusters = "" if log.cluster is None else " in whole clusters"
        got = f"a sample of {plural(max_rows, 'row')}{in_clusters} has no row with level {join_some(empty)}"
        fail("log", Problem(got, "raise most_rows under [data]"))
    return rows, stand_for


# -- statistics of a column over batches ------------------------------------------------------------------------------


@dataclass(eq=False)
class ColumnProfile:
    """Statistics of a feature, collected batch by batch, that suffice to check the whole column."""

    name: str
    type: pa.DataType
    rows: int  # of the table
    asked: Any = None  # notation that `parse` gives for the column
    skip: bool = False  # True if its text stays text
    seen: int = 0  # rows
    nulls: int = 0
    values: Any = None  # one or two distinct values, if they are not words
    words: dict[str, int] = field(default_factory=dict)  # word → number of rows, in the order in which words appear
    known: int = 0  # rows that were counted before there were too many words
    spread: set[str] = field(default_factory=set)  # words of a sample of rows, spread over the table
    ends: tuple[float, float] = (np.inf, -np.inf)  # of numbers that may be dates
    hashes: tuple[Any, Any] = field(default_factory=lambda: (hashlib.blake2b(), hashlib.blake2b()))

    @property
    def has_words(self) -> bool:
        """True if the column holds text."""
        return find_feature_kind(self.type) == "text" or self.asked == "text" or isinstance(self.asked, Mapping)

    def add(self, column: pa.ChunkedArray) -> None:
        """Add a batch of the column to the statistics."""
        self.nulls += column.null_count
        if self.has_words:
            self._count_words(column)
        elif DATE_NAME.search(self.name) and is_number_type(self.type):
            numbers = convert_to_floats(column)
            numbers = numbers[np.isfinite(numbers)]
            low, high = self.ends
            self.ends = (min(low, numbers.min(initial=np.inf)), max(high, numbers.max(initial=-np.inf)))
        if not self.has_words:
            self._keep_values(column)
        self._update_digest(column)
        self.seen += len(column)

    def _keep_values(self, column: pa.ChunkedArray) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if find_feature_kind(self.type) in ("nothing", "other") or (self.values is not None and len(self.values) > 1):
            return
        first_rows = decode_dictionary(column.slice(0, 1000))
        for values in (first_rows, decode_dictionary(column)):  # in most columns the first rows already vary
            joined = pa.chunked_array(
                [*([] if self.values is None else self.values.chunks), *values.chunks], values.type
            )
            distinct = pc.unique(joined.cast(pa.float32()) if pa.types.is_float16(joined.type) else joined)
            if len(distinct) > 1:
                break
        self.values = pa.chunked_array([distinct.slice(0, 2)])

    def _count_words(self, column: pa.ChunkedArray) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        step = max(self.rows // SAMPLED_CELLS, 1)
        column = decode_dictionary(column).cast(pa.string())
        spread_rows = column.take(np.arange(-self.seen % step, len(column), step))
        self.spread |= set(spread_rows.unique().drop_null().to_pylist())
        if len(self.words) > MAX_COUNTED_VALUES:
            return
        tally = pc.value_counts(column.drop_null())
        for word, times in zip(tally.field("values").to_pylist(), tally.field("counts").to_pylist(), strict=True):
            self.words[word] = self.words.get(word, 0) + times
            self.known += times

    def _update_digest(self, column: pa.ChunkedArray) -> None:
        """Add a batch of values to the column's hash.

        Texts add their bytes and, separately, their lengths.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = find_feature_kind(self.type)
        if kind == "text":
            texts = pc.fill_null(column.cast(pa.large_string()), "")
            lengths = np.where(np.asarray(column.is_null()), -1, np.asarray(pc.binary_length(texts)))
            self.hashes[1].update(lengths.astype(np.int64).tobytes())
            for chunk in texts.chunks:
                start, end = np.frombuffer(chunk.buffers()[1], np.int64)[[chunk.offset, chunk.offset + len(chunk)]]
                self.hashes[0].update(memoryview(chunk.buffers()[2] or b"")[start:end])
        elif kind not in ("nothing", "other"):
            self.hashes[0].update(
                (convert_to_seconds(column) if kind == "date" else convert_to_floats(column)).tobytes()
            )

    @property
    def digest(self) -> str:
        """Hash of the column's name, kind and values."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"{self.name}\0{find_feature_kind(self.type)}\0{self.asked!r}".encode("utf-8", "surrogatepass"))
        for values in self.hashes:
            digest.update(values.digest())
        return digest.hexdigest()


@dataclass(frozen=True)
class FeatureNotation:
    """Number or date notation of a feature in a large log, with notes and problems."""

    name: str
    asked: Any = None  # the notation that `parse` names
    has_values: bool = True  # True if any row has a word
    way: str | None = None  # notation of its numbers or dates
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def choose_notation(profile: ColumnProfile) -> FeatureNotation:
    """Choose the number or date notation of a column from its statistics."""
    reading = FeatureNotation(profile.name, profile.asked, bool(profile.words))
    if profile.asked is not None:
        is_parsed = profile.has_words and profile.asked not in ("text", "excel date")
        return replace(
            reading,
            problems=tuple(parse_words(profile.name, list(profile.words), profile.asked)[1] if is_parsed else ()),
        )
    if profile.skip:
        return reading
    if profile.has_words:
        if not look_like_numbers_or_dates(sorted(profile.spread)):
            return reading
        if len(profile.words) > MAX_COUNTED_VALUES:
            reason = f"it has more than {MAX_COUNTED_VALUES:,} different values; if they are numbers or dates, parse says how to read them"
            return replace(reading, notes=(f"column {profile.name!r} is read as text: {reason}",))
        words = sorted(profile.words, key=lambda word: (-profile.words[word], word))
        way, notes = detect_word_notation(profile.name, words, sorted(profile.spread))
        return replace(reading, way=way, notes=tuple(notes))
    low, high = profile.ends
    return (
        replace(reading, notes=(write_excel_date_note(profile.name),))
        if EXCEL_DAYS[0] <= low <= high <= EXCEL_DAYS[1]
        else reading
    )


def run_on_converted_features(task: RowTask, readings: Sequence[FeatureNotation], batch: pa.Table) -> Array:
    """Convert the features of a batch by their notations, and run a task on the batch."""
    return task(convert_feature_columns(batch, readings))


def convert_feature_columns(batch: pa.Table, readings: Sequence[FeatureNotation]) -> pa.Table:
    """Convert the features of a batch to numbers or dates by their notations."""
    import pyarrow as pa

    columns = [convert_feature_column(column, reading) for column, reading in zip(batch.columns, readings, strict=True)]
    return pa.Table.from_arrays(columns, names=batch.column_names)


def convert_feature_column(column: pa.ChunkedArray, reading: FeatureNotation) -> pa.ChunkedArray:
    """Convert one feature to numbers or dates by its notation."""
    import pyarrow as pa

    if reading.asked is not None:
        converted = parse_column(reading.name, column, reading.asked, [])
    elif reading.way is not None:
        words = column.cast(pa.string()).unique().drop_null().to_pylist()
        converted = replace_words(column, words, convert_words(words, reading.way))
    else:
        return column
    # A batch without words has no type of its own; it gets the type of the whole column.
    if not pa.types.is_null(converted.type) or not reading.has_values:
        return converted
    dates = (reading.way or reading.asked) in ("day first", "month first")
    return converted.cast(pa.date32() if dates else pa.float64())


def make_stand_in_column(profile: ColumnProfile, reading: FeatureNotation) -> pa.ChunkedArray:
    """Return a short column that passes or fails the same checks as the whole column."""
    import pyarrow as pa

    if profile.has_words:
        if _is_identifier_profile(profile, reading):
            return pa.chunked_array([pa.array([str(k) for k in range(MIN_ROWS_FOR_IDENTIFIER)]).dictionary_encode()])
        as_text = reading.way is None and profile.asked in (None, "text")
        words = [*list(profile.words)[: 2 if as_text else SAMPLED_CELLS], *([None] if profile.nulls else [])]
        stand_in = convert_feature_column(pa.chunked_array([pa.array(words, pa.string())]), reading)
    elif profile.values is None:  # empty, or nothing that can be compared
        return pa.chunked_array([pa.nulls(2, profile.type)])
    else:
        stand_in = convert_feature_column(profile.values, reading)
    return pa.chunked_array([*stand_in.chunks, *stand_in.chunks]) if len(stand_in) == 1 else stand_in


def _is_identifier_profile(profile: ColumnProfile, reading: FeatureNotation) -> bool:
    """Test if nearly every row of a column has a distinct text."""
    import pyarrow as pa

    coded = profile.asked == "text" or (profile.asked is None and pa.types.is_dictionary(profile.type))
    mostly_unique = (
        profile.rows >= MIN_ROWS_FOR_IDENTIFIER and len(profile.words) > MIN_UNIQUE_SHARE * profile.known > 0
    )
    return coded and reading.way is None and mostly_unique
