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


@contextmanager
def leave_untrained() -> Iterator[list[int]]:
    """Leave networks at their first weights inside the block; yield how many models each training program was given."""
    import jax

    from largesse.response.networks import TrainedNetworks, TrainingJob, use_runner

    sizes: list[int] = []

    def start(job: TrainingJob) -> TrainedNetworks:
        many = len(job.seeds)
        assert all(len(part) == many for part in jax.tree.leaves(job.own))
        sizes.append(many)
        params = jax.tree.map(np.asarray, job.program.keep(job.program.start(job.seeds, job.own)))
        return TrainedNetworks(params, np.zeros(many, np.float32), np.zeros(many, np.int32))

    with use_runner(start):
        yield sizes
