"""A small file that would unpack to more than it should is refused before it is unpacked."""

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.data import formats, unpacked
from largesse.data.read import read_table
from largesse.errors import InputError

ZEROS = pa.record_batch({"a": np.zeros(5_000_000)})  # 40 MB
TIMES = 1000  # 40 GB in all


def messages_of(content: bytes) -> list[bytes]:
    return [bytes(one.serialize()) for one in pa.ipc.MessageReader.open_stream(content)]


def write_stream(codec: str | None, times: int = 1) -> bytes:
    """Return a stream in which the message of one batch comes many times."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, ZEROS.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_batch(ZEROS)
    schema, batch = messages_of(sink.getvalue())
    return schema + batch * times + b"\xff\xff\xff\xff\0\0\0\0"


def write_file(codec: str | None, times: int) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, ZEROS.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        for _ in range(times):
            writer.write_batch(ZEROS)
    return sink.getvalue()


def refusal(file: Path, content: bytes, **options: Any) -> str:
    file.write_bytes(content)
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError) as caught:
        read_table(file, **options)
    assert pa.total_allocated_bytes() - before < 20_000_000
    return str(caught.value)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_packed_stream_is_measured_before_it_is_unpacked(tmp_path: Path, codec: str) -> None:
    times = TIMES if codec == "zstd" else 200  # lz4 shrinks 255 times at most
    said = refusal(tmp_path / "bomb.arrow", write_stream(codec, times))
    assert f"to {times * 0.04:.1f} GB" in said
    assert "without compression" in said


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_packed_file_is_measured_before_it_is_unpacked(tmp_path: Path, codec: str) -> None:
    assert "to 1.2 GB" in refusal(tmp_path / "bomb.feather", write_file(codec, 30))


def test_a_batch_that_is_listed_many_times_counts_as_often(tmp_path: Path) -> None:
    content = write_file("zstd", 30)
    (length,) = struct.unpack("<i", content[-10:-6])
    footer = bytearray(content[-10 - length : -10])
    blocks = unpacked._Table(memoryview(footer)).items(3, 24)
    for at in blocks:  # all of them are the first one now
        footer[at : at + 24] = footer[blocks[0] : blocks[0] + 24]
    assert "to 1.2 GB" in refusal(tmp_path / "bomb.arrow", content[: -10 - length] + bytes(footer) + content[-10:])


def test_what_is_not_packed_may_be_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "HARMLESS", 1000)
    for name, content in (("a.arrow", write_stream(None)), ("b.arrow", write_file(None, 1))):
        (tmp_path / name).write_bytes(content)
        assert read_table(tmp_path / name).num_rows == len(ZEROS)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_packed_pages_of_parquet_are_measured_before_they_are_unpacked(tmp_path: Path, version: str) -> None:
    sink = io.BytesIO()
    options: dict[str, Any] = {"compression": "zstd", "use_dictionary": False, "data_page_version": version}
    with pq.ParquetWriter(sink, ZEROS.schema, **options) as writer:
        for _ in range(30):
            writer.write_batch(ZEROS)
    assert "to 1.2 GB" in refusal(tmp_path / "bomb.parquet", sink.getvalue())


def test_a_long_text_that_stands_for_many_rows_is_not_written_out(tmp_path: Path) -> None:
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(200_000, np.int32)), pa.array(["x" * 1_000_000]))
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": long, "a": np.arange(200_000)}), sink, compression="zstd")
    (tmp_path / "bomb.parquet").write_bytes(sink.getvalue())
    assert read_table(tmp_path / "bomb.parquet").num_rows == 200_000  # as a dictionary it is small


def test_a_text_that_repeats_itself_is_refused_where_it_is_written_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "memory_limit", lambda: 10_000_000)
    words = ["x" * 10_000] * 2000
    for encoding in ({}, {"use_dictionary": False, "column_encoding": {"id": "DELTA_BYTE_ARRAY"}}):
        sink = io.BytesIO()
        pq.write_table(pa.table({"id": words}), sink, **encoding)
        assert "text that repeats itself" in refusal(tmp_path / "bomb.parquet", sink.getvalue(), plain=["id"])


def test_ids_that_only_could_be_too_much_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "memory_limit", lambda: 4_000_000)
    ids = [f"customer {k}" for k in range(50_000)]
    pq.write_table(pa.table({"id": ids}), tmp_path / "log.parquet")
    assert read_table(tmp_path / "log.parquet", plain=["id"])["id"].to_pylist() == ids


def test_views_of_one_text_are_not_written_out(tmp_path: Path) -> None:
    view = struct.pack("<i4sii", 1_000_000, b"xxxx", 0, 0)
    views = pa.Array.from_buffers(
        pa.string_view(), 200_000, [None, pa.py_buffer(view * 200_000), pa.py_buffer(b"x" * 1_000_000)]
    )
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, pa.schema({"id": views.type})) as writer:
        writer.write_batch(pa.record_batch({"id": views}))
    assert "text that repeats itself" in refusal(tmp_path / "bomb.arrow", sink.getvalue())


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4", "brotli", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_are_as_large_as_the_footer_says(tmp_path: Path, codec: str, version: str) -> None:
    rng = np.random.default_rng(1)
    n = 30_000
    lists = [[k, None] if k % 3 else None for k in range(n)]
    text = [f"word {k}" for k in rng.integers(0, 900, n)]
    table = pa.table({"x": rng.normal(size=n), "y": lists, "z": text, "id": [f"c{k}" for k in range(n)]})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, compression=codec, data_page_version=version, row_group_size=9000)
    with path.open("rb") as stream, pq.ParquetFile(path) as opened:
        chunks = unpacked.list_chunks(stream, [0] * 4)
        groups = [opened.metadata.row_group(k) for k in range(opened.metadata.num_row_groups)]
    claims = [group.column(k).total_uncompressed_size for group in groups for k in range(4)]
    for chunk, claim in zip(chunks, claims, strict=True):  # the footer counts headers, too
        assert 0.9 * claim - 300 < chunk.pages < claim
    assert read_table(path).num_rows == n


def test_a_page_that_does_not_say_how_many_values_it_holds_is_damage(tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": np.arange(1000.0)}), sink, use_dictionary=False, compression="none")
    content = sink.getvalue()
    header = unpacked._Compact(content[4:])
    assert header.read_struct()[5][1] == 1000
    # The number of values, 1000 as a varint, becomes a byte string of the same length.
    at = content.index(b"\x15\xd0\x0f", 4, 4 + header.at)
    damaged = content[:at] + b"\x18\x01\x0f" + content[at + 3 :]
    assert "is damaged or cut off" in refusal(tmp_path / "odd.parquet", damaged)


def test_a_column_before_the_beginning_of_the_file_is_damage() -> None:
    with pytest.raises(ValueError):
        unpacked._measure_pages(io.BytesIO(b"PAR1" + bytes(200)), -5, 100, 10)
