"""Campaigns from Python: dataframes and settings in, the numbers, plan, policy and report of a run out."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import largesse as lg
from largesse.campaign import read_campaign
from largesse.errors import InputError
from largesse.pipeline import commands
from largesse.pipeline.python_api import Page, Run, demo_campaign, make_campaign, show_report
from support.shops import shop_table

SETTINGS: dict[str, Any] = {
    "level": "coupon",
    "response": "bought",
    "customer": "id",
    "costs": (0, 5, 10),
    "budget": 2.5,
    "model": "linear",
    "title": "Shop",
    "unit": "€",
}


@pytest.fixture(scope="module")
def done() -> Run:
    customers = pl.from_arrow(shop_table(200, seed=2, log=False))
    return lg.run(shop_table(300, seed=1).to_pandas(), customers=customers, **SETTINGS)


def test_a_dataframe_gives_the_numbers_and_the_plan_of_a_campaign_file(done: Run, ran: Path) -> None:
    whole = Run({}, ran)
    assert done.plan.equals(whole.plan)
    assert done["value"] == commands.report(ran)["value"]
    assert done.plan.num_rows == 200
    np.testing.assert_array_equal(
        done.policy.decide(shop_table(50, seed=3, log=False)), whole.policy.decide(shop_table(50, seed=3, log=False))
    )


def test_a_run_shows_its_report_in_a_frame_of_its_own(done: Run, tmp_path: Path) -> None:
    html = done._repr_html_()
    assert html.startswith("<iframe srcdoc=")
    assert "<html" not in html  # escaped: the notebook takes none of it for its own
    assert show_report(done) == show_report(done.folder) == done.report
    done.report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == done.report.html
    assert done.folder.name in repr(done)


def test_a_temporary_run_goes_with_what_was_returned() -> None:
    done = lg.run(shop_table(300, seed=1).to_pydict(), **SETTINGS)
    home = done.folder.parent
    assert len(done.plan) == 300
    assert home.is_dir()
    del done
    assert not home.exists()


def test_a_run_folder_from_dataframes_can_be_planned_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    lg.run(shop_table(300, seed=1), out, customers=shop_table(40, seed=2, log=False).to_pandas(), **SETTINGS)
    commands.plan(out, budget=1.0)
    assert len(Run({}, out).plan) == 40
    campaign = read_campaign(out)
    assert campaign.customers == str(tmp_path / "run-customers.parquet")
    assert campaign.log == str(out / "log.parquet")


def test_a_run_that_fails_leaves_the_customers_of_an_earlier_one(tmp_path: Path) -> None:
    kept = tmp_path / "run-customers.parquet"
    kept.write_bytes(b"mine")
    with pytest.raises(InputError):
        lg.run(shop_table(300, seed=1), tmp_path / "run", customers={"age": [31.0]}, **SETTINGS)
    assert kept.read_bytes() == b"mine"
    assert [path.name for path in tmp_path.iterdir()] == [kept.name]


def test_a_campaign_and_its_path_run_as_before(shop: Path) -> None:
    first = lg.run(read_campaign(shop), shop / "a")
    second = lg.run(shop / "campaign.toml", shop / "b")
    assert first["value"] == second["value"]
    third = lg.run(read_campaign(shop), shop / "c", table=shop_table(300, seed=1).to_pandas())
    assert third["value"] == first["value"]
    assert (shop / "c" / "log.parquet").exists()


def test_settings_become_the_campaign_that_a_file_would_give() -> None:
    levels = lg.Levels(costs=[0, 5, 10], names=["no", "five", "ten"], on_redemption=True)
    roles = {"level": "l", "response": "r"}
    given = {**roles, "levels": levels, "total": 100, "seed": 3, "propensity": np.array([0.5, 0.2, 0.3])}
    campaign = make_campaign(given)
    assert campaign.levels == levels
    assert (campaign.planning.total, campaign.seed, campaign.propensities) == (100, 3, (0.5, 0.2, 0.3))
    assert campaign.log == "log.parquet"
    observed = lg.Levels(doses=[0, 5], observed=True)
    assert make_campaign({**roles, "cost_column": "c", "levels": observed, "budget": 1}).levels == observed
    assert make_campaign({**roles, "costs": [0, 1], "budget": 1}, "log.csv").log == str(Path("log.csv").absolute())


@pytest.mark.parametrize(
    ("source", "given", "words"),
    [
        ({"x": [1.0]}, {"response": "bought", "costs": [0, 5], "budget": 1}, "does not name the level column"),
        ({"x": [1.0]}, {**SETTINGS, "budgett": 3}, "'budgett' is not a setting"),
        ({"x": [1.0]}, {**SETTINGS, "levels": [0, 5]}, "levels is a list"),
        ({"x": [1.0]}, {**SETTINGS, "table": {"x": [1.0]}}, "both given"),
        ({"x": [1.0]}, {key: value for key, value in SETTINGS.items() if key != "budget"}, "no budget is set"),
        (None, SETTINGS, "not a table: got None"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(
    source: Any, given: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        lg.run(source, tmp_path / "run", customers=pd.DataFrame({"x": [1.0]}), **given)
    assert list(tmp_path.iterdir()) == []


def test_a_campaign_takes_no_settings_beside_it(shop: Path) -> None:
    with pytest.raises(InputError, match="budget"):
        lg.run(read_campaign(shop), budget=2.0)
    with pytest.raises(InputError, match="holds no report"):
        show_report(shop)
    assert isinstance(Page("<p>"), Page)


def test_the_demo_spends_half_of_what_the_dearest_level_costs_if_everybody_gets_it() -> None:
    campaign, table = demo_campaign()
    log = commands.LOCAL_ENGINE.read_log(campaign, table)
    dearest = float(log.levels.costs[-1]) * log.response[log.level == len(log.levels) - 1].mean()
    assert campaign.planning.budget == pytest.approx(dearest / 2, abs=0.005)
    assert len(log) == 2825
