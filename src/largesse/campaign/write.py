"""Values as TOML text: the standard library reads TOML but does not write it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any


def to_toml(value: Any) -> str:
    """Write a text, a number, a boolean, or a list or table of them as TOML.

    >>> to_toml(["Oslo", 2.5, True])
    '["Oslo", 2.5, true]'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return re.sub("[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{to_toml(str(key))} = {to_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(to_toml(item) for item in value) + "]"
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return repr(value)
