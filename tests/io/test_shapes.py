"""A value is checked against a declared shape, and what is wrong is named with its place."""

from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

import pytest

from largesse.io import check_shape


class Open(TypedDict):
    a: int
    b: NotRequired[str]


@dataclass(frozen=True)
class Closed:
    a: float


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (1, float),
        (None, float | None),
        ([1, 2.5, None], list[float | None]),
        ({"a": 1, "more": 2}, Open),
        ({"a": 1, "b": "x"}, Open),
        ({"a": 1}, Closed),
        ("x", Literal["x", "y"]),
        ({"x": [True]}, dict[str, list[bool]]),
        (object(), Any),
    ],
)
def test_what_fits_is_accepted(value: Any, shape: Any) -> None:
    check_shape(value, shape)


@pytest.mark.parametrize(
    ("value", "shape", "message"),
    [
        (True, int, "it is True; expected a whole number"),
        (1.0, int, "expected a whole number"),
        (float("nan"), float, "expected a finite number"),
        (10**400, float | None, "expected a finite number"),
        ("1", float, "it is '1'; expected a finite number"),
        ({}, list[int], "expected a list"),
        ([[1, "x"]], list[list[int]], "0/1 is 'x'"),
        ([], Open, "expected named values"),
        ({"b": "x"}, Open, "a is missing"),
        ({"a": 1, "b": 2}, Open, "b is 2; expected text"),
        ({"a": 1, "c": 2}, Closed, "c is not known"),
        ("z", Literal["x", "y"], "expected 'x' or 'y'"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(value: Any, shape: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_shape(value, shape)
