from typing import Any

import numpy as np
import pytest

from largesse.allocation.price.hull import as_rows, cheapest, climb
from support.plans import KINDS, instances


@pytest.mark.parametrize("kind", KINDS)
def test_hull_agrees_with_a_slow_plain_one(kind: Any) -> None:
    for curves, costs, _ in instances(kind, 20):
        wide = np.broadcast_to(costs, curves.shape)
        start, _ = cheapest(*as_rows(curves, np.asarray(costs)))
        steps = climb(*as_rows(curves, np.asarray(costs)), np.arange(len(curves)), start, 0.0)
        for i in range(len(curves)):
            kept = [start[i], *steps.level[steps.place == i]]
            cost, value = wide[i, kept], curves[i, kept]
            assert cost[0] == wide[i].min()
            assert (np.diff(cost) > 0).all()
            assert (np.diff(value) > 0).all()
            # Nothing lies above the hull.
            above = np.interp(wide[i], cost, value)
            assert (curves[i] <= above + 1e-12).all()
