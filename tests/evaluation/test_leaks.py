from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse.data.log import log_from_arrays
from largesse.evaluation.leaks import find_leaks, measure_explained
from largesse.records import Log

N = 1000
RNG = np.random.default_rng(0)
LEVEL, RESPONSE = np.arange(N) % 3, RNG.integers(0, 2, N).astype(float)
NOISE = RNG.normal(size=N)


def log_with(**columns: Any) -> Log:
    return log_from_arrays(pa.table({"noise": NOISE, **columns}), LEVEL, RESPONSE)


@pytest.mark.parametrize(
    "after",
    [
        RESPONSE + 0.05 * RNG.normal(size=N),
        np.where(RNG.random(N) < 0.02, 1 - RESPONSE, RESPONSE),
        np.where(RESPONSE > 0, "paid", "open"),
        pa.array([None if r else 3.5 for r in RESPONSE]),
        pa.array(np.where(RESPONSE > 0, 20_000, 10_000).astype("datetime64[D]")),
    ],
    ids=["noisy", "flipped", "text", "missing where bought", "date"],
)
def test_a_feature_that_nearly_equals_the_response_is_named(after: Any) -> None:
    (leak,) = find_leaks(log_with(after=after))
    assert (leak.feature, leak.of) == ("after", "response")
    assert leak.explained > 0.8


def test_a_feature_that_gives_away_the_level_is_named() -> None:
    (leak,) = find_leaks(log_with(code=np.array(["A", "B", "C"])[LEVEL]))
    assert (leak.feature, leak.of, leak.explained) == ("code", "level", pytest.approx(1))


def test_honest_features_are_not_named() -> None:
    words = RNG.integers(0, 400, N).astype(str)
    assert find_leaks(log_with(word=words, helpful=RESPONSE + 1.5 * RNG.normal(size=N), same=np.zeros(N))) == ()


def slowly_explained(code: np.ndarray, target: np.ndarray, half: np.ndarray) -> float:
    left = whole = 0.0
    for held in (0, 1):
        train, test = half != held, half == held
        for t in target.T:
            mean = t[train].mean()
            guess = np.array(
                [t[train & (code == c)].mean() if (train & (code == c)).any() else mean for c in code[test]]
            )
            left += ((t[test] - guess) ** 2).sum()
            whole += ((t[test] - mean) ** 2).sum()
    return max(1 - left / whole, 0.0)


def test_sums_over_groups_give_what_rows_give() -> None:
    rng = np.random.default_rng(4)
    code, half = rng.integers(0, 6, 80), rng.integers(0, 2, 80)
    target = 1000 + rng.normal(size=(80, 2)) + code[:, None]
    assert measure_explained(code, target, half) == pytest.approx(slowly_explained(code, target, half))
