"""Every experiment: measured on small logs, resumed from its records, and shown on a page with its figures."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.records import Estimate
from largesse.response import Linear
from largesse.worlds import draw_world
from largesse_lab.experiment_runs import ExperimentRunOptions, run_experiment
from largesse_lab.experiments import (
    EXPERIMENTS,
    achieved_power,
    checkup_alarms,
    constrained_plan_coverage,
    convergence_rates,
    exploration_precision,
    gain_lower_bounds,
    hard_log_coverage,
    hsic_kernels,
    interval_coverage,
    kappa_curves,
    monitoring_alarms,
    peer_intervals,
    planned_cost_overspend,
    profit_intervals,
    random_world_comparison,
    served_log_precision,
    shifted_customer_coverage,
    simulation_comparison,
    support_hole_detection,
    table2,
    verdict_calibration,
)
from largesse_lab.runner import truth_measures
from largesse_lab.runner.experiment_request import Records, Request, ignore_progress
from largesse_lab.runner.method_measurement import Method

PLANTED = ["nothing wrong", "a column shifts by 0.5 sd", "10 % of levels not as planned"]


def check_overspend(records: Records) -> None:
    for record in records:
        for who in ("own", "new"):
            assert record[f"{who} sure"] < record[f"{who} after"]
            assert all(-1 <= record[f"{who} {way}"] < 5 for way in planned_cost_overspend.CONFIDENCES)


def check_profit(records: Records) -> None:
    assert [record["paid"] for record in records] == ["always", "on redemption"][: len(records)]
    for record in records:
        assert {
            record[case][kind] for case in profit_intervals.PROFIT_CASES for kind in profit_intervals.MEASURED_INTERVALS
        } <= {
            True,
            False,
            None,
        }
        assert 0 < record["width"] <= 1
        assert 0 <= record["lost"] <= 1


def check_next_log(records: Records) -> None:
    (record,) = records
    assert set(record["ways"]) == set(exploration_precision.LOGGING_WAYS)
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
    assert [record["case"] for record in records] == list(checkup_alarms.FALSE_ALARM_CASES)
    text = checkup_alarms.tabulate(records)
    assert "| a planted leak | names the leak first | 100.0% |" in text
    assert "| confounded | not randomised | 100.0% |" in text


def check_power(records: Records) -> None:
    assert all(record["shown"] is None or 0.3 < record["shown"] <= 1 for record in records)


def check_worlds(records: Records) -> None:
    keys = [(record["world"], record["rows"], record["model"]) for record in records]
    assert keys == [(world, 300, model) for world in (0, 1) for model in ("linear", "uniform", "oracle")]
    assert all(0 < share <= 1 + 1e-9 for record in records for share in record["spent"])
    assert records[0]["regimes"] == draw_world(0).traits.regimes
    for record in records:
        if record["model"] == "oracle":
            assert record["skills"] == pytest.approx([1.0, 1.0], abs=1e-3)
            assert (record["error"], record["effects"]) == (0.0, 0.0)


def check_simulation(records: Records) -> None:
    by = {record["model"]: record for record in records}
    assert list(by) == ["level means", "uniform", "oracle", "linear"]
    assert by["oracle"]["rmse"] == by["oracle"]["√pehe"] == 0
    assert by["oracle"]["skill 1.5"] == pytest.approx(1.0, abs=0.01)
    assert by["uniform"]["skill 3"] == 0
    assert by["uniform"]["√pehe"] is None
    assert by["linear"]["rmse"] < by["level means"]["rmse"]


def check_coverage(records: Records) -> None:
    (record,) = records
    cases = [key for key in record if isinstance(record[key], dict) and "hit" in record[key]]
    assert len(cases) == 3 * 2 * 2 + 2
    case = record["fixed given always"]
    for j in range(2):
        error, se, half_width, hit, truth = (case[key][j] for key in ("error", "se", "reach", "hit", "truth"))
        assert hit == (abs(error) <= half_width)
        assert 1.967 * se < half_width < 2.3 * se  # 300 degrees of freedom, or fewer where few rows carry the error
        assert 0 < truth < 4
    assert record["learnt given always"]["truth"][1] == pytest.approx(1.5, abs=0.3)
    assert record["highest given always"]["error"][1] == 0
    text = interval_coverage.tabulate(records)
    assert "## averaged, 1 logs of 301 rows, 20% randomised" in text
    assert "| learnt | estimated | redeemed |" in text


def check_hard_logs(records: Records) -> None:
    assert [record["log"] for record in records] == [0, 1, 0, 1]
    assert all(set(record["places"].values()) <= {"in", "above", "below", "none"} for record in records)


def check_bound(records: Records) -> None:
    (record,) = records
    assert (record["log"], record["response"], record["levels"]) == (3, "yes/no", 3)
    for source in ("given", "estimated"):
        plan, rule = record[source]["options"]
        for option in (plan, rule):
            assert option["named"] <= option["value"] + gain_lower_bounds.GAIN_ROUNDING
            assert option["at_least"] < option["gain"]
        assert (plan["guaranteed"] is None) == (source == "estimated")
    assert gain_lower_bounds.tabulate(records).startswith("1 logs of 300 rows")


def check_curse(records: Records) -> None:
    assert [record["log"] for record in records] == [0, 1]
    for record in records:
        assert all(low <= gain <= high for gain, low, high in (record[name] for name in ("plan", "rule", "area")))


def check_holes(records: Records) -> None:
    (record,) = records
    assert 1 <= len(record["holes"]) <= support_hole_detection.MAX_HOLES
    for hole in record["holes"]:
        assert 0.05 <= hole["share"] <= 0.4
        assert hole["expected"] >= support_hole_detection.MIN_EXPECTED_ROWS
        assert 0 <= hole["barred"] <= 1
    bounds = [record["allowed value"][end] - record["blind value"][end] for end in (1, 2)]
    assert bounds[0] <= 0 <= bounds[1]


def check_shifts(records: Records) -> None:
    assert [record["kind"] for record in records] == list(shifted_customer_coverage.SHIFT_KINDS)
    for record in records:
        assert 0 < record["effective"] <= 400
        assert record["weighted value"][3] == record["unweighted value"][3] == record["truth"][0]


def check_rules(records: Records) -> None:
    (record,) = records
    judged = [rules for rules in record["rules"].values() if "truth" in rules]
    assert set(record["rules"]) == set(constrained_plan_coverage.RULE_KINDS)
    assert any(rules["same"] < 1 for rules in judged if "same" in rules)
    assert all(rules["own value"][3] == rules["truth"] for rules in judged if "own value" in rules)


@dataclass(frozen=True)
class Case:
    """A small run of an experiment: the request, the changed constants, and the properties of the records."""

    request: Request
    small: dict[tuple[Any, str], Any] = field(default_factory=dict)
    check: Callable[[Records], None] = lambda _records: None
    figure: bool = False  # whether the page shows one


def sizes(owner: Any, **constants: Any) -> dict[tuple[Any, str], Any]:
    return {(owner, name): value for name, value in constants.items()}


SMALL_LOGS = sizes(truth_measures, LOG_ROWS=1000, FRESH_ROWS=1000)
CASES = {
    "table1": Case(Request(["averaged"], ["per-level mean", "uniform level", "oracle"], 2), SMALL_LOGS),
    "table2": Case(Request(["generated"], ["per-level mean", "oracle"], 1), sizes(table2, GENERATED_ROWS=600)),
    "kernels": Case(Request(["averaged"], ["CCPOvIRE, linear", "CCPOvSIRE, linear"], 2), SMALL_LOGS, figure=True),
    "kappa": Case(Request(["averaged"], ["CCPOvIRE"], 2), SMALL_LOGS, figure=True),
    "rates": Case(Request(repeats=2), sizes(convergence_rates, RATE_LEVELS=(2, 5)), figure=True),
    "rates_n": Case(
        Request(["averaged"], ["linear"], 2), sizes(convergence_rates, RATE_LOG_ROWS=(250, 500)), figure=True
    ),
    "simulation": Case(Request(["averaged"], ["linear"], 1), SMALL_LOGS, check_simulation),
    "worlds": Case(
        Request(models=["linear", "uniform", "oracle"], seeds=(0, 1), sizes=[300]),
        sizes(random_world_comparison, FRESH_ROWS=4000),
        check_worlds,
        figure=True,
    ),
    "coverage": Case(
        Request(("averaged",), repeats=1),
        sizes(interval_coverage, FRESH_ROWS=2000, LEARNT_FRESH_ROWS=2000, BAND_FRESH_ROWS=2000, COVERAGE_LOG_ROWS=301)
        | sizes(interval_coverage, COVERAGE_MODEL=lambda: Linear(penalty=0.1)),
        check_coverage,
    ),
    "hard_logs": Case(
        Request(["yes/no, 12 households", "amounts (σ 1.5), 300 rows"], repeats=2),
        sizes(hard_log_coverage, TRUTH_ROWS=40_000),
        check_hard_logs,
    ),
    "bound": Case(
        Request(repeats=4, part=(3, 4)), sizes(gain_lower_bounds, LOG_ROWS=300, FRESH_ROWS=1000), check_bound
    ),
    "overspend": Case(
        Request([planned_cost_overspend.WORLDS], ["linear"], 1),
        sizes(planned_cost_overspend, LOG_ROWS=300, FRESH_ROWS=400),
        check_overspend,
    ),
    "profit": Case(Request(repeats=1), sizes(profit_intervals, LOG_ROWS=300, FRESH_ROWS=500), check_profit),
    "false_alarms": Case(Request(repeats=1), check=check_alarms),
    "gains": Case(Request(["thornton"], ["linear"], 1)),
    "head_to_head": Case(Request(["thornton"], ["linear", "uniform"], 1)),
    "peer_intervals": Case(
        Request(seeds=(1000, 1001)), sizes(peer_intervals, INTERVAL_ROWS=300, INTERVAL_FRESH_ROWS=500)
    ),
    "next_log": Case(
        Request(seeds=(3, 3), sizes=[500]), sizes(exploration_precision, LOG_ROWS=400), check_next_log, figure=True
    ),
    "served_log": Case(
        Request(seeds=(3, 3)), sizes(served_log_precision, SERVED_LOG_ROWS=500, MODEL="linear"), check_served
    ),
    "check_campaigns": Case(
        Request(PLANTED, seeds=(5, 5)),
        sizes(monitoring_alarms, LOG_ROWS=500, NEXT_ROWS=600),
        check_planted,
        figure=True,
    ),
    "power": Case(
        Request(seeds=(1, 1)), sizes(achieved_power, LOG_ROWS=800, FRESH_ROWS=3000, N_TESTS=100), check_power
    ),
    "pace_streams": Case(Request(seeds=(1, 1)), {}, check_streams, figure=True),
    "curse": Case(Request(["3 levels, 3,000 rows"], repeats=2), check=check_curse),
    "holes": Case(Request(seeds=(3, 3), sizes=[400]), check=check_holes),
    "shifts": Case(
        Request(seeds=(3, 5), sizes=[400]),
        sizes(shifted_customer_coverage, POOL_SIZE=800, SHIFTED_CUSTOMERS=300, SHIFT_MODEL="linear"),
        check_shifts,
    ),
    "rules": Case(Request(seeds=(3, 3), sizes=[400]), check=check_rules),
    "verdicts": Case(
        Request(models=["linear"], seeds=(3, 3), sizes=[300]), sizes(verdict_calibration, FRESH_ROWS=500), figure=True
    ),
}


def test_every_experiment_is_in_the_battery_and_the_papers_come_first() -> None:
    assert set(CASES) == set(EXPERIMENTS) - {"real_logs"}  # whose data are not part of the repository
    assert list(EXPERIMENTS)[:5] == ["table1", "table2", "kernels", "kappa", "rates"]


@pytest.mark.parametrize("name", CASES)
def test_it_is_measured_resumed_and_shown(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, experiment = CASES[name], EXPERIMENTS[name]
    for (owner, constant), value in case.small.items():
        monkeypatch.setattr(owner, constant, value)
    linear = Method(lambda: Linear(penalty=0.1))
    for method in ("CCPOvIRE, linear", "CCPOvSIRE, linear"):
        monkeypatch.setitem(hsic_kernels.KERNEL_METHODS, method, linear)
    monkeypatch.setitem(kappa_curves.KAPPA_MODELS, "CCPOvIRE", lambda strength: Linear(penalty=0.1 + strength))
    monkeypatch.setitem(simulation_comparison.SIMULATION_MODELS, "linear", lambda: Linear(penalty=0.1))
    out = tmp_path / f"{name}.jsonl"
    records = experiment.measure(replace(case.request, out=out), ignore_progress)
    assert records
    case.check(records)
    again = experiment.measure(replace(case.request, out=out), ignore_progress)  # resumes: nothing is measured again
    assert json.loads(json.dumps(again)) == json.loads(json.dumps(records))
    lines = out.read_text(encoding="utf-8").splitlines()
    assert sorted(lines) == sorted(json.dumps(record, ensure_ascii=False) for record in records)
    kept, text = run_experiment(name, ExperimentRunOptions(Request(), tmp_path, kept=True), ignore_progress)
    assert sorted(map(repr, kept)) == sorted(repr(json.loads(line)) for line in lines)
    assert "|---" in text
    page = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {experiment.title}\n")
    assert all(line in page for line in text.splitlines())
    json.loads((tmp_path / f"{name}.json").read_text(), parse_constant=pytest.fail)  # no NaN
    figures = list(tmp_path.glob("*.svg"))
    assert len(figures) >= case.figure
    for figure in figures:
        ET.parse(figure)
    assert experiment.measure(Request(repeats=0), ignore_progress) == []
    if experiment.random_worlds:
        assert experiment.measure(Request(seeds=(3, 9), repeats=0), ignore_progress) == []


INVALID = [
    ("table2", Request(["image"], ["BART"]), "did you mean 'images'"),
    ("kappa", Request(["imges", "averaged"], ("CCPOvIR",)), "2 things are wrong"),
    ("rates", Request(["constnt"]), "did you mean 'constant'"),
    ("rates_n", Request(["avraged"], ["liner"]), "2 things are wrong"),
    ("coverage", Request(("average",), ("linear", "liner"), 1), "3 things are wrong"),
    ("bound", Request(["averaged"]), "draws its own worlds"),
    ("profit", Request(models=["linear"]), "draws its own worlds"),
    ("gains", Request(["thorton"]), "did you mean 'Thornton'"),
    ("gains", Request(models=["linar"]), "did you mean 'linear'"),
    ("check_campaigns", Request(["nothing"]), "unknown case 'nothing'"),
    ("worlds", Request(models=["bosting"]), "did you mean 'boosting'"),
    ("worlds", Request(models=["boosting:round=5"]), "'round' is not a parameter"),
    ("worlds", Request(models=["logistic:penalty=5"]), "only the models of the catalogue"),
    ("worlds", Request(models=["boosting:rounds"]), "write settings as"),
    ("worlds", Request(sizes=[20]), "logs of 20 rows"),
]


@pytest.mark.parametrize(("name", "request_", "message"), INVALID)
def test_invalid_requests_are_refused_at_once(name: str, request_: Request, message: str) -> None:
    with pytest.raises(InputError, match=message):
        EXPERIMENTS[name].measure(request_, ignore_progress)


@pytest.mark.parametrize("name", ["gains", "real_logs"])
def test_without_the_real_data_the_message_names_the_variable(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARGESSE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="set LARGESSE_DATA"):
        EXPERIMENTS[name].measure(Request(["Hillstrom"], ["linear"]), ignore_progress)


@pytest.mark.parametrize(
    ("low", "high", "covered"),
    [(0.0, 1.0, True), (0.6, 1.0, False), (0.5, 0.5, True), (float("nan"), float("nan"), None)],
)
def test_an_interval_without_ends_counts_neither_way(low: float, high: float, covered: bool | None) -> None:
    assert profit_intervals.interval_contains_truth(Estimate(0.5, 0.1, low, high), 0.5) is covered


def test_a_plan_that_is_the_mix_itself_has_no_gain() -> None:
    assert exploration_precision._record_interval(Estimate(0.0, 0.0, 0.0, 0.0), 1e-14)["inside"] is None


@pytest.mark.slow
def test_plans_come_closer_to_their_budget_and_keep_it_where_they_must() -> None:
    """A short version of `largesse experiment overspend --repeats 20`."""
    found = planned_cost_overspend.measure(Request(problems=["averaged", "unit"], models=["boosting"], repeats=4))
    before, after, sure = (
        sum(record[f"own {way}"] for record in found) / len(found) for way in planned_cost_overspend.CONFIDENCES
    )
    assert abs(after) < before
    assert sure < 0


@pytest.mark.slow
def test_randomised_logs_raise_few_alarms() -> None:
    """A short version of `largesse experiment checkup_alarms --repeats 200`."""
    found = checkup_alarms.measure(Request(repeats=60))
    assert np.mean([not record["randomised"] for record in found if record["case"] == "randomised"]) <= 0.06
