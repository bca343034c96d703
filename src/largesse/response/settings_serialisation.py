"""Conversion of a model's constructor arguments to JSON and back.

`io.record_serialisation` converts learnt attributes.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from typing import Any, get_args, get_type_hints

import numpy as np

from largesse.io import (
    NOT_FINITE,
    RecordReader,
    State,
    check_scalar_type,
    join_field_path,
    make_unsavable_error,
    read_field_annotations,
)


@cache
def learnt_attribute_types(kind: type) -> dict[str, Any]:
    """Return the type annotations of a class's learnt attributes, without the encoder."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint for name, hint in hints.items() if name.endswith("_") and name != "encoder_"}


# -- settings -----------------------------------------------------------------------------------------------------------


def pack_constructor_argument(value: Any, place: str) -> Any:
    """Convert a constructor argument to JSON.

    Arguments are numbers, text, lists and tuples of them, records of settings, and models.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.generic | np.ndarray):
        return pack_constructor_argument(value.tolist(), place)
    if isinstance(value, tuple | list):
        items = [pack_constructor_argument(item, place) for item in value]
        return items if isinstance(value, list) else {"tuple": items}
    if hasattr(value, "pack_into"):
        return {"model": type(value).__name__, "params": pack_constructor_arguments(value)}
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {
            "settings": {
                name: pack_constructor_argument(item, join_field_path(place, name)) for name, item in fields.items()
            }
        }
    raise make_unsavable_error(value)


def pack_constructor_arguments(model: Any) -> State:
    """Convert all constructor arguments of a model to JSON."""
    return {name: pack_constructor_argument(value, name) for name, value in model.get_params(deep=False).items()}


def restore_unfitted_model(kind: Any, state: Any, reader: RecordReader) -> Any:
    """Restore an unfitted model of a class from the JSON of its constructor arguments."""
    hints = get_type_hints(kind.__init__)
    wrong = sorted(set(check_scalar_type(state, dict, "parameters")) ^ set(kind.parameter_names()))
    if wrong:
        raise ValueError(f"{kind.__name__} has other parameters: {', '.join(wrong)}")
    return kind(**{name: _unpack_setting(item, hints[name], reader) for name, item in state.items()})


def _unpack_setting(state: Any, hint: Any, reader: RecordReader) -> Any:
    if isinstance(state, list):
        return [_unpack_setting(item, hint, reader) for item in state]
    if not isinstance(state, dict):
        return state
    if set(state) == {"tuple"}:
        return tuple(_unpack_setting(item, hint, reader) for item in state["tuple"])
    if set(state) == {"float"}:
        return NOT_FINITE[state["float"]]
    if set(state) == {"model", "params"}:
        return restore_unfitted_model(reader.find_model_class(state["model"]), state["params"], reader)
    if set(state) == {"settings"}:
        return _unpack_setting_record(state["settings"], hint, reader)
    raise ValueError(f"parameters: {sorted(state)} is not known")


def _unpack_setting_record(state: Any, hint: Any, reader: RecordReader) -> Any:
    """Restore a settings record from JSON, of the class in the constructor's type annotation."""
    kind: Any = next((item for item in (hint, *get_args(hint)) if dataclasses.is_dataclass(item)), None)
    if kind is None or set(state) != {field.name for field in dataclasses.fields(kind)}:
        raise ValueError(f"parameters: settings {sorted(state)} do not belong here")
    hints = read_field_annotations(kind)
    return kind(**{name: _unpack_setting(item, hints[name], reader) for name, item in state.items()})
