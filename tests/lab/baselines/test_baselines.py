"""The baselines and models of doses under their former names: importable from the front, with a hint where the lab is missing."""

import importlib
import sys

import pytest

import largesse as lg
from largesse.errors import MissingPackageError

MODULES = {
    **dict.fromkeys(["BART", "BanditNet", "CFRNet", "GANITE", "TLearner"], "largesse_lab.baselines"),
    **dict.fromkeys(["DoseLog", "DoseSIRE"], "largesse_lab.doses"),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_baseline_keeps_its_name_at_the_front(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert getattr(lg, name) is getattr(importlib.import_module(MODULES[name]), name)
    monkeypatch.setitem(sys.modules, MODULES[name], None)
    with pytest.raises(MissingPackageError, match="pip install -e lab"):
        getattr(lg, name)
