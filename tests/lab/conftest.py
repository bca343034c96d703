"""Real data that the project reads and never ships, where they are."""

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of real data: `LARGESSE_DATA`, or shared/data beside the checkout."""
    folder = Path(os.environ.get("LARGESSE_DATA", BESIDE))
    if not folder.is_dir():
        pytest.skip("the real data are not here: set LARGESSE_DATA")
    monkeypatch.setenv("LARGESSE_DATA", str(folder))
    return folder
