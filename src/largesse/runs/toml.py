"""Values as TOML text: the standard library reads TOML but does not write it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any


def to_toml(value: Any) -> str:
    """Write a text, a number, a boolean or a list of them as TOML.

    >>> to_toml(["Oslo", 2.5, True])
    '["Oslo", 2.5, true]'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Sequence):
        return "[" + ", ".join(to_toml(item) for item in value) + "]"
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return repr(value)
