import numpy as np
import pytest

from largesse.stats import linalg as axes
from largesse.stats.linalg import ROWS_AT_ONCE, dot_rows, principal_axes


def test_products_are_those_of_float64_however_many_rows_there_are() -> None:
    rng = np.random.default_rng(0)
    X, coef = rng.normal(size=(2 * ROWS_AT_ONCE + 5, 30)).astype(np.float32), rng.normal(size=30)
    whole = dot_rows(X, coef)
    np.testing.assert_allclose(whole, X.astype(np.float64) @ coef, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(dot_rows(X[-7:], coef), whole[-7:], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", [(200, 20), (20, 60)])
def test_axes_keep_all_distances_and_a_long_table_is_read_in_blocks(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    whole = principal_axes(X)
    monkeypatch.setattr(axes, "BLOCK", 7)
    parts = principal_axes(X)
    np.testing.assert_allclose(parts.Z @ parts.Z.T, X @ X.T, atol=1e-3)
    np.testing.assert_allclose(parts.size, whole.size, rtol=1e-6)
    np.testing.assert_allclose((parts.Z**2).mean(axis=0), parts.size, rtol=1e-4)
