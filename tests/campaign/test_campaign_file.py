"""The campaign file: read with its defaults, written back without loss, refused with everything wrong named together."""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.campaign import (
    BUDGET_KEYS,
    CHECKUP_KEYS,
    Campaign,
    PlanSettings,
    make_campaign_from_options,
    parse_campaign,
    read_campaign,
)
from largesse.errors import InputError
from largesse.levels import Levels

NAMED = {"level": "coupon", "response": "bought"}
HUGE = 10**320  # no float holds it
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
        parse_campaign(tomllib.loads(given) if isinstance(given, str) else given)
    return str(caught.value)


def test_the_smallest_file_gets_every_default(tmp_path: Path) -> None:
    campaign = read_campaign(written(tmp_path, SMALLEST))
    assert campaign == Campaign(
        log=str(tmp_path / "log.parquet"),
        levels=Levels([0, 5, 10]),
        roles={"level": "coupon", "response": "bought"},
    )
    assert (campaign.model, campaign.seed, campaign.title, campaign.unit) == ("auto", 0, "Campaign", "")
    assert (campaign.planning, campaign.customers) == (PlanSettings(), None)
    lines = campaign.text.splitlines()
    assert {'title = "Campaign"', 'name = "auto"', "seed = 0", "costs = [0.0, 5.0, 10.0]"} <= {*lines}
    # A mark in front and line ends from Windows do no harm.
    (tmp_path / "windows.toml").write_bytes(b"\xef\xbb\xbf" + SMALLEST.replace("\n", "\r\n").encode())
    assert read_campaign(tmp_path / "windows.toml") == campaign


@pytest.mark.parametrize(
    ("lines", "titles"),
    [
        ("doses = [0, 5, 10]\ncosts = [0, 5, 10]", ("€0", "€5", "€10")),
        ("doses = [0, 2, 3]\ncosts = [0, 5, 10]", ("0", "2", "3")),
        ('doses = [0, 2, 3]\ndose_unit = "%"\ncosts = [0, 5, 10]', ("0 %", "2 %", "3 %")),
    ],
)
def test_doses_that_are_the_costs_are_money(tmp_path: Path, lines: str, titles: tuple[str, ...]) -> None:
    text = SMALLEST.replace("costs = [0, 5, 10]", lines)
    campaign = read_campaign(written(tmp_path, f'unit = "€"\n{text}'))
    assert campaign.levels.titles == titles
    assert parse_campaign(tomllib.loads(campaign.text)) == campaign


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
    assert campaign.roles["features"] == ["age", "city"]
    assert campaign.levels == Levels(["c0", "c1"], names=["none", "some"], on_redemption=True)
    assert (campaign.planning, campaign.model, campaign.seed) == (PlanSettings(total=5000), "linear", 7)
    assert set(campaign.columns) == {"level", "response", "propensity", "logger", "cluster", "weight", "customer"}


@pytest.mark.parametrize(
    ("lines", "worth"),
    [
        ('unit = "€"\nresponse_unit = "€"', 1.0),
        ('unit = "€"\nresponse_unit = "€"\nresponse_value = 0.35', 0.35),
        ('unit = "€"\nresponse_unit = "USD"', None),
        ('unit = ""\nresponse_unit = ""', None),
        ("response_value = 12", 12.0),
    ],
)
def test_a_response_in_the_unit_of_costs_is_worth_one_unless_said_otherwise(
    tmp_path: Path, lines: str, worth: float | None
) -> None:
    campaign = read_campaign(written(tmp_path, f"{lines}\n{SMALLEST}"))
    assert campaign.response_value == worth
    assert parse_campaign(tomllib.loads(campaign.text)).response_value == worth


@pytest.mark.parametrize("worth", ["0", "-2", "nan", "inf", '"much"', "true", "1e-300"])
def test_what_a_response_is_worth_is_a_number_above_zero(worth: str) -> None:
    assert "response_value is" in problems_of(f"response_value = {worth}\n{SMALLEST}")
    assert "response_unit is not text: 3" in problems_of(f"response_unit = 3\n{SMALLEST}")


def test_paths_start_at_the_file_wherever_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    written(tmp_path / "in", SMALLEST)
    monkeypatch.chdir(tmp_path)
    assert read_campaign("in/campaign.toml").log == str(tmp_path / "in" / "log.parquet")
    assert read_campaign("in").log == str(tmp_path / "in" / "log.parquet")
    home = SMALLEST.replace('"log.parquet"', '"~/log.parquet"')
    assert read_campaign(written(tmp_path, home)).log == os.path.expanduser("~/log.parquet")  # noqa: PTH111


# -- writing it back --------------------------------------------------------------------------------------------------------

ODD = st.text(st.characters(codec="utf-8"), max_size=12)
AMOUNT = st.floats(0, 1e300, allow_nan=False)


@st.composite
def campaigns(draw: st.DrawFn) -> Campaign:
    size = draw(st.integers(1, 4))
    listed = st.lists(ODD, min_size=size, max_size=size, unique=True)
    roles = draw(st.lists(st.sampled_from(["propensity", "weight", "customer"]), unique=True))
    features = st.just({}) | st.lists(ODD, min_size=1, max_size=3).map(lambda names: {"features": names})
    money = draw(st.sampled_from(["budget", "total", None]))
    return Campaign(
        log="/" + draw(ODD.filter(lambda s: "\0" not in s)),
        levels=Levels(
            costs=draw(listed | st.lists(AMOUNT, min_size=size, max_size=size).map(sorted)),
            names=draw(st.none() | listed),
            doses=draw(st.none() | st.lists(AMOUNT, min_size=size, max_size=size, unique=True).map(sorted)),
            on_redemption=draw(st.sampled_from([False, True, "per unit"])),
        ),
        roles={role: draw(ODD.filter(bool)) for role in ["level", "response", *roles]} | draw(features),
        model=draw(ODD),
        seed=draw(st.integers(0, 2**32 - 1)),
        title=draw(ODD),
        unit=draw(ODD),
        **draw(
            st.just({})
            | st.fixed_dictionaries({"response_unit": ODD, "response_value": st.floats(1e-9, 1e9)})
            | st.fixed_dictionaries({"response_value": st.floats(1e-9, 1e9)})
        ),
        planning=PlanSettings(**({money: draw(AMOUNT)} if money else {})),
    )


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(campaigns())
def test_what_is_written_reads_back_the_same(campaign: Campaign) -> None:
    # Paths are made absolute on the way in; compare with what that makes of this one.
    expected = Campaign(**{**campaign.__dict__, "log": str(Path(campaign.log).absolute())})
    again = parse_campaign(tomllib.loads(campaign.text))
    assert again == expected
    assert parse_campaign(tomllib.loads(again.text)) == again


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
        ("model", {"seed": 10**320}, "model.seed is 1000"),
        ("model", {"name": 5}, "model.name is 5"),
        ("levels", {"costs": [0, 1], "names": []}, "levels.names is left blank"),
        ("levels", {"costs": [0, 1], "doses": []}, "levels.doses is left blank"),
        ("levels", {"costs": [0, HUGE]}, "a cost is too large"),
        ("levels", {"costs": [0, 1], "doses": [0, HUGE]}, "a dose is too large"),
        ("levels", {"costs": [0, 1], "contact_cost": HUGE}, "the contact cost is 1000"),
        ("plan", {"budget": HUGE}, "plan.budget is 1000"),
        ("plan", {"total": HUGE}, "plan.total is 1000"),
        ("plan", {"least_return": HUGE}, "plan.least_return is 1000"),
        ("plan", {"caps": {"1": HUGE}}, "plan.caps.1 is 1000"),
    ],
    ids=lambda given: str(given)[:40],
)
def test_a_setting_of_the_wrong_kind_is_named(section: str, content: dict[str, Any], what: str) -> None:
    given = tomllib.loads(SMALLEST)
    given[section] = given.get(section, {}) | content
    message = problems_of(given)
    assert what in message
    assert "→" in message


def test_everything_wrong_is_named_together() -> None:
    columns, plan = {"level": 1}, {"budget": 1, "total": 2}
    message = problems_of(
        {"titel": "x", "unit": 3, "columns": columns, "levels": {"costs": [3, 2]}, "plan": plan, "model": {"seed": -1}}
    )
    assert message.startswith("campaign: 8 things are wrong")
    for problem in (
        "'titel' is not a setting",
        "does not name the response column",
        "columns.level is 1",
        "the cost falls from 3 to 2",
        "both budget and total",
        "unit is not text: 3",
        "no log is named",
        "model.seed is -1",
    ):
        assert problem in message


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"x = {'[' * 2000}{']' * 2000}", "nests lists or tables too deeply"),
        (f"x = {'9' * 5000}", "is not valid TOML"),
        (f"title = 0x{'f' * 5000}", "title is not text: a int"),
        ('log = "a\\u0000b.csv"', "NUL character"),
        ('log = "log.csv"\ncustomers = "a\\u0000b.csv"', "NUL character"),
        ('log = "log.csv"\nout = "\\u0000"', "NUL character"),
        (f"# {'x' * 2**24}", "is larger than 16,777,216 bytes"),
    ],
    ids=lambda given: given[:40],
)
def test_a_file_that_python_itself_cannot_take_is_refused_in_words(text: str, what: str, tmp_path: Path) -> None:
    path = written(tmp_path, text + SMALLEST.replace('log = "log.parquet"', ""))
    with pytest.raises(InputError) as caught:
        read_campaign(path)
    assert what in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_options_describe_a_campaign() -> None:
    levels = {"costs": "0, 5", "doses": "0,5", "on_redemption": True, "unit": "€", "response_unit": "€"}
    made = make_campaign_from_options("a/l.csv", {**NAMED, "features": "age, city,"}, levels, model={"name": "linear"})
    assert made.roles == {**NAMED, "features": ["age", "city"]}
    assert (made.levels.costs, made.levels.doses, made.levels.on_redemption) == ((0.0, 5.0), (0.0, 5.0), True)
    assert (made.title, made.model, made.unit, made.response_value) == ("l.csv", "linear", "€", 1.0)
    made = make_campaign_from_options("l.csv", NAMED, {"costs": "0,5", "unit": "€", "response_value": 12.0})
    assert (made.unit, made.response_unit, made.response_value) == ("€", "", 12.0)
    # Costs may be columns, or follow from the order of the names.
    assert make_campaign_from_options("l.csv", NAMED, {"costs": "c0,c1"}).levels.cost_columns == ("c0", "c1")
    assert make_campaign_from_options("l.csv", NAMED, {"names": "none,small,big"}).levels.costs == (0.0, 1.0, 2.0)
    with pytest.raises(InputError, match="levels"):
        make_campaign_from_options("l.csv", NAMED, {})


BLANK_FILE = """
log = "log.csv"
[columns]
level = ""  # fill in: the "#1" column
response = "y"
[levels]
names = []
costs = []    # fill in: 3 numbers; suggestion: costs = [0, 1, 2]
[plan]
budget = ""
"""


def test_every_blank_is_named_together_with_its_comment(tmp_path: Path) -> None:
    (tmp_path / "campaign.toml").write_text(BLANK_FILE, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_campaign(tmp_path)
    assert {problem.what.split()[0]: problem.hint for problem in refused.value.problems} == {
        "columns.level": 'fill in: the "#1" column',
        "levels.names": "fill in: the levels as the log writes them, the cheapest first",
        "levels.costs": "fill in: 3 numbers; suggestion: costs = [0, 1, 2]",
        "plan.budget": "fill in: what may be spent per customer on average, like budget = 1.7; or remove the line",
    }


def test_a_budget_may_be_blank_if_it_is_given_otherwise() -> None:
    given = {"log": "l.csv", "columns": NAMED, "levels": {"costs": [0, 1]}, "plan": {"budget": ""}}
    assert parse_campaign(given, optional=BUDGET_KEYS).spending(budget=2).planning.budget == 2
    with pytest.raises(InputError, match=r"plan\.budget"):
        parse_campaign(given)
    with pytest.raises(InputError, match="2 things are wrong"):
        parse_campaign({**given, "levels": {"costs": []}}, optional=BUDGET_KEYS)
    with pytest.raises(InputError, match=r"levels\.names"):
        parse_campaign({**given, "levels": {"costs": [0, 1], "doses": [0, 1], "names": []}}, optional=BUDGET_KEYS)


@pytest.mark.parametrize("costs", [{"costs": []}, {}])
def test_a_checkup_needs_neither_costs_nor_budget(costs: dict[str, Any]) -> None:
    given = {
        "log": "l.csv",
        "columns": NAMED,
        "levels": {"names": ["none", "small", "big"], **costs},
        "plan": {"budget": ""},
    }
    levels = parse_campaign(given, optional=CHECKUP_KEYS).levels
    assert (levels.names, levels.costs) == (("none", "small", "big"), (0.0, 1.0, 2.0))
    with pytest.raises(InputError, match=r"costs"):
        parse_campaign(given, optional=BUDGET_KEYS)


def test_features_that_were_known_before_are_a_list_of_names() -> None:
    text = SMALLEST.replace("[levels]", '[checks]\nknown_before = ["visits"]\n[levels]')
    campaign = parse_campaign(tomllib.loads(text))
    assert campaign.roles["known_before"] == ["visits"]
    assert parse_campaign(tomllib.loads(campaign.text)) == campaign
    assert "checks.known_before is 'visits'" in problems_of(text.replace('["visits"]', '"visits"'))


def test_labels_of_columns_and_levels_are_read_and_written_back(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text(
        'log = "log.csv"\n[columns]\nlevel = "coupon"\nresponse = "bought"\n[levels]\ncosts = [0, 5]\ndoses = [0, 5]\n'
        'dose_unit = "€"\n[plan]\nbudget = 1\n[labels]\n"bl_age" = "Age"\n"5" = "Voucher"\n'
    )
    campaign = read_campaign(path)
    assert campaign.labels == {"bl_age": "Age", "5": "Voucher"}
    assert campaign.page_labels["€5"] == "Voucher"  # pages know levels by their titles
    path.write_text(campaign.text)
    assert read_campaign(path).labels == campaign.labels
    path.write_text(campaign.text.replace('"Voucher"', "5"))
    with pytest.raises(InputError, match=r"labels\.5"):
        read_campaign(path)
