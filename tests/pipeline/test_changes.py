"""A run folder is always whole: what lies in it belongs together, whatever was called, killed or called at once."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import largesse as lg
from largesse.campaign.file import read_campaign
from largesse.errors import InputError, LargesseError, OutputError
from largesse.pipeline import commands
from largesse.pipeline.folder import FILES
from support.folders import everything_in

LARGESSE = [sys.executable, "-m", "largesse.cli"]
ALL = FILES - {"log.parquet"}
JUDGED = {"evaluation.json", "frontier.parquet", "report.html"}


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def budgets_of(run: Path) -> set[float]:
    """Return every budget that a run folder speaks of."""
    found = {read_campaign(run).planning.budget, json.loads((run / "plan.json").read_text())["budget"]["average"]}
    if (run / "evaluation.json").exists():
        found.add(json.loads((run / "evaluation.json").read_text())["budget"])
    return found


def assert_whole(run: Path) -> float:
    """Everything in a run folder is of one budget; return it."""
    (budget,) = budgets_of(run)
    spend = pq.read_table(run / "plan.parquet")["expected_cost"].to_numpy().mean()
    assert spend == pytest.approx(json.loads((run / "plan.json").read_text())["planned"]["spend"])
    assert spend <= budget + 1e-12
    assert lg.Policy.load(run / "policy.largesse").price == pytest.approx(
        json.loads((run / "plan.json").read_text())["planned"]["price"], abs=1e-3
    )
    return budget


def test_a_plan_for_another_budget_leaves_out_what_was_judged_at_the_old_one(run_copy: Path) -> None:
    commands.plan(run_copy, budget=1.0)
    assert names_in(run_copy) == ALL - JUDGED
    assert assert_whole(run_copy) == 1.0
    commands.judge(run_copy)
    commands.report(run_copy)
    assert names_in(run_copy) == ALL
    assert assert_whole(run_copy) == 1.0


def test_a_table_written_elsewhere_is_the_plan_in_the_folder(run_copy: Path, tmp_path: Path) -> None:
    commands.plan(run_copy, budget=1.0, out=tmp_path / "x.csv")
    written = csv.read_csv(tmp_path / "x.csv")
    assert written["level_number"].to_pylist() == pq.read_table(run_copy / "plan.parquet")["level_number"].to_pylist()
    assert assert_whole(run_copy) == 1.0
    assert sorted(names_in(tmp_path)) == ["run", "x.csv"]


def test_the_same_plan_again_leaves_everything_as_it_was(run_copy: Path, tmp_path: Path) -> None:
    before = everything_in(run_copy)
    commands.plan(run_copy, out=tmp_path / "x.csv")
    assert everything_in(run_copy) == before


def test_other_customers_at_the_same_budget_keep_the_evaluation_but_not_the_report(
    run_copy: Path, tmp_path: Path
) -> None:
    table = pq.read_table(read_campaign(run_copy).customers)
    pq.write_table(table.slice(0, 90), tmp_path / "few.parquet")
    assert commands.plan(run_copy, str(tmp_path / "few.parquet"))["customers"] == 90
    assert names_in(run_copy) == ALL - {"report.html"}


def test_another_budget_than_the_plans_is_not_judged(run_copy: Path) -> None:
    before = everything_in(run_copy)
    with pytest.raises(InputError, match=r"is for a budget of 2\.5, not 1") as caught:
        commands.judge(run_copy, budget=1.0)
    assert f"largesse plan {run_copy} --budget 1" in str(caught.value)
    assert everything_in(run_copy) == before


def test_another_estimator_makes_the_report_of_the_old_one_vanish(run_copy: Path) -> None:
    commands.judge(run_copy, estimator="snips")
    assert names_in(run_copy) == ALL - {"report.html"}


def test_an_evaluation_may_come_before_the_plan(ran: Path, tmp_path: Path) -> None:
    run = tmp_path / "steps"
    commands.fit(read_campaign(ran.parent), run)
    commands.judge(run, budget=2.5)
    commands.plan(run, budget=2.5)
    commands.report(run)
    assert everything_in(run) == everything_in(ran)


def test_no_input_and_no_part_of_a_run_folder_is_written_over(run_copy: Path, shop: Path) -> None:
    customers = str(shop / "customers.parquet")
    before = everything_in(shop)
    for name in (customers, str(run_copy / "frontier.parquet"), read_campaign(run_copy).log):
        with pytest.raises(LargesseError, match=r"is what is read|is a part of a run folder"):
            commands.plan(run_copy, customers, out=name)
    with pytest.raises(LargesseError, match="is a part of a run folder"):
        commands.report(run_copy, run_copy / "policy.largesse")
    assert everything_in(shop) == before


def test_a_table_may_lie_in_the_run_folder(run_copy: Path) -> None:
    commands.plan(run_copy, budget=1.0, out=run_copy / "x.csv")
    commands.plan(run_copy, budget=1.0, out=run_copy / "plan.parquet")
    assert names_in(run_copy) == ALL - JUDGED | {"x.csv"}


def test_nothing_is_computed_for_an_output_that_is_refused(run_copy: Path, shop: Path) -> None:
    os.mkfifo(shop / "out.csv")
    silent = pytest.fail
    with pytest.raises(OutputError, match="is a FIFO"):
        commands.plan(run_copy, out=shop / "out.csv", progress=lambda *_: silent("it must not come so far"))
    with pytest.raises(OutputError, match="is a FIFO"):
        commands.run(read_campaign(shop), shop / "out.csv", lambda *_: silent("it must not come so far"))
    with pytest.raises(OutputError, match="is a FIFO"):
        commands.report(run_copy, shop / "out.csv")


def test_stray_hidden_files_do_not_keep_a_run_from_being_replaced(run_copy: Path) -> None:
    for name in (".DS_Store", ".plan.parquet.8f30e26a.part"):
        (run_copy / name).write_text("stray")
    commands.run(read_campaign(run_copy), run_copy)
    assert names_in(run_copy) == ALL | {".DS_Store"}


def test_a_run_folder_that_was_moved_away_by_a_killed_command_is_found(run_copy: Path, tmp_path: Path) -> None:
    run_copy.rename(tmp_path / ".run.0123abcd.old")
    commands.report(run_copy, tmp_path / "page.html")
    assert names_in(run_copy) == ALL
    assert sorted(names_in(tmp_path)) == ["page.html", "run"]


# -- killed, and called at once -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_plans_at_once_never_mix(run_copy: Path) -> None:
    for _ in range(3):
        plans = [
            subprocess.Popen([*LARGESSE, "plan", str(run_copy), "--budget", budget], stderr=subprocess.PIPE)
            for budget in ("1", "2", "0.5")
        ]
        said = [plan.communicate()[1] for plan in plans]
        codes = [plan.returncode for plan in plans]
        assert 0 in codes
        for code, errors in zip(codes, said, strict=True):  # on a slow machine one may tire of waiting
            assert code == 0 or (code == 2 and b"in use by another largesse command" in errors), errors
        assert assert_whole(run_copy) in (0.5, 1.0, 2.0)
        assert names_in(run_copy) == ALL - JUDGED
        assert names_in(run_copy.parent) == {"run"}


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_plan_stopped_at_any_moment_leaves_a_whole_folder(run_copy: Path, sent: signal.Signals) -> None:
    started = time.monotonic()
    subprocess.run([*LARGESSE, "plan", str(run_copy), "--budget", "1"], check=True, capture_output=True)
    took = time.monotonic() - started
    for part in range(8):
        child = subprocess.Popen(
            [*LARGESSE, "plan", str(run_copy), "--budget", str(1.5 + part % 2)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        time.sleep(took * (0.6 + 0.06 * part))
        child.send_signal(sent)
        _, errors = child.communicate()
        assert b"Traceback" not in errors or child.returncode == -sent
        assert assert_whole(run_copy) in (1.0, 1.5, 2.5)
    commands.plan(run_copy, budget=1.0)
    assert names_in(run_copy.parent) == {"run"}
