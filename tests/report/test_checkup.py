"""The checkup's page."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pages import Page

from largesse.data import log_from_arrays
from largesse.evaluation import doctor
from largesse.report import describe_checkup, render_checkup

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """The checkup of a log with a hostile name for a column that gives the response away."""
    rng = np.random.default_rng(0)
    n = 400
    level, response = rng.integers(0, 3, n), rng.integers(0, 2, n).astype(float)
    log = log_from_arrays(pa.table({"x": rng.normal(size=n), HOSTILE: response}), level, response)
    return describe_checkup(doctor(log), log, title="<b>Autumn", notes=["seen before"])


def test_the_page_shows_the_checks_and_points_at_the_column(shown: dict[str, Any]) -> None:
    page = render_checkup(shown)
    assert "This log cannot answer the whole question as it is." in page
    for check in shown["support"]["checks"]:
        assert check["topic"] in page
    assert ">&lt;script&gt;alert(1)&lt;/script&gt;</th>" in page
    assert "Seen before" in page


def test_the_page_is_sound_and_names_cannot_break_it(shown: dict[str, Any]) -> None:
    page = render_checkup(shown)
    found = Page(page)
    assert found.sound
    assert found.scripts == 0
    assert found.ids == ["answer", "curve", "support", "rows"]
    assert "http" not in page


def test_numbers_are_json_and_the_page_is_made_of_them_alone(shown: dict[str, Any]) -> None:
    assert render_checkup(json.loads(json.dumps(shown))) == render_checkup(shown)
