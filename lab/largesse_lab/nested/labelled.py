"""Rows with nested labels, for `make_bandit`: read from a file, or generated.

The project reads real data but does not ship them: the environment variable `LARGESSE_DATA` names the folder that holds them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from largesse.errors import InputError, Problem, refuse
from largesse.records import Array

FILES = {"images": "nested_images_4608.npz", "text": "nested_text_4608.npz"}
SHARES = (4189, 105, 105, 105, 104)  # rows of each depth: without a label first, the finest label last
WIDTH, GROUPS = 48, 6  # number of generated features; number of clusters without a label
APART = 4.0  # distance between a label's centre and that of the label around it, in standard deviations of the noise


@dataclass(frozen=True, eq=False)
class Labelled:
    """Features, and the depth of each row's label: the arguments of `make_bandit`."""

    name: str
    features: Array  # (n, p) float32
    nested_level: Array  # (n,) int64: 0 for no label, 1 for the broadest alone, … K for the finest

    def __len__(self) -> int:
        return len(self.nested_level)

    def __repr__(self) -> str:
        return f"Labelled({self.name!r}, {len(self):,} rows, {self.features.shape[1]:,} features)"


def find_data_folder() -> Path | None:
    """Return the folder of real data that `LARGESSE_DATA` names; None where it names none."""
    place = os.environ.get("LARGESSE_DATA")
    return Path(place) if place and Path(place).is_dir() else None


def has_nested(name: str) -> bool:
    """Return whether the file of "images" or "text" is there to be read."""
    folder = find_data_folder()
    return folder is not None and (folder / FILES[name]).is_file()


def read_nested(source: str | Path = "images") -> Labelled:
    """Read a `.npz` file that holds `X` (n, p) and `level` (n,).

    "images" and "text" stand for the files `nested_images_4608.npz` and `nested_text_4608.npz` of the folder `LARGESSE_DATA`.
    """
    path = _path(source)
    if not path.is_file():
        hint = "name a .npz file that holds X and level, or generate rows: generate_nested()"
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
    folder = find_data_folder()
    if folder is None:
        hint = f"set LARGESSE_DATA to the folder that holds {FILES[str(source)]}"
        raise InputError("nested labels", [Problem(f"the {source} data are not here", hint)])
    return folder / FILES[str(source)]


def generate_nested(n: int = 1000, seed: int = 0) -> Labelled:
    """Generate rows: clusters of normal noise, each label's cluster one step away from that of the label around it.

    Depths occur in the proportions of the image set, 4,189 : 105 : 105 : 105 : 104.

    >>> made = generate_nested(500)
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
