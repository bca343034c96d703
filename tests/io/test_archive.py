"""An archive is refused when it is damaged, of another version or format, or holds what is not expected."""

import json
import pickletools
import tracemalloc
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as save_arrays

from largesse.errors import OutputError, PolicyFileError
from largesse.io import convert_content_errors, read_archive, write_archive
from largesse.io.archive import ARRAYS_MEMBER, MANIFEST_MEMBER, MAX_MEMBER_BYTES, MIN_PACKED_BYTES

MADE = {"name": "Größe", "size": 2}
NUMBERS = {"b": np.arange(6.0).reshape(2, 3), "a": np.arange(2, dtype=np.int32)}


def archive(folder: Path, **manifest: Any) -> Path:
    write_archive(folder / "archive", "made-up", {**MADE, **manifest}, NUMBERS)
    return folder / "archive"


def rezipped(path: Path, **members: bytes | None) -> Path:
    """Write an archive again with some members changed or left out."""
    with zipfile.ZipFile(path) as opened:
        parts: dict[str, bytes | None] = {name: opened.read(name) for name in opened.namelist()}
    with zipfile.ZipFile(path, "w") as opened:
        for name, part in (parts | members).items():
            if part is not None:
                opened.writestr(name, part)
    return path


def manifest_of(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as opened:
        found: dict[str, Any] = json.loads(opened.read(MANIFEST_MEMBER))
        return found


def test_an_archive_holds_text_and_numbers_in_the_same_bytes(tmp_path: Path) -> None:
    manifest, arrays = read_archive(archive(tmp_path), "made-up")
    assert {key: manifest[key] for key in MADE} == MADE
    assert {name: array.dtype for name, array in arrays.items()} == {"a": np.int32, "b": np.float64}
    assert all(np.array_equal(arrays[name], NUMBERS[name]) for name in NUMBERS)

    first = archive(tmp_path).read_bytes()
    write_archive(tmp_path / "again", "made-up", dict(reversed(MADE.items())), dict(reversed(NUMBERS.items())))
    assert (tmp_path / "again").read_bytes() == first
    assert archive(tmp_path, size=3).read_bytes() != first
    with zipfile.ZipFile(archive(tmp_path)) as opened:
        assert opened.namelist() == [MANIFEST_MEMBER, ARRAYS_MEMBER]
        parts = [opened.read(name) for name in opened.namelist()]
    for part in parts:  # neither is a pickle: reading it ends before a STOP
        with pytest.raises((ValueError, UnicodeDecodeError)):
            list(pickletools.genops(part))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.99])
def test_an_archive_cut_off_is_refused(share: float, tmp_path: Path) -> None:
    path = archive(tmp_path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(PolicyFileError, match="damaged"):
        read_archive(path, "made-up")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyFileError, match="does not exist"):
        read_archive(tmp_path / "nowhere", "made-up")
    (tmp_path / "text").write_text("price,0.1\n")
    for path in (tmp_path / "text", tmp_path, archive(tmp_path)):
        with pytest.raises(PolicyFileError, match="policy file"):
            read_archive(path, "other")
    for manifest in (b"[]", b"{}", b'{"format": "other"}', b"\xff", b"[" * 100_000):
        with pytest.raises(PolicyFileError, match="policy file"):
            read_archive(rezipped(archive(tmp_path), **{MANIFEST_MEMBER: manifest}), "made-up")


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (1, r"older version of largesse \(format 1\)\n   → fit again"),
        (None, "older version"),
        (9, r"newer version of largesse \(format 9\)\n   → update"),
    ],
)
def test_an_archive_of_another_version_says_what_to_do(version: int | None, message: str, tmp_path: Path) -> None:
    path = archive(tmp_path)
    rezipped(path, **{MANIFEST_MEMBER: json.dumps({**manifest_of(path), "version": version}).encode()})
    with pytest.raises(PolicyFileError, match=message):
        read_archive(path, "made-up")


def test_changed_and_missing_members_are_refused(tmp_path: Path) -> None:
    other = json.dumps({**manifest_of(archive(tmp_path)), "size": 3}).encode()
    lone, constant = (
        json.dumps({"format": "made-up", "version": 2, "x": x}).encode() for x in ("\ud800", float("nan"))
    )
    for changed, message in (
        ({MANIFEST_MEMBER: other}, "digest"),
        ({ARRAYS_MEMBER: save_arrays({**NUMBERS, "a": NUMBERS["a"] + 1})}, "digest"),
        ({MANIFEST_MEMBER: lone}, "damaged"),
        ({MANIFEST_MEMBER: constant}, "damaged"),
        ({MANIFEST_MEMBER: None}, "damaged"),
        ({ARRAYS_MEMBER: None}, "damaged"),
    ):
        with pytest.raises(PolicyFileError, match=message):
            read_archive(rezipped(archive(tmp_path), **changed), "made-up")


def test_what_fails_on_the_content_of_an_archive_names_the_archive(tmp_path: Path) -> None:
    message = r"archive .*'price'"
    with pytest.raises(PolicyFileError, match=message), convert_content_errors(tmp_path / "archive"):
        raise KeyError("price")


# ------------------------------------------------------------------------------------------------------------- bombs


def zipped(path: Path, members: list[tuple[str, bytes]], how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", how) as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of two members with one name
        for name, content in members:
            opened.writestr(name, content)
    return path


def announced(path: Path, name: str, size: int) -> Path:
    """Change the size that an archive announces for a member, in its directory and before the member."""
    raw = bytearray(path.read_bytes())
    for mark, at, name_at in ((b"PK\1\2", 24, 46), (b"PK\3\4", 22, 30)):
        place = raw.find(mark)
        while bytes(raw[place + name_at : place + name_at + len(name)]) != name.encode():
            place = raw.find(mark, place + 1)
        raw[place + at : place + at + 4] = size.to_bytes(4, "little")
    path.write_bytes(raw)
    return path


def refuses_cheaply(path: Path, message: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(PolicyFileError, match=message):
            read_archive(path, "made-up")
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", [MANIFEST_MEMBER, ARRAYS_MEMBER])
def test_a_member_that_shrank_too_much_is_never_unpacked(name: str, tmp_path: Path) -> None:
    path = zipped(tmp_path / "bomb", [(MANIFEST_MEMBER, b"{}"), (ARRAYS_MEMBER, b"")])
    rezipped(path, **{name: None})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr(name, b" " * (2 * MIN_PACKED_BYTES))
    refuses_cheaply(path, rf"would unpack {name} from .* to 33,554,432 bytes")


@pytest.mark.parametrize("name", [MANIFEST_MEMBER, ARRAYS_MEMBER])
def test_a_member_larger_than_any_model_is_never_unpacked(name: str, tmp_path: Path) -> None:
    path = announced(archive(tmp_path), name, MAX_MEMBER_BYTES[name] + 1)
    refuses_cheaply(path, f"would unpack {name}")


@pytest.mark.parametrize("size", [0, 10, 2**23])
def test_a_member_of_another_size_than_announced_is_refused(size: int, tmp_path: Path) -> None:
    path = zipped(tmp_path / "lies", [(MANIFEST_MEMBER, b" " * 2**22), (ARRAYS_MEMBER, b"")])
    with pytest.raises(PolicyFileError, match="damaged"):
        read_archive(announced(path, MANIFEST_MEMBER, size), "made-up")


def test_unknown_members_and_other_packings_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(archive(tmp_path)) as opened:
        whole = [(name, opened.read(name)) for name in opened.namelist()]
    odd = {
        "more": [*whole, ("more", b"")],
        "twice": [whole[0], *whole],
        "again": [whole[0], whole[0]],
        "other": [("../manifest.json", whole[0][1]), whole[1]],
        "many": [(f"{k}", b"") for k in range(2000)],
    }
    for name, members in odd.items():
        refuses_cheaply(zipped(tmp_path / name, members), "not a policy file, or is damaged")
    for how in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        refuses_cheaply(zipped(tmp_path / "packed", whole, how), "not a policy file, or is damaged")


def test_an_archive_of_zeros_is_written_so_that_it_can_be_read(tmp_path: Path) -> None:
    zeros = {"a": np.zeros(MIN_PACKED_BYTES // 4)}
    write_archive(tmp_path / "zeros", "made-up", {}, zeros)
    assert np.array_equal(read_archive(tmp_path / "zeros", "made-up")[1]["a"], zeros["a"])


def test_an_archive_too_large_to_be_read_back_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MAX_MEMBER_BYTES, ARRAYS_MEMBER, 10)
    with pytest.raises(OutputError, match="the maximum is 10"):
        archive(tmp_path)
    assert not list(tmp_path.iterdir())
