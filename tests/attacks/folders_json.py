"""Run folders whose JSON was edited: `report`, `evaluate` and `plan` work, or say what is wrong; the folder stays whole."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from commands import call, judge
from harness import Outcome, observe
from mutations import change
from policies import people

ROWS = 240
PARTS = ("fit.json", "plan.json", "evaluation.json")
WHOLE = (
    b"",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"null",
    b"[]",
    b"{}",
    b"\xff\xfe",
    b"NaN",
    b'{"format": 1}',
    b"9" * 9999,
)


CAMPAIGN = """
log = "log.parquet"
[columns]
level = "coupon"
response = "bought"
customer = "id"
[levels]
costs = [0, 1, 2.5]
[plan]
budget = 1.0
[model]
name = "linear"
"""


def write_campaign(folder: Path) -> Path:
    """Write a small log and the campaign file that names it."""
    rng = np.random.default_rng(3)
    coupon = rng.integers(0, 3, ROWS)
    bought = rng.random(ROWS) < 0.2 + 0.2 * coupon
    features = {name: column for name, column in people(ROWS, seed=4).items() if name in ("age", "city")}
    ids = [f"c{k}" for k in range(ROWS)]
    pq.write_table(pa.table({"id": ids, **features, "coupon": coupon, "bought": bought}), folder / "log.parquet")
    (folder / "campaign.toml").write_text(CAMPAIGN)
    return folder / "campaign.toml"


@cache
def good_folder() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """Return the run folder of a small campaign, and what removes it at the end."""
    home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    answer = call("run", write_campaign(Path(home.name)), "--out", Path(home.name) / "run")
    assert answer.code == 0, answer.shown
    return home, Path(home.name) / "run"


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


def try_folder(seed: int, commands: tuple[tuple[str, ...], ...] = (("report",),)) -> Outcome:
    """Edit one file of a copy of the run folder and run commands on it."""
    rng = np.random.default_rng([seed, 11])
    with tempfile.TemporaryDirectory() as name:
        folder = shutil.copytree(good_folder()[1], Path(name) / "run")
        path = folder / PARTS[rng.integers(3)]
        path.write_bytes(edit(path.read_bytes(), rng))
        outcome = Outcome("fine")
        for words in commands:
            before = {file.name: file.read_bytes() for file in folder.iterdir()}
            answer = call(words[0], folder, *words[1:])
            outcome = judge(answer, *words)
            after = {file.name: file.read_bytes() for file in folder.iterdir()}
            if not outcome.good or (answer.code and before != after) or len(list(Path(name).iterdir())) != 1:
                return outcome if not outcome.good else Outcome("half-written", f"{words}: {sorted(after)}")
        return outcome


def attack(seed: int) -> Outcome:
    """Try the edit of a seed; some are also given to `evaluate` and `plan`, which take longer."""
    slow = (("evaluate",), ("plan", "--budget", "1"), ("report",)) if seed % 25 == 0 else ()
    return observe(lambda: try_folder(seed, (("report",), *slow)))


def run(seeds: Iterable[int]) -> Counter[str]:
    """Return how often each outcome came of these seeds."""
    return Counter(attack(seed).kind for seed in seeds)
