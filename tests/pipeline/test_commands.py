"""The straight line: one command or step by step, the same folder comes out, and nothing is computed twice."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import largesse as lg
from largesse.campaign.file import read_campaign
from largesse.errors import InputError
from largesse.pipeline import commands
from largesse.pipeline.folder import FILES
from largesse.pipeline.scoring import Local
from support.folders import everything_in


def change(file: Path, *changes: tuple[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def fit_and_plan(shop: Path, *changes: tuple[str, str]) -> Path:
    """Change the campaign, then fit and plan as it says."""
    change(shop / "campaign.toml", *changes)
    commands.fit(read_campaign(shop / "campaign.toml"), shop / "run")
    commands.plan(shop / "run", str(shop / "customers.parquet"))
    return shop / "run"


def test_a_run_folder_holds_everything_and_nothing_else(ran: Path) -> None:
    assert {path.name for path in ran.iterdir()} == FILES - {"log.parquet"}
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


def test_a_run_into_its_own_folder_from_its_own_campaign_leaves_the_same_bytes(run_copy: Path) -> None:
    before = everything_in(run_copy)
    commands.run(read_campaign(run_copy), run_copy)
    assert everything_in(run_copy) == before
    assert [path.name for path in run_copy.parent.iterdir()] == ["run"]


def test_step_by_step_gives_the_same_files_as_one_run(ran: Path, tmp_path: Path) -> None:
    steps = tmp_path / "steps"
    commands.fit(read_campaign(ran.parent), steps)
    commands.plan(steps, str(ran.parent / "customers.parquet"), budget=2.5)
    commands.judge(steps, budget=2.5)
    commands.report(steps)
    assert everything_in(steps) == everything_in(ran)


class Counting:
    """An engine that counts what it is asked for."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts

    def __getattr__(self, name: str) -> Any:
        self.counts[name] += 1
        return getattr(Local(), name)


def test_a_run_does_each_thing_once(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()

    def counted(name: str, function: Any) -> Any:
        return lambda *args, **more: (counts.update([name]), function(*args, **more))[1]

    monkeypatch.setattr(lg.Policy, "save", counted("save", lg.Policy.save))
    monkeypatch.setattr(lg.Policy, "load", counted("load", lg.Policy.load))
    monkeypatch.setattr(commands, "read_campaign", counted("read_campaign", read_campaign))
    for step in ("fit_model", "score_log", "make_plan", "judge_plan"):
        monkeypatch.setattr(commands, step, counted(step, getattr(commands, step)))
    planning = ("open_customers", "score", "make_plan", "save")
    commands.run(read_campaign(shop), shop / "run", engine=Counting(counts))
    assert counts == dict.fromkeys(("read_log", "fit_model", "score_log", "judge_plan", *planning), 1)
    counts.clear()
    commands.plan(shop / "run", budget=2, engine=Counting(counts))
    assert counts == dict.fromkeys(("read_campaign", "load", *planning), 1)


def test_without_a_table_of_customers_the_logs_own_are_planned_for(run_copy: Path) -> None:
    change(run_copy / "campaign.toml", ("customers = ", "# customers = "))
    assert commands.plan(run_copy)["customers"] == 300


@pytest.mark.parametrize(("given", "spend"), [("budget = 0", 0.0), ("total = 500", 2.5), ("budget = 20", 10.0)])
def test_every_way_to_say_the_budget_is_kept(run_copy: Path, given: str, spend: float) -> None:
    change(run_copy / "campaign.toml", ("budget = 2.5", given))
    commands.plan(run_copy)
    plan = pq.read_table(run_copy / "plan.parquet")
    assert plan["expected_cost"].to_numpy().mean() == pytest.approx(spend, abs=0.03)


@pytest.mark.parametrize("given", ["budget = 0", "total = 500"])
def test_the_plan_is_judged_at_its_own_budget_and_written_as_strict_json(run_copy: Path, given: str) -> None:
    change(run_copy / "campaign.toml", ("budget = 2.5", given))
    planned, judged = commands.plan(run_copy), commands.judge(run_copy)
    assert judged["budget"] == planned["budget"]["average"]
    text = (run_copy / "evaluation.json").read_text()
    kept = json.loads(text, parse_constant=lambda word: pytest.fail(f"not JSON: {word}"))
    assert kept == {"format": 3, **judged}
    commands.report(run_copy)


def test_redemption_costs_are_face_value_times_expected_response(shop: Path) -> None:
    run = fit_and_plan(shop, ("costs = [0, 5, 10]", "costs = [0, 5, 10]\non_redemption = true"))
    plan = pq.read_table(run / "plan.parquet")
    face = np.array([0.0, 5.0, 10.0])[plan["level_number"].to_numpy()]
    correction = plan["expected_cost"].to_numpy() / (face * plan["expected_response"].to_numpy())
    assert np.allclose(correction, correction[0])  # one number, by which held-out rows cost more than expected
    assert plan["expected_cost"].to_numpy().mean() <= 2.5 * (1 + 1e-9)


def test_each_customers_own_costs_come_from_the_table(shop: Path) -> None:
    for name in ("log.parquet", "customers.parquet"):
        table = pq.read_table(shop / name)
        base = np.random.default_rng(3).uniform(1, 2, table.num_rows)
        for k in range(3):
            table = table.append_column(f"cost{k}", pa.array(k * base))
        pq.write_table(table, shop / name)
    columns = 'costs = ["cost0", "cost1", "cost2"]\ndoses = [0, 5, 10]'
    run = fit_and_plan(shop, ("costs = [0, 5, 10]", columns), ("2.5", "0.8"))
    plan = pq.read_table(run / "plan.parquet")
    own = np.column_stack([pq.read_table(shop / "customers.parquet")[f"cost{k}"].to_numpy() for k in range(3)])
    assert np.allclose(plan["expected_cost"].to_numpy(), own[np.arange(200), plan["level_number"].to_numpy()])
    assert plan["expected_cost"].to_numpy().mean() <= 0.8


def test_the_rules_of_the_campaign_file_are_kept(shop: Path) -> None:
    rules = 'segment = "city"\n[plan.caps]\n10 = 15\n[plan.segment_budgets]\nOslo = 100\n'
    run = fit_and_plan(shop, ("budget = 2.5", f"budget = 2.5\n{rules}"))
    plan, city = pq.read_table(run / "plan.parquet"), pq.read_table(shop / "customers.parquet")["city"].to_numpy()
    cost = plan["expected_cost"].to_numpy()
    assert np.count_nonzero(plan["level_number"].to_numpy() == 2) <= 15
    assert 90 <= cost[city == "Oslo"].sum() <= 100
    assert cost.mean() <= 2.5
    shadow = json.loads((run / "plan.json").read_text())["shadow"]
    assert set(shadow) == {"budget", "segment Oslo", "cap of level 2"}
    assert shadow["segment Oslo"] > 0


def test_a_rule_about_a_column_that_is_not_there_is_named(shop: Path) -> None:
    rules = 'segment = "town"\n[plan.segment_budgets]\nOslo = 100\n'
    with pytest.raises(InputError, match="the column 'town', which"):
        fit_and_plan(shop, ("budget = 2.5", f"budget = 2.5\n{rules}"))


def test_exploring_writes_the_propensity_of_every_decision(shop: Path) -> None:
    run = fit_and_plan(shop, ("budget = 2.5", "budget = 2.5\nexplore = 0.3"))
    plan = pq.read_table(run / "plan.parquet")
    assert set(plan["propensity"].to_numpy().round(6)) == {0.1, 0.8}
    assert plan["expected_cost"].to_numpy().mean() == pytest.approx(2.5, abs=0.8)
    assert lg.Policy.load(run / "policy.largesse").exploration_rate == 0.3


def test_exploring_for_evaluation_draws_around_the_plan(run_copy: Path) -> None:
    made = commands.plan(run_copy, explore_for="evaluation", explore=0.1)
    plan = pq.read_table(run_copy / "plan.parquet")
    propensity = plan["propensity"].to_numpy()
    assert len(np.unique(propensity.round(6))) > 20
    assert propensity.min() > 0
    assert made["exploration"]["goal"] == "evaluation"
    this, random, none = (way["gain_se"] for way in made["exploration"]["ways"])
    assert this < random
    assert none is None  # a log of this plan alone could not tell
    assert made["planned"]["spend"] <= 2.5
    assert lg.Policy.load(run_copy / "policy.largesse").exploration_rate == 0
    assert 'explore_for = "evaluation"' in (run_copy / "campaign.toml").read_text()
    commands.judge(run_copy)
    commands.report(run_copy)
    assert "This plan explores." in (run_copy / "report.html").read_text()
    again = commands.plan(run_copy)  # the folder's own campaign says how
    assert again["exploration"] == made["exploration"]


def test_an_exact_plan_is_proven(shop: Path) -> None:
    run = fit_and_plan(shop, ("budget = 2.5", "budget = 2.5\nexact = true"))
    assert json.loads((run / "plan.json").read_text())["planned"]["gap"] < 1e-9


@pytest.mark.parametrize(
    ("line_of_plan", "without"), [("least_return = 0.001", "your constraints"), ("explore = 0.1", "exploration")]
)
def test_a_plan_that_does_more_than_the_one_that_is_judged_comes_with_a_warning(
    run_copy: Path, line_of_plan: str, without: str
) -> None:
    name = line_of_plan.split()[0]
    before = json.loads((run_copy / "evaluation.json").read_text())["warnings"]
    change(run_copy / "campaign.toml", (f"{name} = 0.0", line_of_plan))
    warnings = commands.judge(run_copy)["warnings"]
    assert len(warnings) == len(before) + 1
    assert f"the plan without {without}, at the same budget" in warnings[0]["text"]


def test_a_value_of_responses_gives_profits_and_a_new_one_fits_nothing(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(shop / "campaign.toml", ('unit = "€"', 'unit = "€"\nresponse_value = 12'))
    shown = commands.run(read_campaign(shop / "campaign.toml"), shop / "run")
    first = shown["profit"]
    expected = 12 * shown["value"]["estimate"] - shown["spend"]["estimate"]
    assert first["own"]["estimate"] == pytest.approx(expected)
    best = shown["best_budget"]
    assert best["low"] <= best["budget"] <= best["high"]
    assert "profit" in pq.read_table(shop / "run" / "frontier.parquet").column_names
    change(shop / "run" / "campaign.toml", ("response_value = 12", "response_value = 30"))
    monkeypatch.setattr(commands, "fit_model", None)  # a value changes nothing that was learnt
    again = commands.judge(shop / "run")
    assert again["value"] == shown["value"]
    expected = 30 * shown["value"]["estimate"] - shown["spend"]["estimate"]
    assert again["profit"]["own"]["estimate"] == pytest.approx(expected)


def test_a_yes_has_no_currency(shop: Path) -> None:
    change(shop / "campaign.toml", ('unit = "€"', 'unit = "€"\nresponse_unit = "€"'))
    with pytest.raises(InputError, match="'bought' is yes or no"):
        commands.run(read_campaign(shop / "campaign.toml"), shop / "run")
    assert not (shop / "run").exists()
