"""Time until the studio's first page, and time and memory of uploading a large table.

    python benchmarks/studio.py [megabytes, default 200] [repeats, default 7]

The first page is timed from the start of the command until a browser would have it; CPU seconds tell how much of it a busy
machine took. The table is a CSV that is sent over HTTP while another client keeps asking: the longest of its answers is shown.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

COMMAND = [sys.executable, "-c", "from largesse.cli import main; main()", "studio", "--no-browser", "--port", "0"]


@contextmanager
def open_studio_client(folder: Path) -> Iterator[tuple[int, httpx.Client]]:
    """Run a studio, and yield its process id and an authenticated HTTP client."""
    with (
        subprocess.Popen([*COMMAND, "--folder", str(folder)], stdout=subprocess.PIPE, text=True) as process,
        httpx.Client(headers={"X-Largesse": "studio"}, timeout=600, follow_redirects=True) as client,
    ):
        found = re.search(r"(http://\S+)/\?token=\S+", process.stdout.readline() if process.stdout else "")
        assert found is not None
        client.base_url = httpx.URL(found[1])
        assert client.get(found[0]).status_code == 200
        yield process.pid, client
        process.terminate()


def time_first_page(repeats: int) -> None:
    wall, cpu = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            with open_studio_client(Path(folder)) as (pid, _):
                wall.append(time.perf_counter() - start)
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                cpu.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
    print(f"first page: {median(wall):.2f} s (least {min(wall):.2f}), {median(cpu):.2f} s of CPU, {repeats} starts")


def write_large_table(path: Path, megabytes: int) -> None:
    rng, n = np.random.default_rng(0), 14_400 * megabytes
    table = {"customer_id": np.arange(n), "age": rng.integers(18, 80, n), "income": np.round(rng.gamma(2, 15000, n), 2)}
    table |= {"city": rng.choice(["Graz", "Wien", "Linz", "Salzburg"], n), "visits": rng.poisson(3, n)}
    table |= {f"score_{k}": np.round(rng.normal(size=n), 6) for k in "abc"}
    table |= {"segment": rng.choice(["alpha", "beta", "gamma"], n), "coupon": rng.choice([0, 5, 10, 20], n)}
    csv.write_csv(pa.table({**table, "bought": rng.integers(0, 2, n)}), path)


def read_peak_memory(pid: int | str) -> float:
    """Return the peak memory of a process in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1e3 if found else float("nan")


def time_upload(megabytes: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        path, folder = Path(place) / "log.csv", Path(place) / "studio"
        folder.mkdir()
        write_large_table(path, megabytes)
        with open_studio_client(folder) as (pid, client):
            sent, over, delays = [0.0], threading.Event(), []

            def pieces() -> Iterator[bytes]:
                with path.open("rb") as file:
                    while piece := file.read(1 << 18):
                        yield piece
                sent[0] = time.perf_counter()

            def poke() -> None:
                with httpx.Client(base_url=client.base_url, cookies=dict(client.cookies), timeout=60) as other:
                    while not over.wait(0.2):
                        asked = time.perf_counter()
                        other.get("/api/state")
                        delays.append(time.perf_counter() - asked)

            thread = threading.Thread(target=poke)
            thread.start()
            before, start = read_peak_memory(pid), time.perf_counter()
            rows = client.post("/api/tables?name=log.csv", content=pieces()).json()["rows"]
            end = time.perf_counter()
            over.set()
            thread.join()
            print(f"{path.stat().st_size / 1e6:,.0f} MB, {rows:,} rows: sent in {sent[0] - start:.1f} s, ", end="")
            print(
                f"looked at in {end - sent[0]:.1f} s; memory of the server {before:.0f} → {read_peak_memory(pid):.0f} MB; ",
                end="",
            )
            print(f"others waited {max(delays):.2f} s at most, {median(delays):.3f} s in the middle")


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    size, repeats = [*given, *(200, 7)[len(given) :]]
    time_first_page(repeats)
    time_upload(size)
