import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial

import numpy as np  # its BLAS is a pool of threads
import pytest
from threadpoolctl import threadpool_info

from largesse.stats import parallel_threads
from largesse.stats.parallel_threads import (
    limit_to_one_thread,
    map_in_threads,
    prefetch,
    run_in_threads,
    write_in_background,
)


def most_threads() -> int:
    return max(pool["num_threads"] for pool in threadpool_info())


def test_small_work_runs_on_one_thread_and_large_work_as_before() -> None:
    before = most_threads()
    with limit_to_one_thread(cells=np.eye(3).size):
        assert most_threads() == 1
    assert most_threads() == before
    with limit_to_one_thread(cells=parallel_threads.MIN_CELLS_FOR_THREADS):
        assert most_threads() == before


def test_the_threads_come_back_after_an_error() -> None:
    before = most_threads()
    with pytest.raises(RuntimeError), limit_to_one_thread():
        raise RuntimeError
    assert most_threads() == before


def test_jobs_side_by_side_keep_their_order() -> None:
    assert run_in_threads([partial(pow, base, 2) for base in range(20)], workers=4) == [base**2 for base in range(20)]


def test_the_first_error_ends_it_and_what_has_not_begun_does_not_begin() -> None:
    began: list[int] = []
    stop = threading.Event()

    def job(number: int) -> None:
        began.append(number)
        if number == 0:
            raise ValueError("the first")
        stop.wait(5)

    with pytest.raises(ValueError, match="the first"):
        run_in_threads([partial(job, number) for number in range(50)], workers=2)
    stop.set()
    assert len(began) < 10


def test_jobs_run_at_the_same_time_with_one_thread_each() -> None:
    from threadpoolctl import threadpool_info

    both = threading.Barrier(2, timeout=30)

    def job() -> set[int]:
        both.wait()  # neither passes unless both are there
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"}

    for pools in run_in_threads([job, job], workers=2):
        assert pools <= {1}


def test_items_are_read_ahead_in_their_order_by_another_thread() -> None:
    threads: list[int] = []

    def numbers() -> Iterator[int]:
        for k in range(1000):
            threads.append(threading.get_ident())
            yield k

    reader = prefetch(numbers())
    assert [next(reader) for _ in range(5)] == [0, 1, 2, 3, 4]
    reader.close()  # type: ignore[attr-defined]
    assert len(threads) <= 7  # a reader that is closed stops
    assert threading.get_ident() not in threads


def test_results_are_mapped_ahead_and_written_behind_in_the_order_of_items() -> None:
    def square(k: int) -> int:
        time.sleep(0.002 * (k % 3))
        return k * k

    assert list(map_in_threads(square, range(20))) == [k * k for k in range(20)]
    written: list[int] = []
    with write_in_background(written.append) as add:
        for k in range(10):
            add(k)
    assert written == list(range(10))


def test_errors_of_other_threads_reach_the_caller() -> None:
    def fail(_item: int) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(prefetch(map(fail, range(3))))
    with pytest.raises(ValueError, match="no"):
        list(map_in_threads(fail, range(3)))
    with pytest.raises(ValueError, match="no"), write_in_background(fail) as add:
        add(1)


def test_propensities_are_estimated_on_one_thread_though_their_library_is_loaded_late() -> None:
    code = """
import numpy as np
from threadpoolctl import threadpool_info
from largesse.data import log_from_arrays
from largesse.propensity import propensity_estimation
from largesse.stats import assign_folds
seen, fit = [], propensity_estimation._fit_sklearn
def note(*arguments):
    seen.append(max(pool["num_threads"] for pool in threadpool_info()))
    return fit(*arguments)
propensity_estimation._fit_sklearn = note
rng = np.random.default_rng(0)
log = log_from_arrays(rng.normal(size=(300, 2)), rng.integers(0, 2, 300), rng.integers(0, 2, 300))
propensity_estimation.estimate_propensities(log, assign_folds(log, 2, 0))
print(max(seen))
"""
    threads_of = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **threads_of}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1"]
