"""Whether Spark can run here, and numbers that are equal up to rounding."""

from __future__ import annotations

from typing import Any

import pytest

from largesse.errors import MissingPackageError
from largesse.pipeline.spark import check_spark


def skip_without_spark() -> None:
    """Skip a test where PySpark or Java is missing, and say which."""
    try:
        check_spark()
    except MissingPackageError as missing:
        pytest.skip(str(missing))


def near(found: Any) -> Any:
    """Return a number, or what holds numbers, to be compared up to rounding."""
    if isinstance(found, dict):
        return {key: near(value) for key, value in found.items()}
    if isinstance(found, list):
        return [near(value) for value in found]
    return pytest.approx(found, rel=1e-9, abs=1e-12) if isinstance(found, float) else found
