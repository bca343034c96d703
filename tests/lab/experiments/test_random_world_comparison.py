"""Models on random worlds: resumed runs, measures, and the summary."""

import sys
from typing import Any

import numpy as np
import pytest

from largesse.worlds import draw_world
from largesse_lab.experiments import random_world_comparison
from largesse_lab.experiments.random_world_comparison import (
    WORLDS_EXPERIMENT,
    measure,
    measure_curves_and_skill,
    summarise,
)
from largesse_lab.runner.experiment_request import Request


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_the_true_means_for_everybody_have_skill_zero_and_a_constant_has_error_one(seed: int) -> None:
    world = draw_world(seed)
    fresh = world.draw_fresh(random_world_comparison.FRESH_ROWS)
    same = np.tile(fresh.truth.mean(axis=0), (len(fresh), 1))
    assert measure_curves_and_skill(same, fresh, world.budgets)["skills"] == pytest.approx([0.0, 0.0], abs=0.15)
    constant = np.full(fresh.truth.shape, fresh.truth.mean())
    judged = measure_curves_and_skill(constant, fresh, world.budgets)
    assert (judged["error"], judged["effects"]) == pytest.approx((1.0, 1.0))


def test_simple_models_need_no_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sklearn", "threadpoolctl"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(random_world_comparison, "FRESH_ROWS", 2000)
    models = ["linear", "logistic", "uniform", "oracle"]
    assert [record["model"] for record in measure(Request(models=models, seeds=(1, 1), sizes=[300]))] == models


# -- the summary -------------------------------------------------------------------------------------------------------


def make_record(world: int, model: str, skills: list[float], **more: Any) -> dict[str, Any]:
    regimes = {"log": "random" if world < 2 else "rule"}
    measures = {"error": 0.5, "effects": 0.5, "seconds": 1.0, "rows": 2000}
    return {"world": world, "model": model, "skills": skills, "regimes": regimes, **measures, **more}


RECORDS = [
    make_record(0, "a", [0.5, 0.7], seconds=1.0),
    make_record(1, "a", [0.1, 0.1], seconds=2.0),
    make_record(2, "a", [-9.0, 0.4], seconds=9.0),
    *(make_record(world, "boosting", [skill, skill]) for world, skill in enumerate((0.4, -0.2, 0.2))),
    *(make_record(world, "logistic", [0.0, 0.0]) for world in range(3)),
]


def test_means_have_floored_skills_and_harm_has_not() -> None:
    (size,) = summarise(RECORDS)["sizes"]
    cell = size["models"]["a"]
    assert cell["skill"] == pytest.approx((0.6 + 0.1 - 0.3) / 3)
    assert cell["bad"] == pytest.approx(1 / 3)
    assert (cell["median seconds"], cell["mean seconds"]) == (2.0, 4.0)
    assert cell["worst"] == {"trait": "log", "group": "rule", "worlds": 1, "skill": pytest.approx(-0.3)}
    assert [(group["group"], group["worlds"]) for group in size["regimes"]] == [("random", 2), ("rule", 1)]
    at = dict(zip(size["distribution"]["skill"], size["distribution"]["share"]["a"], strict=True))
    assert (at[-1.0], at[-0.3], at[0.1], at[1.0]) == pytest.approx((0, 1 / 3, 2 / 3, 1), abs=1e-3)


def test_the_first_model_is_compared_with_the_best_peer_world_by_world() -> None:
    (size,) = summarise(RECORDS)["sizes"]
    differences = np.array([0.2, 0.3, -0.5])
    lead = size["against"]["boosting"]
    assert (size["first"], size["best peer"]) == ("a", "boosting")
    se = differences.std(ddof=1) / np.sqrt(3)
    assert (lead["difference"], lead["se"]) == pytest.approx((differences.mean(), se))
    assert lead["ahead"] == pytest.approx(2 / 3)
    both = summarise([*RECORDS, *({**record, "rows": 500} for record in RECORDS)])
    assert [size["rows"] for size in both["sizes"]] == [500, 2000]
    text = WORLDS_EXPERIMENT.make_result_section(both).join_paragraphs()
    assert "a minus the best peer, boosting: mean skill +0.000 ± 0.252" in text
    assert "logs of 500 rows" in text
