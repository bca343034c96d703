"""Any table in, one Arrow table out.

Files: Parquet, CSV (also .gz, also ; or tab separated), Arrow/Feather, a glob or a folder of them. In memory: pyarrow,
pandas, polars, a dict of columns, and whatever else speaks the Arrow C stream. Strings come out dictionary-encoded:
a million rows of a few thousand words then cost four bytes each.
"""

from __future__ import annotations

import glob
import gzip
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from largesse.errors import InputError, Problem, count, some

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz"),
    "arrow": (".arrow", ".feather", ".ipc"),
}
KNOWN = "Parquet (.parquet), CSV (.csv, .csv.gz) and Arrow/Feather (.arrow, .feather)"


def read_table(source: Any, *, what: str = "table") -> pa.Table:
    """Read a path, a glob, a folder or a table in memory into one Arrow table, strings dictionary-encoded.

    >>> read_table({"age": [31, 44], "city": ["Oslo", "Rome"]}).column_names
    ['age', 'city']
    """
    if isinstance(source, str | os.PathLike):
        return _read_files(files_of(source, what), what)
    return _dictionary_encoded(_from_memory(source, what))


def files_of(source: str | os.PathLike[str], what: str) -> list[Path]:
    """Return the files that a path, a folder or a glob stands for, in the order of their names."""
    text = os.fspath(source)
    path = Path(text).expanduser()
    if path.is_dir():
        endings = tuple(ending for kind in KINDS.values() for ending in kind)
        found = sorted(p for p in path.iterdir() if p.name.endswith(endings) and not p.name.startswith((".", "_")))
        if not found:
            raise InputError(what, [Problem(f"the folder {text} holds no table", f"known kinds: {KNOWN}")])
        return found
    if path.exists():
        return [path]
    # Path.glob refuses absolute patterns; glob takes both.
    found = sorted(map(Path, glob.glob(str(path), recursive=True))) if re.search(r"[*?\[]", text) else []  # noqa: PTH207
    if not found:
        raise InputError(what, [Problem(f"there is no file {text}", _neighbours(path))])
    return found


def _neighbours(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder} does not exist either"
    endings = tuple(ending for kind in KINDS.values() for ending in kind)
    names = sorted(p.name for p in folder.iterdir() if p.name.endswith(endings))
    return f"tables in {folder}: {some(names)}" if names else f"{folder} holds no table; known kinds: {KNOWN}"


def _read_files(files: list[Path], what: str) -> pa.Table:
    import pyarrow as pa

    tables = [_read_file(file, what) for file in files]
    if len(tables) == 1:
        return tables[0]
    problems = _differing(files, tables)
    if problems:
        raise InputError(what, problems)
    try:
        merged = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        hint = "write the column with one type in every file"
        raise InputError(
            what, [Problem(f"the {len(files)} files disagree about a column's type: {error}", hint)]
        ) from error
    return merged.unify_dictionaries()


def _differing(files: list[Path], tables: list[pa.Table]) -> list[Problem]:
    first = set(tables[0].column_names)
    problems = []
    for file, table in zip(files[1:], tables[1:], strict=True):
        odd = sorted(first ^ set(table.column_names))
        if odd:
            problems.append(
                Problem(
                    f"{file.name} and {files[0].name} do not have the same columns: {some(odd)}",
                    "files of a glob must share their columns",
                )
            )
    return problems


def _read_file(file: Path, what: str) -> pa.Table:
    if file.stat().st_size == 0:
        raise InputError(what, [Problem(f"{file} is empty (0 bytes)", "was the export interrupted?")])
    reader = {"parquet": _read_parquet, "csv": _read_csv, "arrow": _read_arrow}[_kind(file, what)]
    with _named(file, what):
        return reader(file)


def _kind(file: Path, what: str) -> str:
    name = file.name.lower()
    for kind, endings in KINDS.items():
        if name.endswith(endings):
            return kind
    with file.open("rb") as stream:
        head = stream.read(6)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1"):
        return "arrow"
    raise InputError(what, [Problem(f"{file} is of a kind that is not known", f"known kinds: {KNOWN}")])


@contextmanager
def _named(file: Path, what: str) -> Iterator[None]:
    """Turn what the Arrow readers throw into a sentence that names the file."""
    import pyarrow as pa

    try:
        yield
    except PermissionError as error:
        raise InputError(what, [Problem(f"{file} may not be read", "check its permissions")]) from error
    except (pa.ArrowException, OSError, EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise InputError(what, [_diagnosis(file, str(error))]) from error


def _diagnosis(file: Path, message: str) -> Problem:
    ragged = re.search(r"Expected (\d+) columns, got (\d+)", message)
    if ragged:
        where = re.search(r"Row #(\d+)", message)
        row = f"line {where[1]}" if where else "a line"
        return Problem(
            f"{file}: {row} has {ragged[2]} fields where the header has {ragged[1]}",
            "quote fields that contain the separator",
        )
    if "UTF8" in message or "utf-8" in message:
        return Problem(f"{file} is not UTF-8 text", "save it as UTF-8 (iconv -f latin1 -t utf-8)")
    if "Empty CSV" in message:
        return Problem(f"{file} is empty", "was the export interrupted?")
    first = message.strip().splitlines()[0] if message.strip() else "unreadable"
    return Problem(f"{file} is damaged or cut off: {first}", "write the file again; was the export interrupted?")


def _read_parquet(file: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(file)
    words = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    # Pages are decoded straight into dictionary codes: the plain strings never exist in memory.
    return _dictionary_encoded(pq.read_table(file, read_dictionary=words))


def _read_arrow(file: Path) -> pa.Table:
    import pyarrow as pa

    with pa.memory_map(str(file)) as mapped:
        try:
            table = pa.ipc.open_file(mapped).read_all()
        except pa.ArrowInvalid:
            mapped.seek(0)
            table = pa.ipc.open_stream(mapped).read_all()
    return _dictionary_encoded(table)


def _read_csv(file: Path) -> pa.Table:
    import pyarrow.csv as csv

    delimiter, decimal = _dialect(file)
    table = csv.read_csv(
        file,
        parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=_quoted_newlines(file)),
        convert_options=csv.ConvertOptions(strings_can_be_null=True, decimal_point=decimal),
    )
    return _dictionary_encoded(table)


def _head(file: Path, size: int = 65536) -> str:
    opener = gzip.open if file.name.lower().endswith(".gz") else open
    with opener(file, "rb") as stream:
        return str(stream.read(size).decode("utf-8", errors="replace"))


def _dialect(file: Path) -> tuple[str, str]:
    """Guess the separator from the header, and the decimal comma that goes with semicolons."""
    head = _head(file)
    header, _, body = head.partition("\n")
    delimiter = max(",;\t|", key=header.count)
    if header.count(delimiter) == 0:
        return ",", "."
    commas = delimiter == ";" and re.search(r"(^|;)-?\d+,\d+(;|\r?$)", body, re.MULTILINE)
    points = re.search(r"(^|;)-?\d+\.\d+(;|\r?$)", body, re.MULTILINE)
    return delimiter, "," if commas and not points else "."


def _quoted_newlines(file: Path) -> bool:
    """Whether an early quoted field spans lines; reading such a file takes a slower path."""
    return any(line.count('"') % 2 for line in _head(file).splitlines()[:200])


def _from_memory(source: Any, what: str) -> pa.Table:
    import pyarrow as pa

    try:
        if isinstance(source, pa.Table):
            return source
        if isinstance(source, pa.RecordBatch):
            return pa.Table.from_batches([source])
        if isinstance(source, dict):
            return pa.table(source)
        if type(source).__module__.split(".")[0] == "pandas":
            return pa.Table.from_pandas(_string_names(source), preserve_index=False)
        if hasattr(source, "collect") and not hasattr(source, "__arrow_c_stream__"):
            source = source.collect()  # a polars LazyFrame
        if hasattr(source, "__arrow_c_stream__"):
            return pa.table(source)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
        hint = "give each column one type (for mixed objects: column.astype(str))"
        raise InputError(
            what, [Problem(f"the table could not be converted: {str(error).splitlines()[0]}", hint)]
        ) from error
    got = type(source).__name__
    raise InputError(what, [Problem(f"a {got} is not a table", "give a path, or a pandas, polars or pyarrow table")])


def _string_names(frame: Any) -> Any:
    if all(isinstance(name, str) for name in frame.columns):
        return frame
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _dictionary_encoded(table: pa.Table) -> pa.Table:
    """Give every text column the type dictionary<int32, string>, one dictionary per column."""
    import pyarrow as pa

    for i, column in enumerate(table.schema):
        kind = column.type
        if pa.types.is_dictionary(kind):
            continue
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_string(kind):
            text = table.column(i) if pa.types.is_string(kind) else table.column(i).cast(pa.string())
            table = table.set_column(i, column.name, text.dictionary_encode())
    return table.unify_dictionaries()


def check_names(table: pa.Table, what: str) -> None:
    """Refuse a table with two columns of one name, or with no rows."""
    names: Sequence[str] = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    problems = []
    if twice:
        problems.append(Problem(f"two columns have the same name: {some(twice)}", "rename one of them"))
    if table.num_rows == 0:
        problems.append(
            Problem(f"it has {count(len(names), 'column')} but no rows", "was the export filtered to nothing?")
        )
    if problems:
        raise InputError(what, problems)
