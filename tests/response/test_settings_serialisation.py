"""Records of any shape survive the way to JSON and arrays and back, and anything else is refused with its place."""

import json
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.errors import InputError
from largesse.io import ArraySpec, RecordReader, pack_value
from largesse.records import Array
from largesse.response.boosting import Boosting
from largesse.response.linear import Linear
from largesse.response.settings_serialisation import pack_constructor_argument
from largesse.response.stacking import Stack


@dataclass(frozen=True, eq=False)
class Inner:
    rows: Annotated[Array, ArraySpec("n", "K")]
    codes: Annotated[Array, ArraySpec("n", dtype="int32")]


@dataclass(frozen=True, eq=False)
class Record:
    flag: bool
    count: int
    number: float
    name: str
    maybe: float | None
    pair: tuple[float, int]
    many: tuple[Inner, ...]
    named: dict[str, Annotated[Array, ArraySpec(..., dtype="float32")]]
    last: Annotated[Array, ArraySpec("K+1")] | None


def record(**more: Any) -> Record:
    inner = Inner(np.arange(6.0).reshape(2, 3), np.array([4, 5], np.int32))
    fields: dict[str, Any] = {
        "flag": True,
        "count": 3,
        "number": np.inf,
        "name": "α",
        "maybe": None,
        "pair": (0.5, 2),
        "many": (inner, Inner(np.zeros((0, 3)), np.zeros(0, np.int32))),
        "named": {"w": np.ones((2, 2, 2), np.float32)},
        "last": np.arange(4.0),
    }
    return Record(**fields | more)


def packed(value: Record | None = None) -> tuple[dict[str, Any], dict[str, Array]]:
    arrays: dict[str, Array] = {}
    state = pack_value(value or record(), Record, "", arrays)
    return json.loads(json.dumps(state, allow_nan=False)), arrays


def unpacked(state: Any, arrays: dict[str, Array], K: int = 3) -> Record:
    found = RecordReader(arrays, {}, None).unpack(state, Record, "", {"p": 2, "K": K})
    assert isinstance(found, Record)
    return found


def test_a_record_comes_back_as_it_was() -> None:
    state, arrays = packed()
    assert sorted(arrays) == sorted(["last", "many/0/codes", "many/0/rows", "many/1/codes", "many/1/rows", "named/w"])
    found, before = unpacked(state, arrays), record()
    assert (found.flag, found.count, found.number, found.name, found.maybe) == (True, 3, np.inf, "α", None)
    assert found.pair == before.pair
    assert np.array_equal(found.many[0].rows, before.many[0].rows)
    assert found.named["w"].dtype == np.float32
    assert unpacked(*packed(record(last=None))).last is None


@given(st.floats(allow_nan=False), st.integers(), st.text())
def test_numbers_and_text_come_back_exactly(number: float, count: int, name: str) -> None:
    found = unpacked(*packed(record(number=number, count=count, name=name)))
    assert (found.number, found.count, found.name) == (number, count, name)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda s, _: s.pop("count"), r"missing \['count'\]"),
        (lambda s, _: s.update(extra=1), r"unknown \['extra'\]"),
        (lambda s, _: s.update(count="3"), "count: '3' is not of type int"),
        (lambda s, _: s.update(count=True), "count: True is not of type int"),
        (lambda s, _: s.update(flag=1), "flag: 1 is not of type bool"),
        (lambda s, _: s.update(number=None), "number: None is not of type float"),
        (lambda s, _: s.update(number=10**400), "number: 10000.* is not of type float"),
        (lambda s, _: s.update(pair=[1.0]), "pair: 1 items; expected 2"),
        (lambda s, _: s.update(many={}), "many: {} is not of type list"),
        (lambda s, _: s["many"][0].pop("rows"), r"many/0: missing \['rows'\]"),
        (lambda _, a: a.pop("many/0/rows"), "many/0/rows: its array is missing"),
        (lambda _, a: a.update(last=np.zeros(9)), r"last: an array of shape \(9,\), announced as \[4\]"),
        (
            lambda _, a: a.update(last=np.zeros(4, np.float32)),
            r"last: an array of float32 .* expected float64 \(K\+1\)",
        ),
        (lambda _, a: a.update({"many/0/codes": np.zeros(2)}), "many/0/codes: an array of float64"),
    ],
)
def test_what_is_not_as_declared_is_refused_with_its_place(spoil: Any, words: str) -> None:
    state, arrays = packed()
    spoil(state, arrays)
    with pytest.raises(ValueError, match=words):
        unpacked(state, arrays)


def test_names_of_axes_stand_for_one_length_in_a_record_and_for_the_models_own_sizes() -> None:
    state, arrays = packed()
    with pytest.raises(ValueError, match="with p = 2, K = 4"):
        unpacked(state, arrays, K=4)
    state, arrays = packed(record(many=(Inner(np.zeros((2, 3)), np.zeros(5, np.int32)),)))
    with pytest.raises(ValueError, match="many/0/codes"):
        unpacked(state, arrays)


def test_models_within_settings_are_saved_by_name() -> None:
    state = pack_constructor_argument((Stack(models=[Linear(penalty=np.inf)]), [1, 2.5]), "models")
    inner = [{"model": "Linear", "params": {"penalty": {"float": "inf"}, "seed": 0}}]
    assert state["tuple"][0]["params"]["models"] == inner
    assert state["tuple"][1] == [1, 2.5]
    with pytest.raises(InputError, match="dict"):
        pack_constructor_argument({}, "models")


def fitted() -> tuple[dict[str, Any], dict[str, Array]]:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(90, 2)), np.arange(90) % 3
    return Stack(models=[Linear(penalty=0.1)], folds=2).fit(X, level, X[:, 0] + level + rng.normal(size=90)).state()


KNOWN = {"Linear": Linear, "Stack": Stack}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda s, _: s["learnt"]["members_"][0][0]["learnt"].update(levels_=2), "members_/0/0/fit_/increments"),
        (
            lambda s, _: s["learnt"]["members_"][0][0].update(kind="Oracle"),
            "a model of kind 'Oracle'; known are Linear",
        ),
        (lambda s, _: s["learnt"]["members_"][0][0]["params"].update(x=1), "Linear has other parameters: x"),
        (lambda s, _: s["params"].update(folds={"run": "me"}), r"parameters: \['run'\] is not known"),
        (lambda _, a: a.update(more=np.zeros(1)), "arrays that belong to nothing: more"),
    ],
)
def test_a_model_that_holds_another_is_checked_within(spoil: Any, words: str) -> None:
    state, arrays = fitted()
    spoil(state, arrays)
    with pytest.raises(ValueError, match=words):
        Stack.from_state(state, arrays, KNOWN)


def test_models_within_share_the_encoder_and_unknown_classes_are_refused() -> None:
    state, arrays = fitted()
    assert json.dumps(state).count('"encoder"') == 1
    again = Stack.from_state(state, arrays, KNOWN)
    assert all(model.encoder_ is again.encoder_ for model in again.members_[0])
    with pytest.raises(ValueError, match="a model of kind 'Linear'"):
        Stack.from_state(state, arrays, {"Boosting": Boosting})
