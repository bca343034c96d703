import numpy as np
import pyarrow as pa
import pytest

from largesse.evaluation import CustomerSample, check_customer_shift, compare_customers, weight_log_to_customers
from largesse.levels import Levels
from largesse.records import Array, Log

N = 3000


def make_log(seed: int = 0) -> tuple[Log, Array]:
    """Return a log whose response depends on x at every level, and its curves."""
    rng = np.random.default_rng(seed)
    x, city = rng.normal(size=N), rng.choice(["Graz", "Linz", "Wien"], N)
    features = pa.table({"x": x, "city": city})
    level = rng.integers(0, 2, N)
    response = (rng.random(N) < expect(x)[:, 1]).astype(float)
    return Log(features, level, response, Levels(costs=[0, 1]), propensity=np.full(N, 0.5)), expect(x)


def expect(x: Array) -> Array:
    low = 1 / (1 + np.exp(1 - x))
    return np.column_stack([low, low + 0.1])


def draw_customers(shift: float, cities: list[str], seed: int = 1, cut: float = -np.inf) -> CustomerSample:
    rng = np.random.default_rng(seed)
    x = rng.normal(shift, 1, 5000)
    x = x[x > cut]
    return CustomerSample(pa.table({"x": x, "city": rng.choice(cities, len(x))}), expect(x))


@pytest.mark.parametrize("cut", [-np.inf, 0.5], ids=["shifted", "cut"])
def test_the_weighted_log_has_the_means_of_the_customers(cut: float) -> None:
    log, curves = make_log()
    customers = draw_customers(0.5 if np.isinf(cut) else 0.0, ["Graz", "Wien"], cut=cut)
    weight, shift = weight_log_to_customers(log, curves, customers)
    x = log.features.column("x").to_numpy()
    assert np.average(x, weights=weight) == pytest.approx(customers.features.column("x").to_numpy().mean(), abs=0.05)
    np.testing.assert_allclose(np.average(curves, axis=0, weights=weight), customers.curves.mean(axis=0), atol=0.01)
    linz = np.asarray(log.features.column("city")) == "Linz"
    assert weight[linz].sum() < 0.02 * weight.sum()
    assert {drift.column for drift in shift.drifted} == {"x", "city"}
    assert shift.unknown == 0
    assert 200 < (shift.effective or 0) < N
    assert {finding.answer for finding in check_customer_shift(shift)} == {"note"}


def test_customers_like_those_of_the_log_change_next_to_nothing() -> None:
    log, curves = make_log()
    weight, shift = weight_log_to_customers(log, curves, draw_customers(0.0, ["Graz", "Linz", "Wien"]))
    assert not shift.drifted
    assert (shift.effective or 0) > 0.95 * N
    assert weight.mean() == pytest.approx(1)
    assert check_customer_shift(shift) == []


@pytest.mark.parametrize(("share", "answer"), [(0.03, "careful"), (0.3, "no")])
def test_values_that_the_log_never_had_are_counted_and_named(share: float, answer: str) -> None:
    log, curves = make_log()
    customers, rng = draw_customers(0.0, ["Graz", "Linz", "Wien"]), np.random.default_rng(2)
    city = np.where(rng.random(len(customers.curves)) < share, "Bonn", np.asarray(customers.features.column("city")))
    table = customers.features.set_column(1, "city", pa.array(city))
    _, shift = weight_log_to_customers(log, curves, CustomerSample(table, customers.curves))
    assert shift.unknown == pytest.approx(share, abs=0.02)
    assert [value.examples for value in shift.values] == [("Bonn",)]
    assert check_customer_shift(shift)[0].answer == answer


def test_numbers_beyond_the_range_and_new_gaps_are_unknown_rare_words_are_not() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in rng.zipf(1.3, 4000) % 100_000]
    features = pa.table({"x": rng.random(2000), "word": words[:2000]})
    log = Log(features, rng.integers(0, 2, 2000), rng.random(2000), Levels(costs=[0, 1]))
    shift, known = compare_customers(log, pa.table({"x": rng.random(2000), "word": words[2000:]}))
    assert (shift.unknown, known.all()) == (0, True)
    odd = pa.table({"x": pa.array([0.5, 3.0, None, -2.0]), "word": ["w1"] * 4})
    shift, known = compare_customers(log, odd)
    assert known.tolist() == [True, False, False, False]
    assert shift.values[0].feature == "x"


def test_customers_whom_no_row_is_like_are_refused() -> None:
    log, curves = make_log()
    weight, shift = weight_log_to_customers(log, curves, draw_customers(40.0, ["Graz"]))
    assert shift.unknown == 1
    assert np.array_equal(weight, log.weights)
    assert check_customer_shift(shift)[0].answer == "no"
