"""Odd values for anything that JSON or TOML can hold, and one change of a tree of such values."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Path = tuple[Any, ...]  # keys and places from the root to a value


def nest(depth: int, inside: Any = 0) -> Any:
    """Return lists within lists."""
    for _ in range(depth):
        inside = [inside]
    return inside


ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 2**31, -(2**31) - 1, 2**63, 10**30, 10**320, -(10**320)),
    *(0.0, -0.0, 0.5, 1.5, -1.5, 1e-320, 1e300, -1e300, 1.7e308, math.nan, math.inf, -math.inf),
    *("", " ", "x", "nan", "inf", "\0", "\x1b[2J", "\u202e", "é" * 3, "x" * 5000, "__class__", "../..", "1", "Linear"),
    *([], [0], [[]], ["x"], [None], {}, {"x": 1}, {"": None}, {"kind": "Linear"}, nest(50), nest(150)),
)


def list_paths(tree: Any, path: Path = ()) -> list[Path]:
    """Return the paths of all values of a tree, the root apart."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [found for key, value in items for found in ((*path, key), *list_paths(value, (*path, key)))]


def walk_down(tree: Any, rng: np.random.Generator) -> Path:
    """Return the path of a value, found by going to any part of a part: long lists count no more than short ones."""
    path: Path = ()
    while isinstance(tree, dict | list) and len(tree) and (not path or rng.random() < 0.85):
        key = list(tree)[rng.integers(len(tree))] if isinstance(tree, dict) else int(rng.integers(len(tree)))
        path, tree = (*path, key), tree[key]
    return path


def find(tree: Any, path: Path) -> Any:
    """Return the value at a path."""
    for key in path:
        tree = tree[key]
    return tree


def change(tree: Any, rng: np.random.Generator, odd: Sequence[Any] = ODD) -> Any:
    """Return a copy of a tree with one value replaced, taken out, copied elsewhere, or made a little different."""
    tree = copy.deepcopy(tree)
    paths = list_paths(tree)
    *where, key = walk_down(tree, rng) if rng.random() < 0.6 else paths[rng.integers(len(paths))]
    inside = find(tree, tuple(where))
    how = rng.choice(["odd", "odd", "odd", "gone", "other", "near", "more"])
    if how == "gone":
        del inside[key]
    elif how == "other":
        inside[key] = copy.deepcopy(find(tree, paths[rng.integers(len(paths))]))
    elif how == "near":
        inside[key] = change_a_little(inside[key], rng)
    elif how == "more" and isinstance(inside, list):
        inside.insert(int(key), copy.deepcopy(inside[key]))
    elif how == "more":
        inside[f"{key}2"] = inside[key]
    else:
        inside[key] = copy.deepcopy(odd[rng.integers(len(odd))])
    return tree


def change_a_little(value: Any, rng: np.random.Generator) -> Any:
    """Return a value of the same type that is not the same."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int) and abs(value) > 10**270:
        return -value
    if isinstance(value, int | float):
        factor = [-1, 2, 1e-9, 1e30][rng.integers(4)]
        return type(value)(value * factor) + int(rng.integers(2))
    if isinstance(value, str):
        return value[: len(value) // 2] if rng.random() < 0.5 else value + "x"
    if isinstance(value, list):
        return [value[k] for k in rng.permutation(len(value))][int(rng.integers(2)) :]
    return value


def change_array(arrays: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return the arrays with one of another shape or dtype, with odd numbers, under another name, or gone."""
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name].copy()
    how = rng.choice(["shape", "dtype", "number", "number", "number", "swap", "gone", "more", "row"])
    if how == "gone":
        return {key: value for key, value in arrays.items() if key != name}
    if how == "more":
        return {**arrays, f"{name}x": array}
    if how == "swap":
        other = sorted(arrays)[rng.integers(len(arrays))]
        return {**arrays, name: arrays[other].copy(), other: array}
    if how == "shape":
        array = array.reshape([(-1,), (1, -1), (-1, 1)][rng.integers(3)])
    elif how == "dtype":
        with np.errstate(all="ignore"):  # a cast may lose whatever it likes
            array = array.astype(["float32", "float64", "int64", "int32", "bool", "float16", "uint8"][rng.integers(7)])
    elif how == "row":
        array = np.concatenate([array, array[:1]]) if rng.random() < 0.5 and len(array) else array[1:]
    elif array.size:
        odd = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e38, 0, -1, -2, 1, 2**31 - 1, -(2**31), 7, 0.5, 1e-300]
        with np.errstate(all="ignore"):
            where = slice(None) if rng.random() < 0.2 else rng.integers(array.size)
            array.reshape(-1)[where] = np.array(odd[rng.integers(len(odd))]).astype(array.dtype)
    return {**arrays, name: array}
