"""`largesse pace`: streams paced by a run's policy, their numbers, page and errors."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.errors import InputError
from largesse.pipeline import plan
from largesse.policy import Policy
from largesse.report import print_pacing_results, render_pacing_page
from largesse.serve import pace, parse_pace_options
from largesse.serve.pacing.pace_command import _convert_to_days
from support.browsers import PHONE, watch
from support.commands import Call

CUSTOMERS = 1000
SIMULATED = {"streams": 2, "customers": CUSTOMERS, "days": 14}


@pytest.fixture(scope="module")
def paced(ran: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """The numbers of two simulated streams of the shop, and their page."""
    page = tmp_path_factory.mktemp("paced") / "pace.html"
    return pace(ran, parse_pace_options("simulated", SIMULATED), lambda *_: None, out=page), page


def test_simulated_streams_are_compared_with_the_offline_optimum(ran: Path, paced: tuple[dict[str, Any], Path]) -> None:
    numbers = paced[0]
    assert [row["way"] for row in numbers["ways"]] == ["pace", "daily", "fixed"]
    assert numbers["streams"] == 2
    assert all(row["over"] == 0 for row in numbers["ways"])
    assert numbers["ways"][0]["value"] > 0.97
    facts, courses = numbers["first"]["facts"], numbers["first"]["courses"]
    assert facts["total"] == 2.5 * CUSTOMERS  # the campaign's budget for each expected customer
    assert courses["pace"]["spent"][-1] == pytest.approx(facts["spent"])
    assert set(courses) == {"pace", "daily", "fixed", "offline"}
    streaming = parse_pace_options("simulated", {"streams": 1, "customers": 200, "days": 7})
    assert pace(ran, streaming, lambda *_: None, budget=1.0)["first"]["facts"]["total"] == 200


@pytest.mark.parametrize("explore_for", ["evaluation", None])
def test_a_plan_that_explores_is_rehearsed_so(
    run_copy: Path, paced: tuple[dict[str, Any], Path], explore_for: str | None
) -> None:
    plan(run_copy, explore_for=explore_for, explore=0.2)
    shown, plain = pace(run_copy, parse_pace_options("simulated", SIMULATED), lambda *_: None), paced[0]
    assert (shown["explores_for"], plain["explores_for"]) == (explore_for or "", "")
    assert all(row["over"] == 0 for row in shown["ways"])
    assert 0.8 < shown["ways"][0]["value"] < plain["ways"][0]["value"]  # it gives something up
    assert shown["ways"][0]["use"] > 0.97
    for word in ("explores", "at random"):
        assert word not in render_pacing_page(plain)
    assert ("explores for evaluation" if explore_for else "at random") in render_pacing_page(shown)


def test_a_log_is_replayed_by_its_times(ran: Path, tmp_path: Path, call: Call) -> None:
    log, page = ran.parent / "log.parquet", tmp_path / "pace.html"
    words = ("--stream", str(log), "--time", "since", "--total", "500", "--json", "--out", str(page))
    code, out, _ = call("pace", str(ran), *words)
    shown, facts = json.loads(out), json.loads(out)["first"]["facts"]
    assert (code, shown["replayed"], facts["customers"], page.is_file()) == (0, True, 300, True)
    assert 650 < facts["days"] <= 700
    assert facts["starts"].startswith("2024-01")
    assert facts["spent"] <= 500


def test_promises_are_told_apart_where_costs_are_paid_later(run_copy: Path, call: Call) -> None:
    policy = Policy.load(run_copy / "policy.largesse")
    replace(policy, levels=replace(policy.levels, on_redemption=True)).save(run_copy / "policy.largesse")
    words = ("pace", str(run_copy), "--streams", "1", "--customers", "800", "--valid-days", "3", "--json")
    shown = json.loads(call(*words).out)
    facts, course = shown["first"]["facts"], shown["first"]["courses"]["pace"]
    assert facts["valid_days"] == 3
    assert shown["later"]
    assert all(held >= spent - 1e-9 for held, spent in zip(course["held"], course["spent"], strict=True))
    assert max(course["held"]) <= facts["total"] + 1e-9
    lasts = json.loads(call(*words, "--promises", "while_it_lasts").out)
    assert lasts["lasts"]
    assert lasts["first"]["facts"]["promises"] == "while_it_lasts"
    assert lasts["ways"][0]["use"] > shown["ways"][0]["use"]
    assert lasts["ways"][0]["redemptions"] > 0
    assert lasts["first"]["facts"]["spent"] <= lasts["first"]["facts"]["total"]
    assert ["Redemptions refused" in render_pacing_page(numbers) for numbers in (shown, lasts)] == [False, True]
    code, out, _ = call(*words[:-1], "--promises", "while_it_lasts")
    assert (code, "refused" in out, "--out pace.html" in out) == (0, True, True)


LONG = pa.array([*["1900-01-01"] * 299, "2020-01-01"])


@pytest.mark.parametrize(
    ("words", "subject"),
    [
        ("--streams 0", "--streams is 0"),
        ("--days 0", "--days is 0"),
        ("--customers 0", "--customers is 0"),
        ("--valid-days -1", "--valid-days is -1"),
        ("--promises maybe", "--promises is 'maybe'"),
        ("--budget 1 --total 5", "--budget and --total"),
        ("--total nan", "--total is nan"),
        ("--budget 1e308", "inf"),
        ("--total 1e13", "10000000000000"),
        ("--most 0,x", "--most is '0,x'"),
        ("--stream nowhere.csv", "nowhere.csv"),
        ("--stream LOG --time when", "'when'"),
        ("--stream LOG --time age", "time"),
        ("--stream LOG --time city", "time"),
        ("--stream LOG --out LOG", "is what is read"),
        ("--stream LONG --time when", "spans more than"),
        ("--stream TWICE --time since", "two columns 'since'"),
        ("--stream EMPTY", "no rows"),
        ("--stream EMPTY --time since", "no rows"),
    ],
)
def test_invalid_options_and_tables_are_named(words: str, subject: str, ran: Path, tmp_path: Path, call: Call) -> None:
    log, path = ran.parent / "log.parquet", tmp_path / "table.parquet"
    table = pq.read_table(log)
    changes = {
        "LONG": lambda: table.append_column("when", LONG),
        "TWICE": lambda: table.append_column("since", table["since"]),
        "EMPTY": lambda: table.slice(0, 0),
    }
    for name in set(words.split()) & set(changes):
        pq.write_table(changes[name](), path)
    paths = {"LOG": str(log)} | dict.fromkeys(changes, str(path))
    code, _, err = call("pace", str(ran), *(paths.get(word, word) for word in words.split()))
    assert code == 2
    assert subject in " ".join(err.split())


@pytest.mark.parametrize("options", [{"color_scheme": "dark"}, PHONE], ids=["dark", "phone"])
def test_the_page_is_whole_and_accessible(
    paced: tuple[dict[str, Any], Path], browser: Any, options: dict[str, Any]
) -> None:
    with watch(browser, paced[1].as_uri(), **options) as watched:
        assert watched.find_barriers() == []
        assert watched.errors == []
        assert watched.requests == [paced[1].as_uri()]
        assert watched.page.locator("figure svg.frontier").count() == 3
        wide = watched.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0


def test_hostile_texts_are_escaped(paced: tuple[dict[str, Any], Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert "<script>alert" not in render_pacing_page({**paced[0], "title": "<script>alert(1)</script>"})
    print_pacing_results({**paced[0], "headline": "all\x1b[2J"}, Path("pace\x1b[31m.html"))
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert r"all\x1b[2J" in shown
    assert r"pace\x1b[31m.html" in shown


HOURS = [0, 25]
NIGHT = ["2027-10-31T02:30:00+02:00", "2027-10-31T02:30:00+01:00", "2027-10-31T03:00:00+01:00"]


def test_times_are_the_same_in_every_type_and_zone() -> None:
    for times, hours in (
        (pa.array([0, 90_000], pa.timestamp("s")), HOURS),
        (pa.array([0, 90_000_000_000_007], pa.timestamp("ns")), HOURS),
        (pa.array([0, 90_000_000_000], pa.timestamp("us", "Europe/Berlin")), HOURS),
        (pa.array([0, 90_000_000_000], pa.timestamp("us", "Mars/Phobos")), HOURS),
        (pa.array(["1970-01-01", "1970-01-02T01:00:00"]), HOURS),
        (pa.array(["1970-01-01T01:00+01:00", "1970-01-01T20:00:00-05:00"]), HOURS),
        (pa.array(["1970-01-01", "1970-01-02 01:00"]).dictionary_encode(), HOURS),
        (pa.array(NIGHT), [0, 1, 1.5]),  # the hour that daylight saving repeats is two hours
    ):
        starts, days = _convert_to_days(pa.chunked_array([times]), "when")
        assert ((days - days[0]) * 24).tolist() == pytest.approx(hours)
        assert hours is not HOURS or starts == days[0] == 0


@pytest.mark.parametrize(
    ("times", "subject"),
    [
        (pa.array([2**62], pa.timestamp("us")), "years 1 to 9999"),
        (pa.array([-(2**62)], pa.timestamp("us")), "years 1 to 9999"),
        (pa.array([2**62], pa.timestamp("s")), "time"),
        (pa.array(["2027-01-31", "2027-01-31T00:00Z"]), "time"),  # one has a zone
        (pa.array([1.5]), "1.5"),
        (pa.array([[1]]), "time"),
        (pa.nulls(2), "2 rows"),
    ],
    ids=range(7),
)
def test_invalid_times_are_named(times: pa.Array, subject: str) -> None:
    with pytest.raises(InputError, match=subject):
        _convert_to_days(pa.chunked_array([times]), "when")
