"""Same seed, same bytes: run folders made by processes of one and of two threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from commands import own_folder
from harness import FINE, Outcome
from shops import CAMPAIGN, shop_table, write_shop

MODELS = ("linear", "additive", "boosting")


def attack(seed: int) -> Outcome:
    """Run one campaign twice and compare the folders."""
    rng = np.random.default_rng(seed)
    model = MODELS[seed % len(MODELS)]
    with own_folder() as folder:
        write_shop(folder)
        pq.write_table(shop_table(int(rng.integers(60, 400)), seed), folder / "log.parquet")
        text = CAMPAIGN.replace('"linear"', f'"{model}"\nseed = {seed}')
        (folder / "campaign.toml").write_text(text, encoding="utf-8")
        for threads in ("1", "2"):
            if said := run_with(threads, folder):
                return Outcome("traceback", f"{model}: {said}")
            (folder / "run").rename(folder / threads)
        one, two = (read_folder(folder / threads) for threads in ("1", "2"))
    if differ := sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name)):
        return Outcome("wrong", f"{model}: {', '.join(differ)} differ between one thread and two")
    return FINE


def run_with(threads: str, folder: Path) -> str:
    """Run the campaign with so many threads; return what was said if it failed."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS")
    env = {**os.environ, **dict.fromkeys(names, threads)}
    command = [sys.executable, "-m", "largesse.cli", "run", "campaign.toml", "--out", "run"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr[-300:]


def read_folder(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
