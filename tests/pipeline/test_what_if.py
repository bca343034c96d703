"""What-if plans: another plan from a run's model; the run folder stays as it is."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from largesse.campaign import read_campaign
from largesse.errors import InputError, LargesseError, OutputError
from largesse.pipeline import plan, read_report_numbers, save_tried_plan, try_plan
from support.folders import everything_in


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_trial_is_the_plan_of_the_command_line_and_can_become_a_run(run_copy: Path, tmp_path: Path) -> None:
    before = everything_in(run_copy)
    tried, kept = tmp_path / "tried", tmp_path / "kept"
    numbers = try_plan(run_copy, tried, {"budget": 1.2})
    assert read_campaign(tried).planning.budget == 1.2
    with pytest.raises(OutputError, match="is there already"):
        save_tried_plan(run_copy, tried, run_copy)
    save_tried_plan(run_copy, tried, kept)
    assert everything_in(run_copy) == before
    assert names_in(kept) == names_in(run_copy)
    assert names_in(tmp_path) == {"run", "tried", "kept"}
    shown = read_report_numbers(kept)
    assert (shown["planned"]["price"], shown["budget"]["average"]) == (numbers["planned"]["price"], 1.2)
    assert plan(run_copy, budget=1.2)["planned"] == numbers["planned"]
    assert pq.read_table(tried / "plan.parquet").equals(pq.read_table(run_copy / "plan.parquet"))


def test_constraints_hold_and_the_campaign_file_makes_the_same_plan(run_copy: Path, tmp_path: Path) -> None:
    rules = {
        "total": 300,
        "caps": {"10": 20},
        "segment": "city",
        "segment_budgets": {"Oslo": 50},
        "fixed": {"c00003": "5", "c00004": "0"},
        "barred": {"city": {"Rome": ["10"]}},
    }
    tried = try_plan(run_copy, tmp_path / "tried", rules)
    table = pq.read_table(tmp_path / "tried" / "plan.parquet")
    customers = pq.read_table(str(read_campaign(run_copy).customers))
    rows = table.append_column("city", customers["city"]).to_pylist()  # in the same order
    level = {row["customer"]: row["level"] for row in rows}
    assert (level["c00003"], level["c00004"]) == ("5", "0")
    assert 0 < list(level.values()).count("10") <= 20
    assert not [row for row in rows if row["level"] == "10" and row["city"] == "Rome"]
    oslo = sum(row["expected_cost"] for row in rows if row["city"] == "Oslo")
    segments = {segment["name"]: segment for segment in tried["segments"]}
    assert segments["Oslo"]["spend"] == pytest.approx(oslo)
    assert oslo <= 50
    assert sum(segment["customers"] for segment in segments.values()) == len(rows)
    (run_copy / "campaign.toml").write_text((tmp_path / "tried" / "campaign.toml").read_text("utf-8"), "utf-8")
    assert plan(run_copy)["planned"] == tried["planned"]


def test_other_settings_stay_and_none_removes_one(run_copy: Path, tmp_path: Path) -> None:
    try_plan(run_copy, tmp_path / "first", {"caps": {"10": 5}})
    first = read_campaign(tmp_path / "first")
    assert (first.planning.budget, first.planning.constraints) == (2.5, {"caps": {2: 5}})
    (run_copy / "campaign.toml").write_text(first.text, "utf-8")
    try_plan(run_copy, tmp_path / "second", {"total": 100, "caps": None})
    second = read_campaign(tmp_path / "second").planning
    assert (second.budget, second.total, second.constraints) == (None, 100, {})


@pytest.mark.parametrize(
    "rules", [{"budget": -1}, {"caps": {"11": 1}}, {"budgt": 1}, {"segment": "town", "segment_budgets": {"a": 1}}]
)
def test_a_refused_trial_leaves_nothing(run_copy: Path, tmp_path: Path, rules: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        try_plan(run_copy, tmp_path / "tried", rules)
    assert names_in(tmp_path) == {"run"}


def test_a_plan_that_cannot_be_judged_is_not_kept(run_copy: Path, tmp_path: Path) -> None:
    try_plan(run_copy, tmp_path / "tried", {"budget": 1.2})
    (run_copy / "scores.parquet").unlink()
    with pytest.raises(LargesseError):
        save_tried_plan(run_copy, tmp_path / "tried", tmp_path / "kept")
    assert names_in(tmp_path) == {"run", "tried"}
