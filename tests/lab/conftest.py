"""Real data that the project reads and never ships, and small simulated logs."""

import os
from pathlib import Path

import pytest

from largesse_lab.runner import method_measurement, truth_measures

DATA_NEXT_TO_CHECKOUT = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of real data: `LARGESSE_DATA`, or shared/data next to the checkout."""
    folder = Path(os.environ.get("LARGESSE_DATA", DATA_NEXT_TO_CHECKOUT))
    if not folder.is_dir():
        pytest.skip("the real data are missing: set LARGESSE_DATA")
    monkeypatch.setenv("LARGESSE_DATA", str(folder))
    return folder


@pytest.fixture
def small_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated logs of 300 rows, and plans of the dynamic programme for 60 customers."""
    monkeypatch.setattr(truth_measures, "LOG_ROWS", 300)
    monkeypatch.setattr(truth_measures, "FRESH_ROWS", 300)
    monkeypatch.setattr(method_measurement, "PROGRAMME_ROWS", 60)
