"""Plans by the simple rule or the uniform mix of a run's evaluation."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from largesse.errors import InputError
from largesse.evaluation import RULE_GROUPS
from largesse.pipeline import plan
from largesse.pipeline.python_api import Run
from largesse.pipeline.simpler_plan import _limit_to_budget

COSTS = np.array([0.0, 5.0, 10.0])


def read_plan(path: Path) -> tuple[np.ndarray, np.ndarray]:
    table = pq.read_table(path)
    return table["level_number"].to_numpy(), table["propensity"].to_numpy()


def test_a_mix_has_the_same_probabilities_for_everyone_and_the_cost_of_the_plan(run_copy: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in run_copy.iterdir()}
    made = plan(run_copy, kind="mix", out=tmp_path / "mix.parquet")
    level, propensity = read_plan(tmp_path / "mix.parquet")
    assert {path.name: path.read_bytes() for path in run_copy.iterdir()} == before  # the folder keeps its policy's plan
    by_level = {k: set(propensity[level == k].round(9)) for k in np.unique(level)}
    assert all(len(known) == 1 for known in by_level.values())
    probability = {k: known.pop() for k, known in by_level.items()}
    assert sum(probability.values()) == pytest.approx(1.0)
    spend = COSTS[level].mean()
    assert made["planned"]["spend"] == pytest.approx(spend)
    assert spend <= made["budget"]["average"] * (1 + 1e-9)
    assert spend == pytest.approx(json.loads(before["plan.json"])["planned"]["spend"], rel=0.05)


def test_a_rule_has_the_same_probabilities_within_each_group(run_copy: Path, tmp_path: Path) -> None:
    rule = json.loads((run_copy / "evaluation.json").read_text())["safety"]["rule"]
    plan(run_copy, kind="rule", out=tmp_path / "rule.csv")
    made = csv.read_csv(tmp_path / "rule.csv")
    level, propensity = made["level_number"].to_numpy(), made["propensity"].to_numpy()
    assert len(rule["groups"]) == len(rule["shares"]) <= RULE_GROUPS + 2
    assert np.allclose(np.sum(rule["shares"], axis=1), 1.0)
    pairs = {(k, round(float(p), 9)) for k, p in zip(level, propensity, strict=True)}
    assert 1 <= len(pairs) <= 3 * len(rule["groups"])
    assert COSTS[level].mean() <= json.loads((run_copy / "plan.json").read_text())["budget"]["average"] * (1 + 1e-9)


def test_the_draw_follows_the_seed_and_python_gives_the_same_plan(run_copy: Path, tmp_path: Path) -> None:
    plan(run_copy, kind="mix", out=tmp_path / "a.parquet")
    table = Run({}, run_copy).plan_as("mix")
    assert table.equals(pq.read_table(tmp_path / "a.parquet").cast(table.schema))
    assert Run({}, run_copy).plan_as("plan").equals(Run({}, run_copy).plan)
    assert isinstance(table, pa.Table)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "mixture", "out": "a.csv"}, "mixture"),
        ({"kind": "mix"}, "--out"),
        ({"kind": "rule", "out": "a.csv", "budget": 1.0}, "budget"),
        ({"kind": "rule", "out": "a.csv", "explore": 0.1}, "exploration"),
    ],
)
def test_what_does_not_belong_to_the_evaluation_is_refused(
    run_copy: Path, tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    if "out" in settings:
        settings = settings | {"out": tmp_path / "a.csv"}
    with pytest.raises(InputError) as refused:
        plan(run_copy, **settings)  # type: ignore[arg-type]
    assert words in str(refused.value)


def test_without_an_evaluation_there_is_nothing_to_compare_with(run_copy: Path, tmp_path: Path) -> None:
    (run_copy / "evaluation.json").unlink()
    with pytest.raises(InputError, match=r"evaluation\.json"):
        plan(run_copy, kind="mix", out=tmp_path / "mix.parquet")


def test_probabilities_above_the_budget_are_lowered_towards_the_cheapest_level() -> None:
    probabilities, costs = np.tile([0.2, 0.3, 0.5], (1000, 1)), np.tile(COSTS, (1000, 1))
    kept = _limit_to_budget(probabilities, costs, 5.0)
    assert np.allclose(kept.sum(axis=1), 1.0)
    assert 4.8 < (kept * costs).sum(axis=1).mean() < 5.0
    assert np.allclose(kept[:, 1] / kept[:, 2], 0.6)
    assert np.array_equal(_limit_to_budget(probabilities, costs, 7.0), probabilities)
