"""The checkup's page, and what an examined log adds to the report."""

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from largesse.data.log import log_from_arrays
from largesse.evaluation.checks import doctor
from largesse.records import Log
from largesse.report.checkup import checkup_numbers
from largesse.report.page import render_checkup
from largesse.runs.campaign import read_campaign
from largesse.runs.line import run

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Nesting(HTMLParser):
    """Raises where tags are not closed in the order they were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def well_formed(page: str) -> bool:
    parser = Nesting()
    parser.feed(page)
    return parser.open == []


def leaky(n: int = 400, name: str = "after") -> Log:
    rng = np.random.default_rng(0)
    level, response = rng.integers(0, 3, n), rng.integers(0, 2, n).astype(float)
    return log_from_arrays(pa.table({"x": rng.normal(size=n), name: response}), level, response)


def test_the_page_tells_the_verdicts_and_points_at_the_column() -> None:
    log = leaky()
    shown = checkup_numbers(doctor(log), log, title="Autumn", notes=["seen before"])
    page = render_checkup(shown)
    assert well_formed(page)
    assert "This log cannot answer the whole question as it is." in page
    for verdict in shown["doctor"]:
        assert verdict["about"] in page
    assert ">after</th>" in page
    assert "Seen before" in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_names_cannot_break_the_page() -> None:
    log = leaky(name="<script>alert(1)</script>")
    page = render_checkup(checkup_numbers(doctor(log), log, title="<b>"))
    assert "<script>alert" not in page
    assert well_formed(page)


def test_numbers_are_json_and_the_page_is_made_of_them_alone() -> None:
    log = leaky()
    shown = checkup_numbers(doctor(log), log, title="Autumn")
    assert render_checkup(json.loads(json.dumps(shown))) == render_checkup(shown)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(1)
    level = rng.integers(0, 3, 400)
    table = pa.table(
        {
            "age": rng.uniform(20, 70, 400),
            "coupon": np.array([0, 5, 10])[level],
            "bought": (rng.random(400) < 0.2 + 0.2 * level).astype(int),
        }
    )
    import pyarrow.parquet as pq

    pq.write_table(table, path / "log.parquet")
    text = 'log = "log.parquet"\n[columns]\nlevel = "coupon"\nresponse = "bought"\n[levels]\ncosts = [0, 5, 10]\n'
    (path / "campaign.toml").write_text(text + '[plan]\nbudget = 4\n[model]\nname = "linear"\n', encoding="utf-8")
    run(read_campaign(path), path / "run")
    return path / "run"


def test_the_report_shows_band_cost_curve_doctor_and_seven_ways(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert well_formed(page)
    for words in ("Does choosing pay?", "the band that holds for all budgets together", "randomisation", "seven ways"):
        assert words in page
    assert page.count("band outer") == 2  # in the frontier for a desk and in that for a phone


def test_the_evaluation_file_has_the_numbers_behind_them(folder: Path) -> None:
    found = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in found["ways"]] == ["direct", "ips", "snips", "dr", "sndr", "switch", "dros"]
    dr = next(row for row in found["ways"] if row["name"] == "dr")
    assert (dr["estimate"], dr["se"]) == pytest.approx((found["value"]["estimate"], found["value"]["se"]))
    for point in found["frontier"]:
        assert point["band_low"] <= point["low"] <= point["high"] <= point["band_high"]
    assert len(found["versus_uniform"]) == 3
    assert found["qini"]["points"][0]["spend"] == 0
    assert found["gain_per_spend"]["estimate"] > 0
    assert {row["answer"] for row in found["doctor"]} <= {"fine", "note", "careful", "no"}
