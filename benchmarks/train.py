"""Time of training 1,400 networks of 3 × 512 hidden units, with compilation.

    python benchmarks/train.py [models]

Meant for a GPU; give a small number of models on a CPU.
"""

import sys
import time

import jax
import numpy as np

from largesse.response.networks.network_settings import Balance, NetworkShape, Training
from largesse.response.networks.sire_training import count_steps_per_epoch, make_sire_program
from largesse.response.networks.training_runner_hook import train_networks
from largesse.response.networks.training_types import TrainingJob, TrainingLoop
from largesse.worlds import simulate


def main() -> None:
    models = int(sys.argv[1]) if len(sys.argv) > 1 else 1400
    sim = simulate("averaged", n=2000, seed=0)
    X = (sim.features - sim.features.mean(0)) / sim.features.std(0)
    rows, stop = np.arange(1500, dtype=np.int32), np.arange(1500, 2000, dtype=np.int32)
    own = (
        np.tile(rows, (models, 1)),
        np.ones((models, 1500), np.float32),
        np.tile(stop, (models, 1)),
        np.ones((models, 500), np.float32),
        np.resize([0.0, 0.3, 3.0, 30.0], models).astype(np.float32),
        np.zeros(models, np.float32),
        np.ones(models, np.float32),
        np.full((models, 5), np.nan, np.float32),
    )
    training = Training(
        optimiser="adam", rate=3e-4, schedule="constant", decay=10.0, batch=128, epochs=100, patience=100
    )
    shape = NetworkShape(50, 5, "increments", width=512, depth=3)
    program = make_sire_program(shape, training, Balance(kernel="linear", estimator="biased", normalise=True), 1500)
    loop = TrainingLoop(training.epochs, count_steps_per_epoch(1500, training.batch), training.patience, stretch=10)
    data = tuple(np.asarray(part, np.float32) for part in (X, np.eye(5)[sim.level], sim.response))
    start = time.perf_counter()
    done = train_networks(TrainingJob(program, loop, data, own, np.arange(models)))
    seconds = time.perf_counter() - start
    print(
        f"{models} networks on {jax.devices()[0]}: {seconds:.1f} s, compile included; mean held-out loss {done.loss.mean():.4f}"
    )


if __name__ == "__main__":
    main()
