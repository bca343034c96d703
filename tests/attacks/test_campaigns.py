"""The campaign files of the attack: the whole one runs, and none of the others asks for a model that takes minutes."""

from pathlib import Path

import campaigns
import pytest
from shops import write_shop

from largesse.campaign import read_campaign
from largesse.errors import LargesseError
from largesse.pipeline import run


def test_the_campaign_that_is_changed_runs_as_it_is(tmp_path: Path) -> None:
    (write_shop(tmp_path) / "campaign.toml").write_text(campaigns.FULL, encoding="utf-8")
    run(read_campaign(tmp_path), tmp_path / "run")


@pytest.mark.parametrize("first", [0, 1000, 3000])
def test_no_file_asks_for_the_default_model(tmp_path: Path, first: int) -> None:
    found = set()
    for seed in range(first, first + 1000, campaigns.RUN_EVERY):
        (tmp_path / "campaign.toml").write_bytes(campaigns.make(seed))
        try:
            found.add(read_campaign(tmp_path).model)
        except LargesseError:
            continue
    assert "linear" in found
    assert "auto" not in found
