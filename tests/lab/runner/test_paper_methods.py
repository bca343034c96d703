"""Methods of the paper's tables: their grids, and the libraries they need."""

import subprocess
import sys

from largesse.worlds import simulate
from largesse_lab.baselines import ALPHAS, CFRNet
from largesse_lab.experiments import table1
from support.models import flat


def test_the_grid_of_a_model_is_in_the_order_of_its_choices(programs: list[int]) -> None:
    log = simulate("averaged", n=300).log
    choices = flat(CFRNet, alpha=ALPHAS, width=4, depth=1, head_width=4, head_depth=1).fit(log).choices_
    assert programs == [len(ALPHAS) * 4]
    grid = dict(table1.TABLE1_METHODS["CFRNet"].grid)["alpha"]
    assert [choice.name for choice in choices] == [f"α {alpha:g}" for alpha in grid]


NETWORKS_ALONE = """
import sys
sys.modules["sklearn"] = sys.modules["stochtree"] = None
from largesse.response import IRE, Network, Training
from largesse_lab.runner import method_measurement, truth_measures
from largesse_lab.runner.experiment_request import Request
from largesse_lab.experiments import table1
truth_measures.LOG_ROWS, truth_measures.FRESH_ROWS = 300, 300
training = Training(epochs=2, start="zero")
make = lambda: IRE(kappa=0.0, network=Network(width=4, depth=1), training=training, folds=1, members=1)
table1.TABLE1_METHODS["CCPOvIRE†"] = method_measurement.Method(make, binary=False)
print(len(table1.TABLE1_SETUP.measure(Request(("averaged",), ("CCPOvIRE†",), 1))))
"""


def test_networks_need_neither_scikit_learn_nor_stochtree() -> None:
    done = subprocess.run([sys.executable, "-c", NETWORKS_ALONE], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1"], done.stderr
