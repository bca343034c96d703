"""Models on worlds drawn at random: what is measured, kept, resumed, summarised and drawn."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.worlds import draw_world
from largesse_lab.command import Order, run
from largesse_lab.experiments import worlds
from largesse_lab.experiments.worlds import judge_curves, measure, summarise, tabulate
from largesse_lab.runner.request import Records, Request
from largesse_lab.runner.request import ignore_progress as quiet

SMALL = Request(rows=["linear", "uniform", "oracle"], seeds=(0, 1), sizes=[300])


@pytest.fixture(scope="module")
def found() -> Records:
    return measure(SMALL)


def test_every_model_is_measured_on_every_world(found: Records) -> None:
    keys = [(record["world"], record["rows"], record["model"]) for record in found]
    assert keys == [(world, 300, model) for world in (0, 1) for model in ("linear", "uniform", "oracle")]
    assert all(0 < share <= 1 + 1e-9 for record in found for share in record["spent"])
    assert found[0]["regimes"] == draw_world(0).traits.regimes


def test_the_truth_has_skill_one_and_no_error(found: Records) -> None:
    for record in found:
        if record["model"] == "oracle":
            assert record["skills"] == pytest.approx([1.0, 1.0], abs=1e-3)
            assert (record["error"], record["effects"]) == (0.0, 0.0)


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_the_true_means_for_everybody_have_skill_zero_and_a_constant_has_error_one(seed: int) -> None:
    world = draw_world(seed)
    fresh = world.draw_fresh(worlds.FRESH)
    same = np.tile(fresh.truth.mean(axis=0), (len(fresh), 1))
    assert judge_curves(same, fresh, world.budgets)["skills"] == pytest.approx([0.0, 0.0], abs=0.15)
    constant = np.full(fresh.truth.shape, fresh.truth.mean())
    judged = judge_curves(constant, fresh, world.budgets)
    assert (judged["error"], judged["effects"]) == pytest.approx((1.0, 1.0))


def test_a_stopped_run_resumes(found: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.dumps(record, ensure_ascii=False) for record in found]
    (tmp_path / "worlds.jsonl").write_text("\n".join(lines[:4]) + "\n" + lines[4][:30], encoding="utf-8")
    real, again = worlds._measure_model, []

    def note(name: str, seed: int, *rest: Any) -> dict[str, Any]:
        again.append((seed, name))
        return real(name, seed, *rest)

    monkeypatch.setattr(worlds, "_measure_model", note)
    records, text = run("worlds", Order(SMALL, tmp_path, jobs=1), quiet)
    assert again == [(1, "uniform"), (1, "oracle")]

    def drop_time(some: Records) -> Records:
        return [{**record, "seconds": 0} for record in some]

    assert drop_time(records) == drop_time(json.loads(json.dumps(found)))
    assert (tmp_path / "worlds.md").read_text(encoding="utf-8") == text


def test_simple_rows_need_no_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sklearn", "threadpoolctl"):
        monkeypatch.setitem(sys.modules, name, None)
    found = measure(Request(rows=["linear", "logistic", "uniform", "oracle"], seeds=(1, 1), sizes=[300]))
    assert len(found) == 4


# -- the summary -------------------------------------------------------------------------------------------------------


def make_record(world: int, model: str, skills: list[float], **more: Any) -> dict[str, Any]:
    regimes = {"log": "random" if world < 2 else "rule"}
    plain = {"error": 0.5, "effects": 0.5, "seconds": 1.0, "rows": 2000}
    return {"world": world, "model": model, "skills": skills, "regimes": regimes, **plain, **more}


RECORDS = [
    make_record(0, "a", [0.5, 0.7], seconds=1.0),
    make_record(1, "a", [0.1, 0.1], seconds=2.0),
    make_record(2, "a", [-9.0, 0.4], seconds=9.0),
    make_record(0, "boosting", [0.4, 0.4]),
    make_record(1, "boosting", [-0.2, -0.2]),
    make_record(2, "boosting", [0.2, 0.2]),
    make_record(0, "logistic", [0.0, 0.0]),
    make_record(1, "logistic", [0.0, 0.0]),
    make_record(2, "logistic", [0.0, 0.0]),
]


def test_skills_are_floored_in_means_and_not_in_the_share_of_bad_worlds() -> None:
    (size,) = summarise(RECORDS)["sizes"]
    mine = size["models"]["a"]
    assert mine["skill"] == pytest.approx((0.6 + 0.1 - 0.3) / 3)
    assert mine["bad"] == pytest.approx(1 / 3)
    assert (mine["median seconds"], mine["mean seconds"]) == (2.0, 4.0)
    assert mine["worst"] == {"trait": "log", "group": "rule", "worlds": 1, "skill": pytest.approx(-0.3)}
    assert [(group["group"], group["worlds"]) for group in size["regimes"]] == [("random", 2), ("rule", 1)]


def test_the_first_model_is_compared_with_the_best_peer_world_by_world() -> None:
    (size,) = summarise(RECORDS)["sizes"]
    each = np.array([0.2, 0.3, -0.5])
    gap = size["against"]["boosting"]
    assert (size["first"], size["best peer"]) == ("a", "boosting")
    assert (gap["difference"], gap["se"]) == pytest.approx((each.mean(), each.std(ddof=1) / np.sqrt(3)))
    assert gap["ahead"] == pytest.approx(2 / 3)
    assert "a minus the best peer, boosting: mean skill +0.000 ± 0.252" in tabulate(RECORDS)


def test_the_distribution_counts_worlds_up_to_each_skill() -> None:
    (size,) = summarise(RECORDS)["sizes"]
    at = dict(zip(size["distribution"]["skill"], size["distribution"]["share"]["a"], strict=True))
    assert (at[-1.0], at[-0.3], at[0.1], at[1.0]) == pytest.approx((0, 1 / 3, 2 / 3, 1), abs=1e-3)


def test_numbers_of_rows_are_told_apart() -> None:
    both = [*RECORDS, *({**record, "rows": 500} for record in RECORDS)]
    assert [size["rows"] for size in summarise(both)["sizes"]] == [500, 2000]
    assert "logs of 500 rows" in tabulate(both)


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(rows=["bosting"]), "did you mean 'boosting'"),
        (Request(rows=["boosting:round=5"]), "'round' is not a parameter"),
        (Request(rows=["logistic:penalty=5"]), "only the models of the catalogue"),
        (Request(rows=["boosting:rounds"]), "write settings as"),
        (Request(seeds=(5, 3)), "seeds from 5 to 3"),
        (Request(sizes=[20]), "logs of 20 rows"),
        (Request(part=(2, 2)), "part 2 of 2"),
    ],
)
def test_what_cannot_be_measured_is_refused_at_once(request_: Request, words: str) -> None:
    with pytest.raises(InputError, match=words):
        measure(request_)


def test_other_experiments_refuse_seeds_and_sizes() -> None:
    for request_ in (Request(seeds=(0, 3)), Request(sizes=[500])):
        with pytest.raises(InputError, match="rates does not know"):
            run("rates", Order(request_), quiet)
