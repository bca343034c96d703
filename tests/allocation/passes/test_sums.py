import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.allocation.passes.sums import CHUNKS, as_fraction, as_units, carry, from_units, in_units, units_of
from largesse.records import Array

floats = st.floats(allow_nan=False, allow_infinity=False)
laws = settings(max_examples=200, deadline=None, derandomize=True)


def sum_of(numbers: list[float]) -> Array:
    from largesse.allocation.passes.kernels import add_up

    total = np.zeros(CHUNKS, dtype=np.int64)
    add_up(np.array(numbers, dtype=np.float64), total)
    return carry(total)


@laws
@given(st.lists(floats, max_size=20))
def test_a_sum_is_exact(numbers: list[float]) -> None:
    assert as_fraction(sum_of(numbers)) == sum(map(Fraction, numbers), Fraction(0))


@laws
@given(st.lists(floats, max_size=20), st.integers(0, 20), st.randoms(use_true_random=False))
def test_neither_order_nor_batches_change_a_sum(numbers: list[float], cut: int, random: Any) -> None:
    whole = sum_of(numbers)
    random.shuffle(numbers)
    assert np.array_equal(whole, carry(sum_of(numbers[:cut]) + sum_of(numbers[cut:])))


@laws
@given(st.lists(floats, max_size=5))
def test_sums_and_units_are_two_ways_to_write_a_number(numbers: list[float]) -> None:
    total = sum_of(numbers)
    assert np.array_equal(from_units(as_units(total)), total)


@pytest.mark.parametrize("number", [5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 0.1, -3.0, 0.0])
def test_the_ends_of_what_floats_can_hold_have_their_place(number: float) -> None:
    assert as_fraction(sum_of([number] * 3)) == 3 * Fraction(number)
    assert in_units([number]) == [as_units(sum_of([number]))] == [units_of(number)]


def test_many_numbers_do_not_overflow() -> None:
    numbers = np.full(1_000_000, -1 / 3)
    assert as_fraction(sum_of(numbers.tolist())) == 1_000_000 * Fraction(-1 / 3)
    assert float(as_fraction(sum_of([0.1] * 10))) == math.fsum([0.1] * 10)
