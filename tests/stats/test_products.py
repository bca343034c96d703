import numpy as np

from largesse.stats.products import ROWS_AT_ONCE, dot_rows


def test_products_are_those_of_float64_however_many_rows_there_are() -> None:
    rng = np.random.default_rng(0)
    X, coef = rng.normal(size=(2 * ROWS_AT_ONCE + 5, 30)).astype(np.float32), rng.normal(size=30)
    whole = dot_rows(X, coef)
    np.testing.assert_allclose(whole, X.astype(np.float64) @ coef, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(dot_rows(X[-7:], coef), whole[-7:], rtol=1e-12, atol=1e-13)
