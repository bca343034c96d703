import numpy as np

from largesse.propensity.scores import correct_curves


def test_only_the_logged_level_is_corrected() -> None:
    rng = np.random.default_rng(0)
    curves, level, outcome, propensity = rng.random((9, 3)), np.arange(9) % 3, rng.random(9), rng.uniform(0.1, 1, 9)
    kept = curves.copy()
    found = correct_curves(curves, level, outcome, propensity)
    for i in range(9):
        for k in range(3):
            expected = curves[i, k] + (outcome[i] - curves[i, k]) / propensity[i] * (level[i] == k)
            assert np.isclose(found[i, k], expected)
    assert np.array_equal(curves, kept)
