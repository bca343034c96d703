import threading
import time
from collections.abc import Iterator

import pytest

from largesse.pipeline.background import count_threads, map_ahead, read_ahead, write_behind


def test_items_come_in_their_order_from_a_thread_beside() -> None:
    made: list[int] = []

    def numbers() -> Iterator[int]:
        for k in range(5):
            made.append(threading.get_ident())
            yield k

    assert list(read_ahead(numbers())) == [0, 1, 2, 3, 4]
    assert threading.get_ident() not in made


def test_results_come_in_the_order_of_their_items() -> None:
    def work(k: int) -> int:
        time.sleep(0.002 * (k % 3))
        return k * k

    assert list(map_ahead(work, range(20))) == [k * k for k in range(20)]
    assert count_threads() >= 1


def test_items_are_written_in_their_order_before_the_block_ends() -> None:
    written: list[int] = []
    with write_behind(written.append, queue_size=2) as add:
        for k in range(10):
            add(k)
    assert written == list(range(10))


def fail(_item: int) -> int:
    raise ValueError("no")


def test_errors_of_the_thread_beside_reach_the_caller() -> None:
    with pytest.raises(ValueError, match="no"):
        list(read_ahead(map(fail, range(3))))
    with pytest.raises(ValueError, match="no"):
        list(map_ahead(fail, range(3)))

    def write(item: int) -> None:
        fail(item)

    with pytest.raises(ValueError, match="no"), write_behind(write) as add:
        add(1)


def test_a_reader_that_is_left_alone_stops() -> None:
    made: list[int] = []
    reader = read_ahead(made.append(k) or k for k in range(1000))
    assert next(reader) == 0
    reader.close()  # type: ignore[attr-defined]
    assert len(made) <= 3
