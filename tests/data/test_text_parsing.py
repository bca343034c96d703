"""Nothing is misread in silence: what can be read in one way is read and said, what can be read in two is asked."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse.campaign.campaign_file import parse_campaign
from largesse.data import Encoder, read_log
from largesse.data.table_reader import read_table
from largesse.data.text_parsing import (
    detect_number_notation,
    parse_numbers,
    parse_unambiguous_columns,
    suggest_notations,
)
from largesse.errors import InputError
from largesse.levels import Levels
from largesse.records import Log

N = 60
USUAL = {"age": np.arange(N), "coupon": np.arange(N) % 2, "bought": np.arange(N) // 2 % 2}


def read(parse: Any = None, levels: Levels | None = None, **columns: Any) -> Log:
    return read_log(
        USUAL | columns, level="coupon", response="bought", levels=levels or Levels(costs=[0, 5]), parse=parse
    )


def cycle(*values: Any) -> list[Any]:
    return [values[k % len(values)] for k in range(N)]


CERTAIN: dict[str, tuple[tuple[str, ...], tuple[float, ...], str]] = {
    "decimal commas": (("15,09", "7,5", "3"), (15.09, 7.5, 3), "decimal comma"),
    "decimal commas and points between thousands": (("1.234,56", "12", "3,5"), (1234.56, 12, 3.5), "decimal comma"),
    "points decide what commas are": (("1,234", "5.5"), (1234, 5.5), "decimal point"),
    "thousands with points and commas": (("1,234.56", "7"), (1234.56, 7), "decimal point"),
    "thousands with spaces": (("1 234", "12 345 678"), (1234, 12345678), "numbers"),
    "thousands with apostrophes": (("1'234.50", "5"), (1234.5, 5), "decimal point"),
    "amounts with a currency": (("5 EUR", "10 EUR"), (5, 10), "in EUR"),
    "a currency in front": (("€5", "€7"), (5, 7), "in €"),
    "amounts with cents and a currency": (("12.50 EUR", "3.00 EUR"), (12.5, 3), "in EUR"),
    "per cent": (("12 %", "7%"), (0.12, 0.07), "in %"),
}


@pytest.mark.parametrize("name", CERTAIN)
def test_what_can_be_read_in_one_way_is_read_and_said(name: str) -> None:
    words, numbers, said = CERTAIN[name]
    log = read(price=cycle(*words))
    assert log.features.column("price").to_pylist() == cycle(*numbers)
    assert any("'price'" in note and said in note for note in log.notes)


@pytest.mark.parametrize("words", [("1,234", "5,678"), ("1.234", "7.000")])
def test_what_can_be_read_in_two_ways_is_asked(words: tuple[str, ...]) -> None:
    log = read(price=cycle(*words))
    assert log.features.column("price").to_pylist() == cycle(*words)
    assert any("decimal comma or a decimal point" in note for note in log.notes)
    with pytest.raises(InputError, match="decimal comma"):
        read(bought=cycle(*words))
    comma = read({"price": "decimal comma"}, price=cycle(*words)).features.column("price").to_pylist()
    assert comma == [float(word.replace(".", "").replace(",", ".")) for word in cycle(*words)]


@pytest.mark.parametrize(("yes", "no"), [("Yes", "No"), ("ja", "nein"), ("true", "False"), ("Y", "N"), ("1", "0")])
def test_yes_and_no_are_a_response(yes: str, no: str) -> None:
    log = read(bought=[yes if bought else no for bought in USUAL["bought"]])
    assert np.array_equal(log.response, USUAL["bought"])
    assert any("read as numbers" in note and repr(yes) in note for note in log.notes)


def test_other_words_are_mapped_by_a_setting_and_levels_may_have_a_currency() -> None:
    words = ["came" if bought else "left" for bought in USUAL["bought"]]
    with pytest.raises(InputError, match="parse = "):
        read(bought=words)
    assert np.array_equal(read({"bought": {"came": 1, "left": 0}}, bought=words).response, USUAL["bought"])
    with pytest.raises(InputError, match="'left'"):
        read({"bought": {"came": 1}}, bought=words)
    assert np.array_equal(read(coupon=[f"{5 * level} EUR" for level in USUAL["coupon"]]).level, USUAL["coupon"])


@pytest.mark.parametrize(
    ("words", "dates"),
    [
        (("31.12.2024", "01.02.2024"), (dt.date(2024, 12, 31), dt.date(2024, 2, 1))),
        (("12/31/2024", "1/2/2024"), (dt.date(2024, 12, 31), dt.date(2024, 1, 2))),
        (("31/12/2024", "1/2/2024"), (dt.date(2024, 12, 31), dt.date(2024, 2, 1))),
    ],
)
def test_dates_that_can_be_read_in_one_way_are_dates(words: tuple[str, ...], dates: tuple[dt.date, ...]) -> None:
    log = read(since=cycle(*words))
    assert log.features.column("since").to_pylist() == cycle(*dates)
    assert any("'since' is read as dates" in note for note in log.notes)


def test_dates_that_can_be_read_in_two_ways_are_asked() -> None:
    assert any("day or month" in note for note in read(since=cycle("1/2/2024", "3/4/2024")).notes)
    log = read({"since": "month first"}, since=cycle("1/2/2024", "3/4/2024"))
    assert log.features.column("since")[0].as_py() == dt.date(2024, 1, 2)
    assert any("Excel" in note for note in read(signup_date=cycle(45000, 45001)).notes)
    log = read({"signup_date": "excel date"}, signup_date=cycle(45000, 45001))
    assert log.features.column("signup_date")[0].as_py() == dt.date(2023, 3, 15)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (cycle("Oslo", "Rome"), ""),
        ([3] * N, "is 3 in every row"),
        ([None] * N, "is empty"),
        ([f"c{k}" for k in range(N)], "left out"),
        (cycle("12", "13", "14", "about 5"), "all but 1 of its different values are numbers, but not 'about 5'"),
        (cycle("31.12.2024", "2024-12-31"), "dates"),
    ],
)
def test_odd_columns_are_mentioned(column: list[Any], said: str) -> None:
    notes = read(x=column).notes
    assert len(notes) == bool(said)
    assert all("'x'" in note and said in note for note in notes)


@pytest.mark.parametrize("word", ["1_0", "５", "٣", "1e5_0", "0x10", "inf", "5 EUR USD", "1,2,3", "12.34.56"])
def test_notations_of_computers_are_no_numbers(word: str) -> None:
    assert parse_numbers([word]) is None
    assert not detect_number_notation([word]).is_unambiguous


def test_postcodes_keep_their_zeros(tmp_path: Path) -> None:
    rows = "\n".join(f"{k % 10:05d},{k}" for k in range(50))
    (tmp_path / "t.csv").write_text(f"zip,age\n{rows}\n")
    assert read_table(tmp_path / "t.csv").column("zip")[3].as_py() == "00003"


def test_customers_are_read_as_the_log_was() -> None:
    log = read(price=cycle("15,09", "7,5"), code=cycle("1,5", "A", "B"))
    encoder = Encoder()
    encoder.fit_transform(log.features, log.response)
    table = {"age": [1, 2], "price": ["1,5", "2,25"], "code": ["1,5", "1,5"]}
    assert np.isfinite(encoder.transform(read_table(table))).all()


def test_invalid_settings_and_words_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="decimal komma"):
        read({"age": "decimal komma"})
    with pytest.raises(InputError, match="'prise'"):
        read({"prise": "decimal comma"})
    with pytest.raises(InputError, match="'soon'"):
        read_table({"since": ["03.02.2024", "soon"]}, parse={"since": "day first"})


def test_a_campaign_file_keeps_the_settings() -> None:
    given = {
        "log": "log.csv",
        "columns": {"level": "c", "response": "b", "parse": {"b": {"yes": 1, "no": 0}, "price, net": "decimal comma"}},
        "levels": {"costs": [0, 1], "propensities": [0.5, 0.5]},
    }
    import tomllib

    found = parse_campaign(given)
    again = parse_campaign(tomllib.loads(found.text))
    assert again == found
    assert again.roles["parse"] == given["columns"]["parse"]  # type: ignore[index]
    assert again.propensities == (0.5, 0.5)


def test_dates_may_be_dates_already_or_in_iso_notation() -> None:
    days = [dt.date(2025, 9, 28), None, dt.date(2024, 2, 3)]
    for way in ("day first", "month first", "excel date"):
        assert read_table({"since": days}, parse={"since": way})["since"].to_pylist() == days
    mixed = read_table({"since": ["03.02.2024", "2025-09-28"]}, parse={"since": "day first"})
    assert mixed["since"].to_pylist() == [dt.date(2024, 2, 3), dt.date(2025, 9, 28)]


# -- suggestions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "ways"),
    [
        (["15,09", "7"], ("decimal comma",)),
        (["1.234,56", "3"], ("decimal comma",)),
        (["1,234.56", "3"], ("decimal point",)),
        (["5 EUR", "10 EUR"], ("number",)),
        (["€5", "€10"], ("number",)),
        (["5 %", "10 %"], ("percent",)),
        (["5,5 %", "10 %"], ("decimal comma",)),
        (["1,234", "5,678"], ("decimal comma", "decimal point")),
        (["31.12.2024", "01.02.2023"], ("day first",)),
        (["12/31/2024"], ("month first",)),
        (["01/02/2024"], ("day first", "month first")),
        (["Yes", "No", "yes"], ({"No": 0, "Yes": 1, "yes": 1},)),
        (["ja", "nein"], ({"ja": 1, "nein": 0},)),
        *((words, None) for words in (["Oslo"], ["5", "Oslo"], ["5 EUR", "10 USD"], [], [None], ["maybe", "yes"])),
    ],
)
def test_the_notations_that_fit_words(words: list[Any], ways: tuple[Any, ...] | None) -> None:
    suggestion = suggest_notations(pa.chunked_array([pa.array(words, pa.string())]))
    assert (suggestion and suggestion.ways) == ways


def test_only_what_can_be_read_in_one_way_is_read() -> None:
    table = pa.table(
        {"a": ["5 %", "7,5 %"], "b": ["1,234", "2,345"], "c": ["31.02.2024", "01.01.2024"], "d": ["No", "Yes"]}
    )
    read, found = parse_unambiguous_columns(table)
    assert read["a"].to_pylist() == [0.05, 0.075]
    assert read["b"].to_pylist() == ["1,234", "2,345"]
    assert read["c"].to_pylist() == ["31.02.2024", "01.01.2024"]  # no calendar has the first
    assert read["d"].to_pylist() == [0.0, 1.0]
    assert list(found) == ["a", "b", "d"]
