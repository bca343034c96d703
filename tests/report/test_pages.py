"""The pages: complete, safe and well-formed with any numbers."""

import copy
import json
import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from largesse.data import log_from_arrays, read_log
from largesse.evaluation import doctor
from largesse.io import read_record, to_json
from largesse.levels import Levels
from largesse.records import (
    GRADES,
    CampaignCheck,
    ColumnDrift,
    Estimate,
    Finding,
    FitSummary,
    Leak,
    LevelUptake,
    Log,
    PlanSummary,
    PredictedAndRealised,
    RealisedTenth,
    SliderSummary,
    StudySummary,
)
from largesse.report import (
    CampaignHeading,
    draw_slides,
    join_report_numbers,
    make_campaign_check_numbers,
    make_log_checkup_numbers,
    render_campaign_check,
    render_log_checkup,
    render_report,
)
from largesse.report.page_rendering import REPORT_SECTIONS, clean_page_value
from support.browsers import PHONE, watch
from support.pages import Page, visible

Numbers = dict[str, Any]
HOSTILE = "<script>alert(1)</script>"
SEVERELY_HOSTILE = "</title></svg></style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\x00\n"
# strings that the page depends on
KEYWORDS = ("binary", "fine", "note", "careful", "no", "estimated", "plan", "rule", "mix", "before", *GRADES)


# -- the report --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["binary", "amount", "ugly", "empty"])
def test_a_page_is_sound_complete_and_self_contained(kind: str, request: pytest.FixtureRequest) -> None:
    numbers: Numbers = request.getfixturevalue(kind)
    before = copy.deepcopy(numbers)
    page = render_report(numbers)
    assert repr(numbers) == repr(before)
    assert render_report(before) == page
    found = Page(page)
    assert found.sound
    assert found.scripts == 1  # ours; none came in with a name
    assert not re.search(r"https?:|url\(|@import|xmlns", page)
    text = visible(page)
    assert not re.search(r"\b(nan|inf|None|undefined|null)\b", text)
    assert "–" in text  # missing numbers are dashes
    # nested drawings are inside others: cut at the outermost pair
    drawings = re.findall(r"<svg class=\"(?:strip|frontier)\".*?</svg>(?!</svg>|<svg|<line|<circle)", page, flags=re.S)
    assert drawings
    assert all(ElementTree.fromstring(svg).get("aria-label") for svg in drawings)


def test_sections_stand_in_order_under_their_titles_and_the_contents_lead_to_them(
    binary: Numbers, amount: Numbers
) -> None:
    every = ["summary", *(name for name, _, _ in REPORT_SECTIONS)]
    every.remove("protected_groups")  # no column is protected
    without_profit = [name for name in every if name != "profit_by_budget"]  # no response has a value
    titles = {name: title for name, _, title in REPORT_SECTIONS}
    for numbers, names in ((amount, every), (binary, without_profit)):
        page = render_report(numbers)
        assert [name for name in Page(page).ids if name in every] == names
        headings = re.findall(r'<section id="(\w+)">\s*<details class="fold">\s*<summary><h2>([^<]+)</h2>', page)
        assert headings == [(name, titles[name]) for name in names[1:]]
        assert page.index("<h1>") < page.index('class="verdict"') < page.index('class="cards')
        short = render_report(numbers, short=True)
        assert [name for name in Page(short).ids if name in every] == ["summary"]
        assert "<script" not in short
        assert page.startswith(
            short[: short.index("</main>")].rstrip()[:-10]
        )  # the page alone is the top of the report
    for key, there in (("targeting", True), ("uniform", False)):
        binary |= {"targeting": {**binary["targeting"], "points": []}} if there else {key: []}
        binary["curve"] = binary["curve"] if there else {"levels": [], "features": []}
        assert ("qini_curve" in Page(render_report(binary)).ids) == there


@pytest.mark.parametrize("kind", ["binary", "amount", "ugly", "empty"])
def test_slides_are_pictures_of_one_size_and_the_same_every_time(kind: str, request: pytest.FixtureRequest) -> None:
    numbers: Numbers = request.getfixturevalue(kind)
    slides = draw_slides(numbers)
    assert list(slides) == sorted(slides)
    assert {"1-answer.png", "2-before-and-after.png"} <= slides.keys()
    for picture in slides.values():
        assert picture[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", picture[16:24]) == (1599, 900)
    assert draw_slides(numbers) == slides


def test_labels_replace_names_of_columns_and_levels_alone(binary_run: Any) -> None:
    parts = [to_json(record) for record in binary_run.records]
    labels = {
        "age": "Years of age",
        "small": "A small voucher",
        "fine": "Nowhere to be seen",
        "plan": "Nowhere to be seen",
        "Oslo": "Nowhere to be seen",
    }
    numbers = join_report_numbers(CampaignHeading("Autumn", "€", 0), *parts, labels)
    page = visible(render_report(numbers))
    assert "Years of age" in page
    assert "A small voucher" in page
    assert "Nowhere" not in page
    assert not re.search(r"\bsmall \(costs", page)
    assert "By age" not in page
    assert join_report_numbers(CampaignHeading("Autumn", "€", 0), *parts)["levels"][1]["name"] == "small"


def test_hostile_text_is_escaped_everywhere(binary: Numbers, amount: Numbers) -> None:
    def poison(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: inner if inner in KEYWORDS else poison(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [poison(item) for item in value]
        return SEVERELY_HOSTILE if isinstance(value, str) else value

    for numbers in (binary, amount):
        found = Page(render_report(poison(numbers)))
        assert found.sound
        assert found.scripts == 1


@pytest.mark.parametrize("depth", [2, 3, 7, 12])
def test_any_number_of_levels_has_its_colours(ugly: Numbers, depth: int) -> None:
    ugly["levels"], ugly["changes"]["moves"] = ugly["levels"][:depth], []
    page = render_report(ugly)
    assert f"--level-{depth - 1}:" in page
    assert f"--level-{depth}:" not in page


def test_every_curve_has_its_readout_and_is_drawn_for_a_desk_and_a_phone(binary: Numbers) -> None:
    page = render_report(binary)
    assert page.count('<div class="desk">') == page.count('<div class="phone">') == 2
    curves = [
        figure for figure in re.findall(r"<figure>.*?</figure>", page, flags=re.S) if 'class="frontier"' in figure
    ]
    assert [figure.count('class="readout"') for figure in curves] == [1, 1]


def test_values_that_a_page_cannot_show_are_cleaned() -> None:
    assert clean_page_value({"a": math.inf, "b": ("x\x00y", 3, True, "5 %")}) == {
        "a": None,
        "b": ["x y", 3, True, "5\u202f%"],
    }


# -- the numbers of a run ----------------------------------------------------------------------------------------------


def find_estimates(value: Any) -> Iterator[Numbers]:
    if isinstance(value, dict):
        if "estimate" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from find_estimates(inner)


def test_parts_are_json_with_one_form_of_estimate_and_are_joined_by_section(binary_run: Any) -> None:
    records, parts = binary_run.records, [to_json(record) for record in binary_run.records]
    for part, kind in zip(parts, (FitSummary, PlanSummary, StudySummary, SliderSummary), strict=True):
        state = json.loads(json.dumps(part, allow_nan=False))
        assert to_json(read_record(kind, state)) == state
    estimates = [estimate for part in parts for estimate in find_estimates(part)]
    assert len(estimates) > 50
    for estimate in estimates:
        assert {"estimate", "low", "high", "se"} <= estimate.keys()
        assert estimate["low"] is None or estimate["low"] <= estimate["estimate"] <= estimate["high"]
    joined = join_report_numbers(CampaignHeading("Autumn", "€", 7), *parts)
    assert {"tried", "estimates"} == joined["method"].keys()
    assert {"headline", "verdict", "warnings"} == joined["answer"].keys()
    assert joined["budget"] == parts[1]["budget"]  # the plan's wins
    assert (joined["title"], joined["unit"], joined["seed"]) == ("Autumn", "€", 7)
    evaluation, judged = binary_run.study.evaluation, records[2]
    assert (judged.value.estimate, judged.value.low) == (evaluation.value, evaluation.value_interval[0])
    assert (judged.spend.estimate, judged.spend.high) == (evaluation.spend, evaluation.spend_interval[1])
    assert [row.name for row in judged.uniform] == list(binary_run.log.levels.labels)


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        (lambda part: part.pop("value"), "value"),
        (lambda part: part.update(more=1), "more"),
        (lambda part: part["value"].update(low="x"), "value/low"),
        (lambda part: part["frontier"]["points"][2].update(budget=[]), "frontier/points/2/budget"),
        (lambda part: part["log"].update(rows=1.5), "log/rows"),
    ],
)
def test_a_damaged_part_is_refused_with_its_place(binary_run: Any, damage: Any, place: str) -> None:
    state = to_json(binary_run.records[2])
    damage(state)
    with pytest.raises(ValueError, match=place):
        read_record(StudySummary, state)


# -- the checkup and the check of a campaign ---------------------------------------------------------------------------


def test_the_checkup_shows_its_checks_and_names_a_leaking_column() -> None:
    rng, n = np.random.default_rng(0), 400
    level, response = rng.integers(0, 3, n), rng.integers(0, 2, n).astype(float)
    log = log_from_arrays(pa.table({"x": rng.normal(size=n), HOSTILE: response}), level, response)
    numbers = make_log_checkup_numbers(doctor(log), log, title="<b>Autumn", notes=["seen before"])
    page = render_log_checkup(numbers)
    assert render_log_checkup(json.loads(json.dumps(numbers))) == page
    assert numbers["answer"] == "no"
    shown = [numbers["headline"], ">&lt;script&gt;alert(1)&lt;/script&gt;</th>", "Seen before"]
    shown += [check["topic"] for check in numbers["support"]["checks"]]
    assert [words for words in shown if words not in page] == []
    found = Page(page)
    assert found.sound
    assert found.scripts == 0
    assert found.ids == ["answer", "curve", "support", "rows"]
    assert "http" not in page


def test_the_checkup_of_a_panel_shows_the_comparison_within_customers() -> None:
    rng = np.random.default_rng(0)
    table = {"id": np.arange(600) % 60, "x": rng.normal(size=600), "level": rng.integers(0, 2, 600)}
    levels = Levels(costs=[0, 1], names=["0", "1"])
    table["y"] = rng.normal(size=600) + table["level"]
    log = read_log(table, level="level", response="y", levels=levels, customer="id")
    numbers = make_log_checkup_numbers(doctor(log), log, title="Panel")
    page = render_log_checkup(json.loads(json.dumps(numbers)))
    effect = numbers["within"]["within"][0]["estimate"]
    assert 0.7 < effect < 1.3
    assert f"+{effect:.1f}" in page
    assert "Within customers" in page


def make_check(answer: str = "no") -> Numbers:
    estimate, nothing = Estimate(0.31, 0.01, 0.29, 0.33), Estimate(*[math.nan] * 4)
    check = CampaignCheck(
        (Finding("plan", answer, "Some <b>words</b>."),),
        100,
        None,
        PredictedAndRealised(estimate, estimate, Estimate(0.0, 0.01, -0.02, 0.02), 0.9),
        PredictedAndRealised(estimate, nothing, nothing, 1.0),
        tuple(RealisedTenth(0.01 * k, 0.3, estimate, 10) for k in range(10)),
        (LevelUptake("none", 50, 50, 1.0), LevelUptake("<i>", 0, 50, math.nan)),
        0.5,
        (ColumnDrift("age", math.inf, 0.0), ColumnDrift("city", 0.01, 0.9)),
        (0.1, estimate),
        (Leak("<script>", "response", 0.4),),
    )
    log = Log(pa.table({"age": [1.0, 2.0]}), np.array([0, 1]), np.array([0.0, 1.0]), Levels(costs=[0, 1]))
    return make_campaign_check_numbers(check, log, title="Spring", unit="€")


def test_the_check_of_a_campaign_shows_its_findings_and_fits_a_phone(browser: object, tmp_path: Path) -> None:
    page = render_campaign_check(make_check())
    assert "The campaign did not go as planned." in page
    assert "went as promised" in render_campaign_check(make_check("fine"))
    assert "<script>" not in page
    assert "&lt;b&gt;words" in page
    assert "by the policy" in page  # rows without ids are decided again
    (tmp_path / "check.html").write_text(page, encoding="utf-8")
    with watch(browser, f"file://{tmp_path}/check.html", **PHONE, color_scheme="dark") as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert seen.errors == seen.find_barriers() == []
        seen.page.emulate_media(color_scheme="light")
        assert seen.find_barriers() == []
