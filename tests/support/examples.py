"""Numbers of hypothesis examples: few in the fast suite, the same on every run; many under the profile "attack"."""

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

FAST, ATTACK = 100, 10_000
SEEDS = st.integers(0, 2**32 - 1)
RNGS = st.builds(np.random.default_rng, SEEDS)

settings.register_profile("fast", max_examples=FAST, deadline=None, derandomize=True, database=None)
settings.register_profile("attack", max_examples=ATTACK, deadline=None, print_blob=True)


def examples(count: int) -> Any:
    """Return settings with `count` examples in the fast suite, and a hundred times as many under "attack"."""
    return settings(max_examples=max(count * settings.default.max_examples // FAST, 1))  # type: ignore[union-attr]
