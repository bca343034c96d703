import xml.etree.ElementTree as ET
from typing import Any

from largesse_lab.page.by_budget import LINES, budget_series, budget_tables, families
from largesse_lab.page.compared import Compared, compared
from largesse_lab.page.sections import section

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
    return {"cells": {"images": rows, "text": rows}, "paper": {"CCPOvSIRE": {"value 1": [0.5, 0.1]}}}


def found() -> Compared:
    made = compared(summary())
    assert made is not None
    return made


def test_measures_at_many_budgets_make_a_family_in_the_order_of_budgets() -> None:
    columns = ["rmse", "value 10", "value 2", "value 0.5", "skill 3", "skill 1.5", "spend 1", "spend 2", "spend 3"]
    assert families(columns) == {"reward": ["value 0.5", "value 2", "value 10"]}


def test_each_set_has_a_table_with_what_the_paper_printed_last() -> None:
    name, table, other, _ = budget_tables(found(), families(found().columns)["reward"])
    head, _, first, second, _ = table.splitlines()
    assert (name, other) == ("**images**", "**text**")
    assert head == "| method | m = 0.5 | m = 1 | m = 2 | m = 10 | paper, m = 1 |"
    assert first.startswith("| CCPOvSIRE | −0.005 ± 0.020 |")
    assert first.endswith("| 0.500 ± 0.100 |")
    assert second.endswith("| – |")
    skills = budget_tables(found(), families(found().columns)["skill"])[1]
    assert "paper" not in skills
    assert skills.splitlines()[-1].split(" | ")[3] == "–"


def test_the_main_rows_are_drawn() -> None:
    series = budget_series(found(), families(found().columns)["skill"])
    assert [(row["panel"], row["label"]) for row in series] == [
        (name, row) for name in ("images", "text") for row in LINES if row in ("CCPOvSIRE", "Stack")
    ]
    assert series[0]["x"] == list(BUDGETS)
    assert series[0]["mean"][0] == 0.095  # of Stack


def test_a_section_has_one_table_and_one_figure_for_each_family() -> None:
    made = section({"experiment": "table2", "summary": summary(), "file": "table2.json"}, "results")
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
    told["cells"] = {name: {"additive": rows["additive"]} for name, rows in told["cells"].items()}
    made = section({"experiment": "table2", "summary": told, "file": "table2.json"}, "results")
    assert not made.figures
    assert any(part.startswith("| method | m = 0.5 |") for part in made.parts)
