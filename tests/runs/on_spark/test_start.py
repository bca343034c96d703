"""A campaign on Spark in one call."""

import json
from pathlib import Path
from typing import Any

import pytest

from largesse.errors import InputError
from largesse.runs import open_engine, spark


def test_the_evaluation_is_that_of_one_machine(session: Any, shop: Path, ran: Path) -> None:
    spark(shop / "campaign.toml", shop / "run", session=session)
    found, own = (json.loads((folder / "evaluation.json").read_text()) for folder in (shop / "run", ran))
    assert found == own


def test_an_unknown_engine_and_a_master_without_spark_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'spark'"), open_engine("sparc"):
        pass
    with pytest.raises(InputError, match="add --engine spark"), open_engine(master="local[2]"):
        pass
