"""A run folder appears whole or not at all, and takes the place only of an earlier one."""

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
from largesse.pipeline.folder import (
    FILES,
    FIT,
    MARKS,
    Step,
    check_file,
    check_output,
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
    assert set(MARKS) < FILES
    for name in [*FILES, "notes.md"]:
        (tmp_path / "run" / name).write_text("mine")
    before = everything_in(tmp_path)
    with pytest.raises(OutputError, match=r"will not be replaced: notes\.md"), replace_run_folder(tmp_path / "run"):
        pytest.fail("it must not come so far")
    assert everything_in(tmp_path) == before


STALLED = """
import sys, time
import largesse.pipeline.commands as commands
def stalled(*args, **kwargs):
    print("half way", flush=True)
    time.sleep(60)
commands.judge_plan = stalled
sys.argv = ["largesse", "run", "campaign.toml", "--out", "run"]
from largesse.cli import main
main()
"""


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_run_killed_in_the_middle_leaves_the_earlier_run(sent: signal.Signals, code: int, shop: Path) -> None:
    earlier_run(shop)
    before = everything_in(shop)
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    child = subprocess.Popen(
        [sys.executable, "-c", STALLED],
        cwd=shop,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "half way\n"
    assert set(everything_in(shop)) > set(before)  # it really was at work
    time.sleep(0.05)
    child.send_signal(sent)
    _, errors = child.communicate(timeout=20)
    assert child.returncode == code
    assert "Traceback" not in errors
    assert everything_in(shop) == before


def test_the_page_about_the_run_folder_lists_its_files() -> None:
    page = (Path(__file__).parents[2] / "docs" / "run-folder.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+\.\w+)` \|", page, re.MULTILINE)) == FILES


def test_missing_numbers_are_null_in_the_file_and_none_in_what_is_passed_on(tmp_path: Path) -> None:
    step = Step("numbers.json", "fit", Estimate)
    plain = write_step(tmp_path, step, Estimate(1.5, math.nan, -math.inf, 2.0))
    assert plain == {"estimate": 1.5, "se": None, "low": None, "high": 2.0}
    assert read_step(tmp_path, step) == plain


def test_an_input_whose_links_lead_in_a_circle_is_no_output(shop: Path) -> None:
    (shop / "loop").symlink_to("loop")
    campaign = replace(read_campaign(shop), log=str(shop / "loop"), customers=str(shop / "loop" / "x.csv"))
    check_output(campaign, earlier_run(shop))
    (shop / "out.csv").touch()
    check_file(shop / "out.csv", str(shop / "loop"))
    with pytest.raises(InputError, match="is what is read"):
        check_file(shop / "out.csv", str(shop / "out.csv"))


def test_what_is_no_run_folder_is_told_with_what_to_do(run_copy: Path) -> None:
    """A folder that is not there, one that lost its policy, one that lost what was learnt."""
    with pytest.raises(InputError, match=rf"there is no folder .*springg\n.*beside it: .*{run_copy.name}"):
        open_run_folder(run_copy.parent / "springg")
    (run_copy / "fit.json").unlink()
    again = re.escape(f"largesse run {run_copy / 'campaign.toml'} --out")
    with pytest.raises(InputError, match=again):
        read_step(run_copy, FIT)
    (run_copy / "policy.largesse").unlink()
    with pytest.raises(InputError, match=rf"holds no policy.largesse\)\n.*{again}"):
        open_run_folder(run_copy)
