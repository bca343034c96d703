"""Examining the log of a campaign, a run folder or a bare table."""

from pathlib import Path

import pytest

from largesse.campaign.file import read_campaign
from largesse.pipeline.doctor import examine, find_campaign


@pytest.mark.parametrize(("source", "guessed"), [("campaign.toml", False), ("run", False), ("log.parquet", True)])
def test_the_campaign_of_a_file_a_folder_or_a_table_is_found(ran: Path, source: str, guessed: bool) -> None:
    campaign, found = find_campaign(str(ran.parent / source))
    assert found == guessed
    assert campaign.columns == {"level": "coupon", "response": "bought", "customer": "id"}
    assert campaign.levels.labels == (("0", "5", "10") if guessed else ("0", "1", "2"))


def test_the_checkup_says_which_columns_were_guessed_and_writes_a_page(ran: Path, tmp_path: Path) -> None:
    stages: list[str] = []
    campaign = read_campaign(ran.parent)
    page = tmp_path / "page.html"
    shown = examine(campaign, guessed=True, out=page, progress=lambda stage, _: stages.append(stage))
    assert stages == ["reading", "examining the log"]
    assert shown["notes"][0].startswith("Columns were guessed: level is 'coupon', response is 'bought'")
    assert "<h1>" in page.read_text(encoding="utf-8")
