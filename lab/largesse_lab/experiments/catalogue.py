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
    next_log,
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
from largesse_lab.experiments.base import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        table1.EXPERIMENT,
        table2.EXPERIMENT,
        hsic_kernels.EXPERIMENT,
        kappa.EXPERIMENT,
        rates.LEVELS_EXPERIMENT,
        rates.SIZES_EXPERIMENT,
        simulation.EXPERIMENT,
        worlds.EXPERIMENT,
        coverage.EXPERIMENT,
        hard_logs.EXPERIMENT,
        bound.EXPERIMENT,
        overspend.EXPERIMENT,
        profit.EXPERIMENT,
        false_alarms.EXPERIMENT,
        real_logs.EXPERIMENT,
        gains.EXPERIMENT,
        next_log.EXPERIMENT,
        served_log.EXPERIMENT,
        check_campaigns.EXPERIMENT,
        power_sizes.EXPERIMENT,
        pace_streams.EXPERIMENT,
    )
}
