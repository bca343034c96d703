import pytest

from largesse_lab.bench.request import Request, ignore_progress
from largesse_lab.experiments import EXPERIMENTS


def test_experiments_are_listed_in_the_papers_order() -> None:
    assert list(EXPERIMENTS)[:5] == ["table1", "table2", "kernels", "kappa", "rates"]


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "real_logs"])
def test_every_experiment_can_be_asked_for_nothing(name: str) -> None:
    assert EXPERIMENTS[name].measure(Request(repeats=0), ignore_progress) == []


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_a_title(name: str) -> None:
    assert EXPERIMENTS[name].chapter.title


@pytest.mark.parametrize("name", [name for name, one in EXPERIMENTS.items() if one.drawn])
def test_no_repeats_of_a_range_of_seeds_are_nothing(name: str) -> None:
    """Before processes share a range of seeds, the first one asks for none of it to see what would be refused."""
    assert EXPERIMENTS[name].measure(Request(seeds=(3, 9), repeats=0), ignore_progress) == []
