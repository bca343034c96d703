"""Run folders whose JSON was edited: `report`, `evaluate` and `plan` work, or say what is wrong; the folder stays whole."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from commands import call, judge
from harness import Outcome, observe
from mutations import change
from shops import copy_run

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
    b'{"format": 2}',
    b"9" * 9999,
)


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
        folder = copy_run(Path(name))
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
