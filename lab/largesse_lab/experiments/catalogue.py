"""All experiments by name: first the paper's, then our own. A new experiment is one module and one line here."""

from __future__ import annotations

from largesse_lab.experiments import (
    bound,
    check_campaigns,
    coverage,
    false_alarms,
    gains,
    hard_logs,
    hsic_kernels,
    kappa,
    next_logs,
    overspend,
    pace_streams,
    power_sizes,
    profit,
    rates,
    real_logs,
    served_log,
    simulation,
    table1,
    table2,
    worlds,
)
from largesse_lab.experiments.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        table1.TABLE1_EXPERIMENT,
        table2.TABLE2_EXPERIMENT,
        hsic_kernels.KERNELS_EXPERIMENT,
        kappa.KAPPA_EXPERIMENT,
        rates.LEVELS_EXPERIMENT,
        rates.SIZES_EXPERIMENT,
        simulation.SIMULATION_EXPERIMENT,
        worlds.WORLDS_EXPERIMENT,
        coverage.COVERAGE_EXPERIMENT,
        hard_logs.HARD_LOGS_EXPERIMENT,
        bound.BOUND_EXPERIMENT,
        overspend.OVERSPEND_EXPERIMENT,
        profit.PROFIT_EXPERIMENT,
        false_alarms.FALSE_ALARMS_EXPERIMENT,
        real_logs.REAL_LOGS_EXPERIMENT,
        gains.GAINS_EXPERIMENT,
        next_logs.NEXT_LOG_EXPERIMENT,
        served_log.SERVED_LOG_EXPERIMENT,
        check_campaigns.CHECK_CAMPAIGNS_EXPERIMENT,
        power_sizes.POWER_SIZES_EXPERIMENT,
        pace_streams.PACE_STREAMS_EXPERIMENT,
    )
}
