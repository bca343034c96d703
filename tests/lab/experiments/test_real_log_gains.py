"""Gains on real logs: the same numbers as `evaluate`."""

import pytest

from largesse.evaluation import evaluate
from largesse.response import Linear
from largesse_lab.experiments.real_log_gains import GAIN_LOGS, classify_interval, measure, tabulate
from largesse_lab.runner.experiment_request import Records, Request


@pytest.fixture(scope="module")
def thornton() -> Records:
    return measure(Request(problems=["thornton"], models=["linear"], repeats=1))


def test_a_gain_is_what_an_evaluation_finds(thornton: Records) -> None:
    record = thornton[0]
    found = evaluate(GAIN_LOGS["Thornton"](None), Linear(), budget=record["budget"])
    uniform = found.references[0]
    gain = uniform.difference
    assert record["value"] == pytest.approx([found.value, *found.value_interval])
    assert record["spend"] == pytest.approx([found.spend, *found.spend_interval])
    assert record["uniform"][0] == pytest.approx(uniform.value.estimate)
    assert record["fair"] == pytest.approx([gain.estimate, gain.low, gain.high])


def test_budgets_are_shares_of_the_dearest_level_and_plans_lose_nothing_beyond_chance(thornton: Records) -> None:
    low, high = thornton
    assert low["budget"] * 2 == pytest.approx(high["budget"])
    assert 0 < high["budget"] < 2.59 / 2  # only those who come are paid
    for record in thornton:
        assert record["fair"][2] > 0
        assert record["fair"][0] == pytest.approx(record["gain"][0], abs=0.005)  # spends of plan and mix nearly agree
        assert sum(record["given"]) == record["rows"]


def test_the_table_has_each_budget_and_level_means(thornton: Records) -> None:
    text = tabulate(thornton)
    assert text.count("| Thornton: came for the result, for cash | 2,825 in 119 clusters | 5 |") == 2
    assert "| Thornton | 0 of 5 |" in text
    missing = [record | {"curve": [0.9, *record["curve"][1:]]} for record in thornton]
    assert "| Thornton | 1 of 5 (none: 0.9 for " in tabulate(missing)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.1, 0.3, "a gain"),
        (-0.3, -0.1, "a loss"),
        (-0.1, 0.3, "no difference beyond chance"),
        (float("nan"), float("nan"), "too few responses to say"),
    ],
)
def test_a_verdict_follows_from_the_interval(low: float, high: float, words: str) -> None:
    assert classify_interval(low, high) == words
