import xml.etree.ElementTree as ET
from typing import Any

from largesse_lab.experiments.table2 import CHAPTER
from largesse_lab.page.sections import Result, Section, write_section

BUDGETS = (0.5, 1, 2, 10)


def summary() -> dict[str, Any]:
    def cell(place: int, budget: float) -> dict[str, Any]:
        return {"mean": 0.1 * place - 0.01 * budget, "sd": 0.02, "n": 4}

    rows = {
        row: {f"{what} {b:g}": cell(i, b) for what in ("value", "skill") for b in reversed(BUDGETS)}
        | {"rmse": cell(i, 0)}
        for i, row in enumerate(("CCPOvSIRE", "Stack", "additive"))
    }
    del rows["additive"]["skill 2"]
    cells = {row: {"cells": columns} for row, columns in rows.items()}
    return {"simulations": {"images": cells, "text": cells}, "paper": {"CCPOvSIRE": {"value 1": [0.5, 0.1]}}}


def section(told: dict[str, Any]) -> Section:
    return write_section(Result("table2", {}, told, "table2.json"), CHAPTER, "results")


def test_a_section_has_one_table_and_one_figure_for_each_family() -> None:
    made = section(summary())
    text = "\n\n".join(made.parts)
    assert [line for line in text.splitlines() if line.startswith("### ")][:3] == [
        "### RMSE",
        "### Reward, by budget",
        "### Skill, by budget",
    ]
    assert set(made.figures) == {"table2-reward.svg", "table2-skill.svg"}
    for drawn in made.figures.values():
        assert "mean cost per customer" in "".join(ET.fromstring(drawn).itertext())


def test_rows_of_which_none_is_drawn_have_their_tables_still() -> None:
    told = summary()
    told["simulations"] = {name: {"additive": rows["additive"]} for name, rows in told["simulations"].items()}
    made = section(told)
    assert not made.figures
    assert any(part.startswith("| method | m = 0.5 |") for part in made.parts)


def test_rows_without_paired_differences_are_named_below_the_figure() -> None:
    told = summary()
    told["base"] = "Stack"
    for rows in told["simulations"].values():
        rows["additive"]["against"] = {"rmse": {"difference": 0.1, "low": 0.05, "high": 0.15}}
    parts = section(told).parts
    assert "Not drawn, for want of repeats paired with Stack: CCPOvSIRE." in parts
