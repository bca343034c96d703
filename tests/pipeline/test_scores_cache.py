"""Scores that a run folder keeps: used where they belong to the log, the model and the seed, and nowhere else."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.campaign.file import read_campaign
from largesse.pipeline import commands
from largesse.pipeline.scores_cache import METADATA_KEY, make_key, read_scores
from largesse.pipeline.scoring import Local
from support.folders import everything_in


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The fits that commands make, one item for each."""
    made: list[Any] = []
    real = commands.fit_model
    monkeypatch.setattr(commands, "fit_model", lambda *args: (made.append(args), real(*args))[1])
    return made


def rewrite(path: Path, change: Any) -> None:
    """Change the table of a file; its own words stay."""
    table = pq.read_table(path)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), path)


def test_another_budget_or_estimator_fits_nothing(run_copy: Path, fits: list[Any]) -> None:
    commands.plan(run_copy, budget=1.0)
    first = commands.judge(run_copy, budget=1.0)
    other = commands.judge(run_copy, budget=1.0, estimator="ips")
    assert not fits
    assert first["value"]["estimate"] != other["value"]["estimate"]


def test_kept_scores_give_the_evaluation_that_a_fit_gives(run_copy: Path) -> None:
    commands.judge(run_copy)
    kept = everything_in(run_copy)
    (run_copy / "scores.parquet").unlink()
    commands.judge(run_copy)
    assert everything_in(run_copy) == kept


def test_a_log_that_has_changed_is_fitted_again(run_copy: Path, ran: Path, tmp_path: Path, fits: list[Any]) -> None:
    table = pq.read_table(ran.parent / "log.parquet")
    pq.write_table(table, tmp_path / "same.parquet", row_group_size=50)
    commands.judge(run_copy, str(tmp_path / "same.parquet"))
    assert not fits
    age = np.array(table["age"].to_numpy(zero_copy_only=False), dtype=float)
    age[3] += 1
    other = table.set_column(table.column_names.index("age"), "age", pa.array(age, from_pandas=True))
    pq.write_table(other, tmp_path / "other.parquet")
    commands.judge(run_copy, str(tmp_path / "other.parquet"))
    assert len(fits) == 1


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
        lambda path: pq.write_table(pq.read_table(path).replace_schema_metadata({METADATA_KEY: b"[1"}), path),
        lambda path: pq.write_table(pq.read_table(path).replace_schema_metadata({METADATA_KEY: b"[1]"}), path),
    ],
)  # fmt: skip
def test_what_is_damaged_is_not_used(run_copy: Path, damage: Any) -> None:
    campaign = read_campaign(run_copy)
    log = Local().read_log(campaign)
    key = make_key(campaign, log)
    assert read_scores(run_copy / "scores.parquet", key, log) is not None
    damage(run_copy / "scores.parquet")
    assert read_scores(run_copy / "scores.parquet", key, log) is None


def test_the_key_knows_model_and_seed(run_copy: Path) -> None:
    campaign = read_campaign(run_copy)
    log = Local().read_log(campaign)
    facts = json.loads(pq.read_schema(run_copy / "scores.parquet").metadata[METADATA_KEY])
    assert facts["key"] == make_key(campaign, log)
    text = (run_copy / "campaign.toml").read_text(encoding="utf-8")
    (run_copy / "campaign.toml").write_text(text.replace("seed = 0", "seed = 1"), encoding="utf-8")
    assert make_key(read_campaign(run_copy), log) != facts["key"]


def test_what_is_expected_of_shuffled_rows_is_kept_and_says_which_features_move_decisions(run_copy: Path) -> None:
    campaign = read_campaign(run_copy)
    log = Local().read_log(campaign)
    kept = read_scores(run_copy / "scores.parquet", make_key(campaign, log), log)
    assert kept is not None
    shuffled = kept[0].shuffled
    assert shuffled is not None
    assert shuffled.features == ("age", "city", "since")
    assert shuffled.rows.tolist() == list(range(300))
    assert shuffled.curves.shape == (3, 300, 3)
    before = json.loads((run_copy / "evaluation.json").read_text())
    assert {mover["feature"] for mover in before["why"]["movers"]} == {"age", "city", "since"}
    commands.judge(run_copy)
    assert json.loads((run_copy / "evaluation.json").read_text())["why"] == before["why"]
