import pytest

from largesse.errors import InputError
from largesse.levels import Levels


def test_several_mistakes_of_levels_are_named_in_one_error() -> None:
    with pytest.raises(InputError) as caught:
        Levels([5, 3, -1], names=["a", "a"], doses=[1, 1, 2])
    assert len(caught.value.problems) == 6


def test_labels_are_names_or_doses_or_numbers() -> None:
    assert Levels([0, 5], names=["none", "some"], doses=[0, 2.5]).labels == ("none", "some")
    assert Levels([0, 5], doses=[0, 2.5]).labels == ("0", "2.5")
    assert Levels([0, 5]).labels == ("0", "1")


def test_costs_are_common_or_each_customers_own() -> None:
    own = Levels(["c0", "c1"])
    assert (own.cost_columns, own.common_costs) == (("c0", "c1"), None)
    common = Levels([0, 5])
    assert common.cost_columns is None
    assert common.common_costs is not None
    assert common.common_costs.tolist() == [0, 5]
