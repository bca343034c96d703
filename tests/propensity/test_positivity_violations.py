"""Cells without support are found, named, and recognised in other tables; logs without them give no alarm."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from largesse.io import RecordReader, pack_value
from largesse.levels import Levels
from largesse.propensity import find_supported_levels, find_unsupported_cells
from largesse.records import Array, Log, UnsupportedCells

N = 3000


def make_log(holes: dict[int, Array] | None = None, seed: int = 0) -> Log:
    """Return a log of three random levels, without some of them where a mask (n,) says so."""
    rng = np.random.default_rng(seed)
    table = draw_features(rng)
    probabilities = np.full((N, 3), 1 / 3)
    for level, mask in (holes or {}).items():
        probabilities[mask, level] = 0
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    level = (rng.random(N)[:, None] > np.cumsum(probabilities, axis=1)[:, :-1]).sum(axis=1)
    return Log(table, level, (rng.random(N) < 0.3).astype(float), Levels(costs=[0, 5, 20]))


def draw_features(rng: np.random.Generator) -> pa.Table:
    age = rng.integers(18, 80, N).astype(float)
    segment = rng.choice(["A", "B", "C"], N)
    income = pa.array(rng.lognormal(size=N), mask=rng.random(N) < 0.2)
    return pa.table({"age": age, "segment": segment, "income": income, "noise": rng.normal(size=N)})


def features() -> dict[str, Array]:
    """Return the columns of `make_log` with its first seed."""
    table = draw_features(np.random.default_rng(0))
    return {name: table.column(name).to_numpy() for name in table.column_names}


def test_a_random_log_has_no_cells() -> None:
    assert not any(find_unsupported_cells(make_log(seed=seed)) for seed in range(5))


def test_a_category_is_found_and_named() -> None:
    mask = features()["segment"] == "C"
    cells = find_unsupported_cells(make_log({2: mask}))
    (cell,) = cells.cells
    assert str(cell) == "'segment' is 'C'"
    assert (cell.levels, cell.rows, cell.exceptions) == ((2,), int(mask.sum()), 0)
    assert cells.share == pytest.approx(mask.mean())
    assert cell.p < 1e-6


def test_a_range_has_the_ends_of_the_gap() -> None:
    age = features()["age"]
    log = make_log({0: (age >= 40) & (age < 52)})
    (cell,) = find_unsupported_cells(log).cells
    assert str(cell) == "'age' is 40 to 51"
    open_range = find_unsupported_cells(make_log({0: age >= 60}))
    other = pa.table(
        {**{name: log.features.column(name)[:3] for name in log.features.column_names}, "age": [59.0, 95.0, None]}
    )
    assert find_supported_levels(open_range, other, 3).tolist() == [[True] * 3, [False, True, True], [True] * 3]


def test_a_pair_of_features_is_found() -> None:
    known = features()
    mask = (known["age"] < 45) & (known["segment"] == "B")
    (cell,) = find_unsupported_cells(make_log({1: mask})).cells
    assert {condition.feature for condition in cell.conditions} == {"age", "segment"}
    assert cell.rows == pytest.approx(mask.sum(), abs=20)


def test_a_pair_with_few_neighbours_in_one_direction_is_found_by_all_of_them() -> None:
    known = features()
    mask = (known["age"] < 74) & (known["noise"] < 0)
    (cell,) = find_unsupported_cells(make_log({1: mask})).cells
    assert {condition.feature for condition in cell.conditions} == {"age", "noise"}
    assert cell.rows == pytest.approx(mask.sum(), rel=0.05)


def test_missing_values_are_a_cell() -> None:
    log = make_log({2: np.isnan(features()["income"].astype(float))})
    (cell,) = find_unsupported_cells(log).cells
    assert str(cell) == "'income' is missing"
    assert (
        ~find_supported_levels(UnsupportedCells((cell,)), log.features, 3)[:, 2]
        == log.features["income"].is_null().to_numpy()
    ).all()


def test_a_few_wrong_rows_do_not_hide_a_cell() -> None:
    mask = features()["segment"] == "A"
    log = make_log({2: mask})
    level = log.level.copy()
    level[np.flatnonzero(mask)[[5, 300]]] = 2
    (cell,) = find_unsupported_cells(replace(log, level=level)).cells
    assert cell.exceptions == 2


def test_a_level_that_was_meant_to_be_rare_is_supported() -> None:
    mask = features()["segment"] == "A"
    log = make_log({2: mask})
    level, propensity = log.level.copy(), np.full(N, 0.4)
    rare = np.flatnonzero(mask)[[5, 300]]
    level[rare], propensity[rare] = 2, 2 / mask.sum()
    assert find_unsupported_cells(replace(log, level=level))
    assert not find_unsupported_cells(replace(log, level=level, propensity=propensity))


def test_words_and_levels_with_the_same_gap_are_one_cell() -> None:
    mask = np.isin(features()["segment"], ["B", "C"])
    (cell,) = find_unsupported_cells(make_log({1: mask})).cells
    assert str(cell) == "'segment' is 'B' or 'C'"
    (both,) = find_unsupported_cells(make_log({1: features()["age"] > 60, 2: features()["age"] > 60})).cells
    assert both.levels == (1, 2)


def test_clusters_count_once() -> None:
    """Fifteen villages with one level each: their own features must not look like a gap."""
    rng = np.random.default_rng(1)
    village = rng.integers(0, 15, N)
    table = pa.table({"size": rng.normal(size=15)[village], "height": rng.normal(size=15)[village]})
    log = Log(table, rng.integers(0, 3, 15)[village], np.ones(N), Levels(costs=[0, 1, 2]))
    assert find_unsupported_cells(log)
    assert not find_unsupported_cells(replace(log, cluster=village))


def test_a_rule_leaves_one_level() -> None:
    rng = np.random.default_rng(2)
    score = rng.normal(size=N)
    level = np.searchsorted([-0.5, 0.7], score)
    cells = find_unsupported_cells(Log(pa.table({"score": score}), level, np.ones(N), Levels(costs=[0, 1, 2])))
    assert cells.single > 0.99


def test_other_tables_may_hold_new_words_and_missing_values() -> None:
    log = make_log({2: features()["segment"] == "C"})
    cells = find_unsupported_cells(log)
    columns = {name: log.features.column(name)[:4] for name in log.features.column_names}
    other = pa.table({**columns, "segment": pa.array(["C", "D", None, "A"])})
    assert find_supported_levels(cells, other, 3)[:, 2].tolist() == [False, True, True, True]


def test_cells_are_saved_and_read() -> None:
    cells = find_unsupported_cells(make_log({0: features()["age"] < 40, 2: features()["segment"] == "C"}))
    assert len(cells.cells) == 2
    assert RecordReader({}).unpack(pack_value(cells, UnsupportedCells, "", {}), UnsupportedCells, "", {}) == cells
