import numpy as np
import pytest

from largesse.allocation.cost_estimates import expected_costs
from largesse.errors import InputError
from largesse.levels import Levels


def test_costs_paid_on_redemption_follow_the_response_but_never_below_zero() -> None:
    levels = Levels(costs=[0, 10], on_redemption=True)
    assert expected_costs(levels, np.array([[0.2, 0.5], [0.1, -0.3]])).tolist() == [[0, 5], [0, 0]]


def test_costs_that_are_always_paid_are_common_or_each_customers_own() -> None:
    curves = np.zeros((2, 2))
    assert expected_costs(Levels(costs=[0, 10]), curves).tolist() == [0, 10]
    own = np.array([[0.0, 1.0], [0.0, 2.0]])
    levels = Levels(costs=["a", "b"])
    assert expected_costs(levels, curves, own) is own
    with pytest.raises(InputError, match="read without them"):
        expected_costs(levels, curves)


def test_reaching_a_customer_costs_the_same_at_every_level_above_the_first() -> None:
    curves = np.array([[0.2, 0.5, 0.5]])
    assert expected_costs(Levels(costs=[0, 5, 10], contact_cost=0.5), curves).tolist() == [0, 5.5, 10.5]
    redeemed = Levels(costs=[0, 5, 10], on_redemption=True, contact_cost=0.5)
    assert expected_costs(redeemed, curves).tolist() == [[0, 3.0, 5.5]]
    with pytest.raises(InputError, match="contact cost is -1"):
        Levels(costs=[0, 5], contact_cost=-1)
