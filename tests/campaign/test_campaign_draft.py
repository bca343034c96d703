"""A first campaign file for a table that nobody has described yet."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.campaign import (
    DraftAnswers,
    find_protected_columns,
    profile_table,
    read_campaign,
    write_campaign_text,
    write_guessed_campaign,
)
from largesse.errors import InputError
from largesse.levels import Levels
from largesse.pipeline.local_engine import LocalEngine


def written(folder: Path, text: str) -> Path:
    (folder / "campaign.toml").write_text(text, encoding="utf-8")
    return folder / "campaign.toml"


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


def write_csv(folder: Path, columns: dict[str, Any], name: str = "log.csv") -> Path:
    pd.DataFrame(columns).to_csv(folder / name, index=False)
    return folder / name


def guessed(folder: Path, log: Path) -> tuple[str, Path]:
    """The text of a first campaign file beside its log, and where it stands."""
    return (text := write_guessed_campaign(log, folder / "campaign.toml")), written(folder, text)


def line_of(text: str, key: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"{key} ="))


def test_a_first_file_finds_the_roles_and_its_log_can_be_read_once_it_is_filled_in(tmp_path: Path) -> None:
    text, _ = guessed(tmp_path, plausible(tmp_path))
    filled = text.replace("costs = []", "costs = [0, 5, 10]").replace('budget = ""', "budget = 3.5")
    campaign = read_campaign(written(tmp_path, filled))
    assert campaign.columns == {"level": "coupon", "response": "bought", "customer": "customer_id"}
    assert campaign.roles["features"] == ["age", "city", 'odd "name"\n# 1']
    assert campaign.levels == Levels([0, 5, 10], doses=[0, 5, 10])
    assert campaign.title == "spring 2024"
    assert 'log = "spring_2024.parquet"' in text
    assert "[columns.parse]" not in text
    assert len(LocalEngine().read_log(campaign)) == 160


LEVELS: dict[str, list[Any]] = {
    "names": ["none", "mail", "call"],
    "amounts": ["5 EUR", "0 EUR", "10 EUR"],
    "booleans": [True, False, True],
    "negative": [-5, 0, 5],
    "large": [1234567, 1234568, 1234569],
    "fractions": [0.1, 0.25, 1 / 3],
}


@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
def test_a_first_file_never_runs_before_costs_and_budget_are_filled_in(levels: list[Any], tmp_path: Path) -> None:
    log = write_csv(tmp_path, {"treatment": levels * 20, "outcome": [0, 1] * 30, "age": range(60)})
    text, file = guessed(tmp_path, log)
    with pytest.raises(InputError) as refused:
        read_campaign(file)
    blank = [problem.what for problem in refused.value.problems]
    assert blank[-2:] == ["levels.costs is left blank", "plan.budget is left blank"]
    assert all(problem.hint.startswith("fill in: ") for problem in refused.value.problems)
    count = len(set(levels))
    filled = text.replace("costs = []", f"costs = {list(range(count))}").replace('budget = ""', "budget = 1")
    filled = filled.replace("names = []", f"names = {levels}")
    campaign = read_campaign(written(tmp_path, filled))
    assert len(campaign.levels) == count
    assert campaign.columns == {"level": "treatment", "response": "outcome"}
    assert len(LocalEngine().read_log(campaign)) == 60


def test_amounts_in_names_give_the_order_and_suggest_costs_and_the_budget_spent_before(tmp_path: Path) -> None:
    levels = ["0 EUR", "10 EUR", "20 EUR", "5 EUR"] * 30
    text, file = guessed(tmp_path, write_csv(tmp_path, {"gutschein": levels, "kauf": [0, 1] * 60, "alter": range(120)}))
    assert 'names = ["0 EUR", "5 EUR", "10 EUR", "20 EUR"]' in text
    assert line_of(text, "costs").startswith("costs = []    # fill in: ")
    assert line_of(text, "costs").endswith("costs = [0, 5, 10, 20]")
    assert "the log's rows cost 8.75 each: budget = 8.75" in line_of(text, "budget")
    with pytest.raises(InputError, match=r"costs = \[0, 5, 10, 20\]"):
        read_campaign(file)


def test_names_without_amounts_are_left_blank_and_ordered_by_mean_response_in_a_comment_only(tmp_path: Path) -> None:
    rows = [("Control", 0)] * 30 + [("Zeppelin", 0)] * 20 + [("Zeppelin", 1)] * 10 + [("Airship", 1)] * 30
    log = write_csv(tmp_path, {"arm": [a for a, _ in rows], "voted": [b for _, b in rows], "yob": range(90)})
    text, file = guessed(tmp_path, log)
    assert line_of(text, "names").startswith("names = []    # fill in: ")
    assert line_of(text, "names").endswith('names = ["Control", "Zeppelin", "Airship"]')
    assert 'response = "voted"' in text
    with pytest.raises(InputError, match="3 things are wrong"):
        read_campaign(file)


def test_identifiers_other_outcomes_and_other_treatments_are_not_offered_as_features(tmp_path: Path) -> None:
    log = write_csv(
        tmp_path,
        {
            "Kunden-Nr.": range(100),
            "hh_id": [i // 2 for i in range(100)],
            "order id": [7 * i for i in range(100)],
            "rabatt": [0, 5] * 50,
            "treat_extra": [0, 1, 1, 0] * 25,
            "umsatz": [1.5, 0.0, 2.5, 0.0] * 25,
            "kauf": [1, 0, 1, 0] * 25,
            "umsatz_vorjahr": [k % 90 for k in range(100)],
            "gewicht": [1.0, 2.0] * 50,
            "alter": [18 + k % 70 for k in range(100)],
        },
    )
    text, _ = guessed(tmp_path, log)
    wanted = {"level": "rabatt", "response": "kauf", "cluster": "hh_id", "weight": "gewicht", "customer": "Kunden-Nr."}
    for role, column in wanted.items():
        assert line_of(text, role).startswith(f'{role} = "{column}"')
    assert line_of(text, "features") == 'features = ["umsatz_vorjahr", "alter"]'
    assert '# CHECK: left out (an identifier): "order id"' in text
    assert '# CHECK: left out (may have happened afterwards): "umsatz"' in text
    assert '# CHECK: left out (may say what was given): "treat_extra"' in text


def test_the_first_file_names_itself_and_its_log_from_where_it_stands(tmp_path: Path) -> None:
    log = write_csv(tmp_path, {"coupon": [0, 5] * 30, "bought": [0, 1] * 30, "age": range(60)})
    (tmp_path / "sub").mkdir()
    text = write_guessed_campaign(log, tmp_path / "sub" / "my plan.toml")
    assert f"largesse run '{tmp_path}/sub/my plan.toml'" in text
    assert line_of(text, "log") == 'log = "../log.csv"'
    (tmp_path / "sub" / "my plan.toml").write_text(
        text.replace("costs = []", "costs = [0, 5]").replace('budget = ""', "budget = 1"), encoding="utf-8"
    )
    assert len(LocalEngine().read_log(read_campaign(tmp_path / "sub" / "my plan.toml"))) == 60


def test_a_first_file_asks_where_it_finds_nothing_and_lists_the_columns(tmp_path: Path) -> None:
    text, file = guessed(tmp_path, write_csv(tmp_path, {"a\nb": [1.5, 2.5], "c": ["x", "y"], "d": [0, 1]}))
    assert 'level = ""    # fill in: the column that says what each customer got, one of "a\\nb", "c", "d"' in text
    assert 'response = ""    # fill in: the column that says what happened, one of "d", "a\\nb", "c"' in text
    with pytest.raises(InputError) as refused:
        read_campaign(file)
    blank = [problem.what.split()[0] for problem in refused.value.problems]
    assert blank == ["columns.level", "columns.response", "levels.costs", "plan.budget"]


def test_text_that_holds_numbers_gets_its_line_and_what_has_two_ways_is_asked_for(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    n = 150
    level = np.arange(n) % 3
    income = np.round(rng.normal(1500, 300, n), 2)
    log = write_csv(
        tmp_path,
        {
            "coupon": np.array(["0 EUR", "5 EUR", "10 EUR"])[level],
            "income": [f"{x:.2f}".replace(".", ",") for x in income],
            "fee": [f"{x} EUR" for x in rng.integers(1, 50, n)],
            "visits": [f"1,{x:03d}" for x in rng.integers(0, 999, n)],
            "loyal": rng.choice(["Yes", "No"], n),
            "bought": np.where(rng.random(n) < 0.2 + 0.2 * level, "Yes", "No"),
        },
    )
    text, path = guessed(tmp_path, log)
    columns = tomllib.loads(text)["columns"]
    assert columns["response"] == "bought"
    assert columns["features"] == ["income", "fee", "loyal"]  # a text of its own in every row
    assert columns["parse"] == {"income": "decimal comma", "fee": "number", "bought": {"No": 0, "Yes": 1}}
    assert '# "visits" = …    # say which, "decimal comma" or "decimal point", and add it to features' in text
    assert 'names = ["0 EUR", "5 EUR", "10 EUR"]' in text  # levels stay as the log writes them
    written(tmp_path, text.replace("costs = []", "costs = [0, 5, 10]").replace('budget = ""', "budget = 3.5"))
    read = LocalEngine().read_log(read_campaign(path))
    assert read.features["income"].to_pylist() == income.tolist()
    assert set(read.response.tolist()) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("name", "values", "line"),
    [
        ("revenue", ["10.00 EUR", "0.00 EUR", "2.50 EUR"], 'response_unit = "EUR"    # CHECK: the log writes'),
        ("outcome", [10.0, 0.0, 2.5], 'response_unit = ""         # currency of the response, if it is money'),
        ("bought", [1, 0, 1], "# response_value = 1       # what a response is worth to you"),
    ],
)
def test_a_first_file_asks_what_a_response_is_worth(tmp_path: Path, name: str, values: list[Any], line: str) -> None:
    table = pa.table({"coupon": [0, 5, 10] * 20, name: values * 20, "age": list(range(60))})
    pq.write_table(table, tmp_path / "log.parquet")
    text = write_guessed_campaign(tmp_path / "log.parquet", tmp_path / "campaign.toml")
    assert line in text
    tomllib.loads(text)


def test_odd_columns_are_pointed_out(tmp_path: Path) -> None:
    far = pa.array([2**62, 2**62 + 1] * 10, pa.timestamp("us"))  # dates beyond the calendar
    pq.write_table(pa.table({"when": far, "y": [0, 1] * 10, "r": [0, 1, 1, 0] * 5}), tmp_path / "log.parquet")
    assert "when" in write_guessed_campaign(tmp_path / "log.parquet")
    # One typing error makes text of a column.
    lines = [f"{k % 3 * 5};{k % 2};{'much' if k == 7 else k}" for k in range(60)]
    (tmp_path / "log.csv").write_text("\n".join(["coupon;bought;visits", *lines]))
    text = write_guessed_campaign(tmp_path / "log.csv", tmp_path / "campaign.toml")
    assert "# CHECK: column 'visits' is read as text, though all but 1 of its different values are numbers" in text
    assert "'much'" in text


def test_a_column_within_which_levels_are_constant_is_proposed_as_the_cluster(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    village = rng.integers(0, 50, 800)
    columns = {"vid": village, "age": rng.integers(18, 80, 800), "coupon": 5 * rng.integers(0, 3, 50)[village]}
    text, _ = guessed(tmp_path, write_csv(tmp_path, {**columns, "bought": rng.integers(0, 2, 800)}))
    assert line_of(text, "cluster").startswith('cluster = "vid"')
    assert "constant within its 50 values" in line_of(text, "cluster")
    by_row = {**columns, "coupon": 5 * rng.integers(0, 3, 800), "bought": rng.integers(0, 2, 800)}
    assert "\ncluster =" not in guessed(tmp_path, write_csv(tmp_path, by_row))[0]


def shop_log(folder: Path, n: int = 1000) -> Path:
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 3, n)
    spent = np.where(rng.random(n) < 0.6, rng.lognormal(3, 1, n), 0.0).round(2)
    columns = {
        "custid": rng.permutation(n) + 5000,
        "arm": np.array(["none", "mail", "call"])[arm],
        "armcode": np.array([7, 8, 9])[arm],
        "spent": spent,
        "visits": np.where(spent > 0, 1 + (spent / 20).astype(int), rng.integers(0, 2, n)),
        "Gutschein eingelöst": np.where(rng.random(n) < 0.3, 1, 0),
        "spent_preperiod": rng.lognormal(3, 1, n).round(2),
        "sex": rng.choice(["f", "m"], n),
        "age": rng.integers(18, 80, n),
    }
    return write_csv(folder, columns)


def test_what_follows_from_level_or_response_is_left_out_with_the_reason(tmp_path: Path) -> None:
    draft = profile_table(shop_log(tmp_path)).make_draft({"response": "spent"})
    assert draft.guess.roles == {"level": "arm", "response": "spent", "customer": "custid"}
    assert draft.features == ["spent_preperiod", "sex", "age"]
    assert {*draft.guess.left_out} == {"armcode", "visits", "Gutschein eingelöst"}
    assert (
        profile_table(shop_log(tmp_path)).make_draft({"response": "spent"}, known_before=["visits"]).features[0]
        == "visits"
    )
    assert "age" not in profile_table(shop_log(tmp_path)).make_draft(exclude=["age"]).features


def test_a_file_of_known_answers_has_no_blanks(tmp_path: Path) -> None:
    log = shop_log(tmp_path)
    roles = {"level": "arm", "response": "spent"}
    answers = DraftAnswers(
        roles,
        names=["none", "mail", "call"],
        costs=[0, 1, 2],
        budget=0.5,
        unit="€",
        response_value=0.4,
        protected=["sex"],
    )
    draft = answers.make_draft(profile_table(log))
    campaign = read_campaign(written(tmp_path, write_campaign_text(draft, log, tmp_path / "campaign.toml", answers)))
    assert (campaign.levels.names, campaign.planning.budget) == (("none", "mail", "call"), 0.5)
    assert (campaign.unit, campaign.response_value) == ("€", 0.4)
    assert campaign.roles["features"] == ["spent_preperiod", "age"]


def test_answers_that_do_not_fit_are_refused_together(tmp_path: Path) -> None:
    answers = DraftAnswers({"level": "arm"}, names=["none", "post"], costs=[1, 2, 3])
    with pytest.raises(InputError) as refused:
        answers.make_draft(profile_table(shop_log(tmp_path)))
    assert len(refused.value.problems) == 3  # an unknown name, missing names, and costs of another number
    with pytest.raises(InputError) as refused:
        DraftAnswers({"level": "arms", "response": "spend"}, exclude=["sexx"]).make_draft(
            profile_table(shop_log(tmp_path))
        )
    assert len(refused.value.problems) == 3


def test_protected_attributes_are_asked_for_by_their_names(tmp_path: Path) -> None:
    draft = profile_table(shop_log(tmp_path)).make_draft()
    assert find_protected_columns(draft) == ["sex"]


def test_a_guessed_encoding_is_to_be_checked(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes("Stadt;coupon;kauf\nKöln;0;ja\nGraz;5;nein\n".encode("cp1252"))
    text, _ = guessed(tmp_path, tmp_path / "log.csv")
    assert "# CHECK: the file is not UTF-8" in text
