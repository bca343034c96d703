"""What a saved network is checked for before it is used."""

import numpy as np
import pytest

from largesse.response.networks.fitted_networks import check_saved_layers


def test_more_layers_than_parameters_are_refused_before_a_layer_is_made() -> None:
    params = {name: np.zeros(1) for name in ("w0", "b0", "w1", "b1")}
    check_saved_layers(params, 2, 1)
    with pytest.raises(ValueError, match="layers and 4 parameters"):
        check_saved_layers(params, 2, 10**30)
