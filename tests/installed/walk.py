"""Walk through an installed largesse without extras: `python walk.py`, in an environment that holds the wheel alone."""

from __future__ import annotations

import csv
import importlib.util
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# The package that each command or call without its extra names, with the command that installs it.
MISSING = {"serve": "largesse[serve]", "studio": "largesse[studio]", "experiment": "pip install"}
OPTIONAL = ("jax", "matplotlib", "onnx", "pandas", "psycopg", "pyspark", "sqlglot", "starlette", "uvicorn")
CODES = (0, 10, 20)  # fine, careful, no
BLANKS = {"costs = []": "costs = [0, 5, 10, 20]", 'budget = ""': "budget = 6.5", 'name = "auto"': 'name = "linear"'}


def write_shop(folder: Path, rows: int = 2000) -> None:
    """Write a simulated log of a shop that drew its coupons, and the orders after a campaign."""
    draw = random.Random(1)
    with (folder / "log.csv").open("w", newline="") as log, (folder / "orders.csv").open("w", newline="") as orders:
        rows_of_log, rows_of_orders = csv.writer(log), csv.writer(orders)
        rows_of_log.writerow(["customer_id", "age", "city", "coupon", "bought"])
        rows_of_orders.writerow(["customer_id", "bought"])
        for number in range(rows):
            age, coupon = draw.randint(18, 80), draw.choice([0, 5, 10, 20])
            chance = min(0.9, max(0.02, 0.05 + 0.012 * coupon + 0.004 * (age - 50)))
            city, bought = draw.choice(["Graz", "Wien", "Linz"]), int(draw.random() < chance)
            rows_of_log.writerow([f"c{number}", age, city, coupon, bought])
            rows_of_orders.writerow([f"c{number}", bought])


def call(folder: Path, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command of the installed largesse, print its time, and return its output and errors."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "largesse", *arguments], cwd=folder, capture_output=True, text=True)
    print(f"{time.monotonic() - began:7.1f} s  exit {done.returncode}  largesse {' '.join(arguments)}", flush=True)
    output = done.stdout + done.stderr
    if done.returncode not in codes:
        sys.exit(f"expected exit code {codes}\n{output}")
    if "Traceback" in output:
        sys.exit(f"a traceback\n{output}")
    return output


def main() -> None:
    """Check that no optional package is here, and run all commands that need none."""
    present = [name for name in OPTIONAL if importlib.util.find_spec(name)]
    if present:
        sys.exit(f"not a bare environment: {', '.join(present)}")
    import largesse

    print(f"largesse {largesse.__version__}, Python {sys.version.split()[0]}, {Path(largesse.__file__).parent}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        call(folder, "--version")
        demo = json.loads(call(folder, "demo", "--json", codes=CODES))
        assert demo["customers"] == 2825
        assert (folder / "largesse-demo" / "report.html").stat().st_size > 10_000
        write_shop(folder)
        call(folder, "init", "log.csv")
        campaign = folder / "campaign.toml"
        text = campaign.read_text(encoding="utf-8")
        for blank, filled in BLANKS.items():
            assert blank in text
            text = text.replace(blank, filled)
        campaign.write_text(text, encoding="utf-8")
        call(folder, "doctor", "campaign.toml", codes=CODES)
        call(folder, "run", "campaign.toml", "--out", "spring", codes=CODES)
        call(folder, "plan", "spring", "--explore-for", "evaluation")
        call(folder, "plan", "spring", "--out", "plan.csv")
        call(folder, "evaluate", "spring", "log.csv", codes=CODES)
        call(folder, "report", "spring")
        call(folder, "export", "spring", "--to", "sql", "--out", "policy.sql")
        call(folder, "power", "spring", "--per-day", "2000")
        call(folder, "log", "spring", "--join", "log.csv", "--join", "orders.csv", "--out", "new-log.parquet")
        call(folder, "check", "spring", "new-log.parquet", codes=CODES)
        call(folder, "ledger", "sqlite:///missing.db", codes=(2,))
        for command, hint in MISSING.items():
            assert hint in call(folder, *([command] if command == "experiment" else [command, "spring"]), codes=(2,)), (
                hint
            )


if __name__ == "__main__":
    main()
