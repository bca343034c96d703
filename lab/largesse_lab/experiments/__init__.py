"""Experiments, one module each; `experiment_catalogue` lists them.

`table1` and `table2` are the paper's tables, `hsic_kernels` and `kappa_curves` its appendices on the balance penalty.
`convergence_rates` measures the decrease of errors with more levels (Proposition 3) and with more rows.
`simulation_comparison` and `random_world_comparison` compare models where the truth is known; `interval_coverage`,
`hard_log_coverage`, `gain_lower_bounds` and `profit_intervals` check intervals and bounds, `planned_cost_overspend`
budgets of costs on redemption, `checkup_alarms` the checks of a log, and `real_log_gains` and `real_log_level_means` real data.
`exploration_precision`, `served_log_precision`, `monitoring_alarms`, `achieved_power` and `pace_streams` measure the loop from
one campaign to the next.
"""

from largesse_lab.experiments.experiment_catalogue import EXPERIMENTS as EXPERIMENTS
from largesse_lab.experiments.experiment_definition import Experiment as Experiment
