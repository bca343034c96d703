"""The experiments, one module each; `base` defines an experiment, `catalogue` lists them all.

`table1` and `table2` are the paper's tables, `hsic_kernels` and `kappa` its appendices on the balance penalty. `rates` measures how
errors shrink with more levels (Proposition 3) and with more rows. `simulation` and `worlds` compare models where the truth is known,
`coverage`, `hard_logs`, `bound` and `profit` check intervals and bounds, `overspend` budgets of costs on redemption, `false_alarms`
the checks of a log, `gains` and `real_logs` real data. `next_log`, `served_log`, `check_campaigns`, `power_sizes` and `pace_streams`
measure the loop from one campaign to the next.
"""

from largesse_lab.experiments.catalogue import EXPERIMENTS as EXPERIMENTS
from largesse_lab.experiments.experiment import Experiment as Experiment
