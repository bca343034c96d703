"""Plans of campaigns: rules that no plan can keep, and drawn levels within the budget."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from largesse.campaign import read_campaign
from largesse.errors import BudgetError
from largesse.pipeline import commands
from support.shops import CAMPAIGN

REDEEMED = ("costs = [0, 5, 10]", "costs = [0, 5, 10]\non_redemption = true")
IMPOSSIBLE = {
    "share": "budget = 2.5\n[plan.shares]\n10 = 0.9",
    "segments": 'budget = 2.5\nsegment = "city"\n[plan.segment_budgets]\nOslo = 0\n[plan.shares]\n5 = 0.5\n10 = 0.5',
    "eligible": "budget = 2.5\n[plan.barred.city]\nOslo = [0, 5]\nRome = [0]\nLima = [0]",
    "exploration": "budget = 0.2\nexplore = 0.5",
}


@pytest.fixture
def nothing_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a model was fitted")

    monkeypatch.setattr(commands, "fit_model", fail)


@pytest.mark.usefixtures("nothing_is_fitted")
@pytest.mark.parametrize("plan", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_no_plan_can_keep_is_refused_before_the_fit(shop: Path, plan: str) -> None:
    (shop / "campaign.toml").write_text(CAMPAIGN.replace("budget = 2.5", plan), encoding="utf-8")
    with pytest.raises(BudgetError):
        commands.run(read_campaign(shop), shop / "run")
    assert not (shop / "run").exists()


def test_costs_on_redemption_are_not_refused_for_their_face_value(shop: Path) -> None:
    text = CAMPAIGN.replace("budget = 2.5", IMPOSSIBLE["share"]).replace(*REDEEMED).replace("0.9", "0.2")
    (shop / "campaign.toml").write_text(text, encoding="utf-8")
    assert commands.run(read_campaign(shop), shop / "run")["money"]["levels"][2]["share"] >= 0.2


@pytest.mark.parametrize("more", ["explore = 0.3", 'explore_for = "evaluation"\nexplore = 0.2'])
@pytest.mark.parametrize("seed", range(4))
def test_drawn_levels_cost_no_more_than_the_budget(shop: Path, more: str, seed: int) -> None:
    text = CAMPAIGN.replace("budget = 2.5", f"budget = 2.5\n{more}").replace("[model]", f"[model]\nseed = {seed}")
    (shop / "campaign.toml").write_text(text, encoding="utf-8")
    planned = commands.run(read_campaign(shop), shop / "run")["planned"]
    plan = pq.read_table(shop / "run" / "plan.parquet")
    paid = np.array([0, 5, 10])[plan["level_number"].to_numpy()]
    assert paid.mean() == pytest.approx(planned["spend"])
    assert 2.1 < planned["spend"] <= 2.5
    assert np.array_equal(paid, plan["expected_cost"].to_numpy())
