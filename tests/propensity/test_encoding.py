import numpy as np
import pyarrow as pa

from largesse.data.log import log_from_arrays
from largesse.propensity.encoding import encode_for_levels
from largesse.records import Log


def small_log() -> Log:
    rng = np.random.default_rng(0)
    table = pa.table({"age": rng.normal(size=60), "city": np.array(["Oslo", "Rome", "Lima"])[np.arange(60) % 3]})
    return log_from_arrays(table, np.arange(60) % 2, rng.integers(0, 2, 60))


def test_every_column_knows_its_feature() -> None:
    found = encode_for_levels(small_log())
    assert found.names == ("age", "city")
    assert len(found.sources) == found.X.shape[1]
    assert set(found.sources) == {"age", "city"}
    assert found.rows.tolist() == list(range(60))


def test_a_sample_keeps_the_order_of_its_rows() -> None:
    whole = encode_for_levels(small_log())
    some = whole.sample(20, seed=3)
    assert len(some.rows) == 20
    assert (np.diff(some.rows) > 0).all()
    assert np.array_equal(some.X, whole.X[some.rows])
    assert whole.sample(60) is whole


def test_only_the_sample_may_be_encoded() -> None:
    log = small_log()
    some = encode_for_levels(log, most=20, seed=3)
    assert np.array_equal(some.rows, encode_for_levels(log).sample(20, seed=3).rows)
    assert len(some.X) == 20
    assert abs(some.X[:, 0].mean()) < 1e-6  # standardised among themselves
