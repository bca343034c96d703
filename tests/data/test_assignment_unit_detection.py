"""The column within whose groups levels are constant, and columns that only look like it."""

import numpy as np
import pyarrow as pa

from largesse.data.assignment_unit_detection import find_assignment_unit, index_distinct_values
from largesse.data.log_reader import read_log
from largesse.levels import Levels

N = 2000
RNG = np.random.default_rng(0)
VILLAGE = RNG.integers(0, 60, N)
HOUSEHOLD = VILLAGE * 20 + RNG.integers(0, 20, N)
LEVEL = RNG.integers(0, 3, 60)[VILLAGE]
AGE = RNG.integers(18, 80, N)


def found(level: np.ndarray, skip: tuple[str, ...] = (), **columns: object) -> str | None:
    unit = find_assignment_unit(pa.table({"age": AGE, "height": RNG.normal(size=N), **columns}), level, skip)
    return None if unit is None else unit.column


def test_the_coarsest_column_is_found() -> None:
    assert found(LEVEL, household=HOUSEHOLD, village=VILLAGE) == "village"
    assert found(LEVEL, household=HOUSEHOLD) == "household"
    assert found(LEVEL, ("household",), household=HOUSEHOLD) is None


def test_a_name_of_groups_is_preferred_to_their_measures() -> None:
    population, area = RNG.integers(100, 5000, 60), RNG.normal(size=60)
    assert found(LEVEL, area=area[VILLAGE], village=np.char.add("v", VILLAGE.astype(str))) == "village"
    assert found(LEVEL, area=area[VILLAGE], population=population[VILLAGE]) == "population"


def test_levels_that_were_drawn_row_by_row_have_no_unit() -> None:
    for seed in range(50):
        level = np.random.default_rng(seed).integers(0, 2, N)
        assert found(level, village=VILLAGE, household=HOUSEHOLD, pair=np.arange(N) // 2) is None


def test_a_rule_is_no_unit() -> None:
    assert found((AGE > 40).astype(int)) is None
    assert found(np.searchsorted([30, 60], AGE)) is None


def test_pairs_of_rows_suffice_and_a_few_wrong_rows_do_not_matter() -> None:
    pair = np.arange(N) // 2
    level = RNG.integers(0, 2, N // 2)[pair]
    assert found(level, pair=RNG.permutation(N // 2)[pair]) == "pair"
    wrong = level.copy()
    wrong[:10] = 1 - wrong[:10]
    assert found(wrong, pair=RNG.permutation(N // 2)[pair]) == "pair"


def test_missing_values_are_groups_of_one() -> None:
    code = index_distinct_values(pa.chunked_array([["a", None, "a", None, "b"]]))
    assert len(set(code.tolist())) == 4
    assert code[0] == code[2]


def test_a_log_knows_its_unit_also_where_it_is_no_feature() -> None:
    table = {"age": AGE, "village": VILLAGE, "level": LEVEL, "bought": RNG.integers(0, 2, N)}
    log = read_log(table, level="level", response="bought", levels=Levels(costs=[0, 1, 2]), features=["age"])
    assert log.unit is not None
    assert (log.unit.column, log.unit.groups) == ("village", 60)
    assert log.take(np.arange(10)).unit.code.tolist() == log.unit.code[:10].tolist()  # type: ignore[union-attr]
