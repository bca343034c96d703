"""Campaign files in which something is not as it should be: each is read, or refused in words with exit code 2.

Every seed is read; every twentieth is run, too. A run that is refused leaves nothing behind.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from commands import call, judge, list_files
from harness import FINE, Outcome, observe
from mutations import change
from shops import write_shop

RUN_EVERY = 20
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
    f"x = {'[' * 2000}{']' * 2000}",
    f"title = {'{a=' * 900}1{'}' * 900}",
    "budget = 1" + "0" * 5000,
    f"title = 0x{'f' * 6000}",
    'log = "a\\u0000b.csv"',
    f'log = "{"a/" * 3000}"',
    f'out = "{"a" * 300}"',
    "[[levels]]",
    "[plan]\n[plan]",
    '"" = 1',
    "title = 1979-05-27",
    "\x00",
    "log = '''\n'''",
)


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


@cache
def home() -> tempfile.TemporaryDirectory[str]:
    """Return the folder with the log."""
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    write_shop(Path(folder.name))
    return folder


def make(seed: int) -> bytes:
    """Return a campaign file with one to three changes."""
    rng = np.random.default_rng([seed, 13])
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


def try_campaign(seed: int) -> Outcome:
    """Read the file of a seed, and run it if it is its turn."""
    from largesse.campaign import read_campaign

    folder = Path(home().name)
    path = folder / "campaign.toml"
    path.write_bytes(make(seed))
    if seed % RUN_EVERY:
        campaign = read_campaign(path)
        tomllib.loads(campaign.text)
        return FINE
    before = list_files(folder)
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "run"
        answer = call("run", path, "--out", out)
        outcome = judge(answer, "run")
        left = list_files(folder) != before or (answer.code != 0 and any(Path(name).iterdir()))
        return Outcome("half-written", f"{answer.shown[:200]}") if left else outcome


def attack(seed: int) -> Outcome:
    """Try the campaign file of a seed."""
    return observe(lambda: try_campaign(seed))


def run(seeds: Iterable[int]) -> Counter[str]:
    """Return how often each outcome came of these seeds."""
    return Counter(attack(seed).kind for seed in seeds)
