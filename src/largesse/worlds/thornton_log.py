"""Log of Thornton's randomised experiment with cash incentives for collecting HIV test results.

In rural Malawi, people who had been tested drew a voucher of 0 to 2.84 dollars, worth its amount only if they came for
their result. The draws were random, but not equally generous everywhere: shares of the levels differ between three
blocks of villages, so a model of this log must condition on `block`.

Thornton, R. L. (2008). The Demand for, and Impact of, Learning HIV Status. American Economic Review 98(5), 1829–1863.
`thornton.csv` holds the complete rows of `thornton_hiv` in the package causaldata 0.1.5, without the result of the test;
`thornton_license.txt` is the licence of that package.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from largesse.levels import Levels
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

_LEVEL_NAMES = np.array(["none", "up to $0.50", "$0.50–1", "$1–2", "over $2"])
_LEVEL_TOPS = np.array([0.0, 0.5, 1.0, 2.0])  # dollars: the largest amount of each level but the last
_BLOCKS = np.array(["villages 1–50", "villages 51–99", "villages 100–145"])
_LAST_VILLAGES = np.array([50, 99])


def read_thornton() -> pa.Table:
    """Read the table of the 2,825 people in Thornton's experiment.

    Their draw, village and age are known.

    Columns: `customer` (row number in the source), `village`, `block`, `age`, `distance` (km to the centre that gave
    the results), `incentive` (a name of `thornton_levels`) and the response `got` (0 or 1).

    >>> table = read_thornton()
    >>> table.num_rows, table.column_names
    (2825, ['customer', 'village', 'block', 'age', 'distance', 'incentive', 'got'])
    """
    import pyarrow as pa

    people = _load_people()
    return pa.table(
        {
            "customer": people["customer"],
            "village": people["village"],
            "block": pa.array(_BLOCKS[np.searchsorted(_LAST_VILLAGES, people["village"])]),
            "age": people["age"],
            "distance": people["distance"],
            "incentive": pa.array(_LEVEL_NAMES[_assign_levels(people)]),
            "got": people["got"],
        }
    )


def thornton_levels() -> Levels:
    """Return the five incentive levels of the experiment with their mean costs.

    A level costs the mean of its drawn amounts, paid only to people who came.

    >>> thornton_levels().labels
    ('none', 'up to $0.50', '$0.50–1', '$1–2', 'over $2')
    """
    people = _load_people()
    level, dollars = _assign_levels(people), people["dollars"]
    costs = [round(float(dollars[level == k].mean()), 2) for k in range(len(_LEVEL_NAMES))]
    return Levels(costs=costs, names=_LEVEL_NAMES.tolist(), on_redemption=True)


def _assign_levels(people: dict[str, Array]) -> Array:
    """Return the incentive level (n,) that corresponds to each person's drawn amount."""
    return np.searchsorted(_LEVEL_TOPS, people["dollars"], side="left")


@cache
def _load_people() -> dict[str, Array]:
    """Load the columns of the file `thornton.csv`."""
    import pyarrow as pa
    from pyarrow import csv

    # The source has these two columns in single precision.
    types = {"age": pa.float64(), "distance": pa.float32(), "dollars": pa.float32()}
    table = csv.read_csv(
        Path(__file__).with_name("thornton.csv"), convert_options=csv.ConvertOptions(column_types=types)
    )
    columns = {name: table[name].to_numpy() for name in table.column_names}
    return columns | {name: columns[name].astype(np.float64) for name in ("distance", "dollars")}
