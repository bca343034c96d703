"""Where real data lie that the project reads and never ships."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder() -> Path | None:
    """Return where the real data lie: `LARGESSE_DATA`, or `shared/data` beside the checkout; None where neither is."""
    places = [os.environ.get("LARGESSE_DATA"), "../shared/data"]
    return next((Path(place) for place in places if place and Path(place).is_dir()), None)
