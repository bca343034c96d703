"""A run within a time: what it costs is measured, what does not fit is left out, and all of it is said."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from folders import everything_in

from largesse.campaign.file import Campaign, read_campaign
from largesse.data import log_from_arrays
from largesse.errors import InputError
from largesse.pipeline import economy, line, steps
from largesse.pipeline.economy import Clock, Economy, economise, read_time
from largesse.pipeline.local import Local
from largesse.progress import Meter, report_to
from largesse.records import Log


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10m", 600), ("10 min", 600), ("1h30m", 5400), ("90s", 90), ("0.5h", 1800), ("1H 5M 3S", 3903)],
)
def test_a_time_is_read(text: str, seconds: float) -> None:
    assert read_time(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "10", "m", "-5m", "10m!", "ten minutes", "0s", "1e9h", "9" * 400 + "h", "5d", "nan m"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="10m, 1h30m, 90s"):
        read_time(text)


# -- what is left out -----------------------------------------------------------------------------------------------------


class World:
    """A machine whose clock goes by what fits and later stages are said to cost."""

    def __init__(self, per_row: float, power: float = 1.0, later: float = 0.0) -> None:
        self.now, self.per_row, self.power, self.later = 0.0, per_row, power, later
        self.fits: list[tuple[str, int]] = []

    def fit(self, campaign: Campaign, log: Log, _engine: Any, _progress: Any) -> Any:
        self.fits.append((campaign.model, len(log)))
        self.now += self.cost(campaign.model, len(log))
        return SimpleNamespace(model=SimpleNamespace(predict=lambda log: np.zeros((len(log), 2))))

    def cost(self, model: str, rows: int) -> float:
        return self.per_row * float(rows) ** self.power * (0.5 if model == "quick" else 1.0)

    def examine(self, _campaign: Any, log: Log, *_: Any) -> None:
        self.now += self.later * len(log)


ROWS = 100_000


@pytest.fixture(scope="module")
def log() -> Log:
    level = np.arange(ROWS) % 2
    return log_from_arrays(np.zeros((ROWS, 1)), level, level)


def decide(
    world: World,
    log: Log,
    seconds: float,
    monkeypatch: pytest.MonkeyPatch,
    model: str = "auto",
    rows: int | str = "auto",
) -> tuple[Economy, list[str]]:
    monkeypatch.setattr(steps, "fit", world.fit)
    monkeypatch.setattr(steps, "examine", world.examine)
    monkeypatch.setattr(steps, "judge", lambda *_: None)
    campaign = Campaign("log", log.levels, {"level": "l", "response": "r"}, model=model)
    campaign = replace(campaign, planning=replace(campaign.planning, budget=1.0))
    meter, said = Meter(), list[str]()
    meter.tell = said.append
    with report_to(meter):
        found = economise(campaign, log, len(log), Local(), Clock(seconds, lambda: world.now))
    return found, said


def test_a_run_that_fits_leaves_nothing_out(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(per_row=1e-3)
    found, said = decide(world, log, 300.0, monkeypatch)
    assert found == Economy("auto", "auto")
    assert said == ["the whole run will take about 2 min: nothing is left out"]
    assert world.now < 0.25 * world.cost("auto", ROWS)  # measuring costs little of what is measured


def test_the_small_trees_go_first(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    found, said = decide(World(per_row=1e-3), log, 100.0, monkeypatch)
    assert (found.model, found.most_rows) == ("quick", "auto")
    assert said == ["To keep within 1 min 40 s, the boosting of small trees was left out."]
    assert list(found.left_out) == said


@pytest.mark.parametrize("power", [0.9, 1.0, 1.2])
@pytest.mark.parametrize("later", [0.0, 2e-4])
@pytest.mark.parametrize("model", ["auto", "linear"])
def test_then_rows_go_and_the_run_ends_in_time(
    power: float, later: float, model: str, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(1e-2 / 10.0 ** (5 * (power - 1.0)), power, later)
    found, said = decide(world, log, 200.0, monkeypatch, model)
    assert isinstance(found.most_rows, int)
    assert 5_000 < found.most_rows < ROWS
    assert found.model == ("quick" if model == "auto" else "linear")
    assert len(said) == (2 if model == "auto" else 1)
    assert f"learnt from {found.most_rows:,} of 100,000 rows" in said[-1]
    ends = world.now + world.cost(found.model, found.most_rows) + later * found.most_rows
    assert 100.0 < ends < 200.0  # in time, and most of the time is used


def test_a_time_that_cannot_be_kept_is_said_to_be_too_short(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    found, said = decide(World(per_row=1e-2), log, 20.0, monkeypatch)
    assert found.most_rows == 5_000
    assert said[-1].startswith("even so it will take about ")


def test_a_small_log_is_not_even_timed(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(per_row=1.0)
    found, said = decide(world, log.take(np.arange(3_000)), 10.0, monkeypatch)
    assert found == Economy("auto", "auto")
    assert said == ["the log is too small to leave anything out for the sake of 10 s"]
    assert world.fits == []


# -- in a run -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every run leaves out half of the shop's rows; how often that was decided."""
    decided: list[int] = []

    def decide(campaign: Campaign, *_: Any) -> Economy:
        decided.append(1)
        return Economy(campaign.model, 150, ("To keep within 1 min, half of it was left out.",))

    monkeypatch.setattr(line, "economise", decide)
    return decided


@pytest.mark.usefixtures("hurried")
def test_the_run_folder_says_what_was_left_out(shop: Path) -> None:
    shown = line.run(read_campaign(shop / "campaign.toml"), shop / "run", seconds=60.0)
    sentence = "To keep within 1 min, half of it was left out."
    assert shown["left_out"] == json.loads((shop / "run" / "fit.json").read_text())["left_out"] == [sentence]
    assert sentence in (shop / "run" / "report.html").read_text()
    assert "[data]\nmost_rows = 150" in (shop / "run" / "campaign.toml").read_text()
    assert shown["log"]["rows"] == 300  # all of them judge
    notes = [warning["text"] for warning in shown["warnings"]]
    assert "Models learn from a random sample of 150 of 300 rows; all rows judge them." in notes
    assert "fit into memory" not in (shop / "run" / "report.html").read_text()
    assert line.report(shop / "run")["left_out"] == [sentence]


@pytest.mark.usefixtures("hurried")
def test_its_campaign_gives_the_same_plan_without_a_clock(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line.run(read_campaign(shop / "campaign.toml"), shop / "run", seconds=60.0)
    line.run(read_campaign(shop / "run" / "campaign.toml"), shop / "again")
    first, again = (everything_in(shop / name) for name in ("run", "again"))
    told = {"fit.json", "report.html"}  # these say why
    assert {name for name in first if first[name] != again[name]} == told
    # And what the folder keeps is used: nothing is fitted.
    monkeypatch.setattr(steps, "fit", None)
    line.judge(shop / "run", estimator="snips")


def test_a_run_that_was_stopped_goes_on_with_what_it_had_decided(
    shop: Path, hurried: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = read_campaign(shop / "campaign.toml")

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line, "make_plan", stop)
        with pytest.raises(KeyboardInterrupt):
            line.run(campaign, shop / "run", seconds=60.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "fit", None)
        line.run(campaign, shop / "run", resume=True, seconds=60.0)
    assert hurried == [1]
    line.run(campaign, shop / "whole", seconds=60.0)
    assert everything_in(shop / "run") == everything_in(shop / "whole")


def test_nothing_is_timed_where_no_time_is_given(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(economy, "economise", None)
    line.run(read_campaign(ran.parent / "campaign.toml"), ran.parent / "untimed")
    assert everything_in(ran.parent / "untimed") == everything_in(ran)
