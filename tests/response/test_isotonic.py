"""The projection of curves onto those that never fall."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as any_array

from largesse.records import Array
from largesse.response.level_effect_estimation import make_monotone


@given(seed=st.integers(0, 9999), K=st.integers(2, 7))
@settings(max_examples=50, deadline=None)
def test_no_curve_moves_away_from_a_truth_that_never_falls(seed: int, K: int) -> None:
    rng = np.random.default_rng(seed)
    truth, found = np.sort(rng.normal(size=(20, K)), axis=1), rng.normal(size=(20, K))
    before, after = ((found - truth) ** 2).sum(axis=1), ((make_monotone(found) - truth) ** 2).sum(axis=1)
    assert (after <= before + 1e-12).all()


def pooled(curve: list[float]) -> list[float]:
    """Pool adjacent violators, one customer at a time."""
    blocks: list[list[float]] = []
    for value in curve:
        blocks.append([value])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return [float(np.mean(block)) for block in blocks for _ in block]


@given(any_array(np.float64, st.tuples(st.integers(1, 5), st.integers(2, 7)), elements=st.floats(-50, 50)))
def test_isotonic_curves_are_those_of_pooling_adjacent_violators(curves: Array) -> None:
    found = make_monotone(curves)
    np.testing.assert_allclose(found, [pooled(list(curve)) for curve in curves], atol=1e-9)
    assert (np.diff(found, axis=1) >= 0).all()


def test_rising_curves_are_left_as_they_are() -> None:
    rising = np.sort(np.random.default_rng(0).normal(size=(20, 5)), axis=1)
    falling = rising[:3, ::-1]
    assert make_monotone(np.vstack([rising, falling]))[:20].tobytes() == rising.tobytes()
