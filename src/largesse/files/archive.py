"""Files that are never half there, and the one archive that models and policies are saved in.

Everything is written to a temporary name beside the target and then renamed. An archive is a zip of `manifest.json` and
`arrays.safetensors`: text and numbers, nothing that runs when it is opened. Both parts have a digest, and an archive is
refused when a digest, its format or its version is not as expected. The same content gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from largesse.errors import PolicyFileError, Problem
from largesse.files.atomic import atomic_file
from largesse.records import Array

VERSION = 2  # of archives; 1 was written by largesse 0.1.0
MANIFEST, ARRAYS = "manifest.json", "arrays.safetensors"
WRITERS = "largesse fit writes one into its run folder"
DAMAGED = "it was changed or cut off after it was written: fit again, or fetch the file again"


def write_archive(
    path: str | os.PathLike[str], format_name: str, manifest: dict[str, Any], arrays: dict[str, Array]
) -> None:
    """Write a manifest, which JSON can hold, and named arrays into one file."""
    content = _pack(format_name, manifest, arrays)
    with atomic_file(path) as part:
        part.write_bytes(content)


def _pack(format_name: str, manifest: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """Return the bytes of an archive."""
    from safetensors.numpy import save

    blob = save({name: array.copy() for name, array in sorted(arrays.items())})
    manifest = {**manifest, "format": format_name, "version": VERSION, "arrays": hashlib.sha256(blob).hexdigest()}
    manifest["digest"] = _digest(manifest)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in ((MANIFEST, _json(manifest)), (ARRAYS, blob)):
            # A fixed date: the same content is the same file.
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def read_archive(path: str | os.PathLike[str], format_name: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the manifest and the arrays of an archive; refuse one that is damaged or of another format or version."""
    from safetensors.numpy import load

    place = Path(path)
    try:
        with zipfile.ZipFile(place) as archive:
            manifest = json.loads(archive.read(MANIFEST))
            blob = archive.read(ARRAYS)
    except FileNotFoundError as error:
        raise archive_error(place, "does not exist", WRITERS) from error
    except Exception as error:  # damaged bytes make zipfile and its decompressors raise almost anything
        raise archive_error(place, "is not a policy file, or is damaged", DAMAGED) from error
    if not isinstance(manifest, dict) or manifest.get("format") != format_name:
        raise archive_error(place, "is not a policy file", WRITERS)
    if manifest.get("version") != VERSION:
        raise _other_version(place, manifest.get("version"))
    if manifest.get("digest") != _digest(manifest) or manifest.get("arrays") != hashlib.sha256(blob).hexdigest():
        raise archive_error(place, "does not match its own digest", DAMAGED)
    with expected_content(place):
        return manifest, load(blob)


@contextmanager
def expected_content(path: str | os.PathLike[str]) -> Iterator[None]:
    """Refuse an archive whose content makes the block fail: a right digest does not make the content valid."""
    try:
        yield
    except PolicyFileError:
        raise
    except Exception as error:
        raise archive_error(
            path, f"holds something that is not expected ({error})", "fit again with this version"
        ) from error


def archive_error(path: str | os.PathLike[str], what: str, hint: str) -> PolicyFileError:
    """Return the error that says what is wrong with an archive."""
    return PolicyFileError("policy", [Problem(f"{path} {what}", hint)])


def _other_version(path: Path, found: Any) -> PolicyFileError:
    if isinstance(found, int) and found > VERSION:
        return archive_error(path, f"was written by a newer version of largesse (format {found})", "update largesse")
    return archive_error(
        path, f"was written by an older version of largesse (format {found})", "fit again with this one"
    )


def _digest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(_json({key: value for key, value in manifest.items() if key != "digest"})).hexdigest()


def _json(manifest: dict[str, Any]) -> bytes:
    return json.dumps(manifest, sort_keys=True, ensure_ascii=False).encode()
