"""A damaged file is read or refused: it never ends the process and never shows a traceback."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("attack_tables", Path(__file__).with_name("tables.py"))
assert spec is not None
assert spec.loader is not None
tables = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tables)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
@pytest.mark.parametrize("form", list(tables.FORMATS))
def test_a_damaged_file_is_read_or_refused(form: str) -> None:
    assert set(tables.run(range(20), (form,))) <= {"read", "refused"}
