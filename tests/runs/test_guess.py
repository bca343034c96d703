"""A first campaign file for a table that nobody has described yet."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.errors import InputError
from largesse.levels import Levels
from largesse.runs.campaign import campaign_from, read_campaign
from largesse.runs.guess import guess_campaign
from largesse.runs.local import Local


def written(folder: Path, text: str) -> Path:
    (folder / "campaign.toml").write_text(text, encoding="utf-8")
    return folder / "campaign.toml"


def plausible(folder: Path, n: int = 160) -> Path:
    rng = np.random.default_rng(1)
    level = rng.integers(0, 3, n)
    table = pa.table(
        {
            "customer_id": np.arange(n) + 2**60,
            "age": rng.normal(40, 9, n),
            "city": rng.choice(["Oslo", "Rome"], n),
            "mail": [f"{k}@example.org" for k in range(n)],
            "tags": [["a"]] * n,
            "visited": pa.array([None] * n, pa.float64()),
            "coupon": np.array([0, 5, 10])[level],
            "bought": (rng.random(n) < 0.3 + 0.1 * level).astype(np.int8),
            'odd "name"\n# 1': rng.random(n),
        }
    )
    pq.write_table(table, folder / "spring_2024.parquet")
    return folder / "spring_2024.parquet"


def test_a_first_file_finds_the_roles_and_its_log_can_be_read(tmp_path: Path) -> None:
    text = guess_campaign(plausible(tmp_path))
    campaign = read_campaign(written(tmp_path, text))
    assert campaign.columns == {"level": "coupon", "response": "bought", "customer": "customer_id"}
    assert campaign.roles["features"] == ["age", "city", 'odd "name"\n# 1']
    assert campaign.levels == Levels([0, 5, 10], doses=[0, 5, 10])
    assert campaign.title == "spring 2024"
    assert len(Local().read_log(campaign)) == 160


@pytest.mark.parametrize(
    "levels",
    [
        ["none", "mail", "call"],
        [True, False, True],
        [-5, 0, 5],
        [1234567, 1234568, 1234569],
        [0.1, 0.25, 1 / 3],
    ],
    ids=["names", "booleans", "negative", "large", "fractions"],
)
def test_a_first_file_is_accepted_whatever_the_levels(levels: list[Any], tmp_path: Path) -> None:
    frame = pd.DataFrame({"treatment": levels * 20, "outcome": [0, 1] * 30, "age": range(60)})
    frame.to_csv(tmp_path / "log.csv", index=False)
    campaign = read_campaign(written(tmp_path, guess_campaign(tmp_path / "log.csv")))
    assert len(campaign.levels) == len(set(levels))
    assert campaign.columns == {"level": "treatment", "response": "outcome"}
    assert campaign.planning.budget is not None
    assert campaign.planning.budget >= min(campaign.levels.costs)  # the cheapest plan is within reach


def test_a_first_file_says_so_where_it_finds_nothing(tmp_path: Path) -> None:
    pd.DataFrame({"a\nb": [1.5, 2.5], "c": ["x", "y"]}).to_csv(tmp_path / "t.csv", index=False)
    text = guess_campaign(tmp_path / "t.csv")
    assert 'level = "?"    # CHECK: no column looked like the level; columns: "a\\nb", "c"' in text
    with pytest.raises(InputError, match=r"\[levels\] does not give the costs"):
        campaign_from(tomllib.loads(text))
