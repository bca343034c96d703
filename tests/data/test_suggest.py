"""How text that holds numbers or dates can be read: one way, several, or none."""

from typing import Any

import pyarrow as pa
import pytest

from largesse.data.parsing import read_suggested, suggest_parse


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
    ],
)
def test_the_ways_in_which_words_can_be_read(words: list[str], ways: tuple[Any, ...]) -> None:
    found = suggest_parse(pa.chunked_array([words]))
    assert found is not None
    assert found.ways == ways


@pytest.mark.parametrize("words", [["Oslo", "Rome"], ["5", "Oslo"], ["5 EUR", "10 USD"], [], [None], ["maybe", "yes"]])
def test_words_that_are_not_all_numbers_are_text(words: list[str]) -> None:
    assert suggest_parse(pa.chunked_array([pa.array(words, pa.string())])) is None


def test_only_what_can_be_read_in_one_way_is_read() -> None:
    table = pa.table(
        {"a": ["5 %", "7,5 %"], "b": ["1,234", "2,345"], "c": ["31.02.2024", "01.01.2024"], "d": ["No", "Yes"]}
    )
    read, found = read_suggested(table)
    assert read["a"].to_pylist() == [0.05, 0.075]
    assert read["b"].to_pylist() == ["1,234", "2,345"]
    assert read["c"].to_pylist() == ["31.02.2024", "01.01.2024"]  # no calendar has the first
    assert read["d"].to_pylist() == [0.0, 1.0]
    assert list(found) == ["a", "b", "d"]
