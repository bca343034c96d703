import copy
import functools
import tempfile
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.allocation.plan_and_frontier import decide_at_price
from largesse.data.log_reader import log_from_arrays, read_log
from largesse.errors import BudgetError, InputError, NotFittedError, PolicyFileError
from largesse.io import read_archive, write_archive
from largesse.levels import Levels
from largesse.policy.policy import POLICY_FORMAT, Policy
from largesse.records import Array, Customers
from largesse.response.boosting import Boosting
from largesse.response.linear import Linear
from largesse.response.response_model import ResponseModel

LEVELS = Levels(costs=[0, 1.5, 2.5], names=["none", "small", "big"])


@functools.cache
def data() -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(120, 2)), rng.permutation(np.arange(120) % 3)
    return X, level, (rng.random(120) < 0.3 + 0.2 * level).astype(float)


@functools.cache
def fitted(kind: str) -> ResponseModel:
    model: ResponseModel = {"Linear": Linear(penalty=0.1), "Boosting": Boosting(rounds=4)}[kind]
    return model.fit(*data())


@functools.cache
def content(kind: str = "Linear") -> bytes:
    return saved(Policy(fitted(kind), LEVELS, price=0.07))


def saved(policy: Policy) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / "policy")
        return (Path(folder) / "policy").read_bytes()


def kept(path: Path, raw: bytes) -> Path:
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize(
    "given",
    [
        *({"price": price} for price in ("x", float("nan"), float("inf"), -1, True, [1], 10**400)),
        *(
            {word: value}
            for word in ("exploration_rate", "tie_probability")
            for value in ("x", None, float("nan"), -0.1, 1.1, 10**400)
        ),
        *({"scale": scale} for scale in (0.0, -1.0, 1e300, 1e-300, float("nan"), "x")),
        {"model": None},
        {"model": Linear},
        {"levels": [0, 1, 2]},
    ],
    ids=str,
)
def test_invalid_fields_are_refused(given: dict[str, Any]) -> None:
    (word,) = given
    with pytest.raises(InputError, match=f"^policy: (the )?{word} "):
        Policy(**{"model": fitted("Linear"), "levels": LEVELS, **given})


def test_invalid_seeds_budgets_and_levels_are_refused() -> None:
    policy = Policy(fitted("Linear"), LEVELS, price=0.1)
    odd: Any
    for odd in (-1, 1.5, "x", None):
        with pytest.raises(InputError, match="the seed is"):
            policy.offer(data()[0], seed=odd)
    for odd in ((1.0,), "1", None, -1.0, float("nan")):
        with pytest.raises(InputError, match="budget"):
            policy.calibrate(data()[0], odd)
    with pytest.raises(NotFittedError, match="no price yet"):
        Policy(fitted("Linear"), LEVELS).decide(data()[0])
    with pytest.raises(InputError, match=r"3 .*2 "):
        Policy(fitted("Linear"), Levels(costs=[0, 1]), price=0.1)


# ---------------------------------------------------------------------------------------------- deciding


@pytest.mark.parametrize("price", [0.0, 0.07, 0.2, 9.0])
def test_decisions_are_the_best_of_response_less_price_times_cost(price: float) -> None:
    X = data()[0]
    policy = Policy(fitted("Linear"), LEVELS, price=price)
    expected = decide_at_price(policy.model.predict(X), np.array([0, 1.5, 2.5]), price)
    assert np.array_equal(policy.decide(X), expected)
    policy = Policy(fitted("Linear"), Levels(costs=[0, 1, 2], on_redemption=True), price=price)  # expected costs
    curves = policy.model.predict(X)
    assert np.array_equal(policy.decide(X), decide_at_price(curves, curves * [0, 1, 2], price))


def test_a_dearer_price_never_gives_more() -> None:
    X = data()[0]
    spent = [Policy(fitted("Boosting"), LEVELS, price=p).decide(X).sum() for p in (0, 0.02, 0.05, 0.1, 1)]
    assert spent == sorted(spent, reverse=True)


def test_customers_may_come_in_any_form(tmp_path: Path) -> None:
    X, level, response = data()
    policy = Policy(fitted("Linear"), LEVELS, price=0.07)
    expected = policy.decide(X)
    table = pa.table({"x1": X[:, 1], "x0": X[:, 0]})
    pq.write_table(table, tmp_path / "customers.parquet")
    log = log_from_arrays(X, level, response)
    for customers in (
        table,
        Customers(table),
        log,
        tmp_path / "customers.parquet",
        str(tmp_path / "customers.parquet"),
    ):
        assert np.array_equal(policy.decide(customers), expected)


def test_each_customers_own_costs_are_read_with_them() -> None:
    X, level, response = data()
    own = np.column_stack([np.zeros(120), np.linspace(0.1, 3, 120), np.linspace(0.2, 6, 120)])
    table = pa.table({"x0": X[:, 0], "x1": X[:, 1], "a": own[:, 0], "b": own[:, 1], "c": own[:, 2]})
    levels = Levels(costs=["a", "b", "c"])
    policy = Policy(fitted("Linear"), levels, price=0.1)
    expected = decide_at_price(policy.model.predict(X), own, 0.1)
    assert np.array_equal(policy.decide(table), expected)
    full = table.append_column("y", pa.array(level)).append_column("r", pa.array(response))
    assert np.array_equal(policy.decide(read_log(full, level="y", response="r", levels=levels)), expected)
    with pytest.raises(InputError, match="'c' is not in the table"):
        policy.decide(table.drop_columns(["c"]))


# ---------------------------------------------------------------------------------------------- keeping


@pytest.mark.parametrize("kind", ["Linear", "Boosting"])
def test_a_loaded_policy_decides_the_same_and_is_the_same_file(kind: str, tmp_path: Path) -> None:
    X = data()[0]
    policy = Policy(fitted(kind), LEVELS, price=0.07)
    again = Policy.load(kept(tmp_path / "policy", content(kind)))
    assert (again.levels, again.price, repr(again)) == (LEVELS, 0.07, repr(policy))
    assert again.model.predict(X).tobytes() == policy.model.predict(X).tobytes()
    assert np.array_equal(again.decide(X), policy.decide(X))
    assert saved(Policy(copy.deepcopy(fitted(kind)), LEVELS, price=0.07)) == saved(again) == content(kind)
    assert saved(Policy(fitted(kind), LEVELS, price=0.08)) != content(kind)


@pytest.mark.parametrize(
    "levels",
    [
        Levels(costs=[0, 1, 2], doses=[0, 5, 10]),
        Levels(costs=["a", "b", "c"]),
        Levels(costs=[0, 0.1, 1 / 3], on_redemption=True),
    ],
)
def test_levels_and_a_missing_price_are_kept(levels: Levels, tmp_path: Path) -> None:
    Policy(fitted("Linear"), levels).save(tmp_path / "policy")
    again = Policy.load(tmp_path / "policy")
    assert (again.levels, again.price) == (levels, None)


def test_an_unfitted_model_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        Policy(Linear(), LEVELS, price=0.1).save(tmp_path / "policy")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------------------------------- refusing


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_a_changed_byte_is_harmless_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["Linear", "Boosting"]))
    raw = bytearray(content(kind))
    # The zip's own headers are where a changed byte changes how the rest is read: try them more often.
    ends = st.one_of(st.integers(0, 60), st.integers(len(raw) - 200, len(raw) - 1), st.integers(0, len(raw) - 1))
    raw[data.draw(ends)] ^= data.draw(st.integers(1, 255))
    path = kept(tmp_path_factory.getbasetemp() / "changed", bytes(raw))
    try:
        again = Policy.load(path)
    except PolicyFileError as error:
        assert str(path) in str(error)  # noqa: PT017 — not every changed byte must raise
    else:
        assert saved(again) == content(kind)


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        ("Linear", lambda m, _: m["model"].update(kind="Liner")),  # named, with a suggestion
        ("Linear", lambda m, _: m.update(model=[])),
        ("Linear", lambda m, _: m["model"].update(kind=["Linear"])),
        ("Linear", lambda m, _: m["model"]["params"].update(unknown=1)),
        ("Linear", lambda m, _: m["model"].pop("encoder")),
        ("Linear", lambda m, _: m["model"]["learnt"].update(levels_=7)),
        ("Linear", lambda m, _: m["levels"].update(costs=[3, 2, 1])),
        ("Linear", lambda m, _: m["levels"].update(costs=[0, 1], names=None)),
        ("Linear", lambda m, _: m.pop("price")),
        ("Linear", lambda _, a: a.pop("fit_/coef")),
        ("Linear", lambda _, a: a.update({"fit_/coef": np.zeros(9)})),
        ("Linear", lambda _, a: a.update({"fit_/increments": np.zeros(1)})),
        ("Boosting", lambda _, a: a["trees_/trees/left"].__setitem__(0, 10**6)),
        ("Boosting", lambda _, a: a["trees_/trees/right"].__setitem__(0, 0)),
        ("Boosting", lambda _, a: a.update({"trees_/trees/feature": a["trees_/trees/feature"] + 9})),
        ("Boosting", lambda _, a: a.update({"trees_/trees/value": a["trees_/trees/value"][:1]})),
    ],
)
def test_a_forged_file_with_right_digests_is_refused_still(kind: str, spoil: Any, tmp_path: Path) -> None:
    path = kept(tmp_path / "policy", content(kind))
    manifest, arrays = read_archive(path, POLICY_FORMAT)
    arrays = {name: array.copy() for name, array in arrays.items()}
    spoil(manifest, arrays)
    write_archive(path, POLICY_FORMAT, manifest, arrays)
    with pytest.raises(PolicyFileError, match=r"unexpected content|kind 'Liner'\n   → did you mean 'Linear'"):
        Policy.load(path)


# ---------------------------------------------------------------------------------------------- calibrating, exploring


def fresh(seed: int, n: int = 4000) -> Array:
    return np.random.default_rng([7, seed]).normal(size=(n, 2))


@pytest.mark.parametrize("kind", ["Linear", "Boosting"])  # a few trees give many customers one curve
@pytest.mark.parametrize("explore", [0.0, 0.1])
def test_a_calibrated_policy_costs_the_budget_on_fresh_customers(kind: str, explore: float) -> None:
    costs = np.array([0, 1.5, 2.5])
    off = []
    for seed in range(6):
        policy = Policy(fitted(kind), LEVELS).calibrate(fresh(seed), 0.8, explore=explore)
        spend = policy.probabilities(fresh(100 + seed)) @ costs
        off.append((spend.mean() - 0.8) / (spend.std() * np.sqrt(2 / 4000)))
    assert np.abs(off).max() < 4  # standard errors: both sets of customers are samples
    assert np.abs(np.mean(off)) < 2


def test_a_calibrated_policy_costs_just_the_budget_on_its_own_customers() -> None:
    for kind in ("Linear", "Boosting"):
        policy = Policy(fitted(kind), LEVELS).calibrate(fresh(0), 0.8, explore=0.05)
        assert (policy.probabilities(fresh(0)) @ [0, 1.5, 2.5]).mean() == pytest.approx(0.8, abs=2.5 / 4000)


def test_offers_are_drawn_with_the_propensity_that_they_report() -> None:
    policy = Policy(fitted("Boosting"), LEVELS, exploration_rate=0.3).calibrate(fresh(0), 0.8)
    probabilities, made = policy.probabilities(fresh(1)), policy.offer(fresh(1), seed=3)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(4000))
    assert probabilities.min() == pytest.approx(0.1)
    assert np.array_equal(made.propensity, probabilities[np.arange(4000), made.levels])
    assert len(made) == 4000
    assert np.bincount(made.levels) / 4000 == pytest.approx(probabilities.mean(axis=0), abs=0.03)
    assert (1 / made.propensity).mean() == pytest.approx(3, rel=0.1)  # weighted back, every level counts all customers
    assert np.array_equal(policy.offer(fresh(1), seed=3).levels, made.levels)
    certain = Policy(fitted("Linear"), LEVELS, price=0.07)  # draws nothing
    made = certain.offer(data()[0])
    assert np.array_equal(made.levels, certain.decide(data()[0]))
    assert (made.propensity == 1).all()


def test_calibrating_leaves_the_policy_as_it_was() -> None:
    policy = Policy(fitted("Linear"), LEVELS, exploration_rate=0.2)
    other = policy.calibrate(fresh(0), 0.8, explore=0.1)
    assert (policy.price, policy.exploration_rate, policy.tie_probability) == (None, 0.2, 0.0)
    assert (other.exploration_rate, other.model, other.levels) == (0.1, policy.model, LEVELS)
    with pytest.raises(FrozenInstanceError):
        policy.price = 0.1  # type: ignore[misc]


def test_a_budget_that_exploring_alone_exceeds_is_refused() -> None:
    with pytest.raises(BudgetError, match=r"explore with 0\.75 at most"):
        Policy(fitted("Linear"), LEVELS).calibrate(fresh(0), 1.0, explore=0.9)


def test_exploration_and_contact_cost_are_kept_with_the_policy(tmp_path: Path) -> None:
    levels = Levels(costs=[0, 1, 2], on_redemption=True, contact_cost=0.25)
    policy = Policy(fitted("Boosting"), levels, exploration_rate=0.1).calibrate(fresh(0), 0.6)
    policy.save(tmp_path / "p.largesse")
    again = Policy.load(tmp_path / "p.largesse")
    assert (again.price, again.exploration_rate, again.tie_probability, again.levels) == (
        policy.price,
        0.1,
        policy.tie_probability,
        levels,
    )
    assert np.array_equal(again.probabilities(fresh(1)), policy.probabilities(fresh(1)))
