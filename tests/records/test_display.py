"""Records in a notebook: cards without markup from data, dataframes with the record's own numbers, drawings."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pytest

from largesse.allocation import allocate, frontier
from largesse.data import log_from_arrays, read_customers, read_log
from largesse.errors import InputError, MissingPackageError
from largesse.evaluation import make_study
from largesse.levels import Levels
from largesse.policy import Policy
from largesse.records import Card, DisplayMixin, DrawnLevels, Log
from largesse.response import Linear, Stack

EVIL = "<script>alert(1)</script>"


def make_log(n: int = 240) -> Log:
    rng = np.random.default_rng(0)
    level = np.arange(n) % 3
    table = {
        "age": rng.normal(size=n),
        "level": rng.normal(size=n),
        EVIL: rng.normal(size=n),
        "got": level,
        "bought": rng.normal(size=n) + level,
        "known": np.full(n, 1 / 3),
    }
    return read_log(table, level="got", response="bought", propensity="known", levels=Levels(costs=[0, 1, 2]))


@pytest.fixture(scope="module")
def records() -> dict[str, Any]:
    log = make_log()
    model = Linear(penalty=0.01).fit(log)
    curves = model.predict(log)
    plan = allocate(curves, [0, 1, 2], 0.9)
    policy = Policy(model, log.levels, price=plan.price)
    study = make_study(log, model, 0.9, folds=2)
    return {
        "log": log,
        "customers": read_customers(log.features),
        "plan": plan,
        "decisions": policy.offer(log),
        "frontier": frontier(curves, [0, 1, 2]),
        "evaluation": study.evaluation,
        "checkup": study.checkup,
        "study": study,
        "why": policy.explain(log),
        "moved": policy.explain(log, log=log, folds=2),
        "policy": policy,
        "model": model,
    }


SHOWN = ("log", "customers", "plan", "decisions", "frontier", "evaluation", "checkup", "study", "why", "moved")
DRAWN = ("log", "plan", "frontier", "evaluation", "study", "why", "moved")


@pytest.mark.parametrize("name", [*SHOWN, "policy", "model"])
def test_a_record_shows_itself_and_takes_nothing_for_markup(records: dict[str, Any], name: str) -> None:
    html = records[name]._repr_html_()
    ElementTree.fromstring(html)
    assert "<script" not in html
    if name in ("log", "customers", "model", "moved"):
        assert "&lt;script&gt;" in html


@pytest.mark.parametrize("name", SHOWN)
def test_dataframes_have_the_columns_of_the_arrow_table(records: dict[str, Any], name: str) -> None:
    table = records[name].to_arrow()
    frame, other = records[name].to_pandas(), records[name].to_polars()
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(other, pl.DataFrame)
    assert list(frame.columns) == other.columns == table.column_names
    assert len(frame) == len(other) == len(table) > 0


@pytest.mark.parametrize("name", DRAWN)
def test_drawings_are_svg_and_can_be_saved(records: dict[str, Any], name: str, tmp_path: Path) -> None:
    drawing = records[name].plot()
    assert ElementTree.fromstring(drawing._repr_svg_()).tag == "{http://www.w3.org/2000/svg}svg"
    assert "<script" not in drawing.svg
    drawing.save(tmp_path / "drawing.svg")
    assert (tmp_path / "drawing.svg").read_text(encoding="utf-8") == str(drawing) == drawing._repr_html_()


def test_a_drawing_that_cannot_be_saved_leaves_what_was_there(
    records: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "drawing.svg"
    path.write_text("earlier")

    def fill_the_disk(self: Path, text: str, **_: Any) -> int:
        self.write_bytes(text[:10].encode())
        raise OSError(28, "No space left on device", str(self))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", fill_the_disk)
        with pytest.raises((InputError, OSError)):
            records["plan"].plot().save(path)
    assert path.read_text() == "earlier"
    assert [entry.name for entry in tmp_path.iterdir()] == ["drawing.svg"]


def test_records_print_in_a_line(records: dict[str, Any]) -> None:
    found = records["study"].evaluation
    other = found.references[0]
    assert repr(other.value) == f"Estimate({other.value})"
    assert str(other.difference) in f"{other.difference!r}"
    assert f"; against {other.name}: {other.difference.estimate:+.4g} [" in repr(found)
    assert repr(other).startswith(f"Reference({other.name!r}, ")
    assert repr(records["study"].safety.options[0]).startswith("Option('this plan', value=")
    for record in (found, other, records["study"].safety.options[0], records["frontier"], records["plan"]):
        assert len(repr(record)) < 260
        assert "\n" not in repr(record)


def test_levels_of_plans_and_decisions_have_names_where_they_are_known(records: dict[str, Any]) -> None:
    log, policy = records["log"], records["policy"]
    named = Levels({"none": 0, "small": 1, "big": 2})
    plan = allocate(records["model"].predict(log), named, 0.9)
    assert plan.to_arrow().column("level").to_pylist() == [named.labels[k] for k in plan.levels]
    assert "none" in plan._repr_html_()
    assert "level" not in records["plan"].to_arrow().column_names  # costs alone name no levels
    decided = Policy(policy.model, named, price=policy.price)
    assert decided.decide(log, names=True).tolist() == [named.labels[k] for k in decided.decide(log)]
    offered = decided.offer(log)
    assert offered.to_arrow().column("level").to_pylist() == [named.labels[k] for k in offered.levels]


def test_numbers_are_those_of_the_record(records: dict[str, Any]) -> None:
    log, plan, study = records["log"], records["plan"], records["study"]
    table = log.to_pandas()
    np.testing.assert_array_equal(table["level_number"], log.level)
    np.testing.assert_array_equal(table["bought"], log.response)
    np.testing.assert_array_equal(table["level"], log.features["level"])  # a feature keeps its name
    assert table["level_"].astype(str).tolist() == log.level.astype(str).tolist()
    np.testing.assert_array_equal(plan.to_pandas()["level_number"], plan.levels)
    assert study.to_pandas()["value"].tolist() == [point.value.estimate for point in study.frontier]
    first = study.evaluation.to_arrow().to_pylist()
    assert first[0]["value_high"] == study.evaluation.value_interval[1]
    assert first[0]["gain"] is None
    assert first[1]["gain_low"] == study.evaluation.references[0].difference.low
    why = records["why"].to_arrow().to_pylist()
    assert [row["level"] for row in why] == records["policy"].decide(log).astype(str).tolist()
    assert {row["dearer"] for row in why if row["level"] == "2"} <= {None}
    assert all((row["dearer"] is None) == (row["if_price_below"] is None) for row in why)


def test_what_has_no_drawing_says_what_has(records: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="DrawnLevels"):
        records["decisions"].plot()


def test_a_missing_package_is_named(records: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingPackageError, match="'polars' is not installed"):
        records["plan"].to_polars()


def test_a_long_card_says_how_much_is_left_out() -> None:
    html = Card("many", ("row",), [(k,) for k in range(20)]).html
    assert html.count("<tr>") == 13
    assert "… and 8 more" in html


def test_models_show_settings_and_what_they_chose() -> None:
    assert "not fitted yet" in Stack()._repr_html_()
    log = make_log()
    chosen = Stack(models=[Linear(penalty=0.01), Linear(penalty=1.0)], folds=2).fit(log)
    assert "What it tried" in chosen._repr_html_()


def test_a_log_of_few_rows_is_drawn(records: dict[str, Any]) -> None:
    few = log_from_arrays(np.eye(3), [0, 1, 1], [0.0, 1.0, 2.0])
    assert "svg" in few.plot().svg
    alone = replace(records["evaluation"], references=(), uniform=())
    assert "Value of the policy" in alone.plot().svg
    assert len(DrawnLevels(np.zeros(3, np.int64), np.ones(3)).to_arrow()) == 3
    assert issubclass(Log, DisplayMixin)
