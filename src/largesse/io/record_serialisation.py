"""Serialisation of dataclass records as JSON and named arrays, driven by type annotations.

A value is a bool, an int, a float, a str, an `Array`, a tuple, a dict with names as keys, a frozen dataclass of such values, a
model, or any of these `| None`. `pack_value` writes one; a `RecordReader` checks its input against the same annotations: a missing or
unknown field, another type, and an array of another shape or dtype each give one ValueError that names the place. The input
is never executed.

The shape of an array is declared with its type: ``coef: Annotated[Array, Shaped("p", "K+1")]``. `p` is the number of
encoded features of a model and `K` its number of levels; any other name has the same length throughout a record.

Records of numbers alone, such as those of a run folder, need no second file: `to_json` writes them, with null for numbers
that are not finite, and `read_record` reads them.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from largesse.errors import InputError, Problem, repr_short
from largesse.records import Array

Record = TypeVar("Record")
State = dict[str, Any]  # what JSON can hold
Arrays = dict[str, Array]  # by place: "fit_/coef"

ONE_LEVEL = "a model of one level"  # marks a model inside another that has more levels than itself
NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # JSON cannot express these


class ArraySpec:
    """Shape and dtype that an annotation declares for an array.

    Examples are ``ArraySpec("p", "K-1")`` and ``ArraySpec("n", dtype="int32")``; ``ArraySpec(...)`` is any shape.
    """

    def __init__(self, *axes: str | int | types.EllipsisType, dtype: str = "float64") -> None:
        self.axes = axes
        self.dtype = np.dtype(dtype)

    def check(self, array: Array, place: str, lengths: dict[str, int]) -> None:
        """Refuse an array whose dtype or shape differs from the declaration.

        The length of each new axis name is added to `lengths`.
        """
        fits = array.dtype == self.dtype
        if self.axes != (...,):
            fits &= array.ndim == len(self.axes)
            fits = fits and all(
                _axis_has_length(axis, n, lengths) for axis, n in zip(self.axes, array.shape, strict=True)
            )
        if not fits:
            known = ", ".join(f"{name} = {n}" for name, n in lengths.items())
            axes = ", ".join("…" if axis is ... else str(axis) for axis in self.axes)
            wanted = f"{self.dtype} ({axes}) with {known}"
            raise ValueError(f"{place}: an array of {array.dtype} {array.shape}; expected {wanted}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{place}: an array with missing or infinite numbers")


def _axis_has_length(axis: Any, length: int, lengths: dict[str, int]) -> bool:
    """Test if a declared axis, such as "K-1", has a given length.

    A new axis name is added to `lengths`.
    """
    if isinstance(axis, int):
        return axis == length
    match = re.fullmatch(r"([A-Za-z]\w*)([+-]\d+)?", axis)
    assert match, axis
    more = int(match[2] or 0)
    return lengths.setdefault(match[1], length - more) + more == length


@cache
def read_field_annotations(kind: Any) -> dict[str, Any]:
    """Return the type annotations of a dataclass's fields, by name."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _split_annotation(hint: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """Split a type annotation into type, `Annotated` metadata and a flag for allowed None."""
    optional = False
    if get_origin(hint) in (Union, types.UnionType):
        options = [option for option in get_args(hint) if option is not type(None)]
        if len(options) != 1 or len(options) == len(get_args(hint)):
            raise TypeError(f"{hint} cannot be saved: only `T | None` is a union that can")
        hint, optional = options[0], True
    if get_origin(hint) is Annotated:
        return hint.__origin__, hint.__metadata__, optional
    return hint, (), optional


def _is_record_class(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind)


# -- writing ------------------------------------------------------------------------------------------------------------


def pack_value(value: Any, hint: Any, place: str, arrays: Arrays) -> Any:
    """Convert a value to JSON types, and store its arrays in a dictionary by path."""
    kind, _, optional = _split_annotation(hint)
    if value is None and optional:
        return None
    origin: Any = get_origin(kind) or kind
    if origin is np.ndarray:
        arrays[place] = np.asarray(value)
        return list(arrays[place].shape)
    if origin in (bool, int, str):
        return origin(value)
    if origin is float:
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if origin is tuple:
        items = enumerate(_pair_items_with_types(value, kind, place))
        return [pack_value(item, each, join_field_path(place, i), arrays) for i, (item, each) in items]
    if origin is dict:
        each = get_args(kind)[1]
        return {
            name: pack_value(item, each, join_field_path(place, name), arrays) for name, item in sorted(value.items())
        }
    if _is_record_class(origin):
        fields = read_field_annotations(origin).items()
        return {
            name: pack_value(getattr(value, name), each, join_field_path(place, name), arrays) for name, each in fields
        }
    if hasattr(origin, "pack_into"):
        if not isinstance(value, origin):
            raise make_unsavable_error(value)
        return value.pack_into(place, arrays)
    raise TypeError(f"{place}: {hint} cannot be saved")


def make_unsavable_error(value: Any) -> InputError:
    """Build the error for a value that cannot be saved without pickle."""
    hint = "use a response model of largesse, as Linear()"
    return InputError("save", [Problem(f"a {type(value).__name__} cannot be saved without pickle", hint)])


def join_field_path(place: str, name: str | int) -> str:
    """Join the path of a record and a field name, such as "fit_/coef"."""
    return f"{place}/{name}" if place else str(name)


def _pair_items_with_types(values: Any, kind: Any, place: str) -> list[tuple[Any, Any]]:
    """Pair the items of a tuple with their type annotations."""
    hints = get_args(kind)
    if len(hints) == 2 and hints[1] is ...:
        return [(value, hints[0]) for value in values]
    if len(values) != len(hints):
        raise ValueError(f"{place}: {len(values)} items; expected {len(hints)}")
    return list(zip(values, hints, strict=True))


# -- reading ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class RecordReader:
    """Reader that restores the records of one file from JSON and arrays."""

    arrays: Arrays
    known: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # class by name
    encoder: Any = None
    used: set[str] = dataclasses.field(default_factory=set)  # paths of the arrays that were read
    nulls: bool = False  # True: null is read as NaN

    def unpack(self, state: Any, hint: Any, place: str, lengths: dict[str, int]) -> Any:
        """Restore a value of the annotated type from JSON and arrays.

        A value that does not fit is a ValueError.
        """
        kind, marks, optional = _split_annotation(hint)
        if state is None and optional:
            return None
        origin: Any = get_origin(kind) or kind
        if origin is np.ndarray:
            return self._read_array(state, marks, place, lengths)
        if origin is float and isinstance(state, str) and state in NOT_FINITE:
            return NOT_FINITE[state]
        if origin is float and state is None and self.nulls:
            return math.nan
        if origin in (bool, int, float, str):
            return check_scalar_type(state, origin, place)
        if origin is tuple:
            items = _pair_items_with_types(check_scalar_type(state, list, place), kind, place)
            return tuple(
                self.unpack(item, each, join_field_path(place, i), lengths) for i, (item, each) in enumerate(items)
            )
        if origin is dict:
            each = get_args(kind)[1]
            named = check_scalar_type(state, dict, place)
            return {
                name: self.unpack(item, each, join_field_path(place, name), lengths) for name, item in named.items()
            }
        if _is_record_class(origin):
            return origin(**self.unpack_fields(state, read_field_annotations(origin), place, dict(lengths)))
        if hasattr(origin, "pack_into"):
            return self._read_model(state, origin, place, 1 if ONE_LEVEL in marks else lengths["K"])
        raise TypeError(f"{place}: {hint} cannot be read")

    def unpack_fields(self, state: Any, hints: dict[str, Any], place: str, lengths: dict[str, int]) -> dict[str, Any]:
        """Restore the fields of a record; refuse missing and unknown fields."""
        names = set(check_scalar_type(state, dict, place))
        if names != set(hints):
            missing, unknown = sorted(set(hints) - names), sorted(names - set(hints))
            raise ValueError(f"{place or 'it'}: missing {missing}, unknown {unknown}")
        return {
            name: self.unpack(state[name], hint, join_field_path(place, name), lengths) for name, hint in hints.items()
        }

    def _read_array(self, state: Any, marks: tuple[Any, ...], place: str, lengths: dict[str, int]) -> Array:
        if place not in self.arrays:
            raise ValueError(f"{place}: its array is missing")
        array = self.arrays[place]
        self.used.add(place)
        if list(array.shape) != state:
            raise ValueError(f"{place}: an array of shape {array.shape}, announced as {state}")
        for mark in marks:
            if isinstance(mark, ArraySpec):
                mark.check(array, place, lengths)
        return array

    def _read_model(self, state: Any, kind: type, place: str, levels: int) -> Any:
        named = self.find_model_class(check_scalar_type(state, dict, place).get("kind"))
        if not issubclass(named, kind):
            raise ValueError(f"{place}: a {named.__name__} where a {kind.__name__} is expected")
        model = named.unpack_from(state, place, self)
        if model.levels_ != levels:
            raise ValueError(f"{place}: a model of {model.levels_} levels within one of {levels}")
        return model

    def find_model_class(self, kind: Any) -> Any:
        """Return the model class of a name; refuse an unknown name."""
        if kind not in self.known:
            raise ValueError(f"a model of kind {kind!r}; known are {', '.join(sorted(self.known))}")
        return self.known[kind]


def check_scalar_type(state: Any, kind: Any, place: str) -> Any:
    """Check the type of a scalar from JSON, and return the scalar."""
    if type(state) is kind:
        return state
    if kind is float and type(state) is int:
        with suppress(OverflowError):
            return float(state)
    raise ValueError(f"{place or 'it'}: {repr_short(state)} is not of type {kind.__name__}")


# -- records of numbers ---------------------------------------------------------------------------------------------------


def to_json(value: Any) -> Any:
    """Convert a value, such as a record or an array, to JSON types.

    Records become dicts, arrays and tuples lists, and numbers that are not finite None.

    >>> to_json({"a": (1, float("nan")), "b": np.arange(2)})
    {'a': [1, None], 'b': [0, 1]}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): to_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    if dataclasses.is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def from_json(content: bytes) -> Any:
    """Parse JSON; raise ValueError for NaN and infinity."""
    return json.loads(content, parse_constant=_refuse_constant)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def to_toml(value: Any) -> str:
    """Format a value as TOML text.

    It is a text, number, boolean, list or table. The standard library only reads TOML.

    >>> to_toml(["Oslo", 2.5, True])
    '["Oslo", 2.5, true]'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return re.sub("[\x7f-\x9f]", lambda control: f"\\u{ord(control[0]):04x}", json.dumps(value, ensure_ascii=False))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{to_toml(str(key))} = {to_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(to_toml(item) for item in value) + "]"
    return "inf" if value == math.inf else repr(value)


def read_record(kind: type[Record], state: Any, place: str = "") -> Record:
    """Restore a record of a given class from JSON types.

    A value that does not fit is a ValueError that names its place.

    >>> from largesse.records import Estimate
    >>> read_record(Estimate, {"estimate": 1.0, "se": None, "low": 0, "high": 2.0})
    Estimate(1 [0, 2])
    """
    record: Record = RecordReader({}, nulls=True).unpack(state, kind, place, {})
    return record
