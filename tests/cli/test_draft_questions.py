"""Questions of `init`, answered through a stream."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from largesse.campaign import DraftAnswers, profile_table
from largesse.cli.draft_questions import ask_draft_questions, print_draft


def write_log(folder: Path) -> Path:
    rng = np.random.default_rng(2)
    arm = rng.choice(["red", "blue"], 200)
    columns = {"group": arm, "sex": rng.choice(["f", "m"], 200), "age": rng.integers(18, 80, 200)}
    columns |= {"score": rng.random(200).round(1), "bought": (rng.random(200) < 0.4) * 1}
    pd.DataFrame(columns).to_csv(folder / "log.csv", index=False)
    return folder / "log.csv"


def ask(profile_of: Path, *lines: str, answers: DraftAnswers | None = None) -> tuple[DraftAnswers, str]:
    console = Console(file=io.StringIO(), width=100)
    stream = io.StringIO("\n".join(lines) + "\n")
    found = ask_draft_questions(profile_table(profile_of), answers or DraftAnswers(), console=console, stream=stream)
    assert isinstance(console.file, io.StringIO)
    return found, console.file.getvalue()


def test_answers_become_settings_and_empty_ones_keep_the_guess(tmp_path: Path) -> None:
    log = write_log(tmp_path)
    found, shown = ask(log, "grup", "group", "", "", "blue, red", "0, 2", "score", "", "€", "", "0.5")
    assert found.roles == {"level": "group", "response": "bought"}
    assert (found.names, found.costs, found.budget) == (("blue", "red"), (0.0, 2.0), 0.5)
    assert (found.exclude, found.protected, found.unit, found.response_value) == (("score",), ("sex",), "€", None)
    assert "'grup'" in shown  # asked again
    assert found.make_draft(profile_table(log)).features == ["age"]


def test_known_answers_are_not_asked_for(tmp_path: Path) -> None:
    known = DraftAnswers(
        {"level": "group", "response": "bought", "customer": "age"},
        protected=["sex"],
        names=["red", "blue"],
        costs=[0, 1],
        budget=0.3,
        unit="€",
        response_value=2.0,
    )
    found, _ = ask(write_log(tmp_path), "", answers=known)  # the only question is about later features
    assert found == known


def test_the_summary_names_the_role_of_every_column(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=200)
    print_draft(profile_table(write_log(tmp_path)).make_draft({"level": "group"}), console)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert all(name in shown for name in ("group", "sex", "age", "score", "bought"))
