import sys
from pathlib import Path

import pytest

from largesse.errors import OutputError
from largesse_lab.runner.process_pool import gather_parts, run_commands
from largesse_lab.runner.request import ignore_progress


def test_a_part_that_fails_shows_what_it_said(tmp_path: Path) -> None:
    commands = [[sys.executable, "-c", f"raise SystemExit({words})"] for words in ("0", "'out of memory'")]
    with pytest.raises(OutputError, match="part 1 failed: out of memory"):
        run_commands(commands, [tmp_path / "a", tmp_path / "b"], ignore_progress)


def test_gathering_keeps_what_was_there_and_adds_each_new_line_once(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("1\n2\n")
    (tmp_path / "x.0-of-2.jsonl").write_text("1\n3\n")
    (tmp_path / "x.1-of-2.jsonl").write_text("2\n4\nhalf a li")
    gather_parts(tmp_path, "x")
    assert (tmp_path / "x.jsonl").read_text() == "1\n2\n3\n4\n"
