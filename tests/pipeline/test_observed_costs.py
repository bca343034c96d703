"""Campaigns whose costs depend on what customers do: observed in a column of the log, or paid on redemption."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import largesse as lg
from largesse.campaign.draft import guess_campaign
from largesse.campaign.file import read_campaign
from largesse.errors import InputError
from largesse.evaluation import crossfit
from largesse.pipeline import commands
from largesse.pipeline.doctor import examine, find_campaign
from largesse.response import make_model
from support.folders import everything_in

OBSERVED = ("costs = [0, 5, 10]", "doses = [0, 5, 10]")
NAMED = ('customer = "id"', 'customer = "id"\ncost_column = "paid"')
REDEEMED = ("costs = [0, 5, 10]", "costs = [0, 5, 10]\non_redemption = true")
OWN = ('customers = "customers.parquet"\n', "")


def change(file: Path, *changes: tuple[str, str]) -> Path:
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def paying(shop: Path) -> Path:
    """The shop, with what each coupon really cost in its log."""
    table = pq.read_table(shop / "log.parquet")
    face, bought = table["coupon"].to_numpy(), table["bought"].to_numpy()
    paid = face * bought * np.random.default_rng(4).uniform(0.5, 1.5, len(face))
    pq.write_table(table.append_column("paid", pa.array(paid)), shop / "log.parquet")
    change(shop / "campaign.toml", OBSERVED, NAMED)
    return shop


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_one_run_and_its_steps_give_the_same_plan_for_costs_that_are_observed(paying: Path) -> None:
    shown = commands.run(read_campaign(paying), paying / "run")
    commands.fit(read_campaign(paying), paying / "steps")
    commands.plan(paying / "steps", str(paying / "customers.parquet"), budget=2.5)
    commands.judge(paying / "steps", budget=2.5)
    commands.report(paying / "steps")
    assert everything_in(paying / "steps") == everything_in(paying / "run")
    plan = pq.read_table(paying / "run" / "plan.parquet")
    assert plan["expected_cost"].to_numpy().mean() == pytest.approx(2.5, rel=0.05)
    assert shown["planned"]["confidence"] == pytest.approx(0.5, abs=0.05)
    assert (shown["observed"], shown["model"]["name"]) == (True, "Linear")
    policy = lg.Policy.load(paying / "run" / "policy.largesse")
    assert isinstance(policy.model, lg.WithCosts)
    decided = policy.decide(str(paying / "customers.parquet"))
    assert np.mean(decided == plan["level_number"].to_numpy()) > 0.97
    page = (paying / "run" / "report.html").read_text(encoding="utf-8")
    assert f"Within the budget with a probability of {100 * shown['planned']['confidence']:.0f}\u202f%" in page
    assert "A second model learnt what levels cost" in page


def test_the_campaign_is_written_back_without_a_list_of_costs(paying: Path) -> None:
    campaign = read_campaign(paying)
    assert 'cost_column = "paid"' in campaign.text
    assert "costs = " not in campaign.text
    change(paying / "campaign.toml").write_text(campaign.text, encoding="utf-8")
    assert read_campaign(paying) == campaign


def test_a_blank_list_of_costs_is_no_gap_where_costs_are_observed(paying: Path) -> None:
    change(paying / "campaign.toml", ("doses = [0, 5, 10]", "doses = [0, 5, 10]\ncosts = []"))
    assert read_campaign(paying).levels.observed
    change(paying / "campaign.toml", ('cost_column = "paid"\n', ""))
    with pytest.raises(InputError, match=r"levels\.costs is left blank"):
        read_campaign(paying)


def test_the_logs_own_customers_are_planned_by_models_that_did_not_see_them(shop: Path) -> None:
    change(shop / "campaign.toml", REDEEMED, OWN)
    commands.run(read_campaign(shop), shop / "run")
    campaign = read_campaign(shop)
    log = lg.read_log(campaign.log, levels=campaign.levels, **campaign.roles)
    scores = crossfit(log, make_model(campaign.model), seed=campaign.seed)
    plan = pq.read_table(shop / "run" / "plan.parquet")
    level = plan["level_number"].to_numpy()
    assert np.array_equal(plan["expected_response"].to_numpy(), scores.curves[np.arange(300), level])
    before = everything_in(shop / "run")["plan.parquet"]
    commands.plan(shop / "run")
    assert everything_in(shop / "run")["plan.parquet"] == before


def test_confidence_leaves_part_of_the_budget_unspent(shop: Path) -> None:
    change(shop / "campaign.toml", REDEEMED)
    commands.fit(read_campaign(shop), shop / "run")
    made = [commands.plan(shop / "run", budget=2.0, confidence=sure)["planned"] for sure in (0.5, 0.9)]
    assert [plan["confidence"] for plan in made] == pytest.approx([0.5, 0.9], abs=0.04)
    assert made[1]["spend"] < 0.95 * made[0]["spend"] < 1.95
    assert "budget_confidence = 0.9" in (shop / "run" / "campaign.toml").read_text(encoding="utf-8")
    judged = commands.judge(shop / "run")
    assert judged["budget"] == 2.0
    commands.plan(shop / "run", budget=2.0, confidence=0.9)
    assert (shop / "run" / "evaluation.json").exists()
    commands.plan(shop / "run", budget=2.0, confidence=0.8)  # what was judged is another plan
    assert not (shop / "run" / "evaluation.json").exists()


@pytest.mark.parametrize("given", ["0.2", "1.0", '"high"'])
def test_a_confidence_that_is_none_is_refused(shop: Path, given: str) -> None:
    change(shop / "campaign.toml", ("budget = 2.5", f"budget = 2.5\nbudget_confidence = {given}"))
    with pytest.raises(InputError, match=r"plan\.budget_confidence is"):
        read_campaign(shop)


def test_costs_that_are_always_paid_are_kept_for_sure(ran: Path) -> None:
    planned = read_json(ran / "plan.json")["planned"]
    assert planned["confidence"] is None
    assert lg.Policy.load(ran / "policy.largesse").spending is None


def test_the_doctor_says_what_levels_cost_and_whether_costs_fall(paying: Path) -> None:
    found = {check["topic"]: check for check in examine(read_campaign(paying))["support"]["checks"]}
    assert found["costs"]["answer"] == "fine"
    assert "On average a row costs: '0' 0, '5' 1.81" in found["costs"]["text"]
    table = pq.read_table(paying / "log.parquet")
    wrong = pa.array((10 - table["coupon"].to_numpy()) * table["bought"].to_numpy() * 1.0)
    pq.write_table(table.set_column(table.column_names.index("paid"), "paid", wrong), paying / "log.parquet")
    campaign, _ = find_campaign(str(paying / "log.parquet"), {"cost_column": "paid"})
    found = {check["topic"]: check for check in examine(campaign)["support"]["checks"]}
    assert found["costs"]["answer"] == "careful"
    assert "Costs fall as the level rises" in found["costs"]["text"]


def test_a_first_campaign_file_asks_about_a_cost_column_and_never_takes_it(paying: Path) -> None:
    text = guess_campaign(paying / "log.parquet", paying / "first.toml")
    assert '# cost_column = "paid"    # what each row really cost' in text
    assert "left out (may be what the row cost): " in text
    features = next(row for row in text.splitlines() if row.startswith("features"))
    assert "paid" not in features
    (paying / "first.toml").write_text(
        text.replace("# cost_column", "cost_column").replace('budget = ""', "budget = 2"), encoding="utf-8"
    )
    assert read_campaign(paying / "first.toml").levels.observed
