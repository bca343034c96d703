"""Files that are never half there, and the one archive that models and policies are saved in.

Everything is written to a temporary name beside the target and then renamed. An archive is a zip of `manifest.json` and
`arrays.safetensors`: text and numbers, nothing that runs when it is opened. Both parts have a digest, and an archive is
refused when a digest, its format or its version is not as expected. The same content gives the same bytes.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
import uuid
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from largesse.errors import OutputError, PolicyFileError, Problem, some
from largesse.records import Array

VERSION = 2  # of archives; 1 was written by largesse 0.1.0
MANIFEST, ARRAYS = "manifest.json", "arrays.safetensors"
WRITERS = "largesse fit writes one into its run folder"
DAMAGED = "it was changed or cut off after it was written: fit again, or fetch the file again"


@contextmanager
def atomic_file(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path to write to; it becomes `target` when the block ends well, and vanishes when it does not."""
    path = Path(target)
    with _explain(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.part"
        try:
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(
    target: str | os.PathLike[str], *, marks: Collection[str] = (), files: Collection[str] = ()
) -> Iterator[Path]:
    """Give a temporary folder to fill; it takes the place of `target` when the block ends well.

    An empty folder of that name is replaced, and one that holds all of the `marks` and nothing but `files`; any other
    folder is refused.
    """
    path = Path(target).resolve()  # not a link is replaced, but what it points to
    with _explain(path):
        _refuse_foreign(path, marks, files)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.part"
        part.mkdir()
        try:
            yield part
            _swap(part, path)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _refuse_foreign(path: Path, marks: Collection[str], files: Collection[str]) -> None:
    if path.is_file():
        raise OutputError("output", [Problem(f"{path} is a file, not a folder", "give another --out")])
    found = {inside.name for inside in path.iterdir()} if path.is_dir() else set()
    # A folder with all marks and nothing unknown was made by us; a user's own file among the known names proves nothing.
    other = sorted(found - {*files}) if marks and found.issuperset(marks) else sorted(found)
    if other:
        raise OutputError(
            "output",
            [
                Problem(
                    f"{path} holds other files and will not be replaced: {some(other)}", "give a new folder as --out"
                )
            ],
        )


def _swap(part: Path, path: Path) -> None:
    if not path.exists():
        part.replace(path)
        return
    old = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.old"
    path.replace(old)
    try:
        part.replace(path)
    finally:
        if not path.exists():  # whatever stopped it, even a signal: the earlier folder comes back
            old.replace(path)
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _explain(path: Path) -> Iterator[None]:
    """Turn an error of the system into a sentence."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError("output", [_diagnosis(path, error)]) from error


def _diagnosis(path: Path, error: OSError) -> Problem:
    if error.errno == errno.ENOSPC or "No space left" in str(error):
        return Problem(
            f"the disk is full; {path} was not written", "free some space; what was there before is untouched"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Problem(f"{path} may not be written", "choose a folder you may write to with --out")
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return Problem(f"{path} cannot be made: a part of the path is a file", "give another --out")
    if error.errno == errno.EISDIR:
        return Problem(f"{path} is a folder, not a file", "give the name of a file as --out")
    return Problem(f"{path} could not be written: {error}", "what was there before is untouched")


# ------------------------------------------------------------------------------------------------------------- archives


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
