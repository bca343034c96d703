"""The examples for production: metrics, options and exit codes that they use exist, and jobs stop where they should."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from largesse.cli.command_line import app
from largesse.serve.endpoints import GAUGES, Metrics

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
BOARD = EXAMPLES / "service" / "grafana" / "largesse.json"
COMPOSE = yaml.safe_load((EXAMPLES / "service" / "compose.yaml").read_text(encoding="utf-8"))
PINNED = re.compile(r"uses: (\S+@[0-9a-f]{40}) # v\S+")


def served_metrics() -> set[str]:
    """Return the names of all metrics that a service answers."""
    metrics = Metrics()
    metrics.count_response("/v1/decide", 200, 0.01)
    metrics.count_decisions([{"level": "none"}])
    text = metrics.format_metrics(dict.fromkeys(GAUGES, 1.0), "version").decode()
    return set(re.findall(r"^(largesse_\w+)", text, re.MULTILINE))


def commands() -> list[str]:
    """Return every command of largesse in the examples, with its options."""
    dockerfile = (EXAMPLES / "service" / "Dockerfile").read_text(encoding="utf-8")
    [started] = re.findall(r"^CMD (\[.*\])$", dockerfile, re.MULTILINE)
    found = [" ".join(json.loads(started)), COMPOSE["services"]["largesse"]["command"]]
    for path in (EXAMPLES / "schedule").iterdir():
        found += re.findall(
            r"^[^#\n]*?\b(?:largesse|step) ((?:check|doctor|run|plan)\b[^\n\"|]*)", path.read_text(), re.MULTILINE
        )
    return found


def test_the_board_shows_metrics_that_the_service_has() -> None:
    board = json.loads(BOARD.read_text(encoding="utf-8"))
    asked = set(
        re.findall(r"\blargesse_\w+", " ".join(target["expr"] for p in board["panels"] for target in p["targets"]))
    )
    assert len(asked) > 8
    assert asked <= served_metrics()
    assert (
        "largesse_decisions" not in served_metrics()
    )  # a counter's name ends in _total: the test would find a wrong one


@pytest.mark.parametrize("command", commands())
def test_commands_and_options_of_the_examples_exist(command: str) -> None:
    verb, *arguments = shlex.split(command)
    known = {option for parameter in get_command(app).commands[verb].params for option in parameter.opts}  # type: ignore[attr-defined]
    assert {word for word in arguments if word.startswith("--")} <= known


def test_the_examples_have_commands() -> None:
    assert len(commands()) > 10


def test_the_service_and_its_ledger_agree() -> None:
    services = COMPOSE["services"]
    database = services["database"]["environment"]
    assert (
        f"postgresql://{database['POSTGRES_USER']}@database/{database['POSTGRES_DB']}"
        in services["largesse"]["command"]
    )
    assert services["largesse"]["environment"]["PGPASSWORD"] == database["POSTGRES_PASSWORD"]
    assert "--since" in services["largesse"]["command"]  # else a second start has other terms than the ledger
    scraped = yaml.safe_load((EXAMPLES / "service" / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"][0]
    assert scraped["static_configs"][0]["targets"] == ["largesse:8000"]


def test_actions_are_pinned_to_the_same_commits() -> None:
    files = [*(ROOT / ".github" / "workflows").iterdir(), EXAMPLES / "schedule" / "github-actions.yml"]
    used = {line for path in files for line in re.findall(r"uses: \S+", path.read_text(encoding="utf-8"))}
    pinned = {f"uses: {action}" for path in files for action in PINNED.findall(path.read_text(encoding="utf-8"))}
    assert used == pinned
    assert len({action.partition("@")[0] for action in pinned}) == len(pinned)


@pytest.mark.parametrize(("failing", "code", "ends", "planned"), [
    ("none", 0, 0, True),
    ("check", 10, 0, True),     # careful goes on
    ("check", 20, 20, False),   # no stops before a plan is written
    ("doctor", 20, 20, False),
    ("run", 2, 2, False),       # and so does an error
    ("plan", 2, 2, False),
])  # fmt: skip
def test_the_weekly_job_goes_by_exit_codes(failing: str, code: int, ends: int, planned: bool, tmp_path: Path) -> None:
    largesse = tmp_path / "bin" / "largesse"
    largesse.parent.mkdir()
    largesse.write_text('#!/bin/sh\n[ "$1" = run ] && mkdir -p next\n[ "$1" = "$FAILING" ] && exit "$CODE"\nexit 0\n')
    largesse.chmod(0o755)
    campaign = tmp_path / "spring"
    (campaign / "current").mkdir(parents=True)
    (campaign / "current" / "old").touch()
    environment = {
        **os.environ,
        "PATH": f"{largesse.parent}:{os.environ['PATH']}",
        "FAILING": failing,
        "CODE": str(code),
    }
    done = subprocess.run(["sh", str(EXAMPLES / "schedule" / "weekly.sh"), str(campaign)], env=environment)
    assert done.returncode == ends
    assert (campaign / "current" / "old").exists() == (not planned)
    assert (campaign / "previous" / "old").exists() == planned
