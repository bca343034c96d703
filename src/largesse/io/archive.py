"""Archive format of saved models and policies: a zip of a JSON manifest and arrays.

It holds text and numbers, and no code. Both parts have a digest, and an archive is refused when a
digest, its format or its version is not as expected. The same content gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from largesse.errors import OutputError, PolicyFileError, Problem, repr_short
from largesse.io.atomic_replacement import atomic_file
from largesse.io.record_serialisation import from_json
from largesse.records import Array

ARCHIVE_VERSION = 2  # largesse 0.1.0 wrote version 1
MANIFEST_MEMBER, ARRAYS_MEMBER = "manifest.json", "arrays.safetensors"
FIT_HINT = "largesse fit writes one into its run folder"
MAX_MEMBER_BYTES = {
    MANIFEST_MEMBER: 64 * 2**20,
    ARRAYS_MEMBER: 2**30,
}  # unpacked; far above the sizes of real models
MAX_COMPRESSION_RATIO = 200  # of large members; random numbers hardly shrink at all
MIN_PACKED_BYTES = 2**24  # smaller members may have any ratio
MAX_REASON_LETTERS = 300
DAMAGED_HINT = "it was changed or cut off after it was written: fit again, or fetch the file again"


def write_archive(
    path: str | os.PathLike[str], format_name: str, manifest: dict[str, Any], arrays: dict[str, Array]
) -> None:
    """Write a JSON manifest and named arrays into one archive file."""
    from safetensors.numpy import save

    blob = save({name: array.copy() for name, array in sorted(arrays.items())})
    manifest = {
        **manifest,
        "format": format_name,
        "version": ARCHIVE_VERSION,
        "arrays": hashlib.sha256(blob).hexdigest(),
    }
    manifest["digest"] = _digest_manifest(manifest)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in ((MANIFEST_MEMBER, _encode_manifest(manifest)), (ARRAYS_MEMBER, blob)):
            if len(content) > MAX_MEMBER_BYTES[name]:
                got = f"{name} would have {len(content):,} bytes; the maximum is {MAX_MEMBER_BYTES[name]:,}"
                raise OutputError("output", [Problem(got, "save a smaller model")])
            # A member that shrinks beyond the ratio that reading accepts is stored without compression.
            bomb = len(content) > MIN_PACKED_BYTES and len(
                zlib.compress(content, 1)
            ) * MAX_COMPRESSION_RATIO // 2 < len(content)
            # A fixed date: the same content is the same file.
            archive.writestr(
                zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)),
                content,
                zipfile.ZIP_STORED if bomb else zipfile.ZIP_DEFLATED,
            )
    with atomic_file(path) as temporary:
        temporary.write_bytes(out.getvalue())


def read_archive(path: str | os.PathLike[str], format_name: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read and verify the manifest and the arrays of an archive.

    Damaged files, other formats and other versions are refused.
    """
    from safetensors.numpy import load

    place = Path(path)
    try:
        packed, blob = _read_members(place)
        manifest = from_json(packed)
        digest_matches = isinstance(manifest, dict) and manifest.get("digest") == _digest_manifest(manifest)
    except PolicyFileError:
        raise
    except FileNotFoundError as error:
        raise make_archive_error(place, "does not exist", FIT_HINT) from error
    except Exception as error:  # damaged bytes make zipfile and its decompressors raise almost anything
        raise make_archive_error(place, "is not a policy file, or is damaged", DAMAGED_HINT) from error
    if not isinstance(manifest, dict) or manifest.get("format") != format_name:
        raise make_archive_error(place, "is not a policy file", FIT_HINT)
    version = manifest.get("version")
    if version != ARCHIVE_VERSION:
        newer = isinstance(version, int) and version > ARCHIVE_VERSION
        got = f"was written by {'a newer' if newer else 'an older'} version of largesse (format {repr_short(version)})"
        raise make_archive_error(place, got, "update largesse" if newer else "fit again with this version")
    if not digest_matches or manifest.get("arrays") != hashlib.sha256(blob).hexdigest():
        raise make_archive_error(place, "does not match its digest", DAMAGED_HINT)
    with convert_content_errors(place):
        return manifest, load(blob)


def _read_members(place: Path) -> tuple[bytes, bytes]:
    """Read the manifest and the arrays of an archive as bytes."""
    with place.open("rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise zipfile.BadZipFile("not a file")
        _check_member_count(file)
        with zipfile.ZipFile(file) as archive:
            members = {info.filename: info for info in archive.infolist()}
            if set(members) != {MANIFEST_MEMBER, ARRAYS_MEMBER}:
                raise zipfile.BadZipFile("other members")
            return _unpack_member(place, archive, members[MANIFEST_MEMBER]), _unpack_member(
                place, archive, members[ARRAYS_MEMBER]
            )


def _check_member_count(file: BinaryIO) -> None:
    """Refuse a zip file whose end record counts other than exactly two members.

    The check precedes reading the directory, which may be of any length.
    """
    end = file.seek(0, os.SEEK_END)
    file.seek(max(end - 42, 0))
    tail = file.read(42)
    directory = tail[-22:]
    if directory[:4] != b"PK\5\6" or directory[8:12] != b"\2\0\2\0" or tail[:4] == b"PK\6\7":
        raise zipfile.BadZipFile("not an archive of two members")
    file.seek(0)


def _unpack_member(place: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Unpack one member of an archive, within a size limit."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile("unknown compression")
    if info.file_size > MAX_MEMBER_BYTES[info.filename] or info.file_size > max(
        MIN_PACKED_BYTES, MAX_COMPRESSION_RATIO * info.compress_size
    ):
        got = f"would unpack {info.filename} from {info.compress_size:,} to {info.file_size:,} bytes"
        raise make_archive_error(place, got, "largesse did not write this policy: do not use it")
    with archive.open(info) as member:
        content = member.read(info.file_size)
        if len(content) != info.file_size or member.read(1):
            raise zipfile.BadZipFile("another size than announced")
        return content


@contextmanager
def convert_content_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert any error in a with-block to a `PolicyFileError` about invalid content.

    A correct digest does not make the content valid.
    """
    try:
        yield
    except PolicyFileError:
        raise
    except Exception as error:
        reason = str(error) if len(str(error)) <= MAX_REASON_LETTERS else f"{str(error)[:MAX_REASON_LETTERS]}…"
        got = f"holds unexpected content ({reason})"
        raise make_archive_error(path, got, "fit again with this version") from error


def make_archive_error(path: str | os.PathLike[str], problem: str, hint: str) -> PolicyFileError:
    """Build the error for an unreadable archive."""
    return PolicyFileError("policy", [Problem(f"{path} {problem}", hint)])


def _digest_manifest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(
        _encode_manifest({key: value for key, value in manifest.items() if key != "digest"})
    ).hexdigest()


def _encode_manifest(manifest: dict[str, Any]) -> bytes:
    return json.dumps(manifest, sort_keys=True, ensure_ascii=False).encode()
