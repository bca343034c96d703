"""Display labels that replace the names of columns and levels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from largesse.report.number_format import View

NAME_KEYS = frozenset(("feature", "column", "dearer", "cheaper"))  # whose text is the name of a column or level
LEVEL_LISTS = frozenset(("levels", "uniform", "overlap"))  # of records whose "name" is that of a level
SENTENCE_KEYS = frozenset(
    ("text", "detail", "reason", "excuse", "headline", "verdict")
)  # with names in quotation marks
QUOTED = re.compile(r"(?<!\w)(['\"])(.+?)\1(?!\w)")


def apply_display_labels(numbers: Mapping[str, Any], labels: Mapping[str, str]) -> View:
    """Replace the names of columns and levels in a page's numbers by their display labels.

    >>> apply_display_labels({"feature": "cen_age", "text": "Look at 'cen_age'."}, {"cen_age": "Age"})
    {'feature': 'Age', 'text': "Look at 'Age'."}
    """
    return (
        {key: _replace_names_by_labels(value, labels, key) for key, value in numbers.items()}
        if labels
        else dict(numbers)
    )


def _replace_names_by_labels(value: Any, labels: Mapping[str, str], key: str, holder: str = "") -> Any:
    if isinstance(value, Mapping):
        return {inner: _replace_names_by_labels(item, labels, inner, key) for inner, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_names_by_labels(item, labels, key, holder) for item in value]
    if not isinstance(value, str):
        return value
    is_level = (key == "name" and holder in LEVEL_LISTS) or (key == "level" and holder == "examples")
    if key in NAME_KEYS or is_level or (key == "name" and holder == "response"):
        return labels.get(value, value)
    if key in SENTENCE_KEYS:
        return QUOTED.sub(lambda found: f"{found[1]}{labels.get(found[2], found[2])}{found[1]}", value)
    return value
