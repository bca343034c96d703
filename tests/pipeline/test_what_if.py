"""What if: another plan from what a run has learnt, and the run folder stays as it is."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from largesse.campaign import read_campaign
from largesse.errors import InputError, LargesseError, OutputError
from largesse.pipeline import keep_plan, plan, read_numbers, try_plan, write_csv
from support.folders import everything_in


def test_a_trial_is_the_plan_that_the_command_line_makes_and_changes_nothing(run_copy: Path, tmp_path: Path) -> None:
    before = everything_in(run_copy)
    tried = try_plan(run_copy, tmp_path / "tried", {"budget": 1.2})
    assert everything_in(run_copy) == before
    made = plan(run_copy, budget=1.2)
    assert tried["planned"] == made["planned"]
    assert pq.read_table(tmp_path / "tried" / "plan.parquet").equals(pq.read_table(run_copy / "plan.parquet"))
    assert read_campaign(tmp_path / "tried").planning.budget == 1.2


def test_rules_hold_and_the_campaign_file_makes_the_same_plan(run_copy: Path, tmp_path: Path) -> None:
    rules = {
        "total": 300,
        "caps": {"10": 20},
        "segment": "city",
        "segment_budgets": {"Oslo": 50},
        "fixed": {"c00003": "5", "c00004": "0"},
        "barred": {"city": {"Rome": ["10"]}},
    }
    tried = try_plan(run_copy, tmp_path / "tried", rules)
    made = pq.read_table(tmp_path / "tried" / "plan.parquet").to_pylist()
    level = {row["customer"]: row["level"] for row in made}
    city = dict(
        zip(*(pq.read_table(run_copy_customers(run_copy))[name].to_pylist() for name in ("id", "city")), strict=True)
    )
    assert (level["c00003"], level["c00004"]) == ("5", "0")
    assert 0 < sum(one == "10" for one in level.values()) <= 20
    assert not [who for who, one in level.items() if one == "10" and city[who] == "Rome"]
    spent = {
        name: sum(row["expected_cost"] for row in made if city[row["customer"]] == name) for name in ("Oslo", "Lima")
    }
    assert spent["Oslo"] <= 50
    segments = {one["name"]: one for one in tried["segments"]}
    assert segments["Oslo"]["spend"] == pytest.approx(spent["Oslo"])
    assert sum(one["customers"] for one in segments.values()) == len(made)
    (run_copy / "campaign.toml").write_text((tmp_path / "tried" / "campaign.toml").read_text("utf-8"), "utf-8")
    assert plan(run_copy)["planned"] == tried["planned"]


def run_copy_customers(folder: Path) -> Path:
    return Path(str(read_campaign(folder).customers))


def test_what_is_not_given_stays_and_none_takes_a_rule_away(run_copy: Path, tmp_path: Path) -> None:
    try_plan(run_copy, tmp_path / "first", {"caps": {"10": 5}})
    first = read_campaign(tmp_path / "first")
    assert (first.planning.budget, first.planning.constraints) == (2.5, {"caps": {2: 5}})
    (run_copy / "campaign.toml").write_text(first.text, "utf-8")
    try_plan(run_copy, tmp_path / "second", {"total": 100, "caps": None})
    second = read_campaign(tmp_path / "second")
    assert (second.planning.budget, second.planning.total, second.planning.constraints) == (None, 100, {})


@pytest.mark.parametrize(
    "rules", [{"budget": -1}, {"caps": {"11": 1}}, {"budgt": 1}, {"segment": "town", "segment_budgets": {"a": 1}}]
)
def test_a_trial_that_is_refused_leaves_nothing(run_copy: Path, tmp_path: Path, rules: dict[str, object]) -> None:
    with pytest.raises(InputError):
        try_plan(run_copy, tmp_path / "tried", rules)
    assert not (tmp_path / "tried").exists()


def test_a_trial_is_kept_as_a_run_of_its_own(run_copy: Path, tmp_path: Path) -> None:
    tried = try_plan(run_copy, tmp_path / "tried", {"budget": 1.2})
    before = everything_in(run_copy)
    keep_plan(run_copy, tmp_path / "tried", tmp_path / "kept")
    assert everything_in(run_copy) == before
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {path.name for path in run_copy.iterdir()}
    shown = read_numbers(tmp_path / "kept")
    assert (shown["planned"]["price"], shown["budget"]["average"]) == (tried["planned"]["price"], 1.2)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_nothing_is_replaced(run_copy: Path, tmp_path: Path) -> None:
    try_plan(run_copy, tmp_path / "tried", {"budget": 1.2})
    before = everything_in(run_copy)
    with pytest.raises(OutputError, match="is there already"):
        keep_plan(run_copy, tmp_path / "tried", run_copy)
    assert everything_in(run_copy) == before


def test_a_plan_that_cannot_be_judged_is_not_kept(run_copy: Path, tmp_path: Path) -> None:
    try_plan(run_copy, tmp_path / "tried", {"budget": 1.2})
    (run_copy / "scores.parquet").unlink()
    with pytest.raises(LargesseError):
        keep_plan(run_copy, tmp_path / "tried", tmp_path / "kept")
    assert {path.name for path in tmp_path.iterdir()} == {"run", "tried"}


def test_csv_is_safe_for_spreadsheets(tmp_path: Path) -> None:
    table = pa.table({"customer": ["=1+1", "b"], "level": pa.array(["-5", "x"]).dictionary_encode(), "n": [-1, 2]})
    pq.write_table(table, tmp_path / "plan.parquet")
    sink = io.BytesIO()
    with (tmp_path / "plan.parquet").open("rb") as opened:
        write_csv(opened, sink)
    assert csv.read_csv(io.BytesIO(sink.getvalue())).to_pylist() == [
        {"customer": "'=1+1", "level": "'-5", "n": -1},
        {"customer": "b", "level": "x", "n": 2},
    ]
