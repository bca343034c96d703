import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError
from largesse_lab.experiments import rates
from largesse_lab.page.compared import compared
from largesse_lab.page.page import page, read_results
from largesse_lab.page.sections import against_table, metric_table

MADE = {
    "command": "largesse experiment table1 --repeats 3",
    "machine": "two | cores",
    "date": "2026-01-02",
    "repeats": 3,
    "versions": {"jax": "0.5"},
}
PAPER = {
    "CCPOvSIRE": {"rmse": [0.0970, 0.0038], "value 3": [0.6082, 0.0013]},
    "CCPOvIRE": {"rmse": [0.1059, 0.0165], "value 3": [0.6074, 0.0011]},
    "CFRNet": {"rmse": [0.1069, 0.0060], "value 3": [0.5958, 0.0010]},
    "BART": {"rmse": [0.2057, 0.0027], "value 3": [0.6002, 0.0001]},
}
METHODS = {"CCPOvSIRE": 0.07, "CCPOvIRE": 0.0912, "CFRNet": 0.1, "BART": 0.2, "uniform": 0.19}


def methods() -> dict[str, Any]:
    cells: dict[str, Any] = {}
    differences: dict[str, Any] = {}
    for name, shift in (("averaged", 0.0), ("confounded", 0.05)):
        for row, mean in METHODS.items():
            cell = {"mean": mean + shift, "sd": 0.012, "n": 3}
            cells.setdefault(name, {})[row] = {"RMSE": cell, "reward 3": {**cell, "mean": 0.7 - mean}}
        for row in list(METHODS)[1:]:
            apart = METHODS[row] - METHODS["CCPOvSIRE"]
            more = {"estimate": apart, "low": apart - 0.01, "high": apart + 0.01}
            less = {"estimate": -apart, "low": -apart - 0.01, "high": -apart + 0.01}
            differences.setdefault(name, {})[row] = {"RMSE": more, "reward 3": less}
    return {"cells": cells, "differences": differences, "paper": PAPER}


def turned(found: dict[str, Any]) -> dict[str, Any]:
    """The same summary in the other shape: by simulation and row, then cells and differences."""

    def gap(value: dict[str, Any]) -> dict[str, Any]:
        return {"difference": value["estimate"], "low": value["low"], "high": value["high"]}

    return {
        "base": "CCPOvSIRE",
        "paper": found["paper"],
        "simulations": {
            name: {
                row: {
                    "cells": columns,
                    "against": {c: gap(v) for c, v in found["differences"][name].get(row, {}).items()},
                }
                for row, columns in rows.items()
            }
            for name, rows in found["cells"].items()
        },
    }


def series() -> list[dict[str, Any]]:
    base = {"x": [0, 1, 10], "sd": [0.1, 0.1, 0.1]}
    return [
        {**base, "panel": f"averaged: {column}", "label": label, "mean": [1.0, 2.0, k]}
        for column in ("rmse", "value 3")
        for k, label in enumerate(("CCPOvSIRE", "CCPOvIRE"))
    ]


def put(folder: Path, experiment: str, summary: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    result = {"experiment": experiment, "made": MADE, "summary": summary}
    (folder / f"{experiment}.json").write_text(json.dumps(result), encoding="utf-8")


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    docs = tmp_path_factory.mktemp("docs")
    put(docs / "results", "kappa", {"series": series()})
    put(docs / "results", "table1", methods())
    put(docs / "results", "rates", rates.summary(rates.rates(levels=[2, 100], repeats=3)))
    put(docs / "results", "novelty", {"anything": [1, 2]})
    page(docs / "results", docs / "results.md")
    return docs


def test_every_experiment_there_is_has_a_section_in_the_papers_order(docs: Path) -> None:
    text = (docs / "results.md").read_text(encoding="utf-8")
    titles = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert [title.split(":")[0] for title in titles] == ["Table 1", "How much balance", "Proposition 3", "novelty"]
    assert "Table 2" not in text
    assert "[`novelty.json`](results/novelty.json)" in text


def test_figures_are_drawings_beside_the_results_and_linked_by_relative_path(docs: Path) -> None:
    text = (docs / "results.md").read_text(encoding="utf-8")
    linked = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert set(linked) == {
        f"results/{name}.svg" for name in ("table1-rmse", "table1-reward-3", "kappa-rmse", "kappa-value-3", "rates")
    }
    for link in linked:
        ET.parse(docs / link)
    assert not list(docs.rglob("*.part"))


def test_links_within_the_page_lead_to_its_sections(docs: Path) -> None:
    text = (docs / "results.md").read_text(encoding="utf-8")
    titles = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    assert set(re.findall(r"\]\(#(.*?)\)", text)) == anchors


def test_the_papers_numbers_stand_beside_ours(docs: Path) -> None:
    text = (docs / "results.md").read_text(encoding="utf-8")
    assert "| method | paper | averaged | confounded |" in text
    assert "| CCPOvIRE | 0.1059 ± 0.0165 | 0.0912 ± 0.0120 | 0.1412 ± 0.0120 |" in text
    assert "| uniform | – | 0.1900 ± 0.0120 | 0.2400 ± 0.0120 |" in text
    assert "largesse experiment table1 --repeats 3" in text
    assert "two \\| cores" in text  # a bar in a cell would end it


def test_judgements_follow_the_numbers(docs: Path, tmp_path: Path) -> None:
    text = (docs / "results.md").read_text(encoding="utf-8")
    told = "| CCPOvSIRE < CCPOvIRE | RMSE | 0.0970 < 0.1059 | {0}: {1}0.0212 ("
    assert told.format("holds", "+") in text
    assert (
        "uniform against the paper's best Reward at a budget of 3, 0.6082: not better on averaged (0.5100), confounded (0.5100)."
        in text
    )
    other = methods()
    for rows in other["cells"].values():
        rows["CCPOvIRE"]["RMSE"]["mean"] -= 2 * 0.0212
    for rows in other["differences"].values():
        rows["CCPOvIRE"]["RMSE"] = {"estimate": -0.0212, "low": -0.03, "high": -0.01}
    put(tmp_path / "results", "table1", other)
    page(tmp_path / "results", tmp_path / "results.md")
    assert told.format("reversed", "−") in (tmp_path / "results.md").read_text(encoding="utf-8")


def test_the_dynamic_programme_has_its_sentence(tmp_path: Path) -> None:
    programme = {"n": 1200, "most predicted lost": 2.5e-4, "mean true difference": -1e-6}
    put(tmp_path / "results", "table1", {**methods(), "programme": programme})
    page(tmp_path / "results", tmp_path / "results.md")
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "predict values at most 2.5e−04 apart (1,200 plans); true values differ by −1.0e−06 on average." in text


def test_the_simulation_with_errors_of_the_papers_size_is_named_first(docs: Path) -> None:
    text = (docs / "results.md").read_text(encoding="utf-8")
    ours = {"averaged": (0.07, 0.0912, 0.1, 0.2), "confounded": (0.12, 0.1412, 0.15, 0.25)}
    factors = {
        name: np.exp(np.mean(np.abs(np.log(np.divide(found, (0.0970, 0.1059, 0.1069, 0.2057))))))
        for name, found in ours.items()
    }
    assert f"nearest first: averaged {factors['averaged']:.1f}, confounded {factors['confounded']:.1f}." in text


def test_the_promise_is_judged_at_the_largest_number_of_levels(docs: Path) -> None:
    text = (docs / "results.md").read_text(encoding="utf-8")
    assert re.search(r"With 100 levels the monotone estimate of the truth “constant” has 0\.05\d", text)
    assert re.search(r"that of “gaps of 10 s” has (1\.0|0\.9)\d\d, 2[12]\.\d times", text)


def test_columns_come_in_one_order_and_those_nobody_asked_for_stay_in_the_file(tmp_path: Path) -> None:
    cell = {"mean": 1.23456, "sd": 0.1, "n": 3}
    names = ("seconds", "few programme value", "skill 1.5", "value 3", "√pehe", "rmse")
    put(tmp_path / "results", "table1", {"cells": {"unit": {"CCPOvIRE": dict.fromkeys(names, cell)}}, "paper": PAPER})
    page(tmp_path / "results", tmp_path / "results.md")
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert re.findall(r"^### (.*)$", text, flags=re.MULTILINE) == [
        "RMSE", "√PEHE", "Reward at a budget of 3", "Skill at a budget of 1.5", "Seconds",
    ]  # fmt: skip
    assert "| CCPOvIRE | 0.6074 ± 0.0011 | 1.2346 ± 0.1000 |" in text
    assert "| CCPOvIRE | 1.2 ± 0.1 |" in text


def test_every_row_of_a_table_has_as_many_cells_as_its_head(docs: Path) -> None:
    text = (docs / "results.md").read_text(encoding="utf-8").replace("\\|", "")
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1, block


def test_a_number_that_is_missing_is_a_dash_and_a_row_without_any_is_left_out() -> None:
    cells: dict[str, Any] = {
        "a": {"x": {"RMSE": {"mean": float("nan")}}, "y": {"RMSE": {"mean": 1.0, "sd": None}}, "z": {"RMSE": None}},
        "b": {"y": {}},
    }

    def rows() -> list[str]:
        found = compared({"cells": cells})
        assert found is not None
        return metric_table(found, "RMSE").splitlines()[2:]

    assert rows() == ["| y | 1.0000 |"]
    cells["b"]["x"] = {"RMSE": {"mean": 2.0, "sd": 0.5}}
    assert rows() == ["| y | 1.0000 | – |", "| x | – | 2.0000 ± 0.5000 |"]


def test_both_shapes_of_a_summary_are_read_alike() -> None:
    assert compared(turned(methods())) == compared(methods())
    assert compared({"series": []}) is None
    assert compared({"cells": {"a": [1, 2]}}) is None


def test_strengths_of_balance_are_judged_against_none() -> None:
    rows = [
        {"panel": panel, "label": "CCPOvIRE", "kappa": kappa, "low": low, "high": low + 0.02}
        for panel in ("unit: rmse", "unit: value 3")
        for kappa, low in ((0.1, -0.01), (3.0, -0.05), (30.0, 0.01))
    ]
    assert against_table(rows).splitlines()[2:4] == [
        "| unit: rmse | CCPOvIRE | 3 | 30 | 0.1 |",
        "| unit: value 3 | CCPOvIRE | 30 | 3 | 0.1 |",
    ]


def test_the_same_results_give_the_same_page(docs: Path, tmp_path: Path) -> None:
    text = (docs / "results.md").read_bytes()
    drawing = (docs / "results" / "rates.svg").read_bytes()
    page(docs / "results", docs / "results.md")
    assert (docs / "results.md").read_bytes() == text
    assert (docs / "results" / "rates.svg").read_bytes() == drawing


def test_files_that_are_no_results_are_refused_together_and_nothing_is_written(tmp_path: Path) -> None:
    put(tmp_path, "table1", methods())
    (tmp_path / "a.json").write_text("{", encoding="utf-8")
    (tmp_path / "b.json").write_text('{"made": {}}', encoding="utf-8")
    with pytest.raises(InputError, match="2 things are wrong") as refused:
        page(tmp_path, tmp_path / "results.md")
    assert "a.json is not JSON" in str(refused.value)
    assert "b.json has no experiment and no summary" in str(refused.value)
    assert not (tmp_path / "results.md").exists()


def test_an_empty_folder_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="largesse experiment rates"):
        read_results(tmp_path)
