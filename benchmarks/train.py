"""How long many networks take: 1,400 of 3 × 512 hidden units, 100 epochs, 1,500 rows × 50 features, compile included.

    python benchmarks/train.py [models]

Meant for a GPU; give a small number of models on a CPU.
"""

import sys
import time

import jax
import numpy as np
from largesse.response.networks.network import Shape
from largesse.response.networks.train import Grid, Recipe, train

from largesse.worlds.simulation import simulate


def main() -> None:
    models = int(sys.argv[1]) if len(sys.argv) > 1 else 1400
    sim = simulate("averaged", n=2000, seed=0)
    X = (sim.features - sim.features.mean(0)) / sim.features.std(0)
    rows, stop = np.arange(1500), np.arange(1500, 2000)
    one = np.ones
    grid = Grid(
        train=np.tile(rows.astype(np.int32), (models, 1)),
        train_weight=one((models, 1500), np.float32),
        stop=np.tile(stop.astype(np.int32), (models, 1)),
        stop_weight=one((models, 500), np.float32),
        kappa=np.resize([0.0, 0.3, 3.0, 30.0], models),
        penalty=np.zeros(models),
        gate=one(models),
        seed=np.arange(models),
    )
    shape = Shape(50, 5, "increments", width=512, depth=3)
    recipe = Recipe(epochs=100, patience=100, balance=True)
    start = time.perf_counter()
    done = train(X, np.eye(5)[sim.level], sim.response, grid, shape, recipe)
    seconds = time.perf_counter() - start
    print(
        f"{models} networks on {jax.devices()[0]}: {seconds:.1f} s, compile included; mean held-out loss {done.loss.mean():.4f}"
    )


if __name__ == "__main__":
    main()
