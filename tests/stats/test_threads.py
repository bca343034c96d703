import numpy as np  # its BLAS is a pool of threads
import pytest
from threadpoolctl import threadpool_info

from largesse.stats import threads
from largesse.stats.threads import cores, one_thread


def most_threads() -> int:
    return max(pool["num_threads"] for pool in threadpool_info())


def test_small_work_runs_on_one_thread_and_large_work_as_before() -> None:
    before = most_threads()
    with one_thread(cells=np.eye(3).size):
        assert most_threads() == 1
    assert most_threads() == before
    with one_thread(cells=threads.SMALL):
        assert most_threads() == before


def test_the_threads_come_back_after_an_error() -> None:
    before = most_threads()
    with pytest.raises(RuntimeError), one_thread():
        raise RuntimeError
    assert most_threads() == before


def test_there_is_a_core_to_run_on() -> None:
    assert cores() >= 1
