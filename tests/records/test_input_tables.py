"""A log as a record: parts of it, and what it computes of itself."""

from typing import Any

import numpy as np
import pytest

from largesse.data.log_reader import read_log
from largesse.levels import Levels
from largesse.records.input_tables import ROLES, Log, Roles

N = 40


def read(levels: Levels | None = None, columns: dict[str, Any] | None = None, **roles: Any) -> Log:
    rng = np.random.default_rng(3)
    table = {"age": rng.normal(40, 10, N), "coupon": np.arange(N) % 4, "bought": rng.integers(0, 2, N)}
    levels = Levels([0, 5, 10, 20]) if levels is None else levels
    return read_log(table | (columns or {}), level="coupon", response="bought", levels=levels, **roles)


def test_the_typed_roles_are_those_of_the_list() -> None:
    settings = ["known_before", "accepted", "protected", "parse", "absent"]  # of the reading, not roles of columns
    assert list(Roles.__annotations__) == [*ROLES, *settings]


def test_take_keeps_every_part_of_the_chosen_rows() -> None:
    columns: dict[str, Any] = {f"c{k}": np.full(N, float(k)) for k in range(4)}
    levels = Levels(list(columns))
    columns |= {
        "p": np.linspace(0.1, 1, N),
        "home": np.arange(N) // 3,
        "w": np.arange(N) * 1.0,
        "who": np.arange(N),
        "by": np.arange(N) % 2,
    }
    log = read(
        levels, columns, propensity="p", cluster="home", weight="w", customer="who", logger="by", features=["age"]
    )
    rows = np.array([7, 3, 3, 30])
    part = log.take(rows)
    assert len(part) == 4
    for name in ("level", "response", "propensity", "logger", "cluster", "costs"):
        np.testing.assert_array_equal(getattr(part, name), getattr(log, name)[rows])
    np.testing.assert_allclose(part.weights, rows / rows.mean())
    assert part.customer is not None
    assert part.customer.to_pylist() == rows.tolist()
    assert part.features["age"].to_pylist() == log.features["age"].take(rows).to_pylist()
    mask = np.zeros(N, dtype=bool)
    mask[[3, 7]] = True
    np.testing.assert_allclose(log.take(mask).weights, [0.6, 1.4])
    assert (part.levels, part.notes, part.response_name) == (log.levels, log.notes, log.response_name)


def test_a_customer_with_several_rows_is_one_customer_known_by_the_last() -> None:
    log = read(columns={"who": [f"c{k // 2}" for k in range(N)]}, customer="who")
    assert log.customers == N // 2
    np.testing.assert_array_equal(log.last_rows, np.arange(1, N, 2))
    single = read(columns={"who": np.arange(N)}, customer="who")
    assert (single.customers, single.last_rows, read().customers) == (N, None, N)


def test_the_fingerprint_tells_logs_apart() -> None:
    log = read()
    assert log.fingerprint == read().fingerprint
    assert log.fingerprint != log.take(np.arange(N - 1)).fingerprint


def test_weights_have_mean_one_and_equal_ones_are_none() -> None:
    log = read(columns={"heavy": np.arange(N)}, weight="heavy")
    np.testing.assert_allclose(log.weights, np.arange(N) / np.arange(N).mean())
    np.testing.assert_array_equal(read().weights, np.ones(N))
    assert read(columns={"heavy": np.full(N, 1 / N)}, weight="heavy").weight is None
    assert not log.take(np.zeros(3, dtype=np.int64)).weights.any()  # rows without any weight have none


def test_clusters_are_counted_among_the_rows_that_are_left() -> None:
    log = read(columns={"home": np.arange(N) // 4}, cluster="home")
    assert log.clusters == N // 4
    assert log.take(np.arange(8)).clusters == 2
    assert read().clusters is None


@pytest.mark.parametrize(("bought", "binary"), [(np.arange(N) % 2, True), (np.arange(N) % 3, False)])
def test_a_log_is_binary_when_every_response_is_0_or_1(bought: Any, binary: bool) -> None:
    log = read(columns={"bought": bought})
    assert log.binary is binary
    assert log.take(np.arange(2)).binary  # the first two responses are 0 and 1 in both
