"""Campaigns whose costs depend on what customers do: observed in a column of the log, or paid on redemption."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import largesse as lg
from largesse.campaign import read_campaign, write_guessed_campaign
from largesse.errors import InputError
from largesse.evaluation import crossfit_scores
from largesse.pipeline import commands
from largesse.pipeline.log_checkup import examine, find_or_guess_campaign
from largesse.response import make_model
from support.folders import everything_in

REDEEMED = ("costs = [0, 5, 10]", "costs = [0, 5, 10]\non_redemption = true")
OBSERVED = (("costs = [0, 5, 10]", "doses = [0, 5, 10]"), ('customer = "id"', 'customer = "id"\ncost_column = "paid"'))


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
    change(shop / "campaign.toml", *OBSERVED)
    return shop


def test_one_run_and_its_steps_give_the_same_plan_for_observed_costs(paying: Path) -> None:
    shown = commands.run(read_campaign(paying), paying / "run")
    commands.fit(read_campaign(paying), paying / "steps")
    commands.plan(paying / "steps", str(paying / "customers.parquet"), budget=2.5)
    commands.judge(paying / "steps", budget=2.5)
    commands.report(paying / "steps")
    assert everything_in(paying / "steps") == everything_in(paying / "run")
    plan = pq.read_table(paying / "run" / "plan.parquet")
    assert 2.0 < plan["expected_cost"].to_numpy().mean() < 2.5  # less a margin
    assert shown["planned"]["confidence"] == pytest.approx(0.9, abs=0.01)
    assert (shown["observed"], shown["model"]["name"]) == (True, "Linear")
    policy = lg.Policy.load(paying / "run" / "policy.largesse")
    assert isinstance(policy.model, lg.WithCosts)
    decided = policy.decide(str(paying / "customers.parquet"))
    assert np.mean(decided == plan["level_number"].to_numpy()) > 0.97
    page = (paying / "run" / "report.html").read_text(encoding="utf-8")
    assert f"{100 * shown['planned']['confidence']:.0f}\u202f%" in page


def test_a_campaign_with_observed_costs_needs_no_list_of_costs(paying: Path) -> None:
    campaign = read_campaign(paying)
    assert 'cost_column = "paid"' in campaign.text
    assert "costs = " not in campaign.text
    (paying / "campaign.toml").write_text(campaign.text, encoding="utf-8")
    assert read_campaign(paying) == campaign
    change(paying / "campaign.toml", ("[levels]", "[levels]\ncosts = []"))
    assert read_campaign(paying).levels.observed
    change(paying / "campaign.toml", ('cost_column = "paid"\n', ""))
    with pytest.raises(InputError, match=r"levels\.costs"):
        read_campaign(paying)


def test_customers_of_the_log_are_planned_by_models_that_did_not_see_them(shop: Path) -> None:
    change(shop / "campaign.toml", REDEEMED, ('customers = "customers.parquet"\n', ""))
    commands.run(read_campaign(shop), shop / "run")
    campaign = read_campaign(shop)
    log = lg.read_log(campaign.log, levels=campaign.levels, **campaign.roles)
    scores = crossfit_scores(log, make_model(campaign.model), seed=campaign.seed)
    plan = pq.read_table(shop / "run" / "plan.parquet")
    level = plan["level_number"].to_numpy()
    assert np.array_equal(plan["expected_response"].to_numpy(), scores.curves[np.arange(300), level])
    before = (shop / "run" / "plan.parquet").read_bytes()
    commands.plan(shop / "run")
    assert (shop / "run" / "plan.parquet").read_bytes() == before


def test_confidence_leaves_part_of_the_budget_unspent(shop: Path) -> None:
    change(shop / "campaign.toml", REDEEMED)
    home = shop / "run"
    commands.fit(read_campaign(shop), home)
    planned = [commands.plan(home, budget=2.0, confidence=confidence)["planned"] for confidence in (0.5, 0.9)]
    assert [plan["confidence"] for plan in planned] == pytest.approx([0.5, 0.9], abs=0.04)
    assert planned[1]["spend"] < 0.95 * planned[0]["spend"] < 1.95
    assert read_campaign(home).planning.budget_confidence == 0.9
    assert commands.judge(home)["budget"] == 2.0
    commands.plan(home, budget=2.0, confidence=0.9)
    assert (home / "evaluation.json").exists()
    commands.plan(home, budget=2.0, confidence=0.8)  # another plan was judged
    assert not (home / "evaluation.json").exists()


def test_costs_that_are_always_paid_are_certain(ran: Path) -> None:
    assert commands.read_report_numbers(ran)["planned"]["confidence"] is None
    assert lg.Policy.load(ran / "policy.largesse").spending is None


@pytest.mark.parametrize("confidence", ["0.2", "1.0", '"high"'])
def test_an_invalid_confidence_is_refused(shop: Path, confidence: str) -> None:
    change(shop / "campaign.toml", ("budget = 2.5", f"budget = 2.5\nbudget_confidence = {confidence}"))
    with pytest.raises(InputError, match=r"plan\.budget_confidence is"):
        read_campaign(shop)


def test_the_doctor_checks_whether_costs_fall(paying: Path) -> None:
    def check(campaign: lg.Campaign) -> dict[str, str]:
        (costs,) = [one for one in examine(campaign)["support"]["checks"] if one["topic"] == "costs"]
        return dict(costs)

    fine = check(read_campaign(paying))
    assert fine["answer"] == "fine"
    assert "'0' 0, '5' 1.81" in fine["text"]
    table = pq.read_table(paying / "log.parquet")
    wrong = pa.array((10 - table["coupon"].to_numpy()) * table["bought"].to_numpy() * 1.0)
    pq.write_table(table.set_column(table.column_names.index("paid"), "paid", wrong), paying / "log.parquet")
    campaign, _ = find_or_guess_campaign(str(paying / "log.parquet"), {"cost_column": "paid"})
    assert check(campaign)["answer"] == "careful"


def test_a_first_campaign_file_asks_about_a_cost_column_and_never_takes_it(paying: Path) -> None:
    text = write_guessed_campaign(paying / "log.parquet", paying / "first.toml")
    assert '# cost_column = "paid"' in text
    assert "left out (may be what the row cost): " in text
    features = next(row for row in text.splitlines() if row.startswith("features"))
    assert "paid" not in features
    text = text.replace("# cost_column", "cost_column").replace('budget = ""', "budget = 2")
    (paying / "first.toml").write_text(text, encoding="utf-8")
    assert read_campaign(paying / "first.toml").levels.observed
