"""Start time of `import largesse` and `largesse --help`, the fastest of several processes.

    python benchmarks/start.py [repeats]

Nothing heavy may be imported before it is needed: scikit-learn alone would take longer than both together.
"""

import subprocess
import sys
import time


def measure_fastest_seconds(*command: str, repeats: int) -> float:
    """Return the seconds of the fastest of several runs of a Python command."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, *command], capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for name, command in {
        "import largesse": ("-c", "import largesse"),
        "largesse --help": ("-m", "largesse", "--help"),
    }.items():
        print(f"{name:16} {measure_fastest_seconds(*command, repeats=repeats):.3f} s")
