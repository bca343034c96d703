"""Which models a file may hold, and models kept within models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from largesse.errors import nearest
from largesse.records import Array
from largesse.response.base import ResponseModel


def kinds() -> dict[str, type[ResponseModel]]:
    """Return the models that can be read back, by name: a file that names any other is refused."""
    from largesse import response

    plain = ("Linear", "Additive", "Thresholds", "Boosting", "SIRE", "IRE", "CFRNet", "GANITE", "BART")
    return {name: getattr(response, name) for name in (*plain, "TLearner", "Pava", "Shrunk", "Stack")}


def model_from_state(state: dict[str, Any], arrays: dict[str, Array]) -> ResponseModel:
    """Return the fitted model that a state of any known kind describes."""
    kind, known = str(state["kind"]), kinds()
    if kind not in known:
        raise ValueError(f"a model of kind {kind!r}: {nearest(kind, known)}")
    return known[kind].from_state(state, arrays)


def keep_models(models: Sequence[ResponseModel]) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Return the states of models that share their owner's encoder, and their arrays, prefixed by place."""
    states: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {}
    for i, model in enumerate(models):
        state, own = model.state()
        common = {name: value for name, value in state["common"].items() if name != "encoder"}
        states.append({**state, "common": common})
        arrays |= {f"{i}/{name}": array for name, array in own.items()}
    return states, arrays


def recall_models(
    states: Sequence[dict[str, Any]], arrays: dict[str, Array], owner: ResponseModel, levels: int | None = None
) -> list[ResponseModel]:
    """Return the models that `keep_models` kept; their encoder is the owner's, and their levels unless a number is given."""
    levels = owner.levels_ if levels is None else levels
    models = []
    for i, state in enumerate(states):
        own = {name.removeprefix(f"{i}/"): array for name, array in arrays.items() if name.startswith(f"{i}/")}
        whole = {**state, "common": {**state["common"], "encoder": owner.encoder_.state}}
        model = model_from_state(whole, own)
        if model.levels_ != levels:
            raise ValueError(f"a model of {model.levels_} levels within one of {levels}")
        model.encoder_ = owner.encoder_
        models.append(model)
    return models
