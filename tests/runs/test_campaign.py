"""The campaign file: read with its defaults, written back without loss, refused with everything wrong named together."""

import os
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.errors import InputError
from largesse.levels import Levels
from largesse.runs.campaign import Campaign, campaign_from, read_campaign
from largesse.runs.guess import guess_campaign
from largesse.runs.line import run

SMALLEST = """
log = "log.parquet"
[columns]
level = "coupon"
response = "bought"
[levels]
costs = [0, 5, 10]
"""


def written(folder: Path, text: str, name: str = "campaign.toml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def problems_of(given: dict[str, Any] | str) -> str:
    with pytest.raises(InputError) as caught:
        campaign_from(tomllib.loads(given) if isinstance(given, str) else given)
    return str(caught.value)


def test_the_smallest_file_gets_every_default(tmp_path: Path) -> None:
    campaign = read_campaign(written(tmp_path, SMALLEST))
    assert campaign == Campaign(
        log=str(tmp_path / "log.parquet"),
        levels=Levels([0, 5, 10]),
        columns={"level": "coupon", "response": "bought"},
    )
    assert (campaign.model, campaign.seed, campaign.title, campaign.unit) == ("auto", 0, "Campaign", "")
    assert (campaign.budget, campaign.total, campaign.features, campaign.customers) == (None, None, None, None)


def test_every_setting_is_read(tmp_path: Path) -> None:
    text = """
title = "Winter"
unit = "€"
log = "data/*.parquet"
customers = "/abs/customers.csv"
out = "winter-run"
[columns]
level = "coupon"
response = "bought"
propensity = "p"
logger = "policy"
cluster = "home"
weight = "w"
customer = "id"
features = ["age", "city"]
[levels]
costs = ["c0", "c1"]
names = ["none", "some"]
on_redemption = true
[plan]
total = 5000
[model]
name = "linear"
seed = 7
"""
    campaign = read_campaign(written(tmp_path, text))
    assert campaign.log == str(tmp_path / "data" / "*.parquet")
    assert campaign.customers == "/abs/customers.csv"
    assert campaign.out == str(tmp_path / "winter-run")
    assert campaign.features == ("age", "city")
    assert campaign.levels == Levels(["c0", "c1"], names=["none", "some"], on_redemption=True)
    assert (campaign.total, campaign.budget, campaign.model, campaign.seed) == (5000, None, "linear", 7)
    assert set(campaign.columns) == {"level", "response", "propensity", "logger", "cluster", "weight", "customer"}


def test_paths_start_at_the_file_wherever_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    written(tmp_path / "in", SMALLEST)
    monkeypatch.chdir(tmp_path)
    assert read_campaign("in/campaign.toml").log == str(tmp_path / "in" / "log.parquet")
    assert read_campaign("in").log == str(tmp_path / "in" / "log.parquet")
    home = SMALLEST.replace('"log.parquet"', '"~/log.parquet"')
    assert read_campaign(written(tmp_path, home)).log == os.path.expanduser("~/log.parquet")  # noqa: PTH111


def test_a_mark_in_front_and_line_ends_from_windows_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b"\xef\xbb\xbf" + SMALLEST.replace("\n", "\r\n").encode())
    assert read_campaign(tmp_path / "c.toml").columns["level"] == "coupon"


# -- writing it back --------------------------------------------------------------------------------------------------------

ODD = st.text(st.characters(codec="utf-8"), max_size=12)
AMOUNT = st.floats(0, 1e300, allow_nan=False)


@st.composite
def campaigns(draw: st.DrawFn) -> Campaign:
    size = draw(st.integers(1, 4))
    listed = st.lists(ODD, min_size=size, max_size=size, unique=True)
    roles = draw(st.lists(st.sampled_from(["propensity", "weight", "customer"]), unique=True))
    money = draw(st.sampled_from(["budget", "total", None]))
    return Campaign(
        log="/" + draw(ODD.filter(lambda s: "\0" not in s)),
        levels=Levels(
            costs=draw(listed | st.lists(AMOUNT, min_size=size, max_size=size).map(sorted)),
            names=draw(st.none() | listed),
            doses=draw(st.none() | st.lists(AMOUNT, min_size=size, max_size=size, unique=True).map(sorted)),
            on_redemption=draw(st.booleans()),
        ),
        columns={role: draw(ODD) for role in sorted(["level", "response", *roles])},
        features=draw(st.none() | st.lists(ODD, min_size=1, max_size=3).map(tuple)),
        model=draw(ODD),
        seed=draw(st.integers(0, 2**32 - 1)),
        title=draw(ODD),
        unit=draw(ODD),
        **({money: draw(AMOUNT)} if money else {}),
    )


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(campaigns())
def test_what_is_written_reads_back_the_same(campaign: Campaign) -> None:
    # Paths are made absolute on the way in; compare with what that makes of this one.
    expected = Campaign(**{**campaign.__dict__, "log": str(Path(campaign.log).absolute())})
    again = campaign_from(tomllib.loads(campaign.text))
    assert again == expected
    assert campaign_from(tomllib.loads(again.text)) == again


@pytest.mark.parametrize(
    "text",
    [
        'say "hi"',
        r"C:\data\new",
        "tab\tand\nbreak",
        "\x00\x1f\x7f",
        "€ 日本 🎁",
        "'''",
        '"""',
        "# no comment",
        "\u2028",
    ],
)
def test_odd_text_survives(text: str) -> None:
    campaign = Campaign(
        log="/log", levels=Levels([0, 1], names=[text, "b"]), columns={"level": text, "response": "r"}, title=text
    )
    assert campaign_from(tomllib.loads(campaign.text)) == campaign


def test_what_is_written_says_every_default(tmp_path: Path) -> None:
    text = read_campaign(written(tmp_path, SMALLEST)).text
    for line in (
        'title = "Campaign"',
        "on_redemption = false",
        'name = "auto"',
        "seed = 0",
        "costs = [0.0, 5.0, 10.0]",
    ):
        assert line in text


# -- what is refused --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ('lgo = "x"', "'lgo' is not a setting", "did you mean 'log'?"),
        ("budget = 1.7", "'budget' is not a setting", "it belongs under [plan]"),
        ("costs = [1]", "'costs' is not a setting", "it belongs under [levels]"),
        ("[levels]\ncost = [1]", "'levels.cost' is not a setting", "did you mean 'costs'?"),
        ("[columns]\nrespons = 'x'", "'columns.respons' is not a setting", "did you mean 'response'?"),
        ("[modle]\nname = 'linear'", "'modle' is not a setting", "did you mean 'model'?"),
        ("model = 'linear'", "model is a section, not a value", "write [model] on a line of its own"),
    ],
)
def test_unknown_settings_are_named_with_where_they_belong(text: str, what: str, hint: str) -> None:
    message = problems_of(text)
    assert what in message
    assert hint in message


@pytest.mark.parametrize(
    ("section", "content", "what"),
    [
        ("columns", {"features": 5}, "columns.features is 5"),
        ("columns", {"features": "age"}, "columns.features is 'age'"),
        ("columns", {"features": []}, "columns.features is []"),
        ("columns", {"level": 3}, "columns.level is 3"),
        ("levels", {"costs": [0, 1], "names": "ab"}, "names is 'ab'"),
        ("levels", {"costs": [0, 1], "names": 5}, "names is 5"),
        ("levels", {"costs": [0, 1], "doses": 5}, "doses is 5"),
        ("levels", {"costs": 5}, "[levels] does not give the costs"),
        ("levels", {"costs": [0, "a"]}, "a cost is not a number: 0, a"),
        ("levels", {"costs": [0, 1], "on_redemption": "no"}, "levels.on_redemption is 'no'"),
        ("plan", {"budget": "2"}, "plan.budget is '2'"),
        ("plan", {"budget": True}, "plan.budget is True"),
        ("plan", {"total": float("nan")}, "plan.total is nan"),
        ("plan", {"total": float("inf")}, "plan.total is inf"),
        ("plan", {"budget": -1}, "plan.budget is -1"),
        ("model", {"seed": 2**40}, f"model.seed is {2**40}"),
        ("model", {"seed": -1}, "model.seed is -1"),
        ("model", {"seed": 1.5}, "model.seed is 1.5"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_named(section: str, content: dict[str, Any], what: str) -> None:
    given = tomllib.loads(SMALLEST)
    given[section] = given.get(section, {}) | content
    message = problems_of(given)
    assert what in message
    assert "→" in message


def test_everything_wrong_is_named_together() -> None:
    message = problems_of(
        """
titel = "x"
unit = 3
[columns]
level = 1
[levels]
costs = [3, 2]
[plan]
budget = 1
total = 2
[model]
seed = -1
"""
    )
    assert message.startswith("campaign: 8 things are wrong")
    for part in (
        "'titel' is not a setting",
        "does not name the response column",
        "columns.level is 1",
        "the cost falls from 3 to 2",
        "both budget and total",
        "unit is not text: 3",
        "where the log is",
        "model.seed is -1",
    ):
        assert part in message


# -- a first file for a table ---------------------------------------------------------------------------------------------


def plausible(folder: Path, n: int = 160) -> Path:
    rng = np.random.default_rng(1)
    level = rng.integers(0, 3, n)
    table = pa.table(
        {
            "customer_id": np.arange(n) + 2**60,
            "age": rng.normal(40, 9, n),
            "city": rng.choice(["Oslo", "Rome"], n),
            "mail": [f"{k}@example.org" for k in range(n)],
            "tags": [["a"]] * n,
            "visited": pa.array([None] * n, pa.float64()),
            "coupon": np.array([0, 5, 10])[level],
            "bought": (rng.random(n) < 0.3 + 0.1 * level).astype(np.int8),
            'odd "name"\n# 1': rng.random(n),
        }
    )
    pq.write_table(table, folder / "spring_2024.parquet")
    return folder / "spring_2024.parquet"


def test_a_first_file_finds_the_roles_and_can_be_run(tmp_path: Path) -> None:
    text = guess_campaign(plausible(tmp_path))
    campaign = read_campaign(written(tmp_path, text.replace('name = "auto"', 'name = "linear"')))
    assert campaign.columns == {"level": "coupon", "response": "bought", "customer": "customer_id"}
    assert campaign.features == ("age", "city", 'odd "name"\n# 1')
    assert campaign.levels == Levels([0, 5, 10], doses=[0, 5, 10])
    assert campaign.title == "spring 2024"
    shown = run(campaign, tmp_path / "run")
    assert shown["answer"]["headline"]
    assert (tmp_path / "run" / "report.html").is_file()


@pytest.mark.parametrize(
    "levels",
    [
        ["none", "mail", "call"],
        [True, False, True],
        [-5, 0, 5],
        [1234567, 1234568, 1234569],
        [0.1, 0.25, 1 / 3],
    ],
    ids=["names", "booleans", "negative", "large", "fractions"],
)
def test_a_first_file_is_accepted_whatever_the_levels(levels: list[Any], tmp_path: Path) -> None:
    frame = pd.DataFrame({"treatment": levels * 20, "outcome": [0, 1] * 30, "age": range(60)})
    frame.to_csv(tmp_path / "log.csv", index=False)
    campaign = read_campaign(written(tmp_path, guess_campaign(tmp_path / "log.csv")))
    assert len(campaign.levels) == len(set(levels))
    assert campaign.columns == {"level": "treatment", "response": "outcome"}
    assert campaign.budget is not None
    assert campaign.budget >= min(campaign.levels.costs)  # the cheapest plan is within reach


def test_a_first_file_says_so_where_it_finds_nothing(tmp_path: Path) -> None:
    pd.DataFrame({"a\nb": [1.5, 2.5], "c": ["x", "y"]}).to_csv(tmp_path / "t.csv", index=False)
    text = guess_campaign(tmp_path / "t.csv")
    assert 'level = "?"    # CHECK: no column looked like the level; columns: "a\\nb", "c"' in text
    assert "[levels] does not give the costs" in problems_of(text)
