import numpy as np

from largesse.data import log_from_arrays
from largesse.evaluation import Noise, measure_noise
from largesse.levels import Levels


def test_noise_of_amounts_grows_where_residuals_do() -> None:
    rng = np.random.default_rng(0)
    level = rng.integers(0, 2, 4000)
    mean = rng.uniform(1, 5, 4000)
    curves = np.stack([mean, 2 * mean], axis=1)
    own = curves[np.arange(4000), level]
    log = log_from_arrays(mean[:, None], level, own + own * rng.standard_normal(4000), levels=Levels(costs=[0, 1]))
    noise = measure_noise(log, curves)
    found = noise.of(np.array([[2.0, 8.0]]))[0]
    assert np.allclose(found, [4.0, 64.0], rtol=0.25)


def test_noise_of_yes_or_no_follows_from_its_probability() -> None:
    assert np.allclose(Noise().of(np.array([[0.5, 1.2, -0.1, 0.1]])), [[0.25, 0, 0, 0.09]])
