import numpy as np
import pyarrow as pa
import pytest

from largesse.evaluation import measure_column_drifts


def _draw(seed: int, n: int = 1500, shift: float = 0.0) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.normal(size=n) + shift
    return pa.table(
        {
            "age": pa.array(age, mask=rng.random(n) < 0.1),
            "city": np.array(["Oslo", "Rome", "Lima"])[rng.integers(0, 3, n)],
            "visits": rng.poisson(2, n),
        }
    )


def test_a_shift_is_found_and_named_first() -> None:
    first, *others = measure_column_drifts(_draw(0), _draw(1, shift=0.3))
    assert first.column == "age"
    assert first.p < 1e-4
    assert 0.05 < first.psi < 0.2
    assert all(drift.p > 0.01 for drift in others)


def test_where_nothing_changed_alarms_are_rare() -> None:
    least = [min(drift.p for drift in measure_column_drifts(_draw(2 * s), _draw(2 * s + 1))) for s in range(60)]
    assert np.mean(np.array(least) < 0.05) <= 0.1


def test_other_words_and_more_gaps_are_changes_too() -> None:
    before, after = _draw(0), _draw(1)
    cities = pa.array(["Cairo" if i % 4 == 0 else "Oslo" for i in range(len(after))])
    after = after.set_column(1, "city", cities)
    gaps = pa.array(after["age"].to_numpy(), mask=np.arange(len(after)) % 3 == 0)
    after = after.set_column(0, "age", gaps)
    found = {drift.column: drift for drift in measure_column_drifts(before, after)}
    assert found["city"].psi > 0.25
    assert found["age"].p < 1e-6
    assert found["visits"].p > 0.01


def test_another_kind_of_column_is_a_change() -> None:
    after = _draw(1).set_column(2, "visits", pa.array(["many"] * 1500))
    assert measure_column_drifts(_draw(0), after)[0].p == 0


@pytest.mark.parametrize("clusters", [False, True])
def test_rows_of_a_cluster_count_once(clusters: bool) -> None:
    one, two = (_draw(seed, 100).take(np.repeat(np.arange(100), 20)) for seed in (5, 6))
    own = np.repeat(np.arange(100), 20) if clusters else None
    least = min(drift.p for drift in measure_column_drifts(one, two, (own, own)))
    assert least > 0.01 if clusters else least < 0.01
