"""Time and memory of allocation compared with simpler implementations and other packages, as medians.

    python benchmarks/allocate.py [largest n, default 1e6] [repeats, default 7]

Compared, up to 1e6: NumPy bisection (60 steps of argmax), a full sort of all steps, `maq` where it can be imported, HiGHS (once) up
to 1e4 customers, and a plain copy of the curve matrix as the floor. Curves are single precision, costs common or each
customer's own. Then the bars: frontier, ties, exact, constraints, memory, each beside what it is measured against.
The first call in a process, which compiles or loads what was compiled, is timed apart.
"""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from largesse.allocation.constraints.constraint_types import Constraints
from largesse.allocation.plan_and_frontier import allocate, frontier

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)


def make_allocation_task(n: int, K: int, own: bool, seed: int = 0) -> tuple[np.ndarray, np.ndarray, float]:
    """Return random rising curves, costs, and a budget of about half the cost of the best plan."""
    rng = np.random.default_rng(seed)
    curves = np.cumsum(rng.random((n, K), dtype=np.float32), axis=1)
    if own:
        costs = np.cumsum(rng.random((n, K), dtype=np.float32), axis=1)
        costs -= costs[:, :1]
        return curves, costs, 0.25 * K
    return curves, np.arange(K, dtype=np.float32), 0.3 * K


def allocate_by_bisection(curves: np.ndarray, costs: np.ndarray, budget: float, steps: int = 60) -> np.ndarray:
    """Allocate by the paper's Proposition 1 with a bisection in NumPy."""
    rows, low, high = np.arange(len(curves)), 0.0, 1e3
    for _ in range(steps):
        price = (low + high) / 2
        levels = (curves - np.float32(price) * costs).argmax(axis=1)
        spend = (costs[levels] if costs.ndim == 1 else costs[rows, levels]).sum(dtype=np.float64)
        low, high = (price, high) if spend > budget * len(curves) else (low, price)
    return levels


def find_price_by_full_sort(curves: np.ndarray, costs: np.ndarray, budget: float) -> float:
    """Return the price of a budget after sorting every hull step of every customer."""
    return frontier(curves, costs).price_at(budget)


def solve_by_highs(curves: np.ndarray, costs: np.ndarray, budget: float) -> float:
    from scipy.optimize import linprog
    from scipy.sparse import eye, kron

    n, K = curves.shape
    paid = np.broadcast_to(costs, curves.shape).ravel()
    found = linprog(
        -curves.ravel(), A_ub=paid[None, :], b_ub=[budget * n], A_eq=kron(eye(n), np.ones((1, K))).tocsr(),
        b_eq=np.ones(n), bounds=(0, 1), method="highs",
    )  # fmt: skip
    return -float(found.fun) / n


def fit_maq_path(curves: np.ndarray, costs: np.ndarray, budget: float) -> Any:
    """Fit the path of `maq`, which takes gains over a free first level and costs above zero."""
    from maq import MAQ

    gains = (curves - curves[:, :1])[:, 1:].astype(np.float64)
    paid = np.broadcast_to(costs, curves.shape)[:, 1:].astype(np.float64)
    return MAQ(budget=budget, n_bootstrap=0).fit(gains, np.ascontiguousarray(paid), gains)


def measure_median_seconds(work: Callable[[], Any], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times)


def measure_alternating_seconds(works: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the median seconds of several functions that run in alternation."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - start)
    return {name: median(taken) for name, taken in times.items()}


def is_importable(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def print_time_table(largest: int, repeats: int) -> dict[tuple[int, int, bool], dict[str, float]]:
    found = {}
    print(
        f"{'n':>10} {'K':>3} {'costs':>7} {'copy':>9} {'allocate':>9} {'bisect':>9} {'sort':>9} {'ratio':>6} {'x copy':>6}"
    )
    for n in (size for size in SIZES if size <= largest):
        for K in (5, 20):
            for own in (False, True):
                if n * K * (2 if own else 1) > 2e8:
                    continue  # would not fit beside the others
                curves, costs, budget = make_allocation_task(n, K, own)
                works: dict[str, Callable[[], Any]] = {
                    "copy": lambda a=curves: a.copy(),
                    "allocate": lambda a=curves, c=costs, b=budget: allocate(a, c, b),
                }
                if n <= 1_000_000:
                    works["bisection"] = lambda a=curves, c=costs, b=budget: allocate_by_bisection(a, c, b)
                    works["sort"] = lambda a=curves, c=costs, b=budget: find_price_by_full_sort(a, c, b)
                    if is_importable("maq"):
                        works["maq"] = lambda a=curves, c=costs, b=budget: fit_maq_path(a, c, b)
                took = measure_alternating_seconds(works, repeats if n <= 1_000_000 else max(repeats // 2, 1))
                if n * K <= 50_000:
                    took["HiGHS"] = measure_median_seconds(
                        lambda a=curves, c=costs, b=budget: solve_by_highs(a, c, b), 1
                    )
                found[n, K, own] = took
                more = "".join(f"  {name} {took[name] * 1e3:.0f} ms" for name in ("maq", "HiGHS") if name in took)
                print(
                    f"{n:>10,} {K:>3} {'own' if own else 'common':>7} "
                    + " ".join(
                        f"{took.get(name, math.nan) * 1e3:>8.1f}m" for name in ("copy", "allocate", "bisection", "sort")
                    )
                    + f" {took.get('bisection', math.nan) / took['allocate']:>5.1f}x {took['allocate'] / took['copy']:>5.1f}{more}",
                    flush=True,
                )
    return found


def print_limits(repeats: int) -> None:
    n, K = 1_000_000, 5
    curves, costs, budget = make_allocation_task(n, K, False)
    took = measure_alternating_seconds(
        {
            "bisection": lambda: allocate_by_bisection(curves, costs, budget),
            "frontier": lambda: frontier(curves, costs),
        },
        min(repeats, 5),
    )
    print(f"frontier 1e6 x 5: {took['frontier']:.3f} s, {took['frontier'] / took['bisection']:.2f} of one bisection")

    rng = np.random.default_rng(1)
    few = np.cumsum(rng.random((10, K), dtype=np.float32), axis=1)[rng.integers(0, 10, n)]
    plan = allocate(few, costs, budget)
    cheapest = float(few[:, 0].mean(dtype=np.float64))
    print(
        f"ties: spends {plan.spend / budget:.8f} of the budget, may lose {plan.gap / (plan.value - cheapest):.2e} of the gain"
    )

    for seed in range(5):
        rng = np.random.default_rng(seed)
        rough, paid = rng.random((n, K), dtype=np.float32), np.append(0.0, np.sort(rng.random(K - 1) * 5))
        half = float(paid.mean()) / 2
        took = measure_alternating_seconds(
            {
                "default": lambda a=rough, c=paid, b=half: allocate(a, c, b),
                "exact": lambda a=rough, c=paid, b=half: allocate(a, c, b, exact=True),
            },
            repeats,
        )
        proven = allocate(rough, paid, half, exact=True)
        print(
            f"exact, seed {seed}: {took['exact'] * 1e3:.0f} ms, {took['exact'] / took['default']:.1f} x the default; "
            f"gap {allocate(rough, paid, half).gap * n:.2e} -> {proven.gap * n:.2e} in total"
        )

    for seed in range(3):
        rng = np.random.default_rng(seed)
        segment, total = rng.integers(0, 20, n), 1.2 * n
        budgets = {s: float(total / 20 * (0.7 + 0.6 * rng.random())) for s in range(20)}
        rules = Constraints(caps={4: 100_000, 3: 150_000}, segment=segment, segment_budgets=budgets)
        took = measure_alternating_seconds(
            {
                "default": lambda b=total: allocate(curves, costs, total=b),
                "rules": lambda b=total, r=rules: allocate(curves, costs, total=b, constraints=r),
            },
            repeats,
        )
        plan = allocate(curves, costs, total=total, constraints=rules)
        print(
            f"constraints, seed {seed}: {took['rules'] * 1e3:.0f} ms, {took['rules'] / took['default']:.1f} x the default; "
            f"gap {plan.gap / plan.value:.2e} of the value"
        )


PROBE = """
import json, resource, sys, time
sys.path.insert(0, "benchmarks")
from allocate import allocate, make_allocation_task
n, K, own = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "own"
small = make_allocation_task(40_000, K, own)
start = time.perf_counter()
allocate(*small)
first = time.perf_counter() - start
allocate(*small)
work = make_allocation_task(n, K, own)
# What making the task took is given back; the peak from here on is the plan's.
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
def now(word):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(word)) * 1024
before = now("VmRSS")
plan = allocate(*work)
print(json.dumps({"first_s": round(first, 2), "extra": (now("VmHWM") - before) / (n * K * 4)}))
"""


def print_memory() -> None:
    for n, K, own in ((1_000_000, 5, False), (1_000_000, 5, True), (1_000_000, 20, False)):
        args = [sys.executable, "-c", PROBE, str(n), str(K), "own" if own else "common"]
        # Freed memory goes back to the system at once, so that the peak is not hidden in what making the task left.
        room = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
        found = json.loads(subprocess.run(args, capture_output=True, text=True, check=True, env=room).stdout)
        print(
            f"memory {n:,} x {K} {'own' if own else 'common'}: {found['extra']:.2f} of the curve matrix, the plan included; "
            f"first call in a process {found['first_s']} s"
        )


def main() -> None:
    largest = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    for own in (False, True):
        for K in (5, 20):
            small = make_allocation_task(40_000, K, own)
            start = time.perf_counter()
            allocate(*small)
            print(f"first call, K={K}, {'own' if own else 'common'} costs: {time.perf_counter() - start:.2f} s")
    found = print_time_table(largest, repeats)
    for K in (5, 20):
        if (10_000_000, K, False) in found:
            each = found[10_000_000, K, False]["allocate"] / found[1_000_000, K, False]["allocate"] / 10
            print(f"time per customer at 1e7, K={K}: {each:.2f} of that at 1e6")
    print_limits(repeats)
    print_memory()


if __name__ == "__main__":
    main()
