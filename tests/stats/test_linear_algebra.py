import numpy as np
import pytest

from largesse.stats import linear_algebra
from largesse.stats.linear_algebra import MAX_COPIED_ROWS, dot_rows, principal_axes, standardise


def test_products_are_those_of_float64_however_many_rows_there_are() -> None:
    rng = np.random.default_rng(0)
    X, coef = rng.normal(size=(2 * MAX_COPIED_ROWS + 5, 30)).astype(np.float32), rng.normal(size=30)
    whole = dot_rows(X, coef)
    np.testing.assert_allclose(whole, X.astype(np.float64) @ coef, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(dot_rows(X[-7:], coef), whole[-7:], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", [(200, 20), (20, 60)])
def test_axes_keep_all_distances_and_a_long_table_is_read_in_blocks(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    whole = principal_axes(X)
    monkeypatch.setattr(linear_algebra, "GRAM_BLOCK_ROWS", 7)
    parts = principal_axes(X)
    np.testing.assert_allclose(parts.Z @ parts.Z.T, X @ X.T, atol=1e-3)
    np.testing.assert_allclose(parts.size, whole.size, rtol=1e-6)
    np.testing.assert_allclose((parts.Z**2).mean(axis=0), parts.size, rtol=1e-4)


def test_standardised_columns_vary_by_one_and_constant_ones_are_dropped() -> None:
    X = np.random.default_rng(5).normal(3, 7, size=(100, 3))
    X[:, 1] = 2.0
    found = standardise(X)
    assert found.shape == (100, 2)
    assert found.mean(axis=0) == pytest.approx(np.zeros(2), abs=1e-12)
    assert found.std(axis=0) == pytest.approx(np.ones(2))
