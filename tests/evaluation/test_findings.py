from typing import Any

import numpy as np
import pytest

from largesse.evaluation.findings import findings, level_verdict
from largesse.levels import Levels
from largesse.records import Array, Finding, Overlap, Scores

LEVELS = Levels(costs=[0, 1], names=["none", "coupon"])


def seen(**more: Any) -> Overlap:
    given: dict[str, Any] = {
        "rows": np.array([500, 500]),
        "effective": np.array([400.0, 400.0]),
        "smallest": np.array([0.2, 0.2]),
        "features": ("age", "city"),
        "before": np.array([0.5, 0.1]),
        "after": np.array([0.05, 0.02]),
    }
    return Overlap(**{**given, **more})


def scores(propensity: Array | None = None, **more: Any) -> Scores:
    n = 1000
    given: dict[str, Any] = {
        "propensity": np.full(n, 0.5) if propensity is None else propensity,
        "weight": np.ones(n),
        "cluster": None,
        "propensity_source": "given",
    }
    others = ("curves", "gamma", "costs", "expected_costs", "fold", "level", "response", "paid")
    return Scores(**{name: np.zeros(n) for name in others}, **{**given, **more})


def found(overlap: Overlap | None = None, by: Scores | None = None, notes: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    return findings(overlap or seen(), by or scores(), LEVELS, notes)


def test_a_good_log_raises_nothing() -> None:
    assert found() == ()


@pytest.mark.parametrize(
    ("rows", "effective", "smallest", "verdict"),
    [
        (29, 29, 0.5, "no"),
        (500, 29, 0.5, "no"),
        (30, 30, 0.5, "careful"),
        (500, 99, 0.5, "careful"),
        (500, 400, 0.009, "careful"),
        (500, 100, 0.01, "fine"),
    ],
)
def test_verdict_on_a_level(rows: int, effective: float, smallest: float, verdict: str) -> None:
    assert level_verdict(rows, effective, smallest) == verdict


def test_a_level_with_too_few_rows_is_a_no() -> None:
    (one,) = found(seen(rows=np.array([500, 12]), effective=np.array([400.0, 9.0])))
    assert one.severity == "no"
    assert "Only 12 rows" in one.text
    assert "'coupon'" in str(one)


def test_a_level_with_few_effective_rows_asks_for_care() -> None:
    (one,) = found(seen(effective=np.array([400.0, 60.0])))
    assert (one.severity, "worth 60" in one.text) == ("careful", True)


def test_a_tiny_propensity_asks_for_care() -> None:
    (one,) = found(seen(smallest=np.array([0.001, 0.2])))
    assert (one.severity, "'none'" in one.text, "0.001" in one.text) == ("careful", True, True)


def test_weight_on_few_rows_asks_for_care() -> None:
    heavy = np.full(1000, 0.5)
    heavy[:10] = 0.01
    (one,) = found(by=scores(heavy))
    assert one.severity == "careful"
    assert "One row in a hundred carries 34%" in one.text
    mild = np.full(1000, 0.5)
    mild[:10] = 0.1
    assert found(by=scores(mild)) == ()


def test_row_weights_count_too() -> None:
    weight = np.ones(1000)
    weight[:10] = 50.0
    (one,) = found(by=scores(weight=weight / weight.mean()))
    assert "of the weight" in one.text


def test_clipped_rows_are_a_note_when_few_and_ask_for_care_when_many() -> None:
    few, many = found(by=scores(clipped=10))[0], found(by=scores(clipped=11))[0]
    assert (few.severity, many.severity) == ("note", "careful")
    assert "10 rows had an estimated propensity below 1 %" in few.text


@pytest.mark.parametrize(("clusters", "expected"), [(29, 1), (30, 0)])
def test_few_clusters_ask_for_care(clusters: int, expected: int) -> None:
    raised = found(by=scores(cluster=7 * (np.arange(1000) % clusters)))
    assert len(raised) == expected
    assert all("only 29 clusters" in one.text for one in raised)


def test_imbalance_after_weighting_asks_for_care_and_before_it_does_not() -> None:
    assert found(seen(before=np.array([3.0, 3.0]))) == ()
    (one,) = found(seen(after=np.array([0.21, 0.19])))
    assert (one.severity, "'age'" in one.text, "'city'" in one.text) == ("careful", True, False)
    names = tuple("abcd")
    (many,) = found(seen(features=names, before=np.ones(4), after=np.ones(4)))
    assert "'a', 'b', 'c' and others" in many.text


def test_estimated_propensities_and_notes_of_the_reader_are_passed_on() -> None:
    estimated, note = found(by=scores(propensity_source="estimated"), notes=("3 rows left out",))
    assert "was estimated from the features" in estimated.text
    assert note == Finding("note", "3 rows left out.")


def test_the_most_serious_comes_first() -> None:
    raised = found(
        seen(rows=np.array([500, 3]), after=np.array([1.0, 0.0])), scores(propensity_source="estimated"), ("a note",)
    )
    assert [one.severity for one in raised] == ["no", "careful", "note", "note"]
