from typing import Any

from largesse_lab.page.comparison import Comparison, read_comparison
from largesse_lab.page.tables import (
    DRAWN_ROWS,
    Layout,
    draw_budgets,
    group_budgets,
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


# -- rows added to an earlier summary -----------------------------------------------------------------------------------

LAYOUT = Layout(("a", "b"), dict.fromkeys(("new", "base", "other")), {"rmse": "RMSE"}, {}, base="new")
