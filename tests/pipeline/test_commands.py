"""One command or its steps: the same run folder comes out, it is always whole, and nothing is computed twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import largesse as lg
from largesse.campaign import read_campaign
from largesse.errors import InputError, LargesseError, OutputError
from largesse.pipeline import commands
from largesse.pipeline.local_engine import LocalEngine
from largesse.pipeline.run_folder import RUN_FILES, RUN_FORMAT
from support.folders import everything_in

LARGESSE = [sys.executable, "-m", "largesse"]
ALL = RUN_FILES - {"log.parquet"}
JUDGED = {"evaluation.json", "frontier.parquet", "report.html"}
COSTS, BUDGET = "costs = [0, 5, 10]", "budget = 2.5"


def change(file: Path, *changes: tuple[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def fit_and_plan(shop: Path, *changes: tuple[str, str]) -> tuple[pa.Table, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Change the campaign, then fit and plan as it says; return the plan, its levels and its costs."""
    change(shop / "campaign.toml", *changes)
    commands.fit(read_campaign(shop / "campaign.toml"), shop / "run")
    commands.plan(shop / "run", str(shop / "customers.parquet"))
    plan = pq.read_table(shop / "run" / "plan.parquet")
    return plan, plan["level_number"].to_numpy(), plan["expected_cost"].to_numpy()


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(), parse_constant=lambda word: pytest.fail(f"not JSON: {word}"))


def budget_of(run: Path) -> float:
    """Check that everything in a run folder is of one budget; return it."""
    plan = read_json(run / "plan.json")
    budgets = {read_campaign(run).planning.budget, plan["budget"]["average"]}
    if (run / "evaluation.json").exists():
        budgets.add(read_json(run / "evaluation.json")["budget"])
    (budget,) = budgets
    spend = pq.read_table(run / "plan.parquet")["expected_cost"].to_numpy().mean()
    assert spend == pytest.approx(plan["planned"]["spend"])
    assert spend <= budget + 1e-12
    assert lg.Policy.load(run / "policy.largesse").price == pytest.approx(plan["planned"]["price"], abs=1e-3)
    return float(budget)


# -- a run and its steps ----------------------------------------------------------------------------------------------


def test_a_run_folder_holds_a_plan_a_policy_and_a_frontier(ran: Path) -> None:
    assert names_in(ran) == ALL
    assert not [path for path in ran.parent.iterdir() if path.name.startswith(".")]
    plan, customers = pq.read_table(ran / "plan.parquet"), pq.read_table(ran.parent / "customers.parquet")
    level, cost = plan["level_number"].to_numpy(), plan["expected_cost"].to_numpy()
    assert plan["customer"].to_pylist() == customers["id"].to_pylist()
    assert plan.column_names == ["customer", "level", "level_number", "expected_response", "expected_cost"]
    assert set(plan["level"].to_pylist()) <= {"0", "5", "10"}
    assert np.array_equal(cost, np.array([0.0, 5.0, 10.0])[level])
    assert 2.3 < cost.mean() <= 2.5
    decided = lg.Policy.load(ran / "policy.largesse").decide(str(ran.parent / "customers.parquet"))
    assert np.mean(decided == level) > 0.97  # the plan also spends the rest after the last whole step
    frontier = {name: np.array(values) for name, values in pq.read_table(ran / "frontier.parquet").to_pydict().items()}
    assert (np.diff(frontier["budget"]) > 0).all()
    assert 2.5 in frontier["budget"]
    assert (frontier["value_low"] <= frontier["value"]).all()
    assert (frontier["value"] <= frontier["value_high"]).all()
    assert (np.diff(frontier["promise"]) >= -1e-12).all()


def test_the_same_campaign_leaves_the_same_bytes_in_any_order_of_steps(
    run_copy: Path, ran: Path, tmp_path: Path
) -> None:
    before = everything_in(ran)
    commands.run(read_campaign(run_copy), run_copy)
    assert everything_in(run_copy) == before
    steps, customers = tmp_path / "steps", str(ran.parent / "customers.parquet")
    commands.fit(read_campaign(ran.parent), steps)
    commands.judge(steps, budget=2.5)
    commands.plan(steps, customers, budget=2.5)
    commands.report(steps)
    assert everything_in(steps) == before
    commands.judge(steps, budget=2.5)
    assert everything_in(steps) == before
    assert names_in(tmp_path) == {"run", "steps"}


class Counting:
    """An engine that counts its calls."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts

    def __getattr__(self, name: str) -> Any:
        self.counts[name] += 1
        return getattr(LocalEngine(), name)


def test_a_run_does_each_thing_once(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        function = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args, **more: (counts.update([name]), function(*args, **more))[1])

    for name in ("save", "load"):
        count(lg.Policy, name)
    for name in ("read_campaign", "fit_model", "score_log", "make_plan", "evaluate_plan"):
        count(commands, name)
    planning = ("open_customers", "score_customer_table", "make_plan", "save")
    commands.run(read_campaign(shop), shop / "run", engine=Counting(counts))
    assert counts == dict.fromkeys(("read_log", "fit_model", "score_log", "evaluate_plan", *planning), 1)
    counts.clear()
    commands.plan(shop / "run", budget=2, engine=Counting(counts))
    assert counts == dict.fromkeys(("read_campaign", "load", "read_log", *planning), 1)


# -- budgets, costs, constraints, exploration -------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "spend"), [("budget = 0", 0.0), ("total = 500", 2.5), ("budget = 20", 10.0)])
def test_every_form_of_budget_is_kept_and_judged(run_copy: Path, given: str, spend: float) -> None:
    change(run_copy / "campaign.toml", (BUDGET, given))
    planned, judged = commands.plan(run_copy), commands.judge(run_copy)
    cost = pq.read_table(run_copy / "plan.parquet")["expected_cost"].to_numpy()
    assert cost.mean() == pytest.approx(spend, abs=0.03)
    assert judged["budget"] == planned["budget"]["average"]
    assert read_json(run_copy / "evaluation.json") == {"format": RUN_FORMAT, **judged}
    commands.report(run_copy)


def test_without_a_table_of_customers_those_of_the_log_are_planned_for(run_copy: Path) -> None:
    change(run_copy / "campaign.toml", ("customers = ", "# customers = "))
    assert commands.plan(run_copy)["customers"] == 300


def test_redemption_costs_are_face_value_times_expected_response(shop: Path) -> None:
    plan, level, cost = fit_and_plan(shop, (COSTS, f"{COSTS}\non_redemption = true"))
    correction = cost / (np.array([0.0, 5.0, 10.0])[level] * plan["expected_response"].to_numpy())
    assert np.allclose(correction, correction[0])  # one number, by which held-out rows cost more than expected
    assert cost.mean() <= 2.5 * (1 + 1e-9)


def test_costs_of_each_customer_come_from_the_table(shop: Path) -> None:
    for name in ("log.parquet", "customers.parquet"):
        table = pq.read_table(shop / name)
        base = np.random.default_rng(3).uniform(1, 2, table.num_rows)
        for k in range(3):
            table = table.append_column(f"cost{k}", pa.array(k * base))
        pq.write_table(table, shop / name)
    columns = 'costs = ["cost0", "cost1", "cost2"]\ndoses = [0, 5, 10]'
    _, level, cost = fit_and_plan(shop, (COSTS, columns), ("2.5", "0.8"))
    table = pq.read_table(shop / "customers.parquet")
    assert np.allclose(cost, np.column_stack([table[f"cost{k}"].to_numpy() for k in range(3)])[np.arange(200), level])
    assert cost.mean() <= 0.8


def test_constraints_of_the_campaign_file_are_kept(shop: Path) -> None:
    rules = 'segment = "city"\n[plan.caps]\n10 = 15\n[plan.segment_budgets]\nOslo = 100\n'
    _, level, cost = fit_and_plan(shop, (BUDGET, f"{BUDGET}\n{rules}"))
    city = pq.read_table(shop / "customers.parquet")["city"].to_numpy()
    assert np.count_nonzero(level == 2) <= 15
    assert 90 <= cost[city == "Oslo"].sum() <= 100
    assert cost.mean() <= 2.5
    shadow = read_json(shop / "run" / "plan.json")["shadow"]
    assert set(shadow) == {"budget", "segment Oslo", "cap of level 2"}
    assert shadow["segment Oslo"] > 0
    change(shop / "run" / "campaign.toml", ('segment = "city"', 'segment = "town"'))
    with pytest.raises(InputError, match="the column 'town'"):
        commands.plan(shop / "run")


def test_an_exact_plan_is_proven(run_copy: Path) -> None:
    change(run_copy / "campaign.toml", ("exact = false", "exact = true"))
    assert commands.plan(run_copy)["planned"]["gap"] < 1e-9


def test_random_exploration_writes_the_propensity_of_every_decision(run_copy: Path) -> None:
    commands.plan(run_copy, explore=0.3)
    plan = pq.read_table(run_copy / "plan.parquet")
    assert set(plan["propensity"].to_numpy().round(6)) == {0.1, 0.8}
    assert plan["expected_cost"].to_numpy().mean() == pytest.approx(2.5, abs=0.8)
    assert lg.Policy.load(run_copy / "policy.largesse").exploration_rate == 0.3


def test_exploration_for_evaluation_draws_around_the_plan(run_copy: Path) -> None:
    planned = commands.plan(run_copy, explore_for="evaluation", explore=0.1)
    propensity = pq.read_table(run_copy / "plan.parquet")["propensity"].to_numpy()
    assert len(np.unique(propensity.round(6))) > 20
    assert propensity.min() > 0
    assert planned["exploration"]["goal"] == "evaluation"
    this, random, none = (way["gain_se"] for way in planned["exploration"]["ways"])
    assert this < random
    assert none is None  # a log of this plan alone could not tell
    assert planned["planned"]["spend"] <= 2.5
    assert lg.Policy.load(run_copy / "policy.largesse").exploration_rate == 0
    commands.judge(run_copy)
    commands.report(run_copy)
    assert commands.plan(run_copy)["exploration"] == planned["exploration"]  # the folder's own campaign says how


def test_a_value_of_responses_gives_profits_and_a_new_one_fits_nothing(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(shop / "campaign.toml", ('unit = "€"', 'unit = "€"\nresponse_value = 12'))
    shown = commands.run(read_campaign(shop / "campaign.toml"), shop / "run")
    expected = 12 * shown["value"]["estimate"] - shown["spend"]["estimate"]
    assert shown["profit"]["own"]["estimate"] == pytest.approx(expected)
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


# -- a folder is always whole -----------------------------------------------------------------------------------------


def test_a_plan_for_another_budget_drops_the_evaluation_of_the_old_one(run_copy: Path, tmp_path: Path) -> None:
    before = everything_in(run_copy)
    commands.plan(run_copy, out=tmp_path / "x.csv")
    assert everything_in(run_copy) == before  # the same plan again
    with pytest.raises(InputError, match=r"is for a budget of 2\.5, not 1(?s:.)*largesse plan .* --budget 1"):
        commands.judge(run_copy, budget=1.0)
    assert everything_in(run_copy) == before
    made = commands.plan(run_copy, budget=1.0, out=tmp_path / "x.csv")
    assert (made["budget"]["average"], made["dropped"]) == (1.0, [])
    assert everything_in(run_copy) == before  # a plan that is written elsewhere changes nothing
    assert names_in(tmp_path) == {"run", "x.csv"}
    commands.plan(run_copy, budget=1.0)
    assert (names_in(run_copy), budget_of(run_copy)) == (ALL - JUDGED, 1.0)
    plan = pq.read_table(run_copy / "plan.parquet")
    assert csv.read_csv(tmp_path / "x.csv")["level_number"].to_pylist() == plan["level_number"].to_pylist()
    commands.judge(run_copy)
    commands.report(run_copy)
    assert (names_in(run_copy), budget_of(run_copy)) == (ALL, 1.0)


def test_a_report_of_other_numbers_is_dropped(run_copy: Path, tmp_path: Path) -> None:
    commands.judge(run_copy, estimator="snips")
    assert names_in(run_copy) == ALL - {"report.html"}
    commands.judge(run_copy)
    commands.report(run_copy)
    table = pq.read_table(read_campaign(run_copy).customers)
    pq.write_table(table.slice(0, 90), tmp_path / "few.parquet")
    assert commands.plan(run_copy, str(tmp_path / "few.parquet"))["customers"] == 90
    assert names_in(run_copy) == ALL - {"report.html", "evaluation.json", "frontier.parquet"}


def test_outputs_that_must_stay_are_refused_before_anything_is_computed(run_copy: Path, shop: Path) -> None:
    def fail(*_: Any) -> None:
        pytest.fail("computed something")

    customers = str(shop / "customers.parquet")
    os.mkfifo(shop / "out.csv")
    before = everything_in(run_copy)
    for name in (customers, str(run_copy / "frontier.parquet"), read_campaign(run_copy).log):
        with pytest.raises(LargesseError, match=r"read|part of"):
            commands.plan(run_copy, customers, out=name)
    with pytest.raises(LargesseError, match="is a part of a run folder"):
        commands.report(run_copy, run_copy / "policy.largesse")
    with pytest.raises(OutputError, match="is a FIFO"):
        commands.plan(run_copy, out=shop / "out.csv", progress=fail)
    with pytest.raises(OutputError, match="is a FIFO"):
        commands.run(read_campaign(shop), shop / "out.csv", fail)
    with pytest.raises(OutputError, match="is a FIFO"):
        commands.report(run_copy, shop / "out.csv")
    assert everything_in(run_copy) == before
    for name in ("x.csv", "plan.parquet"):  # a table may lie in the run folder
        commands.plan(run_copy, budget=1.0, out=run_copy / name)
    assert names_in(run_copy) == ALL - JUDGED | {"x.csv"}


def test_leftovers_in_and_beside_a_run_folder_do_no_harm(run_copy: Path, tmp_path: Path) -> None:
    for name in (".DS_Store", ".plan.parquet.8f30e26a.part"):
        (run_copy / name).write_text("stray")
    commands.run(read_campaign(run_copy), run_copy)
    assert names_in(run_copy) == ALL | {".DS_Store"}
    run_copy.rename(tmp_path / ".run.0123abcd.old")  # moved away by a killed command
    commands.report(run_copy, tmp_path / "page.html")
    assert names_in(run_copy) == ALL | {".DS_Store"}
    assert names_in(tmp_path) == {"page.html", "run"}


@pytest.mark.slow
def test_two_plans_at_once_never_mix(run_copy: Path) -> None:
    for _ in range(3):
        plans = [
            subprocess.Popen([*LARGESSE, "plan", str(run_copy), "--budget", budget], stderr=subprocess.PIPE)
            for budget in ("1", "2", "0.5")
        ]
        errors = [plan.communicate()[1] for plan in plans]
        assert 0 in [plan.returncode for plan in plans]
        for plan, error in zip(plans, errors, strict=True):  # on a slow machine one may tire of waiting
            assert plan.returncode == 0 or (plan.returncode == 2 and b"in use by another" in error), error
        assert budget_of(run_copy) in (0.5, 1.0, 2.0)
        assert names_in(run_copy) == ALL - JUDGED
        assert names_in(run_copy.parent) == {"run"}


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_plan_stopped_at_any_moment_leaves_a_whole_folder(run_copy: Path, sent: signal.Signals) -> None:
    started = time.monotonic()
    subprocess.run([*LARGESSE, "plan", str(run_copy), "--budget", "1"], check=True, capture_output=True)
    seconds = time.monotonic() - started
    for part in range(8):
        command = [*LARGESSE, "plan", str(run_copy), "--budget", str(1.5 + part % 2)]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(seconds * (0.6 + 0.06 * part))
        child.send_signal(sent)
        _, errors = child.communicate()
        assert b"Traceback" not in errors or child.returncode == -sent
        assert budget_of(run_copy) in (1.0, 1.5, 2.5)
    commands.plan(run_copy, budget=1.0)
    assert names_in(run_copy.parent) == {"run"}
