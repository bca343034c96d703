"""Rows with nested labels, for `nested_bandit`: from a file, from folders of images, or generated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from largesse.errors import InputError, Problem, nearest, refuse
from largesse.records import Array
from largesse_lab.nested.folder import data_folder

FILES = {"images": "nested_images_4608.npz", "text": "nested_text_4608.npz"}
IMAGES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")
SHARES = (4189, 105, 105, 105, 104)  # rows of each depth, none first
WIDTH, GROUPS = 48, 6  # of generated features; clusters without a label
APART = 4.0  # how far a deeper label lies from the one around it, in standard deviations of the noise


@dataclass(frozen=True, eq=False)
class Labelled:
    """Features and how deep each row's label nests: the arguments of `nested_bandit`."""

    name: str
    features: Array  # (n, p) float32
    nested_level: Array  # (n,) int64: 0 none, 1 the broadest, … K the finest

    def __len__(self) -> int:
        return len(self.nested_level)

    def __repr__(self) -> str:
        return f"Labelled({self.name!r}, {len(self):,} rows, {self.features.shape[1]:,} features)"


def nested_here(name: str) -> bool:
    """Whether the file of "images" or "text" is there to be read."""
    folder = data_folder()
    return folder is not None and (folder / FILES[name]).is_file()


def read_nested(source: str | Path = "images") -> Labelled:
    """Read a `.npz` file that holds `X` (n, p) and `level` (n,).

    "images" and "text" are the files `nested_images_4608.npz` and `nested_text_4608.npz` of the folder `LARGESSE_DATA`, or
    of `shared/data` beside the checkout.
    """
    path = _path(source)
    if not path.is_file():
        hint = "name a .npz file that holds X and level, or generate rows: generated_nested()"
        raise InputError("nested labels", [Problem(f"there is no file {str(path)!r}", hint)])
    try:
        with np.load(path, allow_pickle=False) as found:
            missing = [name for name in ("X", "level") if name not in found]
            hint = "save them as np.savez(path, X=features, level=depths)"
            refuse("nested labels", [Problem(f"{path.name} does not hold {name!r}", hint) for name in missing])
            features, depth = found["X"].astype(np.float32), found["level"].astype(np.int64)
    except (BadZipFile, OSError, EOFError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        hint = "save numbers as np.savez(path, X=features, level=depths)"
        raise InputError("nested labels", [Problem(f"{path.name} cannot be read: {error}", hint)]) from error
    return Labelled(str(source), features, depth)


def _path(source: str | Path) -> Path:
    if str(source) not in FILES:
        return Path(source)
    folder = data_folder()
    if folder is None:
        hint = f"set LARGESSE_DATA to the folder that holds {FILES[str(source)]}"
        raise InputError("nested labels", [Problem(f"the {source} are not here", hint)])
    return folder / FILES[str(source)]


def nested_images(
    folder: str | Path,
    embed: Callable[[Sequence[Path]], Any],
    depth: Mapping[str, int],
    *,
    batch: int = 64,
    endings: Sequence[str] = IMAGES,
) -> Labelled:
    """Embed a folder of images, one sub-folder per class.

    Parameters
    ----------
    folder
        Where the sub-folders are.
    embed
        Called with up to `batch` paths; returns numbers (paths, p).
    depth
        How deep each class nests: the name of every sub-folder → 0 (no label), 1 (the broadest) … K (the finest).
    batch, endings
        Paths at a time, and which files are images.
    """
    places = _class_folders(Path(folder), depth)
    paths, depths = [], []
    for name, place in places.items():
        found = sorted(path for path in place.rglob("*") if path.suffix.lower() in endings)
        paths += found
        depths += [int(depth[name])] * len(found)
    if not paths:
        raise InputError("images", [Problem(f"no images in {str(folder)!r}", f"files ending in {', '.join(endings)}")])
    parts = [_embedded(embed, paths[first : first + batch]) for first in range(0, len(paths), batch)]
    if len({part.shape[1] for part in parts}) > 1:
        problem = Problem("embed returned another number of columns from one batch to the next", "return (paths, p)")
        raise InputError("images", [problem])
    return Labelled(Path(folder).name, np.concatenate(parts), np.array(depths, dtype=np.int64))


def _class_folders(folder: Path, depth: Mapping[str, int]) -> dict[str, Path]:
    """Return the class folders by name; all of them have a depth, and every depth a folder."""
    if not folder.is_dir():
        raise InputError("images", [Problem(f"there is no folder {str(folder)!r}", "name one with a folder per class")])
    places = {place.name: place for place in sorted(folder.iterdir()) if place.is_dir()}
    problems = [
        Problem(f"the class {name!r} has no depth", "0 where it has no label") for name in places.keys() - depth
    ]
    problems += [Problem(f"there is no class {name!r}", nearest(name, places)) for name in depth.keys() - places.keys()]
    refuse("images", sorted(problems, key=str))
    return places


def _embedded(embed: Callable[[Sequence[Path]], Any], paths: Sequence[Path]) -> Array:
    found = np.asarray(embed(paths), dtype=np.float32)
    if found.ndim != 2 or len(found) != len(paths):
        problem = Problem(f"embed returned shape {found.shape} for {len(paths)} paths", "return one row per path")
        raise InputError("images", [problem])
    return found


def generated_nested(n: int = 1000, seed: int = 0) -> Labelled:
    """Generate rows: clusters of normal noise, each deeper label a step away from the one around it.

    Depths come in the shares of the image set, 4,189 : 105 : 105 : 105 : 104.

    >>> made = generated_nested(500)
    >>> made, np.bincount(made.nested_level).tolist()
    (Labelled('generated', 500 rows, 48 features), [455, 11, 11, 12, 11])
    """
    problems = [Problem(f"n = {n} rows", "generate ten or more")] if n < 10 else []
    problems += [Problem(f"seed = {seed}", "seeds are zero or more")] if seed < 0 else []
    refuse("nested labels", problems)
    rng = np.random.default_rng(seed)
    ends = np.round(n * np.cumsum(SHARES) / np.sum(SHARES)).astype(int)
    depth = rng.permutation(np.searchsorted(ends, np.arange(n), side="right"))
    steps = np.linalg.qr(rng.normal(size=(WIDTH, GROUPS + len(SHARES))))[0].T  # orthonormal
    group = steps[rng.integers(0, GROUPS, n)] * APART
    label = np.tril(np.ones((len(SHARES), len(SHARES) - 1)), -1)[depth] @ steps[GROUPS : GROUPS + len(SHARES) - 1]
    features = np.where(depth[:, None] > 0, label * APART, group) + rng.normal(size=(n, WIDTH))
    return Labelled("generated", features.astype(np.float32), depth)
