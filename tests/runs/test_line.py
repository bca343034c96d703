"""The straight line: one command or step by step, the same folder comes out."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import largesse as lg
from largesse.errors import InputError
from largesse.runs import line
from largesse.runs.campaign import read_campaign

FILES = {
    "campaign.toml",
    "evaluation.json",
    "fit.json",
    "frontier.parquet",
    "plan.json",
    "plan.parquet",
    "policy.largesse",
    "report.html",
}


@pytest.fixture
def ran(shop: Path) -> Path:
    line.run(read_campaign(shop / "campaign.toml"), shop / "run")
    return shop / "run"


def test_a_run_folder_holds_everything_and_nothing_else(ran: Path) -> None:
    assert {path.name for path in ran.iterdir()} == FILES
    assert not [path for path in ran.parent.iterdir() if path.name.startswith(".")]


def test_the_plan_has_one_row_per_customer_and_stays_within_the_budget(ran: Path) -> None:
    plan = pq.read_table(ran / "plan.parquet")
    customers = pq.read_table(ran.parent / "customers.parquet")
    assert plan["customer"].to_pylist() == customers["id"].to_pylist()
    assert plan.column_names == ["customer", "level", "level_number", "expected_response", "expected_cost"]
    assert set(plan["level"].to_pylist()) <= {"0", "5", "10"}
    cost = plan["expected_cost"].to_numpy()
    assert np.array_equal(cost, np.array([0.0, 5.0, 10.0])[plan["level_number"].to_numpy()])
    assert 2.3 < cost.mean() <= 2.5


def test_the_saved_policy_decides_as_the_plan_does(ran: Path) -> None:
    policy = lg.Policy.load(ran / "policy.largesse")
    plan = pq.read_table(ran / "plan.parquet")
    decided = policy.decide(str(ran.parent / "customers.parquet"))
    # The plan also spends what is left after the last whole step; a price alone cannot.
    assert np.mean(decided == plan["level_number"].to_numpy()) > 0.97


def test_the_frontier_rises_with_the_budget_and_brackets_its_values(ran: Path) -> None:
    frontier = pq.read_table(ran / "frontier.parquet").to_pydict()
    assert frontier["budget"] == sorted(frontier["budget"])
    assert 2.5 in frontier["budget"]
    for low, value, high in zip(frontier["value_low"], frontier["value"], frontier["value_high"], strict=True):
        assert low <= value <= high
    assert np.all(np.diff(frontier["promise"]) >= -1e-12)


def test_the_resolved_campaign_runs_again_to_the_same_bytes(ran: Path) -> None:
    line.run(read_campaign(ran), ran.parent / "again")
    for name in sorted(FILES):
        assert (ran / name).read_bytes() == (ran.parent / "again" / name).read_bytes(), name


def test_step_by_step_gives_the_same_report_as_one_run(ran: Path) -> None:
    campaign = read_campaign(ran.parent / "campaign.toml")
    steps = ran.parent / "steps"
    line.fit(campaign, steps)
    line.plan(steps, str(ran.parent / "customers.parquet"), budget=2.5)
    line.judge(steps, budget=2.5)
    line.report(steps)
    assert (steps / "report.html").read_text() == (ran / "report.html").read_text()
    assert (steps / "plan.parquet").read_bytes() == (ran / "plan.parquet").read_bytes()


def test_without_a_table_of_customers_the_logs_own_are_planned_for(shop: Path) -> None:
    text = (shop / "campaign.toml").read_text().replace('customers = "customers.parquet"\n', "")
    (shop / "campaign.toml").write_text(text)
    shown = line.run(read_campaign(shop / "campaign.toml"), shop / "run")
    assert shown["customers"] == 300


@pytest.mark.parametrize(("given", "spend"), [("budget = 0", 0.0), ("total = 500", 2.5), ("budget = 20", 10.0)])
def test_every_way_to_say_the_budget_is_held(shop: Path, given: str, spend: float) -> None:
    text = (shop / "campaign.toml").read_text().replace("budget = 2.5", given)
    (shop / "campaign.toml").write_text(text)
    line.run(read_campaign(shop / "campaign.toml"), shop / "run")
    plan = pq.read_table(shop / "run" / "plan.parquet")
    assert plan["expected_cost"].to_numpy().mean() == pytest.approx(spend, abs=0.03)
    json.loads(
        (shop / "run" / "evaluation.json").read_text(), parse_constant=lambda word: pytest.fail(f"not JSON: {word}")
    )


def test_redemption_costs_are_face_value_times_expected_response(shop: Path) -> None:
    text = (
        (shop / "campaign.toml").read_text().replace("costs = [0, 5, 10]", "costs = [0, 5, 10]\non_redemption = true")
    )
    (shop / "campaign.toml").write_text(text)
    line.run(read_campaign(shop / "campaign.toml"), shop / "run")
    plan = pq.read_table(shop / "run" / "plan.parquet").to_pandas()
    face = np.array([0.0, 5.0, 10.0])[plan["level_number"]]
    assert np.allclose(plan["expected_cost"], face * plan["expected_response"])
    assert plan["expected_cost"].mean() <= 2.5


def test_each_customers_own_costs_come_from_the_table(shop: Path) -> None:
    import pyarrow as pa

    for name in ("log.parquet", "customers.parquet"):
        table = pq.read_table(shop / name)
        rng = np.random.default_rng(3)
        base = rng.uniform(1, 2, table.num_rows)
        for k in range(3):
            table = table.append_column(f"cost{k}", pa.array(k * base))
        pq.write_table(table, shop / name)
    text = (shop / "campaign.toml").read_text()
    text = text.replace("costs = [0, 5, 10]", 'costs = ["cost0", "cost1", "cost2"]\ndoses = [0, 5, 10]').replace(
        "2.5", "0.8"
    )
    (shop / "campaign.toml").write_text(text)
    line.run(read_campaign(shop / "campaign.toml"), shop / "run")
    plan = pq.read_table(shop / "run" / "plan.parquet")
    own = pq.read_table(shop / "customers.parquet").select(["cost0", "cost1", "cost2"]).to_pandas().to_numpy()
    assert np.allclose(plan["expected_cost"].to_numpy(), own[np.arange(200), plan["level_number"].to_numpy()])
    assert plan["expected_cost"].to_numpy().mean() <= 0.8


def with_plan(shop: Path, lines: str) -> Path:
    text = (shop / "campaign.toml").read_text(encoding="utf-8")
    (shop / "campaign.toml").write_text(text.replace("budget = 2.5", f"budget = 2.5\n{lines}"), encoding="utf-8")
    line.fit(read_campaign(shop / "campaign.toml"), shop / "run")
    line.plan(shop / "run", str(shop / "customers.parquet"))
    return shop / "run"


def test_the_rules_of_the_campaign_file_are_kept(shop: Path) -> None:
    rules = 'segment = "city"\n[plan.caps]\n10 = 15\n[plan.segment_budgets]\nOslo = 100\n'
    run = with_plan(shop, rules)
    plan, city = pq.read_table(run / "plan.parquet"), pq.read_table(shop / "customers.parquet")["city"].to_numpy()
    cost = plan["expected_cost"].to_numpy()
    assert np.count_nonzero(plan["level_number"].to_numpy() == 2) <= 15
    assert 90 <= cost[city == "Oslo"].sum() <= 100
    assert cost.mean() <= 2.5
    shadow = json.loads((run / "plan.json").read_text())["shadow"]
    assert set(shadow) == {"budget", "segment Oslo", "cap of level 2"}
    assert shadow["segment Oslo"] > 0


def test_a_rule_about_a_column_that_is_not_there_is_named(shop: Path) -> None:
    with pytest.raises(InputError, match="the column 'town', which"):
        with_plan(shop, 'segment = "town"\n[plan.segment_budgets]\nOslo = 100\n')


def test_exploring_writes_the_propensity_of_every_decision(shop: Path) -> None:
    run = with_plan(shop, "explore = 0.3\n")
    plan = pq.read_table(run / "plan.parquet")
    assert set(plan["propensity"].to_numpy().round(6)) == {0.1, 0.8}
    assert plan["expected_cost"].to_numpy().mean() == pytest.approx(2.5, abs=0.8)
    assert lg.Policy.load(run / "policy.largesse").explore == 0.3


def test_an_exact_plan_is_proven(shop: Path) -> None:
    run = with_plan(shop, "exact = true\n")
    assert json.loads((run / "plan.json").read_text())["planned"]["gap"] < 1e-9


def test_a_plan_with_rules_is_told_apart_from_the_one_that_is_judged(shop: Path) -> None:
    text = (shop / "campaign.toml").read_text()
    (shop / "campaign.toml").write_text(text.replace("[plan]\n", "[plan]\nleast_return = 0.001\n"))
    found = line.run(read_campaign(shop / "campaign.toml"), shop / "run")
    assert any("without your constraints" in warning["text"] for warning in found["warnings"])
    (shop / "campaign.toml").write_text(text)
    found = line.run(read_campaign(shop / "campaign.toml"), shop / "run2")
    assert not any("without your constraints" in warning["text"] for warning in found["warnings"])
