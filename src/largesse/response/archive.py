"""Records as JSON and named arrays, and back: how everything that a model has learnt is saved, written once.

Type annotations say what may be saved. A value is a bool, an int, a float, a str, an `Array`, a tuple, a dict with
names as keys, a frozen dataclass of such values, a model, or any of these `| None`. Reading checks all of it against the
same annotations: a missing or unknown field, another type, and an array of another shape or dtype each give one ValueError
that names the place. Nothing that is read is ever run.

The shape of an array is declared beside its type: ``coef: Annotated[Array, Shaped("p", "K+1")]``. `p` is the number of
encoded features of the model and `K` its number of levels; any other name stands for one length throughout a record.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np

from largesse.errors import InputError, Problem
from largesse.records import Array

State = dict[str, Any]  # what JSON can hold
Arrays = dict[str, Array]  # by place: "fit_/coef"
Lengths = Mapping[str, int]  # of the axes that have a name

ONE_LEVEL = "a model of one level"  # marks a model inside another that has more levels than itself
NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # JSON has no words for these


class Shaped:
    """The shape and dtype of an array: ``Shaped("p", "K-1")``, ``Shaped("n", dtype="int32")``; ``Shaped(...)`` is any shape."""

    def __init__(self, *axes: str | int | types.EllipsisType, dtype: str = "float64") -> None:
        self.axes = axes
        self.dtype = np.dtype(dtype)

    def check(self, array: Array, place: str, lengths: dict[str, int]) -> None:
        """Refuse an array of another dtype or shape; names seen for the first time are added to `lengths`."""
        fits = array.dtype == self.dtype
        if self.axes != (...,):
            fits &= array.ndim == len(self.axes)
            fits = fits and all(_fits(axis, n, lengths) for axis, n in zip(self.axes, array.shape, strict=True))
        if not fits:
            known = ", ".join(f"{name} = {n}" for name, n in lengths.items())
            axes = ", ".join("…" if axis is ... else str(axis) for axis in self.axes)
            wanted = f"{self.dtype} ({axes}) with {known}"
            raise ValueError(f"{place}: an array of {array.dtype} {array.shape}; expected {wanted}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{place}: an array with missing or infinite numbers")


def _fits(axis: Any, length: int, lengths: dict[str, int]) -> bool:
    """Return whether an axis such as "K-1" has the right length."""
    if isinstance(axis, int):
        return axis == length
    found = re.fullmatch(r"([A-Za-z]\w*)([+-]\d+)?", axis)
    assert found, axis
    more = int(found[2] or 0)
    return lengths.setdefault(found[1], length - more) + more == length


@cache
def learnt_hints(kind: type) -> dict[str, Any]:
    """Return the annotations of what a class of models learns: names that end in an underscore, the encoder apart."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint for name, hint in hints.items() if name.endswith("_") and name != "encoder_"}


@cache
def _field_hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _split(hint: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """Return an annotation's type, what `Annotated` says beside it, and whether None is allowed."""
    optional = False
    if get_origin(hint) in (Union, types.UnionType):
        options = [one for one in get_args(hint) if one is not type(None)]
        if len(options) != 1 or len(options) == len(get_args(hint)):
            raise TypeError(f"{hint} cannot be saved: only `T | None` is a union that can")
        hint, optional = options[0], True
    if get_origin(hint) is Annotated:
        return hint.__origin__, hint.__metadata__, optional
    return hint, (), optional


def _is_record(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind)


# -- writing ------------------------------------------------------------------------------------------------------------


def pack(value: Any, hint: Any, place: str, arrays: Arrays) -> Any:
    """Return a value as JSON; its arrays are added to `arrays` under their places."""
    kind, _, optional = _split(hint)
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
        return [pack(one, each, _at(place, i), arrays) for i, (one, each) in enumerate(_items(value, kind, place))]
    if origin is dict:
        return {name: pack(one, get_args(kind)[1], _at(place, name), arrays) for name, one in sorted(value.items())}
    if _is_record(origin):
        fields = _field_hints(origin).items()
        return {name: pack(getattr(value, name), each, _at(place, name), arrays) for name, each in fields}
    if hasattr(origin, "pack_into"):
        if not isinstance(value, origin):
            _refuse_unsafe(value)
        return value.pack_into(place, arrays)
    raise TypeError(f"{place}: {hint} cannot be saved")


def _refuse_unsafe(value: Any) -> NoReturn:
    hint = "use a response model of largesse, as TLearner(model=Boosting())"
    raise InputError("save", [Problem(f"a {type(value).__name__} cannot be saved without pickle", hint)])


def _at(place: str, name: str | int) -> str:
    return f"{place}/{name}" if place else str(name)


def _items(values: Any, kind: Any, place: str) -> list[tuple[Any, Any]]:
    """Return the items of a tuple, each with its annotation."""
    hints = get_args(kind)
    if len(hints) == 2 and hints[1] is ...:
        return [(one, hints[0]) for one in values]
    if len(values) != len(hints):
        raise ValueError(f"{place}: {len(values)} items; expected {len(hints)}")
    return list(zip(values, hints, strict=True))


# -- reading ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Reader:
    """What reading a file needs everywhere in it: its arrays, the models it may name, and the encoder they share."""

    arrays: Arrays
    known: Mapping[str, Any]  # class by name
    encoder: Any
    used: set[str] = dataclasses.field(default_factory=set)  # the places of arrays that have been read

    def unpack(self, state: Any, hint: Any, place: str, lengths: dict[str, int]) -> Any:
        """Return the value of the declared type that `pack` turned into `state`; ValueError if it is not one."""
        kind, marks, optional = _split(hint)
        if state is None and optional:
            return None
        origin: Any = get_origin(kind) or kind
        if origin is np.ndarray:
            return self._array(state, marks, place, lengths)
        if origin is float and state in NOT_FINITE:
            return NOT_FINITE[state]
        if origin in (bool, int, float, str):
            return _scalar(state, origin, place)
        if origin is tuple:
            items = _items(_scalar(state, list, place), kind, place)
            return tuple(self.unpack(one, each, _at(place, i), lengths) for i, (one, each) in enumerate(items))
        if origin is dict:
            each = get_args(kind)[1]
            named = _scalar(state, dict, place)
            return {name: self.unpack(one, each, _at(place, name), lengths) for name, one in named.items()}
        if _is_record(origin):
            own = dict(lengths)
            return origin(**self.unpack_fields(state, _field_hints(origin), place, own))
        if hasattr(origin, "pack_into"):
            return self._model(state, origin, place, 1 if ONE_LEVEL in marks else lengths["K"])
        raise TypeError(f"{place}: {hint} cannot be read")

    def unpack_fields(self, state: Any, hints: dict[str, Any], place: str, lengths: dict[str, int]) -> dict[str, Any]:
        """Return the values of named fields, all of them and no others."""
        found = set(_scalar(state, dict, place))
        if found != set(hints):
            missing, unknown = sorted(set(hints) - found), sorted(found - set(hints))
            raise ValueError(f"{place or 'the model'}: missing {missing}, unknown {unknown}")
        return {name: self.unpack(state[name], hint, _at(place, name), lengths) for name, hint in hints.items()}

    def _array(self, state: Any, marks: tuple[Any, ...], place: str, lengths: dict[str, int]) -> Array:
        if place not in self.arrays:
            raise ValueError(f"{place}: its array is missing")
        array = self.arrays[place]
        self.used.add(place)
        if list(array.shape) != state:
            raise ValueError(f"{place}: an array of shape {array.shape}, announced as {state}")
        for mark in marks:
            if isinstance(mark, Shaped):
                mark.check(array, place, lengths)
        return array

    def _model(self, state: Any, kind: type, place: str, levels: int) -> Any:
        named = self.named(_scalar(state, dict, place).get("kind"))
        if not issubclass(named, kind):
            raise ValueError(f"{place}: a {named.__name__} where a {kind.__name__} is expected")
        model = named.unpack_from(state, place, self)
        if model.levels_ != levels:
            raise ValueError(f"{place}: a model of {model.levels_} levels within one of {levels}")
        return model

    def named(self, kind: Any) -> Any:
        """Return the class of a name in the file."""
        if kind not in self.known:
            raise ValueError(f"a model of kind {kind!r}; known are {', '.join(sorted(self.known))}")
        return self.known[kind]


def _scalar(state: Any, kind: Any, place: str) -> Any:
    """Return a value if it has exactly the type, or is a whole number where a float is expected."""
    if type(state) is kind:
        return state
    if kind is float and type(state) is int:
        return float(state)
    raise ValueError(f"{place or 'the model'}: {state!r} is not of type {kind.__name__}")


# -- settings -----------------------------------------------------------------------------------------------------------


def pack_setting(value: Any, place: str) -> Any:
    """Return a constructor's argument as JSON: numbers, text, lists and tuples of them, setting records, and models."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.generic | np.ndarray):
        return pack_setting(value.tolist(), place)
    if isinstance(value, tuple | list):
        items = [pack_setting(one, place) for one in value]
        return items if isinstance(value, list) else {"tuple": items}
    if hasattr(value, "pack_into"):
        return {"model": type(value).__name__, "params": pack_settings(value)}
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"settings": {name: pack_setting(one, _at(place, name)) for name, one in fields.items()}}
    _refuse_unsafe(value)


def pack_settings(model: Any) -> State:
    """Return the constructor's arguments of a model as JSON."""
    return {name: pack_setting(value, name) for name, value in model.get_params(deep=False).items()}


def unpack_settings(kind: Any, state: Any, reader: Reader) -> Any:
    """Return an unfitted model of a class with the arguments that `pack_settings` returned."""
    hints = get_type_hints(kind.__init__)
    wrong = sorted(set(_scalar(state, dict, "parameters")) ^ set(kind.parameter_names()))
    if wrong:
        raise ValueError(f"{kind.__name__} has other parameters: {', '.join(wrong)}")
    return kind(**{name: _setting(one, hints[name], reader) for name, one in state.items()})


def _setting(state: Any, hint: Any, reader: Reader) -> Any:
    if isinstance(state, list):
        return [_setting(one, hint, reader) for one in state]
    if not isinstance(state, dict):
        return state
    if set(state) == {"tuple"}:
        return tuple(_setting(one, hint, reader) for one in state["tuple"])
    if set(state) == {"float"}:
        return NOT_FINITE[state["float"]]
    if set(state) == {"model", "params"}:
        return unpack_settings(reader.named(state["model"]), state["params"], reader)
    if set(state) == {"settings"}:
        return _setting_record(state["settings"], hint, reader)
    raise ValueError(f"parameters: {sorted(state)} is not known")


def _setting_record(state: Any, hint: Any, reader: Reader) -> Any:
    """Return the record of settings whose class the constructor's annotation names."""
    kind: Any = next((one for one in (hint, *get_args(hint)) if dataclasses.is_dataclass(one)), None)
    if kind is None or set(state) != {field.name for field in dataclasses.fields(kind)}:
        raise ValueError(f"parameters: settings {sorted(state)} do not belong here")
    hints = _field_hints(kind)
    return kind(**{name: _setting(one, hints[name], reader) for name, one in state.items()})
