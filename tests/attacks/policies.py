"""Policy files whose digests are right and whose content is not: each is refused when it is read, or decides.

The content of a good file is changed in one to three places (a value of its JSON, or an array) and sealed again.
"""

from __future__ import annotations

import datetime as dt
import tempfile
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from harness import FINE, Outcome, describe, observe
from mutations import change

ROWS = 600
KINDS = ("linear", "additive", "boosting", "thresholds", "stack", "sire", "banditnet", "aimed")
SAME_KIND = 50  # seeds in a row that share a model, which takes a while to fit


def people(rows: int, seed: int) -> dict[str, Any]:
    """Return features of every kind: a number with gaps, a date, text with few and with many values."""
    rng = np.random.default_rng(seed)
    return {
        "age": [None if k % 13 == 5 else float(rng.normal()) for k in range(rows)],
        "income": rng.normal(size=rows),
        "since": [dt.date(2023, 1, 1) + dt.timedelta(days=int(k)) for k in rng.integers(0, 700, rows)],
        "city": [None if k % 50 == 7 else f"city {k}" for k in rng.integers(0, 5, rows)],
        "shop": [f"shop {k}" for k in rng.integers(0, 45, rows)],
    }


@cache
def customers() -> pa.Table:
    """Return customers, some with values that the log never had."""
    columns = people(40, seed=9)
    columns["shop"][3] = "another shop"
    columns["age"][4] = 1e300
    return pa.table(columns)


def make_model(kind: str) -> Any:
    import largesse.response as models

    size = models.Network(width=3, depth=1)
    tiny = {
        "network": size,
        "training": models.Training(epochs=1),
        "members": 1,
        "folds": 2,
        "shrinkage": 0.1,
        "kappa": 0.3,
    }
    made = {
        "linear": lambda: models.Linear(),
        "additive": lambda: models.Additive(),
        "boosting": lambda: models.Boosting(rounds=5),
        "thresholds": lambda: models.Thresholds(penalty=0.1),
        "stack": lambda: models.Stack(models=[models.Linear(), models.Boosting(rounds=5)]),
        "sire": lambda: models.SIRE(**tiny),
    }
    return made[kind]()


def make_banditnet(seed: int) -> Any:
    """Return a policy network that is learnt in a moment."""
    import largesse.response as models
    from largesse_lab.baselines import BanditNet

    training = models.Training(steps=20, batch=32)
    return BanditNet(translations=[0.0, 0.3], network=models.Network(width=3, depth=1), training=training, seed=seed)


@cache
def good_policy(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the manifest and the arrays of a good policy."""
    import largesse as lg

    rng = np.random.default_rng(1)
    coupon = rng.integers(0, 3, ROWS)
    bought = (rng.random(ROWS) < 0.2 + 0.2 * coupon).astype(float)
    table = pa.table({**people(ROWS, seed=2), "coupon": coupon, "bought": bought})
    log = lg.read_log(table, levels=lg.Levels(costs=[0, 1, 2.5]), level="coupon", response="bought")
    if kind == "banditnet":
        return make_banditnet(seed=1).fit(log)._state()
    if kind == "aimed":  # it explores for a purpose
        return (
            lg.Policy(make_model("linear").fit(log), log.levels).calibrate(log, 1.0, explore_for="evaluation")._state()
        )
    policy = lg.Policy(make_model(kind).fit(log), log.levels, price=0.1, exploration_rate=0.05, tie_probability=0.3)
    return policy._state()


def change_array(arrays: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return the arrays with one of another shape or dtype, with odd numbers, under another name, or gone."""
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name].copy()
    how = rng.choice(["shape", "dtype", "number", "number", "number", "swap", "gone", "more", "row"])
    if how == "gone":
        return {key: value for key, value in arrays.items() if key != name}
    if how == "more":
        return {**arrays, f"{name}x": array}
    if how == "swap":
        other = sorted(arrays)[rng.integers(len(arrays))]
        return {**arrays, name: arrays[other].copy(), other: array}
    if how == "shape":
        array = array.reshape([(-1,), (1, -1), (-1, 1)][rng.integers(3)])
    elif how == "dtype":
        with np.errstate(all="ignore"):  # a cast may lose whatever it likes
            array = array.astype(["float32", "float64", "int64", "int32", "bool", "float16", "uint8"][rng.integers(7)])
    elif how == "row":
        array = np.concatenate([array, array[:1]]) if rng.random() < 0.5 and len(array) else array[1:]
    elif array.size:
        odd = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e38, 0, -1, -2, 1, 2**31 - 1, -(2**31), 7, 0.5, 1e-300]
        with np.errstate(all="ignore"):
            where = slice(None) if rng.random() < 0.2 else rng.integers(array.size)
            array.reshape(-1)[where] = np.array(odd[rng.integers(len(odd))]).astype(array.dtype)
    return {**arrays, name: array}


def make(seed: int, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the content of a file in which something is not as it should be."""
    rng = np.random.default_rng([seed, 7])
    manifest, arrays = good_policy(kind)
    for _ in range(1 + int(rng.integers(4) == 0)):
        if arrays and rng.random() < 0.35:
            arrays = change_array(arrays, rng)
        elif kind == "aimed" and manifest.get("exploration"):
            manifest = {**manifest, "exploration": change(manifest["exploration"], rng)}
        else:
            manifest = change(manifest, rng)
    return manifest, arrays


def try_policy(seed: int, kind: str) -> Outcome:
    """Seal the content of a seed, read it, and decide by it."""
    from largesse.errors import PolicyFileError
    from largesse.io import archive
    from largesse.policy import Policy, policy
    from largesse_lab.baselines import BanditNet, banditnet

    file, form = (BanditNet, banditnet.FORMAT) if kind == "banditnet" else (Policy, policy.FORMAT)
    try:
        packed = archive._pack(form, *make(seed, kind))
    except (ValueError, RecursionError, TypeError):  # no file can hold this: nothing is tried
        return Outcome("refused", "not JSON")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "policy").write_bytes(packed)
        try:
            loaded = file.load(Path(folder) / "policy")
        except PolicyFileError as error:
            return Outcome("refused", str(error))
    return _use_network(loaded) if kind == "banditnet" else _use(loaded)


def _use(policy: Any) -> Outcome:
    for levels in (policy.decide(customers()), policy.offer(customers(), seed=1).levels):
        if levels.shape != (40,) or levels.min() < 0 or levels.max() >= len(policy.levels):
            return Outcome("wrong", f"levels {levels}")
    given = policy.probabilities(customers())
    if not np.isfinite(given).all() or given.min() < 0 or not np.allclose(given.sum(axis=1), 1):
        return Outcome("wrong", "probabilities that do not add up to one")
    repr(policy)
    return FINE


def _use_network(net: Any) -> Outcome:
    """Decide by a policy network; what is not refused when it is read is not refused later."""
    from largesse.errors import BudgetError, InputError

    try:
        chances = (net.probabilities_at_price(customers()), net.probabilities(customers()))
        levels = net.decide(customers())
    except (BudgetError, InputError) as error:  # too small a budget, or a feature that these customers do not have
        return Outcome("refused", str(error))
    except Exception as error:
        return Outcome("traceback", describe(error))
    if not all(np.isfinite(one).all() and np.allclose(one.sum(axis=1), 1) for one in chances):
        return Outcome("wrong", "probabilities that do not add up to one")
    if levels.shape != (40,) or levels.min() < 0 or levels.max() >= len(net.levels_known_):
        return Outcome("wrong", f"levels {levels}")
    repr(net)
    return FINE


def attack(seed: int) -> Outcome:
    """Try the file of a seed; neighbours share a model."""
    return observe(lambda: try_policy(seed, KINDS[seed // SAME_KIND % len(KINDS)]))


def run(seeds: Iterable[int]) -> Counter[str]:
    """Return how often each outcome came of these seeds."""
    return Counter(attack(seed).kind for seed in seeds)
