"""List of all experiments by name: the paper's, then our own."""

from __future__ import annotations

from largesse_lab.experiments import (
    check_campaigns,
    convergence_rates,
    false_alarms,
    gain_lower_bounds,
    hard_logs,
    hsic_kernels,
    interval_coverage,
    kappa_curves,
    next_logs,
    pace_streams,
    profit_intervals,
    random_world_comparison,
    real_log_gains,
    real_logs,
    redemption_overspend,
    sample_sizes,
    served_log,
    simulation_comparison,
    table1,
    table2,
    winner_curse,
)
from largesse_lab.experiments.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        table1.TABLE1_EXPERIMENT,
        table2.TABLE2_EXPERIMENT,
        hsic_kernels.KERNELS_EXPERIMENT,
        kappa_curves.KAPPA_EXPERIMENT,
        convergence_rates.LEVELS_EXPERIMENT,
        convergence_rates.SIZES_EXPERIMENT,
        simulation_comparison.SIMULATION_EXPERIMENT,
        random_world_comparison.WORLDS_EXPERIMENT,
        interval_coverage.COVERAGE_EXPERIMENT,
        hard_logs.HARD_LOGS_EXPERIMENT,
        gain_lower_bounds.BOUND_EXPERIMENT,
        winner_curse.CURSE_EXPERIMENT,
        redemption_overspend.OVERSPEND_EXPERIMENT,
        profit_intervals.PROFIT_EXPERIMENT,
        false_alarms.FALSE_ALARMS_EXPERIMENT,
        real_logs.REAL_LOGS_EXPERIMENT,
        real_log_gains.GAINS_EXPERIMENT,
        next_logs.NEXT_LOG_EXPERIMENT,
        served_log.SERVED_LOG_EXPERIMENT,
        check_campaigns.CHECK_CAMPAIGNS_EXPERIMENT,
        sample_sizes.SAMPLE_SIZES_EXPERIMENT,
        pace_streams.PACE_STREAMS_EXPERIMENT,
    )
}
