"""Files in which something is not as it should be: campaign files, policy files with right digests, JSON in run folders.

Each is read and used, or refused in words; a refused command leaves everything as it was.
"""

from __future__ import annotations

import datetime as dt
import json
import tempfile
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import largesse as lg
import largesse.response as models
from largesse.campaign import read_campaign
from largesse.errors import BudgetError, InputError, LargesseError, PolicyFileError
from largesse.io import archive
from largesse.policy import Policy, policy
from support.answers import check_message, refusals
from support.commands import check_answer, list_files, read_tree, run_command, working_folder
from support.examples import RNGS, examples
from support.mutations import change, change_array
from support.shops import copy_run, write_shop

Rng = np.random.Generator
FULL = """
title = "Shop"
unit = "€"
log = "log.parquet"
customers = "customers.parquet"
[columns]
level = "coupon"
response = "bought"
customer = "id"
features = ["age", "city"]
[levels]
costs = [0, 5, 10]
names = ["0", "5", "10"]
doses = [0, 5, 10]
on_redemption = false
contact_cost = 0.1
[plan]
budget = 2.5
exact = false
explore = 0.0
least_return = 0.0
segment = "city"
[plan.caps]
5 = 20
[plan.segment_budgets]
"Rome" = 50
[model]
name = "linear"
seed = 1
"""
ODD_TEXT = (
    f"x = {'[' * 2000}{']' * 2000}", f"title = {'{a=' * 900}1{'}' * 900}", "budget = 1" + "0" * 5000,
    f"title = 0x{'f' * 6000}", 'log = "a\\u0000b.csv"', f'log = "{"a/" * 3000}"', f'out = "{"a" * 300}"', "[[levels]]",
    "[plan]\n[plan]", '"" = 1', "title = 1979-05-27", "\x00", "log = '''\n'''",
)  # fmt: skip


def to_toml(value: Any) -> str:
    """Write any value that TOML knows."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quote(str(key))} = {to_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(to_toml(one) for one in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return quote(value) if isinstance(value, str) else "0" if value is None else str(value)


def quote(text: str) -> str:
    return '"' + "".join(c if c.isalnum() or c in " -_./" else f"\\U{ord(c):08x}" for c in text) + '"'


def draw_campaign(rng: Rng) -> bytes:
    """Return a campaign file with one to three changes."""
    tree: Any = tomllib.loads(FULL)
    for section, key in (("levels", "names"), ("levels", "doses"), ("plan", "segment_budgets"), ("plan", "caps")):
        if rng.random() < 0.5:
            del tree[section][key]
    for _ in range(1 + int(rng.integers(3) == 0)):
        tree = change(tree, rng)
    if "model" not in tree or (isinstance(tree["model"], dict) and "name" not in tree["model"]):
        tree["model"] = {"name": "linear"}  # the default takes minutes
    tree = {"model": tree["model"], **tree}  # first, so that no cut leaves a file without it
    text = "\n".join(f"{quote(str(key))} = {to_toml(value)}" for key, value in tree.items())
    how = rng.integers(12)
    if how == 0:
        text = ODD_TEXT[rng.integers(len(ODD_TEXT))] + "\n" + text
    elif how == 1:
        text = text[: rng.integers(len(text))]
    elif how == 2:
        depth = int(rng.integers(100, 3000))
        text += f"\nmore = {'[' * depth}{']' * depth}"
    raw = text.encode()
    return raw[: len(raw) // 2] + b"\xff" + raw[len(raw) // 2 :] if how == 3 else raw


@pytest.fixture(scope="module")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shop(tmp_path_factory.mktemp("shop"))


@examples(40)
@given(rng=RNGS)
def test_a_changed_campaign_file_is_read_or_refused(shop_folder: Path, rng: Rng) -> None:
    path = shop_folder / "campaign.toml"
    path.write_bytes(draw_campaign(rng))
    with refusals():
        tomllib.loads(read_campaign(path).text)


@examples(2)
@given(rng=RNGS)
def test_a_changed_campaign_file_is_run_or_refused(rng: Rng) -> None:
    with working_folder() as folder:
        write_shop(folder)
        (folder / "campaign.toml").write_bytes(draw_campaign(rng))
        before = list_files(folder)
        done = check_answer(run_command("run", "campaign.toml", "--out", folder / "out" / "run"), "run")
        left = {name for name in list_files(folder) - before if not done or name.split("/")[0] != "out"}
        assert not left, left


def test_the_campaign_that_is_changed_runs_as_it_is(tmp_path: Path) -> None:
    (write_shop(tmp_path) / "campaign.toml").write_text(FULL, encoding="utf-8")
    lg.pipeline.run(read_campaign(tmp_path), tmp_path / "run")


def test_no_changed_campaign_asks_for_the_default_model(tmp_path: Path) -> None:
    found = set()
    for seed in range(150):
        (tmp_path / "campaign.toml").write_bytes(draw_campaign(np.random.default_rng(seed)))
        try:
            found.add(read_campaign(tmp_path).model)
        except LargesseError:
            continue
    assert "linear" in found
    assert "auto" not in found


# -- JSON in run folders --------------------------------------------------------------------------------------------------

PARTS = ("fit.json", "plan.json", "evaluation.json")
WHOLE = (
    b"", b"[" * 100_000, b'{"a":' * 100_000, b"null", b"[]", b"{}", b"\xff\xfe", b"NaN", b'{"format": 2}', b"9" * 9999,
)  # fmt: skip


def edit(raw: bytes, rng: np.random.Generator) -> bytes:
    """Return an edited file: a value changed, or its bytes cut, damaged or replaced."""
    how = rng.integers(10)
    if how == 0:
        return WHOLE[rng.integers(len(WHOLE))]
    if how == 1:
        return raw[: rng.integers(len(raw))]
    if how == 2:
        place = int(rng.integers(len(raw)))
        return raw[:place] + bytes(rng.integers(0, 256, 3).astype(np.uint8)) + raw[place + 3 :]
    tree: Any = json.loads(raw)
    for _ in range(1 + int(rng.integers(4) == 0)):
        tree = change(tree, rng) if tree else tree
    return json.dumps(tree).encode()


@examples(5)
@given(st.sampled_from(PARTS), RNGS)
def test_a_report_of_an_edited_folder_is_written_or_refused(part: str, rng: Rng) -> None:
    check_edited_folder(part, rng, ["report"])


@examples(1)
@given(st.sampled_from(PARTS), RNGS)
def test_commands_use_or_refuse_an_edited_folder(part: str, rng: Rng) -> None:
    check_edited_folder(part, rng, ["evaluate"], ["plan", "--budget", "1"], ["report"])


def check_edited_folder(part: str, rng: Rng, *commands: list[str]) -> None:
    """Edit one file of a run folder and run commands on it: a refused one changes nothing, none leaves anything beside it."""
    with working_folder() as folder:
        path = copy_run(folder) / part
        path.write_bytes(edit(path.read_bytes(), rng))
        for verb, *words in commands:
            before = read_tree(folder)
            done = check_answer(run_command(verb, "run", *words), verb, *words)
            assert done or read_tree(folder) == before, verb
            assert [path.name for path in folder.iterdir()] == ["run"]


# -- policy files ---------------------------------------------------------------------------------------------------------

POLICY_ROWS = 600
QUICK_KINDS = ("linear", "additive", "boosting", "thresholds", "exploring")
SLOW_KINDS = ("stack", "sire", "banditnet")


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
    from largesse_lab.baselines import BanditNet

    training = models.Training(steps=20, batch=32)
    return BanditNet(translations=[0.0, 0.3], network=models.Network(width=3, depth=1), training=training, seed=seed)


@cache
def good_policy(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the manifest and the arrays of a good policy."""
    rng = np.random.default_rng(1)
    coupon = rng.integers(0, 3, POLICY_ROWS)
    bought = (rng.random(POLICY_ROWS) < 0.2 + 0.2 * coupon).astype(float)
    table = pa.table({**people(POLICY_ROWS, seed=2), "coupon": coupon, "bought": bought})
    log = lg.read_log(table, levels=lg.Levels(costs=[0, 1, 2.5]), level="coupon", response="bought")
    if kind == "banditnet":
        return make_banditnet(seed=1).fit(log)._state()
    if kind == "exploring":
        return (
            lg.Policy(make_model("linear").fit(log), log.levels).calibrate(log, 1.0, explore_for="evaluation")._state()
        )
    policy = lg.Policy(make_model(kind).fit(log), log.levels, price=0.1, exploration_rate=0.05, tie_probability=0.3)
    return policy._state()


def draw_policy(kind: str, rng: Rng) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the content of a file in which something is not as it should be."""
    manifest, arrays = good_policy(kind)
    for _ in range(1 + int(rng.integers(4) == 0)):
        if arrays and rng.random() < 0.35:
            arrays = change_array(arrays, rng)
        elif kind == "exploring" and manifest.get("exploration"):
            manifest = {**manifest, "exploration": change(manifest["exploration"], rng)}
        else:
            manifest = change(manifest, rng)
    return manifest, arrays


def check_policy_file(kind: str, rng: Rng) -> None:
    """Seal changed content, read it, and decide by it."""
    from largesse_lab.baselines import BanditNet, banditnet

    reader, form = (BanditNet, banditnet.BANDITNET_FORMAT) if kind == "banditnet" else (Policy, policy.POLICY_FORMAT)
    with tempfile.TemporaryDirectory() as folder:
        try:
            archive.write_archive(Path(folder) / "policy", form, *draw_policy(kind, rng))
        except (ValueError, RecursionError, TypeError):  # no file can hold this: nothing is tried
            return
        try:
            loaded = reader.load(Path(folder) / "policy")
        except PolicyFileError as error:
            check_message(str(error))
            return
    (check_network if kind == "banditnet" else check_decisions)(loaded)


def check_decisions(policy: Any) -> None:
    """Check that a policy decides."""
    for levels in (policy.decide(customers()), policy.offer(customers(), seed=1).levels):
        assert levels.shape == (40,)
        assert levels.min() >= 0
        assert levels.max() < len(policy.levels)
    given = policy.probabilities(customers())
    assert np.isfinite(given).all()
    assert given.min() >= 0
    assert np.allclose(given.sum(axis=1), 1)
    repr(policy)


def check_network(net: Any) -> None:
    """Check that a policy network decides."""
    try:
        chances = (net.probabilities_at_price(customers()), net.probabilities(customers()))
        levels = net.decide(customers())
    except (BudgetError, InputError) as error:  # too small a budget, or a feature that these customers do not have
        check_message(str(error))
        return
    assert all(np.isfinite(chance).all() and np.allclose(chance.sum(axis=1), 1) for chance in chances)
    assert levels.shape == (40,)
    assert levels.min() >= 0
    assert levels.max() < len(net.levels_known_)
    repr(net)


@pytest.mark.parametrize("kind", QUICK_KINDS)
@examples(8)
@given(rng=RNGS)
def test_a_policy_file_with_odd_content_is_refused_or_decides(kind: str, rng: Rng) -> None:
    with refusals():
        check_policy_file(kind, rng)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SLOW_KINDS)
@examples(8)
@given(rng=RNGS)
def test_a_file_of_a_slow_model_with_odd_content_is_refused_or_decides(kind: str, rng: Rng) -> None:
    with refusals():
        check_policy_file(kind, rng)
