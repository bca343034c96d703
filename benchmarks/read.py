"""Time and memory of reading and checking a mixed log of a million rows and thirty columns.

    python benchmarks/read.py [rows]

Prints seconds and peak memory of `read_log` beside a plain `pyarrow.parquet.read_table` of the same file, each in a
process of its own.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def make_mixed_log(rows: int, seed: int = 0) -> pa.Table:
    """Return a log with 10 numbers, 4 whole numbers, 3 booleans, 7 texts (up to 5,000 values), 2 dates, gaps in most."""
    rng = np.random.default_rng(seed)

    def gaps(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=rng.random(rows) < 0.05)

    columns: dict[str, pa.Array] = {f"number{j}": gaps(rng.normal(size=rows)) for j in range(10)}
    columns |= {f"whole{j}": gaps(rng.integers(0, 1000, rows)) for j in range(4)}
    columns |= {f"flag{j}": gaps(rng.random(rows) < 0.3) for j in range(3)}
    for j, distinct in enumerate((3, 10, 30, 100, 1000, 3000, 5000)):
        words = np.array([f"value {i:05d} of column {j}" for i in range(distinct)])
        columns[f"text{j}"] = gaps(words[rng.integers(0, distinct, rows)])
    for j in range(2):
        columns[f"date{j}"] = gaps(np.datetime64("2024-01-01") + rng.integers(0, 700, rows).astype("timedelta64[D]"))
    level = rng.integers(0, 5, rows)
    columns["customer"] = pa.array([f"c{i:08d}" for i in range(rows)])
    columns["coupon"] = pa.array(np.array([0, 5, 10, 20, 40])[level])
    columns["propensity"] = pa.array(np.full(rows, 0.2))
    columns["bought"] = pa.array((rng.random(rows) < 0.1 + 0.05 * level).astype(np.int8))
    return pa.table(columns)


READ = {
    "read_log": (
        "import largesse as lg; log = lg.read_log(path, level='coupon', response='bought', propensity='propensity', "
        "customer='customer', levels=lg.Levels(costs=[0, 5, 10, 20, 40]))"
    ),
    "pyarrow": "import pyarrow.parquet as pq; pq.read_table(path)",
    "encode": (
        "import largesse as lg; from largesse.data import Encoder; log = lg.read_log(path, level='coupon', response='bought', "
        "customer='customer', levels=lg.Levels(costs=[0, 5, 10, 20, 40])); Encoder().fit_transform(log.features, log.response)"
    ),
}
PROBE = """
import json, resource, sys, time
path = sys.argv[1]
start = time.perf_counter()
{work}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({{"seconds": round(time.perf_counter() - start, 2), "peak_mb": round(peak)}}))
"""


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        table = make_mixed_log(rows)
        pq.write_table(table, path)
        print(f"{table.num_rows:,} rows x {table.num_columns} columns, {path.stat().st_size / 2**20:.0f} MiB")
        for name, work in READ.items():
            done = subprocess.run(
                [sys.executable, "-c", PROBE.format(work=work), str(path)], capture_output=True, text=True, check=True
            )
            print(name, json.loads(done.stdout))


if __name__ == "__main__":
    main()
