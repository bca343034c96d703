"""Raw columns of a table of customers as the encoded features that a model was fitted with."""

from __future__ import annotations

import math
from typing import Any

from largesse.data import CYCLES, DAY, Encoder
from largesse.policy.export.values import Value, constant, join


def encode_features(encoder: Encoder) -> Value:
    """Return the encoded features (n, p)."""
    blocks = [block for column in encoder.columns for block in _encode(column) if block.width]
    return join(blocks) if blocks else Value("constant", (), 0, {"row": constant(0.0).facts["row"][:0]})


def number(name: str) -> Value:
    """Return a column of numbers as it is in the table, with what is missing."""
    return Value("number", (), 1, {"name": name})


def _encode(column: Any) -> list[Value]:
    """Return the blocks of columns that one feature becomes."""
    name, width = column.name, len(column.names)
    if column.encoding in ("words", "means"):
        text = Value("text", (), 1, {"name": name})
        return [Value(column.encoding, (text,), width, {"column": column})]
    scale = column.scale
    if column.encoding == "number":
        return [Value("scaled", (number(name),), width, {"scale": scale, "unit": 1.0})]
    seconds = Value("seconds", (), 1, {"name": name})
    day = Value("scaled", (seconds,), len(scale.names(name)), {"scale": scale, "unit": DAY})
    waves = [
        Value("wave", (seconds,), 1, {"per_second": 2 * math.pi / (CYCLES[cycle] * DAY), "wave": wave})
        for cycle in column.cycles
        for wave in ("sin", "cos")
    ]
    return [day, *waves]
