"""Lower bounds of gains: misses, and groups of fresh customers."""

import numpy as np
import pyarrow as pa
import pytest

from largesse.records import Estimate, PolicyOption
from largesse_lab.experiments.gain_lower_bounds import _choose_recommended_option, assign_fresh_groups, tabulate


def option(at_least: float, named: float, best: float) -> dict[str, float]:
    return {
        "at_least": at_least, "named": named, "best": best, "gain": at_least + 0.1, "se": 0.05, "guaranteed": 0.2, "value": 0.3,
    }  # fmt: skip


def test_a_bound_above_the_true_gain_of_the_chosen_option_is_a_miss() -> None:
    right = {"options": [option(0.1, 0.2, 0.2), option(0.0, -1.0, -1.0)], "chosen": 0, "reach": 1.9, "inside": [True]}
    missed = {"options": [option(0.1, 0.2, 0.05), option(0.2, 0.1, 0.1)], "chosen": 1, "reach": 1.9, "inside": [True]}
    facts = {"rows": 2000, "response": "yes/no", "way": "random", "known": True}
    records = [{"log": k, **facts, "given": log, "estimated": log} for k, log in enumerate((right, missed))]
    cells = tabulate(records).splitlines()[4].split("|")
    assert [cell.strip() for cell in cells[1:6]] == ["as drawn", "2", "50.0%", "50.0%", "50.0%"]


def test_fresh_customers_fall_into_the_groups_of_the_log() -> None:
    numbers = pa.chunked_array([[*range(100), None]])
    fresh = pa.chunked_array([[-5.0, 24.0, 25.0, 1000.0, None]])
    assert assign_fresh_groups(numbers, fresh).tolist() == [0, 0, 1, 3, 4]
    words = pa.chunked_array([list("aaabbbcccdddee")])
    assert assign_fresh_groups(words, pa.chunked_array([["a", "d", "e", "new", None]])).tolist()[:4] == [0, 3, 4, 4]
    few = pa.chunked_array([[0, 1, 0, 1]])
    assert np.array_equal(assign_fresh_groups(few, few), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("plan", "rule", "chosen"),
    [(0.2, 0.1, 0), (0.1, 0.2, 1), (0.1, 0.1, 1), (-0.2, 0.1, 1), (0.1, None, 0), (-0.2, -0.1, 0), (None, None, 0)],
)
def test_the_option_with_the_largest_bound_above_zero_is_chosen(
    plan: float | None, rule: float | None, chosen: int
) -> None:
    some = Estimate(0.0, 1.0, -2.0, 2.0)
    options = [PolicyOption("an option", "", some, some, some, bound, None) for bound in (plan, rule)]
    assert _choose_recommended_option(options) == chosen
