"""Validation of JSON values against type annotations.

A shape is `bool`, `int`, `float` (any finite number), `str`, `None`, `Any`, `Literal[…]`, `list[T]` or `Sequence[T]`,
`dict[str, T]`, a `TypedDict` (which may have more keys), a dataclass (a dict of exactly its fields), or a union of these.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import (
    Any,
    Literal,
    NoReturn,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from largesse.errors import as_number, repr_short

WORDS = {bool: "true or false", int: "a whole number", float: "a finite number", str: "text", type(None): "nothing"}


@dataclasses.dataclass(frozen=True)
class Fields:
    """The fields of a record: types, required names, and whether other names are allowed."""

    hints: dict[str, Any]
    required: frozenset[str]
    closed: bool


def check_shape(value: Any, shape: Any, place: str = "") -> None:
    """Raise ValueError, which names the place, where a value is not of the shape.

    >>> check_shape({"a": [1, 2.5]}, dict[str, list[float]])
    >>> check_shape({"a": [1, "x"]}, dict[str, list[float]])
    Traceback (most recent call last):
    ValueError: a/1 is 'x'; expected a finite number
    """
    origin = get_origin(shape) or shape
    if origin in (Union, types.UnionType):
        _check_union(value, get_args(shape), place)
    elif origin is Literal:
        if not any(type(value) is type(one) and value == one for one in get_args(shape)):
            _complain(value, place, " or ".join(map(repr, get_args(shape))))
    elif origin in (list, tuple, Sequence):
        if not isinstance(value, list):
            _complain(value, place, "a list")
        for k, one in enumerate(value):
            check_shape(one, get_args(shape)[0], _at(place, k))
    elif origin is dict:
        for name, one in _mapping(value, place).items():
            check_shape(one, get_args(shape)[1], _at(place, name))
    elif is_typeddict(origin) or dataclasses.is_dataclass(origin):
        _check_fields(_mapping(value, place), _list_fields(origin), place)
    elif origin is not Any and not _is_scalar(value, origin):
        _complain(value, place, WORDS[origin])


def _is_scalar(value: Any, kind: Any) -> bool:
    if kind is float:
        number = as_number(value)
        return number is not None and math.isfinite(number)
    return type(value) is (type(None) if kind is None else kind)


def _check_union(value: Any, options: Sequence[Any], place: str) -> None:
    """Accept a value that fits one option; else raise the error of the last one."""
    if value is None and type(None) in options:
        return
    others = [option for option in options if option is not type(None)]
    for option in others[:-1]:
        with suppress(ValueError):
            check_shape(value, option, place)
            return
    check_shape(value, others[-1], place)


def _check_fields(value: dict[str, Any], fields: Fields, place: str) -> None:
    missing = sorted(fields.required - set(value))
    unknown = sorted(set(value) - set(fields.hints)) if fields.closed else []
    if missing:
        raise ValueError(f"{_at(place, missing[0])} is missing")
    if unknown:
        raise ValueError(f"{_at(place, unknown[0])} is not known")
    for name in fields.hints.keys() & value.keys():
        check_shape(value[name], fields.hints[name], _at(place, name))


@cache
def _list_fields(kind: Any) -> Fields:
    hints = get_type_hints(kind, include_extras=True)
    if dataclasses.is_dataclass(kind):
        hints = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
        return Fields(hints, frozenset(hints), closed=True)
    optional = {name for name, hint in hints.items() if get_origin(hint) is NotRequired}
    plain = {name: get_args(hint)[0] if name in optional else hint for name, hint in hints.items()}
    return Fields(plain, frozenset(hints) - optional, closed=False)


def _mapping(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _complain(value, place, "named values")
    return value


def _complain(value: Any, place: str, wanted: str) -> NoReturn:
    raise ValueError(f"{place or 'it'} is {repr_short(value, most=40)}; expected {wanted}")


def _at(place: str, name: str | int) -> str:
    return f"{place}/{name}" if place else str(name)
