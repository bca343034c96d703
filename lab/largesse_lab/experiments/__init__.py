"""The experiments, one file each; `base` says what an experiment is, `catalogue` lists them all.

`table1` and `table2` are the paper's tables, `hsic_kernels` and `kappa` its appendices on the balance penalty. `rates` measures how
errors shrink with more levels (Proposition 3) and with more rows. `simulation` compares models where the truth is known,
`coverage` checks confidence intervals, `overspend` budgets of costs on redemption, `false_alarms` the checks of a log, and
`real_logs` values that can be computed by hand.
"""

from largesse_lab.experiments.base import Experiment as Experiment
from largesse_lab.experiments.catalogue import CHAPTERS as CHAPTERS
from largesse_lab.experiments.catalogue import EXPERIMENTS as EXPERIMENTS
