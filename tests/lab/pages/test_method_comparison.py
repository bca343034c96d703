"""Tables and figures of methods compared."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from largesse_lab.pages.markdown import Section
from largesse_lab.pages.method_comparison import (
    add_method_comparison,
    average_column,
    group_columns_by_measure,
    list_measure_lines_by_budget,
    summarise_methods,
    tabulate_measure,
    tabulate_methods_by_budget,
)

BUDGETS = (0.5, 1, 2, 10)


def summary() -> dict[str, Any]:
    """Two data sets with three methods at four budgets; one skill is missing."""

    def cell(place: int, budget: float) -> dict[str, Any]:
        return {"mean": 0.1 * place - 0.01 * budget, "sd": 0.02, "n": 4}

    methods: dict[str, Any] = {
        method: {
            "cells": {f"{what} {b:g}": cell(i, b) for what in ("value", "skill") for b in reversed(BUDGETS)}
            | {"rmse": cell(i, 0), "seconds": cell(i, 0), "few programme value": cell(i, 0)}
        }
        for i, method in enumerate(("CCPOvSIRE", "Stack", "additive"))
    }
    methods["additive"]["cells"]["skill 2"] = None
    methods["additive"]["against"] = {"rmse": {"difference": 0.1, "low": 0.05, "high": 0.15}}
    paper = {"CCPOvSIRE": {"value 1": [0.5, 0.1], "rmse": [0.0970, 0.0038]}}
    return {"base": "Stack", "simulations": {"images": methods, "text": methods}, "paper": paper}


def test_measures_come_in_one_order_with_tables_figures_and_the_papers_numbers() -> None:
    section = Section("table2")
    add_method_comparison(section, summary())
    text = section.join_paragraphs()
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## RMSE", "## Reward, by budget", "## Skill, by budget", "## Seconds"]
    assert "few programme" not in text
    assert "| method | paper | images | text |" in text
    assert "| CCPOvSIRE | 0.0970 ± 0.0038 | 0.0000 ± 0.0200 | 0.0000 ± 0.0200 |" in text
    assert "| Stack | 0.1 ± 0.0 | 0.1 ± 0.0 |" in text  # seconds
    assert "Not drawn because they share no repeats with Stack: CCPOvSIRE." in section.paragraphs
    assert set(section.figures) == {"table2-rmse.svg", "table2-value.svg", "table2-skill.svg"}
    words = "".join(ET.fromstring(section.figures["table2-skill.svg"]()).itertext())
    assert "mean cost per customer" in words
    ET.fromstring(section.figures["table2-rmse.svg"]())


def test_methods_that_are_not_drawn_still_have_their_tables() -> None:
    found = summary()
    found["simulations"] = {"images": {"additive": {"cells": found["simulations"]["images"]["additive"]["cells"]}}}
    section = Section("table2")
    add_method_comparison(section, found)
    assert not section.figures
    assert any(part.startswith("| method | m = 0.5 |") for part in section.paragraphs)


def test_budgets_have_a_table_for_each_data_set_with_the_papers_numbers_last() -> None:
    columns = ["rmse", "value 10", "value 2", "value 0.5", "skill 3", "skill 1.5", "spend 1", "spend 2", "spend 3"]
    assert group_columns_by_measure(columns) == {"value": ["value 0.5", "value 2", "value 10"]}
    name, table, other, _ = tabulate_methods_by_budget(summary(), [f"value {b:g}" for b in BUDGETS])
    head, _, first, second, _ = table.splitlines()
    assert (name, other) == ("**images**", "**text**")
    assert head == "| method | m = 0.5 | m = 1 | m = 2 | m = 10 | paper, m = 1 |"
    assert first.startswith("| CCPOvSIRE | −0.005 ± 0.020 |")
    assert first.endswith("| 0.500 ± 0.100 |")
    assert second.endswith("| – |")
    skills = tabulate_methods_by_budget(summary(), [f"skill {b:g}" for b in BUDGETS])[1]
    assert "paper" not in skills
    assert skills.splitlines()[-1].split(" | ")[3] == "–"


def test_the_main_methods_are_drawn_and_normalised_ones_in_place_of_those_that_were_not_measured() -> None:
    lines = list_measure_lines_by_budget(summary(), [f"skill {b:g}" for b in BUDGETS])
    assert [(line["panel"], line["label"]) for line in lines] == [
        (name, method) for name in ("images", "text") for method in ("Stack", "CCPOvSIRE")
    ]
    assert (lines[0]["x"], lines[0]["mean"][0]) == (list(BUDGETS), pytest.approx(0.095))
    cells = {"cells": {"skill 1": {"mean": 0.5, "sd": 0.1, "n": 2}}}
    methods = {"CCPOvSIRE, normalised": cells, "CCPOvIRE": cells}
    for more in ({}, {"CCPOvSIRE": cells}):
        labels = [
            line["label"] for line in list_measure_lines_by_budget({"simulations": {"a": methods | more}}, ["skill 1"])
        ]
        assert labels == ["CCPOvSIRE" if more else "CCPOvSIRE, normalised", "CCPOvIRE"]


def test_fewer_repeats_are_named_and_missing_numbers_are_dashes() -> None:
    few, many = ({"rmse": {"mean": float(n), "sd": None, "n": n}} for n in (1, 2))
    methods = {"x": {"cells": {"rmse": None}}, "y": {"cells": few}}
    found = {"simulations": {"a": methods, "b": {"z": {"cells": many}}}}
    assert tabulate_measure(found, "rmse").splitlines()[2:] == [
        "| y (1 repeats) | 1.0000 | – |",
        "| z | – | 2.0000 |",
    ]


def test_a_summary_compares_methods_on_the_repeats_they_share() -> None:
    records = [{"simulation": "a", "repeat": i, "row": "base", "rmse": 0.1 + 0.01 * i} for i in range(3)]
    records += [{"simulation": "a", "repeat": i, "row": "x", "rmse": 0.2 + 0.011 * i} for i in range(2)]
    found = summarise_methods(records, ["rmse", "√pehe"], "base")["a"]
    assert found["base"] == {
        "cells": {"rmse": pytest.approx({"mean": 0.11, "sd": 0.01, "n": 3}), "√pehe": None},
        "against": {},
    }
    difference = found["x"]["against"]["rmse"]
    assert (difference["difference"], difference["n"]) == (pytest.approx(0.1005), 2)
    assert difference["low"] < 0.1005 < difference["high"]
    assert average_column([{"a": float("nan")}, {"a": 2.0}], "a") == {"mean": 2.0, "sd": None, "n": 1}
