"""One Spark session for all tests of the engine; without PySpark or Java they say why they are skipped."""

from collections.abc import Iterator
from typing import Any

import pytest
from sessions import skip_without_spark

from largesse.runs.on_spark import open_session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests with a session in one process: a second Java would cost more than it saves."""
    for item in items:
        names = getattr(item, "fixturenames", ())
        if "session" in names or ("engine" in names and "spark" in item.name):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    skip_without_spark()
    with open_session(master="local[2]") as started:
        yield started
