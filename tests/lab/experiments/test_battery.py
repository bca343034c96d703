"""Every experiment: measured on something small, resumed from its records, tabulated, and shown on a page with its figure."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.records import Estimate
from largesse.response import Linear
from largesse_lab.command import Order, run
from largesse_lab.experiments import (
    CHAPTERS,
    EXPERIMENTS,
    bound,
    check_campaigns,
    coverage,
    false_alarms,
    hsic_kernels,
    kappa,
    next_log,
    overspend,
    power_sizes,
    profit,
    rates,
    served_log,
    simulation,
    table2,
)
from largesse_lab.runner import measures
from largesse_lab.runner.repeats import Row
from largesse_lab.runner.request import Records, Request, ignore_progress

PLANTED = ["nothing wrong", "a column shifts by 0.5 sd", "10 % of levels not as planned"]


def check_overspend(records: Records) -> None:
    for record in records:
        for who in ("own", "new"):
            assert record[f"{who} sure"] < record[f"{who} after"]
            assert all(-1 <= record[f"{who} {way}"] < 5 for way in overspend.WAYS)


def check_profit(records: Records) -> None:
    assert [record["paid"] for record in records] == ["always", "on redemption"][: len(records)]
    for record in records:
        assert {record[case][kind] for case in profit.CASES for kind in profit.KINDS} <= {True, False, None}
        assert 0 < record["width"] <= 1
        assert 0 <= record["lost"] <= 1


def check_next_log(records: Records) -> None:
    (record,) = records
    assert set(record["ways"]) == set(next_log.WAYS)
    for way in record["ways"].values():
        assert way["spend"] <= record["budget"] * (1 + 1e-9)
        assert way["plan"]["width"] > 0
        assert way["gain"]["se"] > 0


def check_streams(records: Records) -> None:
    (record,) = records
    kept, lasting = record["ways"]["pace"], record["lasting"]["ways"]["pace"]
    assert all(way["kept"] and way["committed"] <= 1 for way in record["ways"].values())
    assert 0.9 < kept["value"] < 1.02
    assert lasting["kept"]
    assert kept["use"] < lasting["use"] <= 1
    assert (kept["refused"], lasting["redeemed"] > 0) == (0, True)


def check_served(records: Records) -> None:
    (record,) = records
    for name, way in record["ways"].items():
        assert way["width"] > 0
        assert 0.8 < way["spend"] < (1.2 if name == "served" else 1 + 1e-9)


def check_planted(records: Records) -> None:
    assert [record["case"] for record in records] == PLANTED
    assert records[0]["loud"] == {}
    assert records[1]["found"]
    assert records[2]["found"]


def check_alarms(records: Records) -> None:
    assert [record["case"] for record in records] == list(false_alarms.CASES)
    told = false_alarms.tabulate(records)
    assert "| a planted leak | names the leak first | 100.0% |" in told
    assert "| confounded | not randomised | 100.0% |" in told


def check_power(records: Records) -> None:
    assert all(record["shown"] is None or 0.3 < record["shown"] <= 1 for record in records)


def check_simulation(records: Records) -> None:
    by = {record["model"]: record for record in records}
    assert list(by) == ["level means", "uniform", "oracle", "linear"]
    assert by["oracle"]["rmse"] == by["oracle"]["√pehe"] == 0
    assert by["oracle"]["skill 1.5"] == pytest.approx(1.0, abs=0.01)
    assert by["uniform"]["skill 3"] == 0
    assert by["uniform"]["√pehe"] is None
    assert by["linear"]["rmse"] < by["level means"]["rmse"]


@dataclass(frozen=True)
class Case:
    """A small run of an experiment: the request, the constants that are changed, and what holds for the records."""

    request: Request
    small: dict[tuple[Any, str], Any] = field(default_factory=dict)
    check: Callable[[Records], None] = lambda _records: None
    figure: bool = False  # whether the page shows one


TRAIN = {(measures, "TRAIN"): 1000, (measures, "FRESH"): 1000}
CASES = {
    "table1": Case(Request(["averaged"], ["per-level mean", "uniform level", "oracle"], 2), TRAIN, figure=False),
    "table2": Case(Request(["generated"], ["per-level mean", "oracle"], 1), {(table2, "GENERATED_ROWS"): 600}),
    "kernels": Case(Request(["averaged"], ["CCPOvIRE, linear", "CCPOvSIRE, linear"], 2), TRAIN),
    "kappa": Case(Request(["averaged"], ["CCPOvIRE"], 2), TRAIN, figure=True),
    "rates": Case(Request(repeats=2), {(rates, "LEVELS"): (2, 5)}, figure=True),
    "rates_n": Case(Request(["averaged"], ["linear"], 2), {(rates, "ROWS"): (250, 500)}, figure=True),
    "simulation": Case(Request(["averaged"], ["linear"], 1), TRAIN, check_simulation),
    "worlds": Case(Request(rows=["linear", "uniform", "oracle"], seeds=(0, 1), sizes=[300]), figure=True),
    "coverage": Case(
        Request(("averaged",), repeats=1),
        {(coverage, name): 2000 for name in ("FRESH", "LEARNT_FRESH", "BAND_FRESH")}
        | {(coverage, "ROWS"): 301, (coverage, "MODEL"): lambda: Linear(penalty=0.1)},
    ),
    "hard_logs": Case(Request(["yes/no, 12 households"], repeats=2)),
    "bound": Case(Request(repeats=1), {(bound, "ROWS"): 300, (bound, "FRESH"): 1000}),
    "overspend": Case(
        Request([overspend.WORLDS], ["linear"], 1),
        {(overspend, "ROWS"): 300, (overspend, "FRESH"): 400},
        check_overspend,
    ),
    "profit": Case(Request(repeats=1), {(profit, "ROWS"): 300, (profit, "FRESH"): 500}, check_profit),
    "false_alarms": Case(Request(repeats=1), check=check_alarms),
    "gains": Case(Request(["thornton"], ["linear"], 1)),
    "next_log": Case(Request(seeds=(3, 3), sizes=[500]), {(next_log, "ROWS"): 400}, check_next_log, figure=True),
    "served_log": Case(Request(seeds=(3, 3)), {(served_log, "ROWS"): 500}, check_served),
    "check_campaigns": Case(
        Request(PLANTED, seeds=(5, 5)),
        {(check_campaigns, "ROWS"): 500, (check_campaigns, "NEXT"): 600},
        check_planted,
        figure=True,
    ),
    "power": Case(
        Request(seeds=(1, 1)),
        {(power_sizes, "ROWS"): 800, (power_sizes, "FRESH"): 3000, (power_sizes, "TESTS"): 100},
        check_power,
    ),
    "pace_streams": Case(Request(seeds=(1, 1)), {}, check_streams, figure=True),
}


def test_every_experiment_is_in_the_battery_and_the_papers_come_first() -> None:
    assert set(CASES) == set(EXPERIMENTS) - {"real_logs"}  # which needs data that are not here
    assert list(EXPERIMENTS)[:5] == ["table1", "table2", "kernels", "kappa", "rates"]
    assert all(experiment.chapter.title for experiment in EXPERIMENTS.values())


@pytest.mark.parametrize("name", CASES)
def test_it_is_measured_resumed_tabulated_and_shown(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, experiment = CASES[name], EXPERIMENTS[name]
    for (owner, constant), value in case.small.items():
        monkeypatch.setattr(owner, constant, value)
    linear = Row(lambda: Linear(penalty=0.1))
    for row in ("CCPOvIRE, linear", "CCPOvSIRE, linear"):
        monkeypatch.setitem(hsic_kernels.ROWS, row, linear)
    monkeypatch.setitem(kappa.ROWS, "CCPOvIRE", lambda strength: Linear(penalty=0.1 + strength))
    monkeypatch.setitem(simulation.MODELS, "linear", lambda: Linear(penalty=0.1))
    folder = tmp_path / "results"
    folder.mkdir()
    records, text = run(name, Order(case.request, folder, jobs=1), ignore_progress)
    assert records
    case.check(records)
    assert (folder / f"{name}.md").read_text(encoding="utf-8") == text
    assert "|---" in text
    lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(lines) == sorted(json.dumps(record, ensure_ascii=False) for record in records)
    kept, told = run(name, Order(Request(), folder, kept=True), ignore_progress)
    assert (sorted(map(repr, kept)), told) == (sorted(repr(json.loads(line)) for line in lines), text)
    again, told = run(name, Order(case.request, folder, jobs=1), ignore_progress)  # resumes: nothing is measured again
    assert (json.loads(json.dumps(again)), told) == (json.loads(json.dumps(records)), text)
    assert experiment.measure(Request(repeats=0), ignore_progress) == []
    if experiment.drawn:
        assert experiment.measure(Request(seeds=(3, 9), repeats=0), ignore_progress) == []
    if experiment.summarise is not None:
        run("page", Order(Request(), folder), ignore_progress)
        assert CHAPTERS[name].title in (tmp_path / "results.md").read_text(encoding="utf-8")
        figures = list(folder.glob("*.svg"))
        assert len(figures) >= case.figure
        for figure in figures:
            ET.parse(figure)


@pytest.mark.parametrize(
    ("low", "high", "held"), [(0.0, 1.0, True), (0.6, 1.0, False), (0.5, 0.5, True), (float("nan"), float("nan"), None)]
)
def test_an_interval_without_ends_counts_neither_way(low: float, high: float, held: bool | None) -> None:
    assert profit.contains(Estimate(0.5, 0.1, low, high), 0.5) is held


def test_a_plan_that_is_the_mix_itself_has_no_gain_to_miss() -> None:
    assert next_log._describe(Estimate(0.0, 0.0, 0.0, 0.0), 1e-14)["inside"] is None


@pytest.mark.slow
def test_plans_come_closer_to_their_budget_and_keep_it_where_they_must() -> None:
    """A short version of `largesse experiment overspend --repeats 20`."""
    found = overspend.measure(Request(problems=["averaged", "unit"], rows=["boosting"], repeats=4))
    before, after, sure = (sum(record[f"own {way}"] for record in found) / len(found) for way in overspend.WAYS)
    assert abs(after) < before
    assert sure < 0


@pytest.mark.slow
def test_randomised_logs_raise_few_alarms() -> None:
    """A short version of `largesse experiment false_alarms --repeats 200`."""
    found = false_alarms.measure(Request(repeats=60))
    assert np.mean([not record["randomised"] for record in found if record["case"] == "randomised"]) <= 0.06
