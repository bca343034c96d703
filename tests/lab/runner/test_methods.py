"""The rows that the paper's tables share."""

import subprocess
import sys

import numpy as np
import pytest

from largesse.response import Balance
from largesse.worlds import simulate
from largesse_lab.baselines import CFRNet
from largesse_lab.experiments import table1, table2
from largesse_lab.runner import measures
from largesse_lab.runner import methods as rows
from largesse_lab.runner.repeats import Row, simulate_unit
from support.models import flat


def test_both_tables_have_the_same_rows_but_for_thresholds() -> None:
    assert [name for name in table2.ROWS if name != "Thresholds"] == list(table1.ROWS)
    for name in [name for name in table1.ROWS if name.startswith("CCPO")]:
        one, other = (book[name].make() for book in (table1.ROWS, table2.ROWS))
        assert other.get_params() == one.set_params(network__width=1024).get_params()
    assert table1.ROWS["CFRNet"] == table2.ROWS["CFRNet"]
    assert set(table1.PUBLISHED) == set(table2.PUBLISHED) == set(list(table1.ROWS)[:8])


@pytest.mark.parametrize("name", ["CCPOvSIRE", "CCPOvIRE"])
def test_the_papers_rows_have_its_penalty_and_differ_from_the_normalised_ones_by_that_alone(name: str) -> None:
    plain, normalised, without = (table1.ROWS[name + mark].make() for mark in ("", ", normalised", "†"))
    assert (plain.balance.normalise, plain.kappa) == (False, "auto")
    assert normalised.get_params() == plain.set_params(balance__normalise="auto").get_params()
    assert without.get_params() == normalised.set_params(kappa=0.0).get_params()
    assert table1.ROWS["SIRE"].make().balance == Balance()


@pytest.mark.parametrize("book", [table1.ROWS, table2.ROWS])
def test_groups_hold_every_row_once(book: dict[str, Row]) -> None:
    assert sorted(rows.match_rows(book, rows.GROUPS)) == sorted(book)


def test_simple_rows_are_judged_against_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "TRAIN", 400)
    monkeypatch.setattr(measures, "FRESH", 600)
    one = simulate_unit("averaged", 1)
    simple = {name: row.simple(one) for name, row in table1.ROWS.items() if row.simple}
    mean, rising = simple["per-level mean"], simple["per-level mean + PAVA"]
    uniform, oracle = simple["uniform level"], simple["oracle"]
    assert oracle["rmse"] == oracle["√pehe"] == 0.0
    assert oracle["skill 3"] == pytest.approx(1.0, abs=0.02)
    assert uniform["skill 1.5"] == 0.0
    assert uniform["value 3"] == pytest.approx(one.fresh.truth[:, 3].mean(), abs=0.005)
    assert rising["rmse"] <= mean["rmse"]
    assert mean["value 3"] <= oracle["value 3"] + 1e-9
    assert simple["random"]["value 3"] < uniform["value 3"]
    assert "rmse" not in simple["random"]


def test_random_levels_spend_the_budget() -> None:
    for budget in (0.5, 1.5, 3.0):
        share = rows.find_proportions(np.arange(5.0), budget)
        assert share.sum() == pytest.approx(1)
        assert share @ np.arange(5) == pytest.approx(budget)


def test_the_grid_of_a_model_is_in_the_order_of_its_choices() -> None:
    log = simulate("averaged", n=300).log
    small = {"width": 4, "depth": 1, "head_width": 4, "head_depth": 1, "steps": 2, "ipm": "linear"}
    tried = flat(CFRNet, alpha=rows.ALPHAS, **small).fit(log).choices_
    assert [c.name for c in tried] == [f"α {alpha:g}" for alpha in dict(table1.ROWS["CFRNet"].tuned)["alpha"]]


NETWORKS_ALONE = """
import sys
sys.modules["sklearn"] = sys.modules["stochtree"] = None
from largesse.response import IRE, Network, Training
from largesse_lab.runner import measures, repeats
from largesse_lab.runner.request import Request
from largesse_lab.experiments import table1
measures.TRAIN, measures.FRESH = 300, 300
training = Training(epochs=2, start="zero")
make = lambda: IRE(kappa=0.0, network=Network(width=4, depth=1), training=training, folds=1, members=1)
row = repeats.Row(make, binary=False)
table1.ROWS["CCPOvIRE†"] = row
print(len(table1.TABLE.measure(Request(("averaged",), ("CCPOvIRE†",), 1))))
"""


def test_networks_need_neither_scikit_learn_nor_stochtree() -> None:
    done = subprocess.run([sys.executable, "-c", NETWORKS_ALONE], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1"], done.stderr
