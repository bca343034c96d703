"""Protected columns: not learnt from, adjusted for, checked."""

import numpy as np
import pandas as pd
import pytest

from largesse.data import digest_log, read_log
from largesse.errors import InputError
from largesse.evaluation import evaluate
from largesse.levels import Levels
from largesse.records import Log
from largesse.response import Linear

LEVELS = Levels([0, 1])


def past(n: int = 6000, seed: int = 3) -> pd.DataFrame:
    """A log whose levels followed a protected column that also moves the response; the level itself adds nothing."""
    rng = np.random.default_rng(seed)
    woman = rng.random(n) < 0.5
    level = (rng.random(n) < np.where(woman, 0.8, 0.2)).astype(int)
    bought = (rng.random(n) < np.where(woman, 0.6, 0.2)).astype(int)
    return pd.DataFrame({"sex": np.where(woman, "f", "m"), "age": rng.normal(size=n), "level": level, "bought": bought})


def read(table: pd.DataFrame, **roles: object) -> Log:
    return read_log(table, level="level", response="bought", levels=LEVELS, protected=["sex"], **roles)  # type: ignore[arg-type]


def test_protected_columns_are_not_learnt_from_even_if_listed_as_features() -> None:
    for roles in ({}, {"features": ["age", "sex"]}):
        log = read(past(300), **roles)
        assert log.features.column_names == ["age"]
        assert log.confounders.column_names == ["age", "sex"]
        assert Linear().fit(log).encoder_.features == ("age",) or list(Linear().fit(log).encoder_.features) == ["age"]


def test_propensities_adjust_for_protected_columns() -> None:
    log = read(past())
    unadjusted = read_log(past().drop(columns="sex"), level="level", response="bought", levels=LEVELS)
    gains = [
        evaluate(each, np.ones(len(each), dtype=int)).value - evaluate(each, np.zeros(len(each), dtype=int)).value
        for each in (log, unadjusted)
    ]
    assert abs(gains[0]) < 0.05 < gains[1]  # the truth is 0


def test_a_log_in_batches_has_the_same_protected_rows() -> None:
    table = past(900)
    whole, large = read(table), read(table, most_rows=300)
    assert large.sample is not None
    assert large.protected is not None
    assert whole.protected is not None
    assert large.protected["sex"].to_pylist() == whole.protected["sex"].to_pylist()
    assert large.seen.confounders.column_names == ["age", "sex"]
    gain = [evaluate(log, np.ones(len(log), dtype=int)).value for log in (whole, large)]
    assert gain[0] == pytest.approx(gain[1], abs=0.1)


def test_protected_columns_are_checked_and_part_of_the_digest() -> None:
    table = past(300)
    with pytest.raises(InputError, match="'sez'"):
        read_log(table, level="level", response="bought", levels=LEVELS, protected=["sez"])
    with pytest.raises(InputError, match="protected"):
        read_log(table, level="level", response="bought", levels=LEVELS, protected=["level"])
    other = table.assign(sex=table["sex"].to_numpy()[::-1])
    assert digest_log(read(table)) != digest_log(read(other))
