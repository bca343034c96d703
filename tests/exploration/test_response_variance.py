import numpy as np
import pytest

from largesse.data import log_from_arrays
from largesse.exploration import ResponseVariance, measure_response_variance
from largesse.levels import Levels


def test_the_variance_of_amounts_grows_where_residuals_do() -> None:
    rng = np.random.default_rng(0)
    level = rng.integers(0, 2, 4000)
    mean = rng.uniform(1, 5, 4000)
    curves = np.stack([mean, 2 * mean], axis=1)
    own = curves[np.arange(4000), level]
    log = log_from_arrays(mean[:, None], level, own + own * rng.standard_normal(4000), levels=Levels(costs=[0, 1]))
    variance = measure_response_variance(log, curves).at(np.array([[2.0, 8.0]]))[0]
    assert np.allclose(variance, [4.0, 64.0], rtol=0.25)


def test_the_variance_of_yes_or_no_follows_from_its_probability() -> None:
    assert np.allclose(ResponseVariance().at(np.array([[0.5, 1.2, -0.1, 0.1]])), [[0.25, 0, 0, 0.09]])


@pytest.mark.parametrize("points", [((1.0, 0.0), (1.0, 1.0)), ((1.0,), (-1.0,)), ((1.0,), ()), ((np.inf,), (1.0,))])
def test_an_invalid_variance_is_refused(points: tuple[tuple[float, ...], tuple[float, ...]]) -> None:
    with pytest.raises(ValueError, match="variance of responses"):
        ResponseVariance(*points)
