from typing import Any

import pytest

from largesse_lab.page.compare import Comparison, read_comparison
from largesse_lab.page.tables import (
    DRAWN_ROWS,
    Layout,
    draw_budgets,
    group_budgets,
    pair_rows,
    tabulate_budgets,
    tabulate_measure,
)

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


def found() -> Comparison:
    made = read_comparison(summary())
    assert made is not None
    return made


def test_measures_at_many_budgets_make_a_family_in_the_order_of_budgets() -> None:
    columns = ["rmse", "value 10", "value 2", "value 0.5", "skill 3", "skill 1.5", "spend 1", "spend 2", "spend 3"]
    assert group_budgets(columns) == {"reward": ["value 0.5", "value 2", "value 10"]}


def test_each_set_has_a_table_with_what_the_paper_printed_last() -> None:
    name, table, other, _ = tabulate_budgets(found(), group_budgets(found().columns)["reward"])
    head, _, first, second, _ = table.splitlines()
    assert (name, other) == ("**images**", "**text**")
    assert head == "| method | m = 0.5 | m = 1 | m = 2 | m = 10 | paper, m = 1 |"
    assert first.startswith("| CCPOvSIRE | −0.005 ± 0.020 |")
    assert first.endswith("| 0.500 ± 0.100 |")
    assert second.endswith("| – |")
    skills = tabulate_budgets(found(), group_budgets(found().columns)["skill"])[1]
    assert "paper" not in skills
    assert skills.splitlines()[-1].split(" | ")[3] == "–"


def test_the_main_rows_are_drawn() -> None:
    series = draw_budgets(found(), group_budgets(found().columns)["skill"])
    assert [(row["panel"], row["label"]) for row in series] == [
        (name, row) for name in ("images", "text") for row in DRAWN_ROWS if row in ("CCPOvSIRE", "Stack")
    ]
    assert series[0]["x"] == list(BUDGETS)
    assert series[0]["mean"][0] == 0.095  # of Stack


def test_a_row_with_the_normalised_penalty_is_drawn_in_place_of_one_that_was_not_measured() -> None:
    cells = {"skill 1": {"mean": 0.5, "sd": 0.1, "n": 2}}
    rows = {"CCPOvSIRE, normalised": {"cells": cells}, "CCPOvIRE": {"cells": cells}}
    for more in ({}, {"CCPOvSIRE": {"cells": cells}}):
        made = read_comparison({"simulations": {"text": {**rows, **more}}})
        assert made is not None
        drawn = [line["label"] for line in draw_budgets(made, ["skill 1"])]
        assert drawn == ["CCPOvSIRE" if more else "CCPOvSIRE, normalised", "CCPOvIRE"]


def test_a_number_that_is_missing_is_a_dash_and_a_row_without_any_is_left_out() -> None:
    rows: dict[str, Any] = {
        "a": {
            "x": {"cells": {"RMSE": {"mean": float("nan")}}},
            "y": {"cells": {"RMSE": {"mean": 1.0, "sd": None}}},
            "z": {"cells": {"RMSE": None}},
        },
        "b": {"y": {}},
    }

    def table() -> list[str]:
        made = read_comparison({"simulations": rows})
        assert made is not None
        return tabulate_measure(made, "RMSE").splitlines()[2:]

    assert table() == ["| y | 1.0000 |"]
    rows["b"]["x"] = {"cells": {"RMSE": {"mean": 2.0, "sd": 0.5}}}
    assert table() == ["| y | 1.0000 | – |", "| x | – | 2.0000 ± 0.5000 |"]


def test_pairs_of_records_are_differences_on_the_repeats_that_both_rows_have() -> None:
    first, second = (0.10, 0.20, 0.30, None), (0.11, 0.22, 0.33, 0.5)
    records = [
        {"simulation": "unit", "repeat": k, "row": row, "rmse": value}
        for row, values in (("CFRNet", first), ("BART", second), ("stack", second))
        for k, value in enumerate(values)
    ]
    (found,) = pair_rows(records[:-4] + records[-2:], ["rmse", "value 3"])
    assert (found["first"], found["second"], found["column"], found["n"]) == ("CFRNet", "BART", "rmse", 3)
    assert found["estimate"] == pytest.approx(0.02)
    half = 4.3027 * 0.01 / 3**0.5  # Student's, 2 degrees of freedom
    assert (found["low"], found["high"]) == pytest.approx((0.02 - half, 0.02 + half), abs=1e-4)


# -- rows added to an earlier summary -----------------------------------------------------------------------------------

LAYOUT = Layout(("a", "b"), dict.fromkeys(("new", "base", "other")), {"rmse": "RMSE"}, {}, base="new")


def measured(row: str, repeats: int, error: float, simulation: str = "a") -> list[dict[str, Any]]:
    return [{"simulation": simulation, "repeat": i, "row": row, "rmse": error + 0.1 * i} for i in range(repeats)]


def test_added_rows_are_paired_with_the_earlier_base_and_the_others_stay() -> None:
    earlier = Layout(LAYOUT.simulations, LAYOUT.rows, LAYOUT.columns, {}, base="base")
    old = earlier.summarise([*measured("base", 4, 1.0), *measured("other", 4, 1.5), *measured("base", 4, 2.0, "b")])
    old |= {"programme": {"n": 4}}
    found = LAYOUT.extend(old, [*measured("new", 2, 0.7), *measured("base", 2, 1.1)])
    assert (found["base"], found["programme"]) == ("base", {"n": 4})
    assert list(found["simulations"]["a"]) == ["new", "base", "other"]
    assert found["simulations"]["a"]["new"]["against"]["rmse"]["difference"] == pytest.approx(-0.4)
    for row in ("base", "other"):  # four repeats, not two
        assert found["simulations"]["a"][row] == old["simulations"]["a"][row]
    assert found["simulations"]["b"] == old["simulations"]["b"]
    assert read_comparison(found) is not None


def test_of_two_measurements_of_a_pair_that_of_more_repeats_stays() -> None:
    layout = Layout(("a",), dict.fromkeys(("CCPOvSIRE", "CCPOvSIRE†")), {"rmse": "RMSE"}, {})

    def records(repeats: int, error: float) -> list[dict[str, Any]]:
        return [*measured("CCPOvSIRE", repeats, error), *measured("CCPOvSIRE†", repeats, 2.0)]

    old = layout.summarise(records(3, 1.0))
    assert layout.extend(old, records(2, 0.5))["pairs"] == old["pairs"]
    assert layout.extend(old, records(4, 0.5)) == {**layout.summarise(records(4, 0.5))}


def test_the_version_of_an_earlier_default_goes_with_its_row() -> None:
    layout = Layout(("a",), dict.fromkeys(("Stack", "base")), {"rmse": "RMSE"}, {}, base="base")
    old = {**layout.summarise([*measured("base", 3, 1.0), *measured("Stack", 3, 0.5)]), "stack": "0.1"}
    assert layout.extend(old, measured("base", 3, 1.0))["stack"] == "0.1"
    assert layout.extend(old, measured("Stack", 2, 0.4))["stack"] == "0.1"
    assert "stack" not in layout.extend(old, measured("Stack", 3, 0.4))
