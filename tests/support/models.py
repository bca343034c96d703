"""Models whose nested settings are written without their prefixes: short to write in tests."""

from typing import Any

from largesse.response import Balance, Network, Training

GROUPS = {"network": Network, "training": Training, "balance": Balance}


def flat(kind: Any, **settings: Any) -> Any:
    """Return a model of a kind: `flat(SIRE, kappa=0, width=8)` is `SIRE(kappa=0, network=Network(width=8))`."""
    own = set(kind.parameter_names())
    homes = {field: group for group, value in GROUPS.items() if group in own for field in value().get_params()}
    named = {name if name in own else f"{homes[name]}__{name}": value for name, value in settings.items()}
    return kind().set_params(**named)
