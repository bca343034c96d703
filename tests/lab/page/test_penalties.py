"""What the balance penalty does, as the paper has it and normalised."""

from typing import Any

import pytest

from largesse_lab.experiments.hsic_kernels import TABLE as KERNELS
from largesse_lab.experiments.table1 import CHAPTER, TABLE
from largesse_lab.page.compare import Comparison, read_comparison
from largesse_lab.page.penalties import brief_penalties, describe_missing, tabulate_gains, tabulate_normalising
from largesse_lab.page.sections import Result, write_section

ERRORS = {"CCPOvIRE": 0.08, "CCPOvIRE†": 0.1, "CCPOvIRE, normalised": 0.099}


def records(errors: dict[str, float], repeats: int = 3) -> list[dict[str, Any]]:
    """Repeats whose errors differ by a constant between rows: paired intervals have no width."""
    return [
        {"simulation": "averaged", "repeat": i, "row": row, "rmse": error + 0.01 * (i - 1), "value 3": 0.6 - error}
        for row, error in errors.items()
        for i in range(repeats)
    ]


def compare(errors: dict[str, float], table: Any = TABLE) -> Comparison:
    found = read_comparison(table.summarise(records(errors)))
    assert found is not None
    return found


def test_the_change_by_each_penalty_is_that_from_the_row_without_one() -> None:
    assert tabulate_gains(compare(ERRORS)).splitlines() == [
        "| model | penalty | paper | averaged |",
        "|---|---|---:|---:|",
        "| CCPOvIRE | as in the paper | −14.5 % | −20.0 % (−20.0 to −20.0) |",
        "| CCPOvIRE | normalised | – | −1.0 % (−1.0 to −1.0) |",
    ]


def test_both_penalties_are_compared_on_the_same_repeats_in_every_column() -> None:
    lines = tabulate_normalising(compare(ERRORS)).splitlines()
    assert lines[2:] == [
        "| CCPOvIRE | RMSE | better: −0.0190 (−0.0190 to −0.0190) |",
        "| CCPOvIRE | Reward at a budget of 3 | better: +0.0190 (+0.0190 to +0.0190) |",
    ]
    kernels = tabulate_normalising(
        compare({"CCPOvSIRE, RBF": 0.11, "CCPOvSIRE, RBF, normalised": 0.1, "CCPOvSIRE, linear": 0.1}, KERNELS)
    )
    assert "| CCPOvSIRE, RBF | RMSE | worse: +0.0100 (+0.0100 to +0.0100) |" in kernels
    assert "linear" not in kernels


def test_the_page_says_what_normalising_changes_in_its_summary_too() -> None:
    summary = TABLE.summarise(records(ERRORS))
    text = "\n".join(write_section(Result("table1", {}, summary, "table1.json"), CHAPTER, ".").parts)
    assert "### What normalising changes" in text
    assert "penalty also falls when the representation shrinks" in text
    told = "changes the RMSE of CCPOvIRE on averaged by −20.0 % (0.1000 to 0.0800; the paper: −14.5 %), normalised by −1.0 %."
    assert CHAPTER.brief(summary).endswith(told)


@pytest.mark.parametrize("row", list(ERRORS))
def test_rows_that_are_missing_are_not_spoken_of(row: str) -> None:
    found = compare({name: error for name, error in ERRORS.items() if name != row})
    assert bool(tabulate_gains(found)) is (row == "CCPOvIRE")  # the normalised row is compared with † still
    assert bool(tabulate_normalising(found)) is (row == "CCPOvIRE†")
    assert ("normalised" in brief_penalties(found)) is False
    assert bool(brief_penalties(found)) is (row == "CCPOvIRE, normalised")


def test_a_change_is_that_on_the_repeats_both_rows_have() -> None:
    old = TABLE.summarise(records({"CCPOvIRE†": 0.2, "CCPOvIRE, normalised": 0.19}, 9))
    found = read_comparison(TABLE.layout.extend(old, records({"CCPOvIRE": 0.08, "CCPOvIRE†": 0.1})))
    assert found is not None
    assert found.cells["averaged", "CCPOvIRE†", "rmse"].n == 9
    assert "by −20.0 % (0.1000 to 0.0800; the paper" in brief_penalties(found)


def test_changes_that_are_not_paired_are_marked() -> None:
    summary = TABLE.summarise(records(ERRORS))
    summary["pairs"] = [pair for pair in summary["pairs"] if pair["first"] != "CCPOvIRE"]
    found = read_comparison(summary)
    assert found is not None
    lines = tabulate_gains(found).splitlines()
    assert [line.endswith(" \\* |") for line in lines[2:4]] == [True, False]
    assert lines[-1].endswith("not paired.")


def test_a_penalty_that_was_not_measured_is_spoken_of() -> None:
    assert describe_missing(compare(ERRORS)) == ""
    rows = {name: error for name, error in ERRORS.items() if name != "CCPOvIRE"}
    told = describe_missing(compare(rows))
    assert "not measured here for CCPOvIRE: " in told
    assert told.endswith("“every method of the paper” leaves them out.")
    summary = TABLE.summarise(records(rows))
    parts = write_section(Result("table1", {}, summary, "table1.json"), CHAPTER, ".").parts
    assert told in parts
    assert "### What the normalised penalty changes" in parts
    assert CHAPTER.brief(summary).endswith(told)
    unprinted = compare({"CCPOvSIRE, random features, normalised": 0.1, "CCPOvSIRE, linear": 0.1}, KERNELS)
    assert describe_missing(unprinted).endswith("have another one.")
