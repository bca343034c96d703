"""The demo's campaign."""

import pytest

from largesse.pipeline.commands import LOCAL
from largesse.pipeline.demo import demo_campaign


def test_the_budget_is_half_of_what_the_dearest_level_costs_if_everybody_gets_it() -> None:
    campaign, table = demo_campaign()
    log = LOCAL.read_log(campaign, table)
    dearest = float(log.levels.costs[-1]) * log.response[log.level == len(log.levels) - 1].mean()
    assert campaign.planning.budget == pytest.approx(dearest / 2, abs=0.005)
    assert len(log) == 2825
