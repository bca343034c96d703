"""`largesse pace`: streams paced by a run's policy, their numbers, page and errors."""

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from browsers import PHONE, watch

from largesse import cli
from largesse.errors import InputError
from largesse.report import print_pace, render_pace
from largesse.serve.pacing.rehearsal import _as_days


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["largesse", "pace", *words])
    try:
        cli.main()
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


@pytest.fixture(scope="module")
def paced(ran: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """The numbers of two simulated streams of the shop, and their page."""
    from largesse.serve import pace, read_streaming

    page = tmp_path_factory.mktemp("paced") / "pace.html"
    how = read_streaming("simulated", {"streams": 2, "customers": 1500, "days": 20})
    return pace(ran, how, lambda *_: None, out=page), page


def test_simulated_streams_are_compared_with_the_offline_optimum(paced: tuple[dict[str, Any], Path]) -> None:
    shown, _ = paced
    assert [row["way"] for row in shown["ways"]] == ["pace", "daily", "fixed"]
    assert shown["streams"] == 2
    assert all(row["over"] == 0 for row in shown["ways"])
    assert shown["ways"][0]["value"] > 0.97
    facts, courses = shown["first"]["facts"], shown["first"]["courses"]
    assert facts["total"] == 2.5 * 1500  # the campaign's budget for each customer who is foreseen
    assert courses["pace"]["spent"][-1] == pytest.approx(facts["spent"])
    assert set(courses) == {"pace", "daily", "fixed", "offline"}
    assert "Both streams were paced within the budget" in shown["headline"]


@pytest.mark.parametrize(
    ("explore_for", "words"),
    [("evaluation", "The plan explores for evaluation"), (None, "20 % of the levels are drawn at random")],
)
def test_a_plan_that_explores_is_rehearsed_so(
    run_copy: Path, paced: tuple[dict[str, Any], Path], explore_for: str | None, words: str
) -> None:
    from largesse.pipeline import plan
    from largesse.serve import pace, read_streaming

    plan(run_copy, explore_for=explore_for, explore=0.2)
    how = read_streaming("simulated", {"streams": 2, "customers": 1500, "days": 20})
    shown, plain = pace(run_copy, how, lambda *_: None), paced[0]
    assert shown["explores_for"] == (explore_for or "")
    assert not plain["explores_for"]
    assert all(row["over"] == 0 for row in shown["ways"])
    assert 0.8 < shown["ways"][0]["value"] < plain["ways"][0]["value"]  # it gives something up
    assert shown["ways"][0]["use"] > 0.97
    assert words in render_pace(shown).replace("\xa0", " ").replace("\u202f", " ")
    assert "explores" not in render_pace(plain)
    assert "at random" not in render_pace(plain)


def test_a_log_is_replayed_by_its_times(
    ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, page = ran.parent / "log.parquet", tmp_path / "pace.html"
    words = (str(ran), "--stream", str(log), "--time", "since", "--total", "500", "--json", "--out", str(page))
    assert call(monkeypatch, *words) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["replayed"]
    assert shown["first"]["facts"]["customers"] == 300
    assert 650 < shown["first"]["facts"]["days"] <= 700
    assert shown["first"]["facts"]["starts"].startswith("2024-01")
    assert shown["first"]["facts"]["spent"] <= 500
    assert "a replayed table" in page.read_text(encoding="utf-8")


def test_the_summary_names_the_ways(
    ran: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert call(monkeypatch, str(ran), "--streams", "1", "--budget", "1") == 0
    shown = capsys.readouterr().out
    for words in ("new plan every day", "fixed price", "budget €200", "--out pace.html"):
        assert words in shown


def test_promises_are_told_apart_where_costs_are_paid_later(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from largesse.policy import Policy

    policy = Policy.load(run_copy / "policy.largesse")
    from dataclasses import replace

    replace(policy, levels=replace(policy.levels, on_redemption=True)).save(run_copy / "policy.largesse")
    words = (str(run_copy), "--streams", "1", "--customers", "800", "--valid-days", "3", "--json")
    assert call(monkeypatch, *words) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["first"]["facts"]["valid_days"] == 3
    assert shown["later"]
    course = shown["first"]["courses"]["pace"]
    assert all(held >= spent - 1e-9 for held, spent in zip(course["held"], course["spent"], strict=True))
    assert max(course["held"]) <= shown["first"]["facts"]["total"] + 1e-9
    assert "Costs are paid on redemption" in render_pace(shown)
    assert call(monkeypatch, *words, "--promises", "while_it_lasts") == 0
    lasts = json.loads(capsys.readouterr().out)
    assert lasts["lasts"]
    assert lasts["first"]["facts"]["promises"] == "while_it_lasts"
    assert lasts["ways"][0]["use"] > shown["ways"][0]["use"]
    assert lasts["ways"][0]["redemptions"] > 0
    assert lasts["first"]["facts"]["spent"] <= lasts["first"]["facts"]["total"]
    page = render_pace(lasts)
    assert "Redemptions refused" in page
    assert "while the budget lasts" in page
    assert "Redemptions refused" not in render_pace(shown)
    assert call(monkeypatch, *words[:-1], "--promises", "while_it_lasts") == 0
    assert "refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--streams", "0"), "--streams is 0"),
        (("--days", "0"), "--days is 0"),
        (("--customers", "0"), "--customers is 0"),
        (("--valid-days", "-1"), "--valid-days is -1"),
        (("--promises", "maybe"), "--promises is 'maybe'"),
        (("--budget", "1", "--total", "5"), "both --budget and --total"),
        (("--total", "nan"), "--total is nan"),
        (("--budget", "1e308"), "the budget of the whole period is inf"),
        (("--total", "1e13"), "the budget of the whole period is 10000000000000"),
        (("--most", "0,x"), "--most is '0,x'"),
        (("--stream", "nowhere.csv"), "nowhere.csv"),
        (("--stream", "LOG", "--time", "when"), "no column 'when'"),
        (("--stream", "LOG", "--time", "age"), "has no time in"),
        (("--stream", "LOG", "--time", "city"), "which is no time"),
        (("--stream", "LOG", "--out", "LOG"), "is what is read"),
    ],
)
def test_wrong_input_is_named(
    words: tuple[str, ...],
    message: str,
    ran: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = str(ran.parent / "log.parquet")
    assert call(monkeypatch, str(ran), *(log if word == "LOG" else word for word in words)) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_times_without_an_end_are_refused(
    ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pq.read_table(ran.parent / "log.parquet").append_column(
        "when", pa.array([*["1900-01-01"] * 299, "2020-01-01"])
    )
    pq.write_table(table, tmp_path / "long.parquet")
    assert call(monkeypatch, str(ran), "--stream", str(tmp_path / "long.parquet"), "--time", "when") == 2
    assert "spans more than" in capsys.readouterr().err


def test_the_page_is_whole_and_can_be_read_by_all(paced: tuple[dict[str, Any], Path], browser: Any) -> None:
    for options in ({}, {"color_scheme": "dark"}, PHONE):
        with watch(browser, paced[1].as_uri(), **options) as watched:
            assert watched.find_barriers() == []
            assert watched.errors == []
            assert watched.requests == [paced[1].as_uri()]
            assert watched.page.locator("figure svg.frontier").count() == 3
            wide = watched.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0


def test_hostile_texts_are_shown_as_text(paced: tuple[dict[str, Any], Path]) -> None:
    page = render_pace({**paced[0], "title": "<script>alert(1)</script>"})
    assert "<script>alert" not in page


def test_a_stream_without_rows_is_named(
    ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pq.read_table(ran.parent / "log.parquet").slice(0, 0), tmp_path / "empty.parquet")
    for more in ((), ("--time", "since")):
        assert call(monkeypatch, str(ran), "--stream", str(tmp_path / "empty.parquet"), *more) == 2
        assert "has no rows" in " ".join(capsys.readouterr().err.split())


def test_control_characters_are_shown_and_not_obeyed(
    paced: tuple[dict[str, Any], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    print_pace({**paced[0], "headline": "all\x1b[2J"}, Path("pace\x1b[31m.html"))
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert r"all\x1b[2J" in said
    assert r"pace\x1b[31m.html" in said


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "times",
    [
        pa.array([0, 90_000], pa.timestamp("s")),
        pa.array([0, 90_000_000_000_007], pa.timestamp("ns")),
        pa.array([0, 90_000_000_000], pa.timestamp("us", "Europe/Berlin")),
        pa.array([0, 90_000_000_000], pa.timestamp("us", "Mars/Phobos")),
        pa.array(["1970-01-01", "1970-01-02T01:00:00"]),
        pa.array(["1970-01-01T01:00+01:00", "1970-01-01T20:00:00-05:00"]),
        pa.array(["1970-01-01", "1970-01-02 01:00"]).dictionary_encode(),
    ],
    ids=range(7),
)
def test_times_are_the_same_moments_in_whatever_type_and_zone(times: pa.Array) -> None:
    starts, days = _as_days(pa.chunked_array([times]), "when")
    assert starts == 0
    assert days.tolist() == pytest.approx([0, 25 / 24])


def test_the_hour_that_daylight_saving_repeats_is_two_hours() -> None:
    local = pa.array(["2027-10-31T02:30:00+02:00", "2027-10-31T02:30:00+01:00", "2027-10-31T03:00:00+01:00"])
    _, days = _as_days(pa.chunked_array([local]), "when")
    assert ((days - days[0]) * 24).tolist() == pytest.approx([0, 1, 1.5])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("times", "words"),
    [
        (pa.array([2**62], pa.timestamp("us")), "beyond the years 1 to 9999"),
        (pa.array([-(2**62)], pa.timestamp("us")), "beyond the years 1 to 9999"),
        (pa.array([2**62], pa.timestamp("s")), "which is no time"),
        (pa.array(["2027-01-31", "2027-01-31T00:00Z"]), "which is no time"),  # one has a zone
        (pa.array([1.5]), "1.5, which is no time"),
        (pa.array([[1]]), "which is no time"),
        (pa.nulls(2), "has no time in 2 rows"),
    ],
    ids=range(7),
)
def test_what_is_no_time_is_named(times: pa.Array, words: str) -> None:
    with pytest.raises(InputError, match=words):
        _as_days(pa.chunked_array([times]), "when")


def test_a_stream_with_two_columns_of_times_is_named(
    ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pq.read_table(ran.parent / "log.parquet")
    pq.write_table(table.append_column("since", table["since"]), tmp_path / "two.parquet")
    assert call(monkeypatch, str(ran), "--stream", str(tmp_path / "two.parquet"), "--time", "since") == 2
    assert "two columns 'since'" in " ".join(capsys.readouterr().err.split())
