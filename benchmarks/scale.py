"""Large tables: `python benchmarks/scale.py run|log|plan|spark [rows]`. Sections make what they need under /tmp and remove it again.

run: `largesse run` with the default model on a log of forty mixed columns, everything included, at 2,000, 20,000, 200,000 and
1,000,000 rows or at those that are named; with what each stage takes.

log: `largesse run` on a log of ten columns that is too large: a linear model learns from 500,000 rows and is judged by all.
Memory is told of every stage. The log's own customers are planned.

plan: customers of ten columns in Parquet are planned with a fitted policy. Beside the time of the whole plan stand those of
writing the table back unchanged and of scoring alone; each is measured in a process of its own, with its peak of memory.

spark: the same plan on Spark with two workers of one core, beside that of one machine. CPU is that of the driver, Java and all
workers, by stage and without starting them; memory is the largest resident size of each kind of process. MASTER=… runs it
elsewhere.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROWS = 20_000_000
CHUNK = 1_000_000
CAMPAIGN = """
title = "Scale"
log = "log.parquet"
[columns]
level = "coupon"
response = "bought"
customer = "id"
[levels]
costs = [0, 1, 2, 3, 4]
[plan]
budget = 1.7
[model]
name = "linear"
"""


def make_shop_rows(rows: int, seed: int, first: int = 0, *, log: bool) -> Any:
    """Return a table of an id, five numbers, two texts, a flag and a date, for a log with level and response."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(5, rows))
    level = rng.integers(0, 5, rows)
    score = 0.8 * numbers[0] - 0.5 * numbers[1] - 1 + 0.25 * level * (1 + 0.3 * numbers[2])
    columns: dict[str, Any] = {"id": np.arange(first, first + rows)}
    columns |= {f"x{j}": column for j, column in enumerate(numbers)}
    columns["city"] = pa.DictionaryArray.from_arrays(rng.integers(0, 30, rows), [f"city {k}" for k in range(30)])
    columns["tier"] = pa.DictionaryArray.from_arrays(rng.integers(0, 4, rows), ["a", "b", "c", "d"])
    columns["member"] = rng.random(rows) < 0.4
    columns["since"] = np.datetime64("2020-01-01") + rng.integers(0, 1500, rows).astype("timedelta64[D]")
    if log:
        columns["coupon"] = level
        columns["bought"] = (rng.random(rows) < 1 / (1 + np.exp(-score))).astype(np.int64)
    return pa.table(columns)


def write_shop_rows(file: Path, rows: int, *, log: bool) -> None:
    """Write a large table of `make_shop_rows` part by part."""
    import pyarrow.parquet as pq

    writer = None
    for k, start in enumerate(range(0, rows, CHUNK)):
        table = make_shop_rows(min(CHUNK, rows - start), k + 1, start, log=log)
        writer = writer or pq.ParquetWriter(file, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def measure_time_and_memory(work: Callable[[], None]) -> dict[str, float]:
    """Return the seconds, CPU seconds and peak memory in GB of a function in this process."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "peak_gb": used.ru_maxrss / 2**20,
    }


def run_step_in_process(step: str, folder: Path) -> dict[str, float]:
    """Run one benchmark step in a new process, and return its time and memory."""
    done = subprocess.run([sys.executable, __file__, step, str(folder)], check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


# -- run ------------------------------------------------------------------------------------------------------------------


def make_mixed_rows(rows: int, seed: int = 0) -> Any:
    """Return a log of forty mixed columns with missing values."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((rows, 40), dtype=np.float32)
    columns: dict[str, Any] = {f"number {j}": Z[:, j].astype(np.float64) for j in range(20)}
    columns |= {f"skewed {j}": np.exp(Z[:, j].astype(np.float64)).round(2) for j in range(20, 24)}
    for j in range(24, 28):
        columns[f"gaps {j}"] = pa.array(Z[:, j].astype(np.float64), mask=rng.random(rows) < 0.1)
    columns |= {f"count {j}": rng.poisson(np.exp(0.5 * Z[:, j])) for j in range(28, 32)}
    for j, many in zip(range(32, 37), (2, 3, 5, 8, 12), strict=True):
        code = np.clip((Z[:, j] + 3) / 6 * many, 0, many - 1).astype(np.int32)
        columns[f"text {j}"] = pa.DictionaryArray.from_arrays(code, [f"word {k}" for k in range(many)])
    place = rng.integers(0, 800, rows).astype(np.int32)
    columns["postcode"] = pa.DictionaryArray.from_arrays(place, [f"zip {k:04d}" for k in range(800)])
    columns["day"] = np.datetime64("2026-01-01") + rng.integers(0, 300, rows).astype("timedelta64[D]")
    columns["flag"] = rng.random(rows) < 0.3
    odds = np.exp(0.3 * Z[:, :1] * np.arange(5))
    level = (np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)[:, :4] < rng.random((rows, 1))).sum(axis=1)
    base = -2 + 0.7 * Z[:, 0] + 0.5 * np.abs(Z[:, 1]) - 0.4 * Z[:, 2] * (Z[:, 3] > 0) + 0.3 * np.sin(place)
    score = base + 0.9 * np.exp(0.5 * Z[:, 4]) * (1 - np.exp(-level / 1.5))
    columns["coupon"], columns["bought"] = level, (rng.random(rows) < 1 / (1 + np.exp(-score))).astype(np.int64)
    return pa.table(columns)


def run_mixed_log(folder: Path) -> None:
    """Run a campaign as `largesse run` does, and print the time of every stage."""
    from largesse.campaign import read_campaign
    from largesse.pipeline import run

    last: list[Any] = ["starting", time.perf_counter(), time.process_time()]

    def say(stage: str, _done: float) -> None:
        if stage != last[0]:
            now, cpu = time.perf_counter(), time.process_time()
            print(f"    {last[0]:24} {now - last[1]:7.1f} s {cpu - last[2]:7.1f} s of CPU", file=sys.stderr)
            last[:] = [stage, now, cpu]

    run(read_campaign(folder), folder / "run", say)
    say("end", 1.0)


def measure_run_section(rows: int | None) -> None:
    import pyarrow.parquet as pq

    for count in (2_000, 20_000, 200_000, 1_000_000) if rows is None else (rows,):
        folder = Path(tempfile.mkdtemp(prefix="largesse-scale-"))
        try:
            pq.write_table(make_mixed_rows(count), folder / "log.parquet")
            lines = CAMPAIGN.splitlines()
            lines = [line for line in lines if "customer" not in line and "linear" not in line and line != "[model]"]
            (folder / "campaign.toml").write_text("\n".join(lines), encoding="utf-8")
            found = run_step_in_process("run-all", folder)
            line = f"{found['seconds']:7.1f} s  {found['cpu']:7.1f} s of CPU  peak {found['peak_gb']:.2f} GB"
            print(f"{count:9,} rows × 40: {line}", flush=True)
        finally:
            shutil.rmtree(folder)


# -- log ------------------------------------------------------------------------------------------------------------------


def run_large_log(folder: Path) -> None:
    """Run a campaign on a large log, and print the time and peak memory of every stage."""
    from largesse.campaign import read_campaign
    from largesse.pipeline import run

    last: list[Any] = ["starting", time.perf_counter()]

    def say(stage: str, _done: float) -> None:
        if stage != last[0]:
            now, peak = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(f"    {last[0]:40} {now - last[1]:7.1f} s   peak {peak:.2f} GB", file=sys.stderr)
            last[:] = [stage, now]

    run(read_campaign(folder), folder / "run", say)
    say("end", 1.0)


def measure_log_section(rows: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="largesse-scale-"))
    try:
        write_shop_rows(folder / "log.parquet", rows, log=True)
        text = CAMPAIGN + "\n[data]\nmost_rows = 500000\n"
        (folder / "campaign.toml").write_text(text, encoding="utf-8")
        size = (folder / "log.parquet").stat().st_size
        print(f"a log of {rows:,} rows, {size / 1e9:.2f} GB of Parquet", flush=True)
        found = run_step_in_process("run-large", folder)
        line = f"{found['seconds']:.1f} s  {found['cpu']:.1f} s of CPU  peak {found['peak_gb']:.2f} GB"
        print(f"{line}: {found['peak_gb'] * 2**30 / rows:.0f} bytes a row")
    finally:
        shutil.rmtree(folder)


# -- plan -----------------------------------------------------------------------------------------------------------------


def write_customer_table(folder: Path, rows: int) -> None:
    import pyarrow.parquet as pq

    from largesse.campaign import read_campaign
    from largesse.pipeline import fit

    pq.write_table(make_shop_rows(20_000, 0, log=True), folder / "log.parquet")
    (folder / "campaign.toml").write_text(CAMPAIGN, encoding="utf-8")
    write_shop_rows(folder / "customers.parquet", rows, log=False)
    fit(read_campaign(folder), folder / "run")


def rewrite_table(folder: Path) -> None:
    """Read the customer table and write it unchanged, batch by batch, as a lower bound of a plan's time."""
    import pyarrow.parquet as pq

    with (
        pq.ParquetFile(folder / "customers.parquet") as opened,
        pq.ParquetWriter(folder / "back.parquet", opened.schema_arrow) as writer,
    ):
        for group in range(opened.num_row_groups):
            writer.write_table(opened.read_row_group(group))


def score_customers(folder: Path) -> None:
    """Read the customer table and score every customer without writing."""
    from largesse.data import open_batches
    from largesse.policy import Policy
    from largesse.records import Customers
    from largesse.response import predict_curves_and_costs

    policy = Policy.load(folder / "run" / "policy.largesse")
    for table in open_batches(str(folder / "customers.parquet"), plain=["id"]).read():
        predict_curves_and_costs(policy.model, Customers(table.drop_columns("id")))


def plan_customers(folder: Path) -> None:
    """Plan for the customer table as `largesse plan` does."""
    from largesse.pipeline import plan

    last = [time.perf_counter(), "start"]

    def say(stage: str, _done: float) -> None:
        if stage != last[1]:
            now = time.perf_counter()
            print(f"{last[1]}: {now - last[0]:.1f} s", file=sys.stderr)
            last[:] = [now, stage]

    plan(folder / "run", str(folder / "customers.parquet"), progress=say)
    say("end", 1.0)


# -- spark ----------------------------------------------------------------------------------------------------------------


def measure_processes() -> tuple[dict[str, float], dict[str, float]]:
    """Return the CPU seconds and peak memory in GB of this process and its children, by kind."""
    found = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                name, _, rest = (place / "stat").read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            part = rest.split()
            found[int(place.name)] = (
                int(part[1]),
                name,
                sum(map(int, part[11:15])) / 100,
                int(part[21]) * 4096 / 2**30,
            )
    cpu, memory, waiting = dict.fromkeys(("driver", "java", "python"), 0.0), {}, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        waiting += [other for other, (parent, *_) in found.items() if parent == pid]
        _, name, seconds, size = found[pid]
        kind = "driver" if pid == os.getpid() else "java" if name == "java" else "python"
        cpu[kind] += seconds
        memory[kind] = max(memory.get(kind, 0.0), size)
    return cpu, memory


def plan_on_spark(folder: Path) -> None:
    """Plan as `largesse plan --engine spark` does, and print the time of every stage."""
    from largesse.pipeline import open_engine, plan

    peak: dict[str, float] = {}
    last: list[Any] = ["", 0.0, {}]

    def say(stage: str, _done: float) -> None:
        cpu, memory = measure_processes()
        peak.update({kind: max(peak.get(kind, 0.0), size) for kind, size in memory.items()})
        if stage != last[0]:
            now = time.perf_counter()
            if last[0]:
                spent = ", ".join(f"{kind} {cpu[kind] - last[2][kind]:.1f}" for kind in cpu)
                total = sum(cpu.values()) - sum(last[2].values())
                print(f"{last[0]:20} {now - last[1]:7.1f} s {total:7.1f} s of CPU ({spent})", file=sys.stderr)
            last[:] = [stage, now, cpu]

    sizes = {"customers": (folder / "customers.parquet").stat().st_size}
    with open_engine("spark", os.environ.get("MASTER", "local[2]")) as engine:
        engine.session.range(0, 2, 1, 2).mapInArrow(read_every_batch, "id long").count()  # workers are there
        start, before = time.perf_counter(), sum(measure_processes()[0].values())
        plan(folder / "run", str(folder / "customers.parquet"), progress=say, engine=engine)
        say("end", 1.0)
        total, seconds = sum(measure_processes()[0].values()) - before, time.perf_counter() - start
    sizes["plan"] = (folder / "run" / "plan.parquet").stat().st_size
    print("GB on disk: " + ", ".join(f"{name} {size / 1e9:.2f}" for name, size in sizes.items()), file=sys.stderr)
    largest = ", ".join(f"{kind} {size:.2f}" for kind, size in peak.items())
    print(f"{'spark in all':20} {seconds:7.1f} s {total:7.1f} s of CPU; GB: {largest}", file=sys.stderr)


def read_every_batch(batches: Any) -> Any:
    import largesse.pipeline  # noqa: F401

    yield from batches


def measure_spark_section(rows: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="largesse-scale-"))
    try:
        write_customer_table(folder, rows)
        local = run_step_in_process("plan-all", folder)
        print(f"{rows:,} customers on one machine: {local['seconds']:.1f} s, {local['cpu']:.1f} s of CPU", flush=True)
        subprocess.run([sys.executable, __file__, "spark-all", str(folder)], check=True)
    finally:
        shutil.rmtree(folder)


STEPS: dict[str, Callable[[Path], None]] = {
    "run-all": run_mixed_log,
    "run-large": run_large_log,
    "write-back": rewrite_table,
    "score": score_customers,
    "plan-all": plan_customers,
    "spark-all": plan_on_spark,
}


def measure_plan_section(rows: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="largesse-scale-"))
    try:
        write_customer_table(folder, rows)
        size = (folder / "customers.parquet").stat().st_size
        print(f"{rows:,} customers, {size / 1e9:.2f} GB of Parquet")
        found = {step: run_step_in_process(step, folder) for step in ("write-back", "score", "plan-all")}
        for step, one in found.items():
            print(f"{step:10} {one['seconds']:7.1f} s  {one['cpu']:7.1f} s of CPU  peak {one['peak_gb']:.2f} GB")
        bar = 3 * found["write-back"]["seconds"] + found["score"]["seconds"]
        print(f"3 × writing back + scoring: {bar:.1f} s; the plan takes {found['plan-all']['seconds'] / bar:.2f} of it")
    finally:
        shutil.rmtree(folder)


SECTIONS: dict[str, Callable[[int], None]] = {
    "log": measure_log_section,
    "plan": measure_plan_section,
    "spark": measure_spark_section,
}


def main() -> None:
    name, *more = sys.argv[1:] or ["plan"]
    if name in STEPS:
        print(json.dumps(measure_time_and_memory(lambda: STEPS[name](Path(more[0])))))
    else:
        rows = int(more[0]) if more else None
        measure_run_section(rows) if name == "run" else SECTIONS[name](rows or ROWS)


if __name__ == "__main__":
    main()
