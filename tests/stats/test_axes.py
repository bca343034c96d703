import numpy as np
import pytest

from largesse.stats import axes
from largesse.stats.axes import principal_axes


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
