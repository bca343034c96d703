import pytest

from largesse.report.formats import Units
from largesse.report.words import headline, spending, verdict


def judged(gain: tuple[float, float, float], spend: tuple[float, float, float] = (1.0, 0.9, 1.1)) -> dict:
    difference = dict(zip(("estimate", "low", "high"), gain, strict=True))
    before = {
        "name": "before",
        "detail": "",
        "value": {"estimate": 0.2},
        "spend": {"estimate": 0.5},
        "difference": difference,
    }
    same = {
        "name": "same",
        "detail": "all get '5'",
        "value": {"estimate": 0.3},
        "spend": {"estimate": 1.0},
        "difference": difference,
    }
    return {
        "value": {"estimate": 0.31, "low": 0.29, "high": 0.33},
        "spend": dict(zip(("estimate", "low", "high"), spend, strict=True)),
        "versus": [same, before],
    }


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        ((0.02, 0.01, 0.03), "Choosing who gets what pays"),
        ((-0.02, -0.03, -0.01), "Give everyone the same"),
        ((0.01, -0.01, 0.03), "which may be nothing"),
        ((0.0, 0.0, 0.0), "nothing to choose"),
    ],
)
def test_the_verdict_follows_the_interval(gain: tuple[float, float, float], said: str) -> None:
    assert said in verdict(Units("binary", "€"), judged(gain))


def test_the_headline_names_spend_value_and_what_was_before() -> None:
    text = headline(Units("binary", "€"), "bought", {"customers": 1000}, judged((0.0, 0.0, 0.0)))
    assert "€1" in text
    assert "31.0" in text
    assert "20.0" in text


def test_a_spend_surely_above_the_budget_and_an_unused_budget_are_said() -> None:
    units = Units("binary", "€")
    plan = {"budget": {"average": 0.5}, "planned": {"spend": 0.5}}
    assert "more than the budget" in spending(units, plan, judged((0, 0, 0)))[0]["text"].replace("\n", " ")
    plan = {"budget": {"average": 1.05}, "planned": {"spend": 1.05}}
    assert spending(units, plan, judged((0, 0, 0))) == []
    plan = {"budget": {"average": 5.0}, "planned": {"spend": 1.05}}
    assert "nothing more that is worth buying" in spending(units, plan, judged((0, 0, 0)))[0]["text"]
