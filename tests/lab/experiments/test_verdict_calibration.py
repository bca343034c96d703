from typing import Any

import numpy as np
import pytest

from largesse.worlds import draw_world
from largesse_lab.experiments.verdict_calibration import (
    VERDICTS_EXPERIMENT,
    FreshCustomerCurves,
    measure,
    summarise,
    summarise_verdicts,
    tabulate_verdicts_by_rows,
)
from largesse_lab.runner.experiment_request import Request


def make_plan(recommended: str | None, probability: float, gain: float, skill: float) -> dict[str, Any]:
    """Return the record of a plan whose intervals reach 0.1 below and above zero."""
    estimate = [0.0, 0.05, -0.1, 0.1]
    option = {"probability": probability, "gain": estimate}
    truth = {"plan": {"gain": gain, "skill": skill}, "rule": {"gain": 0.0, "skill": 0.25}}
    return {
        "recommended": recommended,
        "grade": "proved" if probability > 0.9 else "no difference",
        "options": {} if recommended is None else {"plan": option},
        "log": estimate,
        "truth": truth,
        "regimes": {"response": "yes/no"},
    }


def test_followed_skill_is_that_of_the_recommended_option() -> None:
    plans = [
        make_plan("plan", 0.95, 0.2, 0.8),
        make_plan("plan", 0.95, -0.05, -3.0),
        make_plan("rule", 0.5, 0.05, 0.4),
        make_plan("mix", 0.5, -0.05, -0.4),
        make_plan(None, 0.5, 0.05, 0.6),
    ]
    found = summarise_verdicts(plans)
    assert found["followed"] == pytest.approx((0.8 - 1.0 + 0.25) / 5)
    assert found["always"] == pytest.approx((0.8 - 1.0 + 0.4 - 0.4 + 0.6) / 5)
    assert (found["recommended"], found["wrong"], found["cannot say"]) == (0.4, 0.5, pytest.approx(0.2))
    assert (found["proved"], found["proved wrong"]) == (2, 1)
    assert found["calibration"] == pytest.approx(0.5 * 0.45)
    assert (found["coverage"], found["log coverage"]) == (0.75, 0.8)
    assert found["log bias"] == pytest.approx(-np.mean([0.2, -0.05, 0.05, -0.05, 0.05]) / 0.05)


def test_one_level_for_everyone_has_no_gain() -> None:
    fresh = draw_world(3).draw_fresh(500)
    customers = FreshCustomerCurves(fresh, fresh.truth)
    budget = float(fresh.costs[-1]) / 2
    alike = customers.measure_true_gain(np.tile(np.eye(len(fresh.costs))[0], (500, 1)), budget)
    assert (alike["gain"], alike["spend"]) == (pytest.approx(0.0, abs=1e-12), 0.0)
    assert customers.measure_true_gain(fresh.truth.argmax(axis=1) * 0, budget) == alike
    assert alike["skill"] < 0


def test_a_world_is_measured_and_tabulated() -> None:
    request = Request(seeds=(3, 3), sizes=[300], models=["linear"])
    (record,) = measure(request)
    assert record["model"] == "linear"
    assert len(record["budgets"]) == 2
    for plan in record["budgets"]:
        assert 0 < plan["options"]["plan"]["probability"] < 1
        assert set(plan["truth"]) >= {"plan", "before"}
    summary = summarise([record])
    assert len(tabulate_verdicts_by_rows(summary).splitlines()) == 3
    assert VERDICTS_EXPERIMENT.make_result_section(summary).name == "verdicts"
