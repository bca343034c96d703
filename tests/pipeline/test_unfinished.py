"""A run that was stopped goes on where it was, and ends with the same bytes as one that was not."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from folders import everything_in
from shops import write_shop

from largesse.campaign.file import Campaign, read_campaign
from largesse.io import find_work
from largesse.pipeline import line, unfinished
from largesse.pipeline.local import Local
from largesse.progress import Meter
from largesse.response import Additive, Boosting, Linear, Stack

STAGES = ("examine", "judge", "make_plan", "report")


@pytest.fixture
def told() -> Iterator[tuple[Meter, list[str]]]:
    """A progress, and what it is told."""
    meter, said = Meter(), list[str]()
    meter.tell = said.append
    return meter, said  # type: ignore[return-value]


def stop_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, stop: Callable[[], object]) -> None:
    work = getattr(owner, name)

    def stopped(*given: Any, **named: Any) -> Any:
        stop()
        return work(*given, **named)

    monkeypatch.setattr(owner, name, stopped)


def interrupt() -> None:
    raise KeyboardInterrupt


def run_until(stage: str, campaign: Campaign, out: Path, **how: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, line if stage == "make_plan" else line.steps, stage, interrupt)
        with pytest.raises(KeyboardInterrupt):
            line.run(campaign, out, **how)


def count_fits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    fitted: list[str] = []
    stop_at(monkeypatch, Linear, "fit_held_out", lambda: fitted.append("Linear"))
    return fitted


@pytest.mark.parametrize("stage", STAGES)
def test_a_run_that_was_interrupted_goes_on_and_ends_with_the_same_bytes(
    stage: str, ran: Path, monkeypatch: pytest.MonkeyPatch, told: tuple[Meter, list[str]]
) -> None:
    campaign, out = read_campaign(ran.parent / "campaign.toml"), ran.parent / f"stopped-{stage}"
    run_until(stage, campaign, out)
    assert not out.exists()
    assert find_work(out).is_dir()
    fitted = count_fits(monkeypatch)
    line.run(campaign, out, told[0], resume=True)
    assert fitted == []
    assert told[1] == ["the fit is as the run that was stopped had finished it"]
    assert everything_in(out) == everything_in(ran)
    assert not find_work(out).exists()


def test_whoever_stops_a_run_hears_that_it_can_go_on(ran: Path, told: tuple[Meter, list[str]]) -> None:
    out = ran.parent / "heard"
    run_until("judge", read_campaign(ran.parent / "campaign.toml"), out, progress=told[0])
    assert told[1] == ["what was finished is kept: the same command with --resume goes on from there"]
    shutil.rmtree(find_work(out))


def test_propensities_are_not_estimated_again(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from largesse.evaluation import policy_value as judge

    campaign, out = read_campaign(ran.parent / "campaign.toml"), ran.parent / "examined"
    run_until("judge", campaign, out)
    stop_at(monkeypatch, judge, "estimate_propensities", interrupt)
    line.run(campaign, out, resume=True)
    assert everything_in(out) == everything_in(ran)


KILLED = """
import os, sys
from largesse.pipeline import line, read_campaign

line.steps.judge = lambda *_, **__: os._exit(137)
line.run(read_campaign(sys.argv[1]).spending(budget=1.0), sys.argv[2])
"""


def test_a_run_that_was_killed_goes_on(shop: Path, ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = read_campaign(ran.parent / "campaign.toml")
    before = everything_in(shutil.copytree(ran, shop / "run"))
    killed = subprocess.run([sys.executable, "-c", KILLED, ran.parent / "campaign.toml", shop / "run"], check=False)
    assert killed.returncode == 137
    assert everything_in(shop / "run") == before
    fitted = count_fits(monkeypatch)
    line.run(campaign, shop / "run", resume=True)  # at another budget: the fit does not depend on it
    assert fitted == []
    assert everything_in(shop / "run") == before
    assert [path.name for path in shop.iterdir() if path.name.startswith(".")] == []


def test_without_resume_what_was_kept_is_replaced(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign, out = read_campaign(ran.parent / "campaign.toml"), ran.parent / "anew"
    run_until("judge", campaign, out)
    fitted = count_fits(monkeypatch)
    line.run(campaign, out)
    assert fitted == ["Linear"]
    assert not find_work(out).exists()


def test_a_run_that_ends_in_an_error_can_be_resumed(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign, out = read_campaign(ran.parent / "campaign.toml"), ran.parent / "failed"

    def fail() -> None:
        raise ValueError("no plan")

    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, line, "make_plan", fail)
        with pytest.raises(ValueError, match="no plan"):
            line.run(campaign, out)
    fitted = count_fits(monkeypatch)
    line.run(campaign, out, resume=True)
    assert fitted == []


# -- what must not be used ------------------------------------------------------------------------------------------------


def change_log(shop: Path) -> None:
    table = pq.read_table(shop / "log.parquet")
    age = table["age"].to_numpy(zero_copy_only=False).copy()
    age[0] = 21.5
    pq.write_table(table.set_column(table.column_names.index("age"), "age", [age]), shop / "log.parquet")


def change_seed(shop: Path) -> None:
    file = shop / "campaign.toml"
    file.write_text(file.read_text() + "seed = 5\n")


def change_features(shop: Path) -> None:
    file = shop / "campaign.toml"
    file.write_text(file.read_text().replace('customer = "id"', 'customer = "id"\nfeatures = ["age", "city"]'))


def change_version(shop: Path) -> None:
    unfinished.__version__ = "other"  # type: ignore[attr-defined]


@pytest.mark.parametrize("change", [change_log, change_seed, change_features, change_version])
def test_what_belongs_to_something_else_is_not_used(
    change: Callable[[Path], None], shop: Path, monkeypatch: pytest.MonkeyPatch, told: tuple[Meter, list[str]]
) -> None:
    monkeypatch.setattr(unfinished, "__version__", unfinished.__version__)
    run_until("judge", read_campaign(shop / "campaign.toml"), shop / "run")
    change(shop)
    fitted = count_fits(monkeypatch)
    line.run(read_campaign(shop / "campaign.toml"), shop / "run", told[0], resume=True)
    assert fitted == ["Linear"]
    assert told[1] == [
        "nothing to resume, what it kept belongs to another log, model, time or version: starting from the beginning"
    ]


def test_where_nothing_was_stopped_it_says_so(ran: Path, told: tuple[Meter, list[str]]) -> None:
    line.run(read_campaign(ran.parent / "campaign.toml"), ran.parent / "never", told[0], resume=True)
    assert told[1] == ["nothing to resume, no run was stopped here: starting from the beginning"]
    assert everything_in(ran.parent / "never") == everything_in(ran)


@pytest.mark.parametrize("name", [unfinished.POLICY, unfinished.HELD, unfinished.SCORES])
@pytest.mark.parametrize("damage", ["cut", "gone", "zeros"])
def test_what_is_damaged_is_computed_again(name: str, damage: str, ran: Path) -> None:
    campaign, out = read_campaign(ran.parent / "campaign.toml"), ran.parent / f"damaged-{damage}-{name}"
    run_until("judge", campaign, out)
    [file] = find_work(out).glob(f"*/{name}")
    content = file.read_bytes()
    file.unlink()
    if damage != "gone":
        file.write_bytes(content[: len(content) // 2] if damage == "cut" else bytes(len(content)))
    line.run(campaign, out, resume=True)
    assert everything_in(out) == everything_in(ran)


def test_a_run_that_can_keep_nothing_still_succeeds(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(unfinished, "open_work", full)
    out = ran.parent / "full"
    line.run(read_campaign(ran.parent / "campaign.toml"), out)
    assert everything_in(out) == everything_in(ran)


# -- members --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shop whose model is a small stack."""
    shop = write_shop(tmp_path_factory.mktemp("stacked"), rows=200, customers=50)
    change = shop / "campaign.toml"
    change.write_text(change.read_text().replace('name = "linear"', 'name = "stack"'))
    return shop


def test_members_that_were_fitted_are_not_fitted_again(
    stacked: Path, monkeypatch: pytest.MonkeyPatch, told: tuple[Meter, list[str]]
) -> None:
    monkeypatch.setattr(Stack, "_default_models", lambda *_: [Additive(), Boosting(rounds=5)])
    campaign, fitted = read_campaign(stacked / "campaign.toml"), list[str]()
    stop_at(monkeypatch, Additive, "fold_models", lambda: fitted.append("Additive"))
    stop_at(monkeypatch, Boosting, "_learn", lambda: fitted.append("Boosting") or (len(fitted) == 4 and interrupt()))
    with pytest.raises(KeyboardInterrupt):
        line.run(campaign, stacked / "run")
    assert fitted == ["Additive", "Boosting", "Boosting", "Boosting"]  # the last was stopped
    line.run(campaign, stacked / "run", told[0], resume=True)
    assert fitted[4:] == ["Boosting"] * 3
    assert told[1] == ["3 of 6 fits are as the run that was stopped had finished them"]
    line.run(campaign, stacked / "whole")
    assert everything_in(stacked / "run") == everything_in(stacked / "whole")


def test_fold_models_that_are_kept_predict_the_same(stacked: Path, tmp_path: Path) -> None:
    log = Local().read_log(read_campaign(stacked / "campaign.toml"))
    keeper = unfinished.Unfinished(tmp_path, log, Local())
    fold = np.arange(len(log)) % 5
    held = []
    for _ in range(2):
        with unfinished.keep_fits(keeper):
            held.append(Stack(models=[Additive(), Boosting(rounds=5)]).fit_held_out(log, fold).curves)
    assert np.array_equal(*held)
    assert len(list(tmp_path.iterdir())) == 6
