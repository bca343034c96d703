"""Why this level: numbers checked against plain decisions on held-out rows, and words."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from largesse.allocation import decide_at_price
from largesse.report.formats import Units
from largesse.report.sections.why.numbers import CHANGES, describe_why
from largesse.report.sections.why.view import _write_change, view_why

Numbers = dict[str, Any]


def test_examples_get_their_level_at_their_price_and_another_beyond_it(binary_run: Any) -> None:
    found = describe_why(binary_run.log, binary_run.study)
    labels = list(binary_run.log.levels.labels)
    assert sum(row["share"] for row in found["examples"]) == pytest.approx(1)
    assert len(found["examples"]) > 1
    for row in found["examples"]:
        curve, costs = np.array([row["curve"]]), np.array([row["costs"]])
        assert labels[decide_at_price(curve, costs, row["price"])[0]] == row["level"]
        assert row["dearer"] or row["cheaper"]
        for there, limit, step in (("dearer", "below", 1 - 1e-6), ("cheaper", "above", 1 + 1e-6)):
            if row[there] is not None:
                assert labels[decide_at_price(curve, costs, row[limit] * step)[0]] == row[there]


def test_moves_are_counted_fold_by_fold(binary_run: Any) -> None:
    study = binary_run.study
    scores, plan = study.scores, study.plan
    moved = dict.fromkeys(CHANGES, 0)
    for place, fold in enumerate(np.unique(scores.fold)):
        rows = scores.fold == fold
        costs = scores.expected_costs[rows] * (1.0 if plan.scales is None else plan.scales[place])
        now = decide_at_price(scores.curves[rows], costs, plan.prices[place])
        for change in CHANGES:
            moved[change] += (
                decide_at_price(scores.curves[rows], costs, plan.prices[place] * (1 + change)) != now
            ).sum()
    found = describe_why(binary_run.log, study)["moves"]
    assert [row["share"] for row in found] == pytest.approx([moved[change] / len(scores.level) for change in CHANGES])
    assert any(moved.values())


def test_folds_that_no_budget_is_enough_for_are_left_out(binary_run: Any) -> None:
    study = binary_run.study
    none = replace(study, plan=replace(study.plan, prices=np.full(len(study.plan.prices), np.inf)))
    assert describe_why(binary_run.log, none) == {"examples": [], "moves": [], "movers": []}


@pytest.mark.parametrize(
    ("dearer", "cheaper", "said"),
    [
        ("big {}", None, "would get big {} if the price of budget fell by more than 20\u202f%"),
        (None, "none", "would get none if the price of budget rose by more than 50\u202f%"),
        (
            "big",
            "none",
            "would get big if the price of budget fell by more than 20\u202f%, and none if it rose by more than 50\u202f%",
        ),
        (None, None, "would get it at any price"),
    ],
)
def test_words_say_what_would_change_the_level(dearer: str | None, cheaper: str | None, said: str) -> None:
    row = {"price": 1.0, "dearer": dearer, "below": 0.8, "cheaper": cheaper, "above": 1.5}
    assert _write_change(row) == said


def test_the_section_is_left_out_where_a_run_folder_does_not_know(binary: Numbers) -> None:
    view = view_why(binary, Units("binary", "€"))
    assert view is not None
    assert view["labels"] == ["none", "small", "big"]
    assert all(len(row["curve"]) == 3 for row in view["rows"])
    assert len(view["moves"]) == len(CHANGES)
    many = {**binary, "levels": [{"name": str(k)} for k in range(9)]}
    wide = view_why(many, Units("binary", "€"))
    assert wide is not None
    assert wide["labels"] == wide["rows"][0]["curve"] == []
    del binary["why"]
    assert view_why(binary, Units("binary", "€")) is None


def test_features_that_move_decisions_are_shown_with_what_is_lost_without_them(binary: Numbers) -> None:
    binary["why"]["movers"] = [
        {"feature": "age", "moved": 0.4, "loss": {"estimate": 0.03, "low": 0.01, "high": 0.05}},
        *({"feature": f"f{k}", "moved": 0.1, "loss": {"estimate": 0.0, "low": -0.01, "high": 0.01}} for k in range(9)),
    ]
    view = view_why(binary, Units("binary", "€"))
    assert view is not None
    first, second, *_ = view["movers"].rows
    assert (first.label, first.number, first.sub) == ("age", "40\u202f%", "loses 3.0\u202fpp")
    assert first.mark == "1.0 to 5.0\u202fpp: looking at it pays"
    assert second.mark.endswith("could be nothing")
    assert len(view["movers"].rows) == 8
    assert view["rest"] == "2 more features move fewer customers."
