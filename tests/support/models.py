"""Networks in tests: settings without their prefixes, and fits without training."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from largesse.response import Balance, Network, Training

GROUPS = {"network": Network, "training": Training, "balance": Balance}


def flat(kind: Any, **settings: Any) -> Any:
    """Return a model of a kind: `flat(SIRE, kappa=0, width=8)` is `SIRE(kappa=0, network=Network(width=8))`."""
    own = set(kind.parameter_names())
    homes = {field: group for group, value in GROUPS.items() if group in own for field in value().get_params()}
    named = {name if name in own else f"{homes[name]}__{name}": value for name, value in settings.items()}
    return kind().set_params(**named)


def summing_job(program: Any, n: int, models: int, loop: Any) -> Any:
    """Return a job whose models add up the rows that they draw, for a program of `summing_program`."""
    from largesse.response.networks.batched_training import stack_row_sets
    from largesse.response.networks.training_types import TrainingJob

    own = (*stack_row_sets([np.arange(n)] * models, np.ones(n)), np.arange(1, models + 1, dtype=np.float32))
    return TrainingJob(program, loop, (np.arange(n, dtype=np.float32) + n,), own, np.arange(models) % 2)


def summing_program(loop: Any) -> Any:
    from largesse.response.networks.training_types import TrainingProgram
    from largesse_lab.baselines.network_helpers import draw_batches, draw_batches_by_interval, initialise_models_by_seed

    return TrainingProgram(
        start=lambda seeds, _own: initialise_models_by_seed(seeds, lambda rng: {"sum": np.float32(rng.random())}),
        draw=lambda seed, own, stretches: draw_batches_by_interval(
            seed, stretches, loop.steps, lambda rng, steps: draw_batches(rng, own[1], steps, 2)
        ),
        step=lambda state, data, own, places: {"sum": state["sum"] + data[0][own[0][places]].sum() * own[2]},
        loss=lambda state, _data, _own: -state["sum"],
        keep=lambda state: state,
        rows=(0,),
    )


@contextmanager
def leave_untrained() -> Iterator[list[int]]:
    """Leave networks at their first weights inside the block; yield how many models each training program was given."""
    import jax

    from largesse.response.networks import TrainedNetworks, TrainingJob, use_training_runner

    sizes: list[int] = []

    def start(job: TrainingJob) -> TrainedNetworks:
        many = len(job.seeds)
        assert all(len(part) == many for part in jax.tree.leaves(job.model_data))
        sizes.append(many)
        params = jax.tree.map(np.asarray, job.program.keep(job.program.start(job.seeds, job.model_data)))
        return TrainedNetworks(params, np.zeros(many, np.float32), np.zeros(many, np.int32))

    with use_training_runner(start):
        yield sizes
