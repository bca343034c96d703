"""Settings are frozen values: "auto" is the model's own, and what is not a model's setting is refused."""

from typing import Any

import pytest
from sklearn.base import clone

from largesse.errors import InputError
from largesse.response import IRE, SIRE, Balance, Network, Training
from largesse.response.networks.network_settings import find_setting_problems, replace_auto_settings
from largesse_lab.baselines import GANITE, CFRNet
from largesse_lab.baselines.network_helpers import find_penalty_strength_problems


def test_a_field_left_alone_is_the_models_own() -> None:
    own = Network(width=64, depth=2)
    assert replace_auto_settings(Network(depth=3), own) == Network(width=64, depth=3)
    assert replace_auto_settings(Network(), own) == own


def test_nested_parameters_reach_inside_and_leave_other_models_alone() -> None:
    model, other = SIRE().set_params(network__width=8, training__epochs=2), SIRE()
    assert (model.network, model.training) == (Network(width=8), Training(epochs=2))
    assert other.network == Network()
    assert model.get_params()["network__width"] == 8
    copy = clone(model)
    assert repr(copy) == repr(model) == "SIRE(network=Network(width=8), training=Training(epochs=2))"


@pytest.mark.parametrize(
    ("given", "default", "part"),
    [
        (Network(head_width=3), Network(width=1), "not a setting of this model"),
        (Network(width=0), Network(width=1), "1 or more"),
        (Training(rate=0.0), Training(rate=1.0), "above zero"),
        (Training(decay=-1.0), Training(decay=1.0), "zero or more"),
        (Training(start="gues"), Training(epochs=3), "did you mean 'guess'"),
        (Balance(kernel="liner"), Balance(kernel="rbf"), "did you mean 'linear'"),
        (Balance(normalise="no"), Balance(normalise=True), "True or False"),  # type: ignore[arg-type]
        ({"width": 3}, Network(width=1), "give a Network"),
    ],
)
def test_a_wrong_field_is_named_with_what_to_do(given: Any, default: Any, part: str) -> None:
    (problem,) = find_setting_problems("settings", given, default)
    assert part in str(problem)


def test_every_model_refuses_settings_that_are_not_its_own() -> None:
    X, level, response = [[0.0], [1.0]] * 6, [0, 1] * 6, [0, 1] * 6
    for model in (
        SIRE(training=Training(steps=3)),
        IRE(network=Network(head_width=3)),
        CFRNet(training=Training(epochs=3)),
        GANITE(network=Network(depth=3)),
    ):
        with pytest.raises(InputError, match="setting"):
            model.fit(X, level, response)


def test_a_strength_is_a_number_several_or_auto() -> None:
    assert not any(find_penalty_strength_problems("alpha", given) for given in (0.0, [1, 2], "auto"))
    assert all(find_penalty_strength_problems("alpha", given) for given in (-1.0, [], "cv", float("nan")))
