"""A run folder appears whole or not at all, takes the place only of an earlier one, and is read with checks."""

import math
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from largesse.campaign import read_campaign
from largesse.errors import InputError, OutputError
from largesse.pipeline import log_checkup
from largesse.pipeline.run_folder import (
    FIT_STEP,
    RUN_FILES,
    RUN_FOLDER_MARKS,
    RunStep,
    check_output_file,
    check_output_folder,
    open_run_folder,
    read_step,
    replace_run_folder,
    write_step,
)
from largesse.records import Estimate
from support.folders import earlier_run, everything_in


def test_only_an_earlier_run_folder_is_replaced(tmp_path: Path) -> None:
    with replace_run_folder(earlier_run(tmp_path)) as part:
        (part / "report.html").write_text("new")
    assert everything_in(tmp_path) == {"run": b"", "run/report.html": b"new"}
    assert set(RUN_FOLDER_MARKS) < RUN_FILES
    for name in [*RUN_FILES, "notes.md"]:
        (tmp_path / "run" / name).write_text("mine")
    before = everything_in(tmp_path)
    with pytest.raises(OutputError, match=r"notes\.md"), replace_run_folder(tmp_path / "run"):
        pytest.fail("replaced")
    assert everything_in(tmp_path) == before


STALLED = """
import sys, time
import largesse.pipeline.commands as commands
def stall(*args, **kwargs):
    print("half way", flush=True)
    time.sleep(60)
commands.evaluate_plan = stall
sys.argv = ["largesse", "run", "campaign.toml", "--out", "run"]
from largesse.cli import main
main()
"""


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_run_killed_in_the_middle_leaves_the_earlier_run(sent: signal.Signals, code: int, shop: Path) -> None:
    earlier_run(shop)
    before = everything_in(shop)
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    command, pipe = [sys.executable, "-c", STALLED], subprocess.PIPE
    child = subprocess.Popen(command, cwd=shop, env=environment, stdout=pipe, stderr=pipe, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "half way\n"
    assert set(everything_in(shop)) > set(before)  # it was at work
    time.sleep(0.05)
    child.send_signal(sent)
    _, errors = child.communicate(timeout=20)
    assert child.returncode == code
    assert "Traceback" not in errors
    assert everything_in(shop) == before


def test_the_page_about_the_run_folder_lists_its_files() -> None:
    page = (Path(__file__).parents[2] / "docs" / "run-folder.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+\.\w+)` \|", page, re.MULTILINE)) == RUN_FILES


def test_numbers_that_are_not_finite_are_null(tmp_path: Path) -> None:
    step = RunStep("numbers.json", "fit", Estimate)
    numbers = write_step(tmp_path, step, Estimate(1.5, math.nan, -math.inf, 2.0))
    assert numbers == {"estimate": 1.5, "se": None, "low": None, "high": 2.0}
    assert read_step(tmp_path, step) == numbers


def test_circular_links_are_no_outputs(shop: Path) -> None:
    (shop / "loop").symlink_to("loop")
    campaign = replace(read_campaign(shop), log=str(shop / "loop"), customers=str(shop / "loop" / "x.csv"))
    check_output_folder(campaign, earlier_run(shop))
    (shop / "out.csv").touch()
    check_output_file(shop / "out.csv", str(shop / "loop"))
    with pytest.raises(InputError, match="is what is read"):
        check_output_file(shop / "out.csv", str(shop / "out.csv"))


def test_another_folder_is_refused_with_a_hint(run_copy: Path) -> None:
    with pytest.raises(InputError, match=rf"there is no folder .*springg\n.*: .*{run_copy.name}"):
        open_run_folder(run_copy.parent / "springg")
    (run_copy / "fit.json").unlink()
    again = re.escape(f"largesse run {run_copy / 'campaign.toml'} --out")
    with pytest.raises(InputError, match=again):
        read_step(run_copy, FIT_STEP)
    (run_copy / "policy.largesse").unlink()
    with pytest.raises(InputError, match=rf"holds no policy.largesse\)\n.*{again}"):
        open_run_folder(run_copy)


@pytest.mark.parametrize(("source", "guessed"), [("campaign.toml", False), ("run", False), ("log.parquet", True)])
def test_the_doctor_examines_a_campaign_file_a_run_folder_or_a_table(
    ran: Path, tmp_path: Path, source: str, guessed: bool
) -> None:
    campaign, was_guessed = log_checkup.find_or_guess_campaign(str(ran.parent / source))
    assert was_guessed == guessed
    assert campaign.columns == {"level": "coupon", "response": "bought", "customer": "id"}
    assert campaign.levels.labels == (("0", "5", "10") if guessed else ("0", "1", "2"))
    stages: list[str] = []
    page = tmp_path / "page.html"
    shown = log_checkup.examine(campaign, guessed=guessed, out=page, progress=lambda stage, _: stages.append(stage))
    assert stages == ["reading", "examining the log"]
    assert any("'coupon'" in note for note in shown["notes"]) == guessed
    assert "<h1>" in page.read_text(encoding="utf-8")
