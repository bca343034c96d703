from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from largesse.errors import BudgetError
from largesse.evaluation import frontier_estimate as budgets
from largesse.evaluation.crossfitted_scores import crossfit_scores
from largesse.evaluation.estimators import ESTIMATORS
from largesse.evaluation.log_checks import doctor
from largesse.evaluation.policy_evaluation import evaluate
from largesse.evaluation.study_estimation import make_study
from largesse.levels import Levels
from largesse.records import Log, Study
from largesse.response.linear import Linear
from largesse.worlds.paper_simulations import simulate

MODEL = Linear(penalty=0.03)
BUDGET = 1.3


@pytest.fixture(scope="module")
def log() -> Log:
    log = simulate("confounded", n=400, seed=2, mix=0.3).log
    return replace(log, features=log.features.select([f"x{j}" for j in range(5)]), propensity=None)


@pytest.fixture(scope="module")
def study(log: Log) -> Study:
    return make_study(log, MODEL, BUDGET)


def test_the_evaluation_of_a_study_is_that_of_the_verb(log: Log, study: Study) -> None:
    assert study.evaluation == evaluate(log, MODEL, budget=BUDGET)


def test_the_frontier_holds_the_evaluation_at_its_budget(study: Study) -> None:
    (point,) = [point for point in study.frontier if point.budget == BUDGET]
    result = study.evaluation
    assert (point.value.estimate, point.value.interval) == (result.value, result.value_interval)
    assert (point.spend.estimate, point.promise) == (result.spend, result.promise)
    assert len(study.frontier) == len(study.plans) == budgets.N_BUDGETS + 1


def test_the_plans_value_is_estimated_in_every_way(study: Study) -> None:
    assert set(study.estimates) == set(ESTIMATORS)
    assert study.estimates["dr"].estimate == pytest.approx(study.evaluation.value)
    assert study.estimates["direct"].estimate == pytest.approx(study.evaluation.promise)


def test_the_mean_curve_is_the_models_own(log: Log, study: Study) -> None:
    np.testing.assert_allclose(study.mean_curve, crossfit_scores(log, MODEL).curves.mean(axis=0))


def test_the_checkup_is_that_of_the_doctor(log: Log, study: Study) -> None:
    found = doctor(log)
    assert study.checkup.findings == found.findings
    assert study.checkup.raw == found.raw


def test_the_cost_curve_has_every_judged_budget(study: Study) -> None:
    assert [point.budget for point in study.cost_curve.points] == [point.budget for point in study.frontier]
    assert BUDGET in [point.budget for point in study.cost_curve.points]


@pytest.mark.parametrize("budget", [BUDGET, 9.0])
def test_every_budget_is_allocated_once_per_fold(log: Log, monkeypatch: pytest.MonkeyPatch, budget: float) -> None:
    planned = []
    allocate = budgets.allocate

    def counted(curves: Any, costs: Any, budget: float) -> Any:
        planned.append((len(curves), curves.sum(), budget))
        return allocate(curves, costs, budget)

    monkeypatch.setattr(budgets, "allocate", counted)
    make_study(log, MODEL, budget)
    assert len(set(planned)) == len(planned) == 5 * (budgets.N_BUDGETS + 1)


def test_a_budget_beyond_the_best_plan_is_judged_at_the_end_of_the_frontier(log: Log) -> None:
    study = make_study(log, MODEL, 9.0)
    assert study.evaluation.budget == 9.0
    assert study.evaluation.value == pytest.approx(study.frontier[-1].value.estimate)
    assert len(study.frontier) == budgets.N_BUDGETS


def test_a_budget_below_the_cheapest_plan_is_refused(log: Log) -> None:
    dear = replace(log, levels=Levels(costs=[1, 2, 3, 4, 5]))
    with pytest.raises(BudgetError, match="cheapest"):
        make_study(dear, MODEL, 0.5)


def test_progress_is_heard_from_beginning_to_end(log: Log) -> None:
    heard: list[tuple[str, float]] = []
    make_study(log, MODEL, BUDGET, progress=lambda stage, done: heard.append((stage, done)))
    shares = [done for stage, done in heard if stage == heard[0][0]]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert len({stage for stage, _ in heard}) == 2
