"""Numbers of hypothesis examples: few in the fast suite, the same on every run; many under the profile "attack"."""

from typing import Any

from hypothesis import settings

FAST, ATTACK = 100, 10_000

settings.register_profile("fast", max_examples=FAST, deadline=None, derandomize=True, database=None)
settings.register_profile("attack", max_examples=ATTACK, deadline=None, print_blob=True)


def examples(count: int) -> Any:
    """Return settings with `count` examples in the fast suite, and a hundred times as many under "attack"."""
    return settings(max_examples=max(count * settings.default.max_examples // FAST, 1))  # type: ignore[union-attr]
