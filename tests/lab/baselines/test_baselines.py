"""The baselines under their former names: importable from the front, with a hint where the lab is missing."""

import sys

import pytest

import largesse as lg
from largesse.errors import MissingPartError
from largesse_lab import baselines


@pytest.mark.parametrize("name", ["BART", "BanditNet", "CFRNet", "DoseLog", "DoseSIRE", "GANITE", "TLearner"])
def test_a_baseline_keeps_its_name_at_the_front(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert getattr(lg, name) is getattr(baselines, name)
    monkeypatch.setitem(sys.modules, "largesse_lab.baselines", None)
    with pytest.raises(MissingPartError, match="pip install -e lab"):
        getattr(lg, name)
