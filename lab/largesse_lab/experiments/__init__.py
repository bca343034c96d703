"""Experiments, one module each, and their list in `experiment_catalogue`.

`table1` and `table2` are the paper's tables, `hsic_kernels` and `kappa_curves` its appendices on the balance penalty.
`convergence_rates` measures the decrease of errors with more levels (Proposition 3) and with more rows. `simulation_comparison` and
`random_world_comparison` compare models where the truth is known; `interval_coverage`, `hard_logs`, `gain_lower_bounds` and
`profit_intervals` check intervals and bounds, `redemption_overspend` budgets of costs on redemption, `false_alarms` the checks of a
log, and `real_log_gains` and `real_logs` real data. `next_logs`, `served_log`, `check_campaigns`, `sample_sizes` and `pace_streams`
measure the loop from one campaign to the next.
"""

from largesse_lab.experiments.experiment import Experiment as Experiment
from largesse_lab.experiments.experiment_catalogue import EXPERIMENTS as EXPERIMENTS
