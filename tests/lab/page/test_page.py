import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from largesse.errors import InputError
from largesse_lab.experiments import CHAPTERS, rates
from largesse_lab.page.page import read_results, write_page
from largesse_lab.runner.request import Request

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
    simulations: dict[str, Any] = {}
    for name, shift in (("averaged", 0.0), ("confounded", 0.05)):
        for row, mean in METHODS.items():
            cell, apart = {"mean": mean + shift, "sd": 0.012, "n": 3}, mean - METHODS["CCPOvSIRE"]
            more = {"difference": apart, "low": apart - 0.01, "high": apart + 0.01}
            less = {"difference": -apart, "low": -apart - 0.01, "high": -apart + 0.01}
            simulations.setdefault(name, {})[row] = {
                "cells": {"RMSE": cell, "reward 3": {**cell, "mean": 0.7 - mean}},
                "against": {"RMSE": more, "reward 3": less} if row != "CCPOvSIRE" else {},
            }
    return {"simulations": simulations, "paper": PAPER}


def series() -> list[dict[str, Any]]:
    base = {"x": [0, 1, 10], "sd": [0.1, 0.1, 0.1]}
    return [
        {**base, "panel": f"averaged: {column}", "label": label, "mean": [1.0, 2.0, k]}
        for column in ("rmse", "value 3")
        for k, label in enumerate(("CCPOvSIRE", "CCPOvIRE"))
    ]


def levels() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rates, "LEVELS", (2, 100))
        return rates.summarise_levels(rates.measure_levels(Request(repeats=3)))


def put(folder: Path, experiment: str, summary: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    result = {"experiment": experiment, "made": MADE, "summary": summary}
    (folder / f"{experiment}.json").write_text(json.dumps(result), encoding="utf-8")


def read_all(docs: Path) -> str:
    """Return the page of results, followed by the pages that it links to, in its order."""
    first = (docs / "results.md").read_text(encoding="utf-8")
    linked = dict.fromkeys(re.findall(r"\]\((results/[^)#]+\.md)\)", first))
    return "\n".join([first, *((docs / path).read_text(encoding="utf-8") for path in linked)])


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    docs = tmp_path_factory.mktemp("docs")
    put(docs / "results", "kappa", {"series": series()})
    put(docs / "results", "table1", methods())
    put(docs / "results", "rates", levels())
    put(docs / "results", "novelty", {"anything": [1, 2]})
    write_page(docs / "results", docs / "results.md", CHAPTERS)
    return docs


def test_every_experiment_there_is_has_a_section_in_the_papers_order(docs: Path) -> None:
    text = read_all(docs)
    first = (docs / "results.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", first, flags=re.MULTILINE) == ["How to read these pages"]
    titles = re.findall(r"^# (.*)$", text, flags=re.MULTILINE)[1:]
    assert [title.split(":")[0] for title in titles] == ["Table 1", "How much balance", "Proposition 3", "novelty"]
    assert "Table 2" not in text
    assert "[`novelty.json`](./novelty.json)" in text


def test_figures_are_drawings_beside_the_results_and_linked_by_relative_path(docs: Path) -> None:
    text = read_all(docs)
    linked = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert set(linked) == {
        f"./{name}.svg" for name in ("table1-rmse", "table1-reward-3", "kappa-rmse", "kappa-value-3", "rates")
    }
    for link in linked:
        ET.parse(docs / "results" / link)
    assert not list(docs.rglob("*.part"))


def test_links_between_the_pages_lead_somewhere(docs: Path) -> None:
    for page in (docs / "results.md", *(docs / "results").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        links = re.findall(r"\]\(([^)]+)\)", text)
        assert links
        for link in links:
            path, _, anchor = link.partition("#")
            there = (page.parent / path) if path else page
            assert there.exists(), link
            assert anchor in ("", "how-to-read-these-pages")
            if anchor:
                assert "## How to read these pages" in there.read_text(encoding="utf-8")


def test_the_papers_numbers_stand_beside_ours(docs: Path) -> None:
    text = read_all(docs)
    assert "| method | paper | averaged | confounded |" in text
    assert "| CCPOvIRE | 0.1059 ± 0.0165 | 0.0912 ± 0.0120 | 0.1412 ± 0.0120 |" in text
    assert "| uniform | – | 0.1900 ± 0.0120 | 0.2400 ± 0.0120 |" in text
    assert "largesse experiment table1 --repeats 3" in text
    assert "two \\| cores" in text  # a bar in a cell would end it


def test_columns_come_in_one_order_and_those_nobody_asked_for_stay_in_the_file(tmp_path: Path) -> None:
    cell = {"mean": 1.23456, "sd": 0.1, "n": 3}
    names = ("seconds", "few programme value", "skill 1.5", "value 3", "√pehe", "rmse")
    found = {"simulations": {"unit": {"CCPOvIRE": {"cells": dict.fromkeys(names, cell)}}}, "paper": PAPER}
    put(tmp_path / "results", "table1", found)
    write_page(tmp_path / "results", tmp_path / "results.md", CHAPTERS)
    text = read_all(tmp_path)
    assert re.findall(r"^## (.*)$", text, flags=re.MULTILINE)[1:] == [
        "RMSE", "√PEHE", "Reward at a budget of 3", "Skill at a budget of 1.5", "Seconds",
    ]  # fmt: skip
    assert "| CCPOvIRE | 0.6074 ± 0.0011 | 1.2346 ± 0.1000 |" in text
    assert "| CCPOvIRE | 1.2 ± 0.1 |" in text


def test_every_row_of_a_table_has_as_many_cells_as_its_head(docs: Path) -> None:
    text = read_all(docs).replace("\\|", "")
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1, block


def test_the_same_results_give_the_same_page(docs: Path) -> None:
    text = (docs / "results.md").read_bytes()
    drawing = (docs / "results" / "rates.svg").read_bytes()
    write_page(docs / "results", docs / "results.md", CHAPTERS)
    assert (docs / "results.md").read_bytes() == text
    assert (docs / "results" / "rates.svg").read_bytes() == drawing


def test_files_that_are_no_results_are_refused_together_and_nothing_is_written(tmp_path: Path) -> None:
    put(tmp_path, "table1", methods())
    (tmp_path / "a.json").write_text("{", encoding="utf-8")
    (tmp_path / "b.json").write_text('{"made": {}}', encoding="utf-8")
    with pytest.raises(InputError, match="2 things are wrong") as refused:
        write_page(tmp_path, tmp_path / "results.md", CHAPTERS)
    assert "a.json is not JSON" in str(refused.value)
    assert "b.json has no experiment and no summary" in str(refused.value)
    assert not (tmp_path / "results.md").exists()


def test_an_empty_folder_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="largesse experiment rates"):
        read_results(tmp_path, CHAPTERS)
