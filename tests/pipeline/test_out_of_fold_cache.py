"""Cached scores are used for the same log, model and seed, and for nothing else."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.campaign import read_campaign
from largesse.pipeline import commands
from largesse.pipeline.local_engine import LocalEngine
from largesse.pipeline.out_of_fold_cache import METADATA_KEY, make_cache_key, read_scores
from support.folders import everything_in


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The fits of commands, one item for each."""
    calls: list[Any] = []
    fit_model = commands.fit_model
    monkeypatch.setattr(commands, "fit_model", lambda *args: (calls.append(args), fit_model(*args))[1])
    return calls


def test_the_same_log_is_not_fitted_again_and_another_one_is(run_copy: Path, tmp_path: Path, fits: list[Any]) -> None:
    table = pq.read_table(read_campaign(run_copy).log)
    pq.write_table(table, tmp_path / "same.parquet", row_group_size=50)
    commands.judge(run_copy, str(tmp_path / "same.parquet"))
    commands.plan(run_copy, budget=1.0)
    estimates = [commands.judge(run_copy, estimator=name)["value"]["estimate"] for name in ("dr", "ips")]
    assert estimates[0] != estimates[1]
    assert not fits
    age = np.array(table["age"].to_numpy(zero_copy_only=False), dtype=float)
    age[3] += 1
    other = table.set_column(table.column_names.index("age"), "age", pa.array(age, from_pandas=True))
    pq.write_table(other, tmp_path / "other.parquet")
    commands.judge(run_copy, str(tmp_path / "other.parquet"))
    assert len(fits) == 1


def test_cached_scores_give_the_evaluation_that_a_fit_gives(run_copy: Path) -> None:
    commands.judge(run_copy)
    cached = everything_in(run_copy)
    (run_copy / "scores.parquet").unlink()
    commands.judge(run_copy)
    assert everything_in(run_copy) == cached


def test_the_key_depends_on_model_and_seed_and_shuffled_curves_are_cached(run_copy: Path) -> None:
    campaign = read_campaign(run_copy)
    log = LocalEngine().read_log(campaign)
    key = make_cache_key(campaign, log)
    assert json.loads(pq.read_schema(run_copy / "scores.parquet").metadata[METADATA_KEY])["key"] == key
    cached = read_scores(run_copy / "scores.parquet", key, log)
    assert cached is not None
    shuffled = cached[0].shuffled
    assert shuffled is not None
    assert shuffled.features == ("age", "city", "since")
    assert shuffled.rows.tolist() == list(range(300))
    assert shuffled.curves.shape == (3, 300, 3)
    why = json.loads((run_copy / "evaluation.json").read_text())["why"]
    assert {mover["feature"] for mover in why["movers"]} == {"age", "city", "since"}
    assert commands.judge(run_copy)["why"] == why
    text = (run_copy / "campaign.toml").read_text(encoding="utf-8")
    for old, new in (("seed = 0", "seed = 1"), ('"linear"', '"additive"')):
        (run_copy / "campaign.toml").write_text(text.replace(old, new), encoding="utf-8")
        assert make_cache_key(read_campaign(run_copy), log) != key


def rewrite(change: Any) -> Any:
    """Change the table; its metadata stay, unless they are changed."""

    def damage(path: Path) -> None:
        table = pq.read_table(path)
        changed = change(table)
        pq.write_table(changed.replace_schema_metadata(changed.schema.metadata or table.schema.metadata), path)

    return damage


def put(name: str, value: Any) -> Any:
    """Replace a column of the table by one value."""
    return rewrite(lambda t: t.set_column(t.column_names.index(name), name, pa.array([value] * len(t))))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"PAR1"),
        lambda path: path.write_bytes(path.read_bytes()[:-30]),
        rewrite(lambda table: table.slice(1)),
        rewrite(lambda table: table.drop_columns(["curve_1"])),
        put("curve_0", np.nan),
        put("fold", "a"),
        put("propensity", 0.0),
        rewrite(lambda table: table.replace_schema_metadata({METADATA_KEY: b"[1"})),
        rewrite(lambda table: table.replace_schema_metadata({METADATA_KEY: b"[1]"})),
    ],
)
def test_a_damaged_cache_is_not_used(run_copy: Path, damage: Any) -> None:
    campaign, path = read_campaign(run_copy), run_copy / "scores.parquet"
    log = LocalEngine().read_log(campaign)
    key = make_cache_key(campaign, log)
    assert read_scores(path, key, log) is not None
    damage(path)
    assert read_scores(path, key, log) is None
