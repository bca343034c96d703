"""A policy that is opened to decide by: its version names what was loaded."""

from pathlib import Path

import pytest

from largesse.pipeline import plan
from largesse.policy import Policy
from largesse.serve import open_policy


def test_the_version_is_that_of_the_policy_even_if_another_comes_meanwhile(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, load = open_policy(run_copy), Policy.load

    def load_late(path: Path) -> Policy:
        monkeypatch.setattr(Policy, "load", load)
        plan(run_copy, budget=0.5)
        return load(path)

    monkeypatch.setattr(Policy, "load", load_late)
    found = open_policy(run_copy)
    again = open_policy(run_copy)
    assert (found.version, found.policy.price) == (again.version, again.policy.price)
    assert found.version != before.version
