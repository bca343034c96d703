"""Edited files of a run folder never make a traceback, and a refused command changes nothing."""

import folders_json
import pytest


def test_edited_files_are_used_or_refused() -> None:
    found = [(seed, folders_json.attack(seed)) for seed in range(1, 13)]
    assert [(seed, outcome) for seed, outcome in found if not outcome.good] == []


@pytest.mark.slow
def test_many_edited_files_are_used_or_refused() -> None:
    found = [(seed, folders_json.attack(seed)) for seed in range(500)]
    assert [(seed, outcome) for seed, outcome in found if not outcome.good] == []
