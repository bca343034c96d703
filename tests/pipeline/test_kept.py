"""Scores that a run folder keeps: used where they belong to the log, the model and the seed, and nowhere else."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from folders import everything_in

from largesse.campaign.file import read_campaign
from largesse.pipeline import line
from largesse.pipeline.kept import WORD, key_of, read_kept
from largesse.pipeline.local import Local


class Counting:
    """An engine that counts how often it fits."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.counts[name] += 1
        return getattr(Local(), name)


def rewrite(path: Path, change: Any) -> None:
    """Change the table of a file; its own words stay."""
    table = pq.read_table(path)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), path)


def test_another_budget_or_estimator_fits_nothing(run_copy: Path) -> None:
    engine = Counting()
    line.plan(run_copy, budget=1.0, engine=engine)
    first = line.judge(run_copy, budget=1.0, engine=engine)
    other = line.judge(run_copy, budget=1.0, estimator="ips", engine=engine)
    assert engine.counts["fit"] == 0
    assert first["value"]["estimate"] != other["value"]["estimate"]


def test_kept_scores_give_the_evaluation_that_a_fit_gives(run_copy: Path) -> None:
    line.judge(run_copy)
    kept = everything_in(run_copy)
    (run_copy / "scores.parquet").unlink()
    line.judge(run_copy)
    assert everything_in(run_copy) == kept


def test_a_log_that_has_changed_is_fitted_again(run_copy: Path, ran: Path, tmp_path: Path) -> None:
    table, engine = pq.read_table(ran.parent / "log.parquet"), Counting()
    pq.write_table(table, tmp_path / "same.parquet", row_group_size=50)
    line.judge(run_copy, str(tmp_path / "same.parquet"), engine=engine)
    assert engine.counts["fit"] == 0
    age = np.array(table["age"].to_numpy(zero_copy_only=False), dtype=float)
    age[3] += 1
    other = table.set_column(table.column_names.index("age"), "age", pa.array(age, from_pandas=True))
    pq.write_table(other, tmp_path / "other.parquet")
    line.judge(run_copy, str(tmp_path / "other.parquet"), engine=engine)
    assert engine.counts["fit"] == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"PAR1"),
        lambda path: path.write_bytes(path.read_bytes()[:-30]),
        lambda path: rewrite(path, lambda table: table.slice(1)),
        lambda path: rewrite(path, lambda table: table.drop_columns(["curve_1"])),
        lambda path: rewrite(path, lambda table: table.set_column(1, "curve_0", pa.array([np.nan] * len(table)))),
        lambda path: rewrite(path, lambda table: table.set_column(0, "fold", pa.array(["a"] * len(table)))),
        lambda path: rewrite(
            path, lambda table: table.drop_columns(["propensity"]).append_column("propensity", pa.array([0.0] * len(table)))
        ),
        lambda path: pq.write_table(pq.read_table(path).replace_schema_metadata({WORD: b"[1"}), path),
        lambda path: pq.write_table(pq.read_table(path).replace_schema_metadata({WORD: b"[1]"}), path),
    ],
)  # fmt: skip
def test_what_is_damaged_is_not_used(run_copy: Path, damage: Any) -> None:
    campaign = read_campaign(run_copy)
    log = Local().read_log(campaign)
    key = key_of(campaign, log)
    assert read_kept(run_copy / "scores.parquet", key, log) is not None
    damage(run_copy / "scores.parquet")
    assert read_kept(run_copy / "scores.parquet", key, log) is None


def test_the_key_knows_model_and_seed(run_copy: Path) -> None:
    campaign = read_campaign(run_copy)
    log = Local().read_log(campaign)
    facts = json.loads(pq.read_schema(run_copy / "scores.parquet").metadata[WORD])
    assert facts["key"] == key_of(campaign, log)
    text = (run_copy / "campaign.toml").read_text(encoding="utf-8")
    (run_copy / "campaign.toml").write_text(text.replace("seed = 0", "seed = 1"), encoding="utf-8")
    assert key_of(read_campaign(run_copy), log) != facts["key"]


def test_what_is_expected_of_shuffled_rows_is_kept_and_says_which_features_move_decisions(run_copy: Path) -> None:
    campaign = read_campaign(run_copy)
    log = Local().read_log(campaign)
    kept = read_kept(run_copy / "scores.parquet", key_of(campaign, log), log)
    assert kept is not None
    shuffled = kept[0].shuffled
    assert shuffled is not None
    assert shuffled.features == ("age", "city", "since")
    assert shuffled.rows.tolist() == list(range(300))
    assert shuffled.curves.shape == (3, 300, 3)
    before = json.loads((run_copy / "evaluation.json").read_text())
    assert {mover["feature"] for mover in before["why"]["movers"]} == {"age", "city", "since"}
    line.judge(run_copy)
    assert json.loads((run_copy / "evaluation.json").read_text())["why"] == before["why"]
