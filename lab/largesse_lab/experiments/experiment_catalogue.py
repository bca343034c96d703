"""Catalogue of all experiments by name."""

from __future__ import annotations

from largesse_lab.experiments import (
    achieved_power,
    checkup_alarms,
    constrained_plan_coverage,
    convergence_rates,
    exploration_precision,
    gain_lower_bounds,
    hard_log_coverage,
    head_to_head,
    hsic_kernels,
    interval_coverage,
    kappa_curves,
    monitoring_alarms,
    pace_streams,
    peer_intervals,
    planned_cost_overspend,
    profit_intervals,
    random_world_comparison,
    real_log_gains,
    real_log_level_means,
    served_log_precision,
    shifted_customer_coverage,
    simulation_comparison,
    support_hole_detection,
    table1,
    table2,
    verdict_calibration,
    winner_curse,
)
from largesse_lab.experiments.experiment_definition import Experiment

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
        hard_log_coverage.HARD_LOGS_EXPERIMENT,
        gain_lower_bounds.BOUND_EXPERIMENT,
        winner_curse.CURSE_EXPERIMENT,
        support_hole_detection.HOLES_EXPERIMENT,
        shifted_customer_coverage.SHIFTS_EXPERIMENT,
        constrained_plan_coverage.RULES_EXPERIMENT,
        verdict_calibration.VERDICTS_EXPERIMENT,
        planned_cost_overspend.OVERSPEND_EXPERIMENT,
        profit_intervals.PROFIT_EXPERIMENT,
        checkup_alarms.FALSE_ALARMS_EXPERIMENT,
        real_log_level_means.REAL_LOGS_EXPERIMENT,
        real_log_gains.GAINS_EXPERIMENT,
        head_to_head.HEAD_EXPERIMENT,
        peer_intervals.INTERVAL_PEERS_EXPERIMENT,
        exploration_precision.NEXT_LOG_EXPERIMENT,
        served_log_precision.SERVED_LOG_EXPERIMENT,
        monitoring_alarms.CHECK_CAMPAIGNS_EXPERIMENT,
        achieved_power.SAMPLE_SIZES_EXPERIMENT,
        pace_streams.PACE_STREAMS_EXPERIMENT,
    )
}
