"""The pages of a checkup and of a campaign check."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse.data import log_from_arrays
from largesse.evaluation import doctor
from largesse.levels import Levels
from largesse.records import CampaignCheck, Drift, Estimate, Finding, Leak, LevelUptake, Log, Realised, RealisedTenth
from largesse.report import describe_check, describe_checkup, render_check, render_checkup
from support.browsers import PHONE, watch
from support.pages import Page

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


def _make(answer: str = "no") -> dict[str, object]:
    some = Estimate(0.31, 0.01, 0.29, 0.33)
    kept = Realised(some, some, Estimate(0.0, 0.01, -0.02, 0.02), 0.9)
    nothing = Estimate(float("nan"), float("nan"), float("nan"), float("nan"))
    found = CampaignCheck(
        (Finding("plan", answer, "Some <b>words</b>."),),
        100,
        None,
        kept,
        Realised(some, nothing, nothing, 1.0),
        tuple(RealisedTenth(0.01 * k, 0.3, some, 10) for k in range(10)),
        (LevelUptake("none", 50, 50, 1.0), LevelUptake("<i>", 0, 50, float("nan"))),
        0.5,
        (Drift("age", float("inf"), 0.0), Drift("city", 0.01, 0.9)),
        (0.1, some),
        (Leak("<script>", "response", 0.4),),
    )
    log = Log(pa.table({"age": [1.0, 2.0]}), np.array([0, 1]), np.array([0.0, 1.0]), Levels(costs=[0, 1]))
    return describe_check(found, log, title="Spring", unit="€")


def test_the_page_says_what_was_found_and_takes_no_text_for_markup() -> None:
    page = render_check(_make())
    assert "The campaign did not go as planned." in page
    assert "<script>" not in page
    assert "&lt;b&gt;words" in page
    assert "decided anew by the policy" in page
    assert "went as promised" in render_check(_make("fine"))


def test_the_page_has_no_barriers_and_fits_a_phone(browser: object, tmp_path: Path) -> None:
    (tmp_path / "check.html").write_text(render_check(_make()), encoding="utf-8")
    for options in ({}, PHONE, {"color_scheme": "dark"}):
        with watch(browser, f"file://{tmp_path}/check.html", **options) as seen:
            assert seen.errors == []
            assert seen.find_barriers() == []
            assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
