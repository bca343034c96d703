from typing import Any

import numpy as np
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


def test_titles_carry_the_unit_of_doses_and_never_are_bare_numbers() -> None:
    assert Levels([0, 5], names=["none", "some"], dose_unit="€").titles == ("none", "some")
    assert Levels([0, 5], doses=[0, 2.5], dose_unit="€").titles == ("€0", "€2.5")
    assert Levels([0, 5], doses=[0, 2.5], dose_unit="% off").titles == ("0 % off", "2.5 % off")
    assert Levels([0, 5]).titles == ("level 0", "level 1")


def test_a_dict_has_names_and_costs() -> None:
    levels = Levels({"none": 0, "small": 5})
    assert (levels.names, levels.costs) == (("none", "small"), (0.0, 5.0))
    with pytest.raises(InputError, match="names"):
        Levels({"none": 0, "small": 5}, names=["a", "b"])
    with pytest.raises(InputError, match="the cost falls from 5 to 0"):
        Levels({"small": 5, "none": 0})
    with pytest.raises(InputError, match="dose_unit is 5"):
        Levels([0, 5], dose_unit=5)  # type: ignore[arg-type]


def test_costs_are_common_or_each_customers_own() -> None:
    own = Levels(["c0", "c1"])
    assert (own.cost_columns, own.common_costs) == (("c0", "c1"), None)
    common = Levels([0, 5])
    assert common.cost_columns is None
    assert common.common_costs is not None
    assert common.common_costs.tolist() == [0, 5]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"costs": np.array(3)}, "costs is array\\(3\\)"),
        ({"costs": 3}, "costs is 3"),
        ({"costs": b"01"}, "costs is b'01'"),
        ({"costs": []}, "there are no costs"),
        ({"costs": [0, 10, 5]}, "the cost falls from 10 to 5 as the level rises from 1 to 2"),
        ({"costs": [-1, 5]}, "the cost of level 0 is negative: -1"),
        ({"costs": [0, float("nan")]}, "the cost of level 1 is nan"),
        ({"costs": [0, "five"]}, "a cost is not a number: 0, five"),
        ({"costs": [0, 1], "names": ["a", "a"]}, "two levels share a name: a, a"),
        ({"costs": [0, 1], "doses": [2, 1]}, "doses do not rise: 2.0, 1.0"),
        ({"costs": [0, 1], "doses": [0, float("nan")]}, "a dose is missing"),
        ({"costs": [0, 1], "names": []}, "2 costs but 0 names"),
        ({"costs": [0, 1], "names": ["a", None]}, "a name is not text: None"),
        ({"costs": [0, 1], "doses": [1, 2, 3]}, "2 costs but 3 doses"),
        ({"costs": [0, 1], "doses": []}, "2 costs but 0 doses"),
        ({"costs": [0, 1], "doses": [0, 10**320]}, "a dose is too large: 0, 1000"),
        ({"costs": [0, 10**320]}, "a cost is too large"),
        ({"costs": [0, 10**5000]}, "a cost is too large"),
        ({"costs": ["0", 5]}, "a cost is not a number: 0, 5"),
        ({"costs": [0, [1]]}, "a cost is not a number"),
        ({"costs": [0, True]}, "a cost is not a number"),
        ({"costs": [0, 1], "contact_cost": 10**320}, "the contact cost is 1000"),
        ({"costs": [0, 1], "contact_cost": "1"}, "the contact cost is '1'"),
        ({"costs": [0, 1e308], "contact_cost": 1e308}, "too large to add"),
        ({"costs": [0, 1], "on_redemption": "no"}, "on_redemption is 'no'"),
        ({"names": ["a", "b"]}, "there are no costs"),
        ({"observed": True}, "the levels are not listed"),
        ({"names": ["a", "b"], "observed": 1}, "observed is 1"),
        ({"names": ["a", "b"], "observed": True, "on_redemption": True}, "costs paid on redemption"),
        ({"names": ["a", "b"], "observed": True, "contact_cost": 1}, "costs of contact"),
        ({"costs": ["c0", "c1"], "observed": True}, "costs in columns for each level"),
    ],
)
def test_odd_levels_are_refused_in_words(given: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        Levels(**given)
    assert all(problem.hint for problem in caught.value.problems)


def test_observed_costs_need_no_list_and_are_not_certain() -> None:
    levels = Levels(names=["none", "some"], observed=True)
    assert (len(levels), levels.labels, levels.common_costs, levels.certain) == (2, ("none", "some"), None, False)
    assert len(Levels(doses=[0, 1, 5], observed=True)) == 3
    assert Levels([0, 5]).certain
    assert not Levels([0, 5], on_redemption=True).certain
    assert not Levels([0, 5], on_redemption="per unit").certain
