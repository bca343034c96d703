"""Two logs have one digest only if they hold the same."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from largesse.data import digest_log, read_log
from largesse.levels import Levels

LEVELS = Levels(costs=[0, 1])


def table(**changed: Any) -> pa.Table:
    columns = {
        "age": [31.0, None, 44.0, 20.0],
        "city": ["Oslo", "Rome", None, "Oslo"],
        "day": np.array(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"], dtype="datetime64[D]"),
        "y": [0, 1, 0, 1],
        "r": [0, 1, 1, 0],
    }
    return pa.table(columns | changed)


def digest(source: pa.Table) -> str:
    return digest_log(read_log(source, level="y", response="r", levels=LEVELS))


def test_how_values_are_stored_does_not_matter() -> None:
    whole = table()
    cut = pa.concat_tables([whole.slice(0, 1), whole.slice(1)])
    coded = pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 2]), pa.array(["Rome", "Bern", "Oslo"]))
    other = whole.set_column(1, "city", coded).set_column(0, "age", whole["age"].cast(pa.float32()))
    assert digest(whole) == digest(cut) == digest(other)


def test_every_value_matters() -> None:
    found = {
        digest(table(**changed))
        for changed in (
            {},
            {"age": [31.0, None, 44.0, 21.0]},
            {"age": [31.0, 1.0, 44.0, 20.0]},
            {"city": ["Oslo", "Rome", None, "Rome"]},
            {"city": ["Oslo", "Rome", "", "Oslo"]},
            {"day": np.array(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-05"], dtype="datetime64[D]")},
            {"y": [0, 1, 1, 1]},
            {"r": [0, 1, 1, 1]},
        )
    }
    assert len(found) == 8


def test_levels_and_weights_matter() -> None:
    log = read_log(table(), level="y", response="r", levels=LEVELS)
    others = [
        replace(log, levels=Levels(costs=[0, 2])),
        replace(log, weight=np.ones(4)),
        replace(log, cluster=log.level),
    ]
    assert len({digest_log(one) for one in (log, *others)}) == 4
