"""How long it takes to start: `import largesse` and `largesse --help`, best of several, each in a process of its own.

    python benchmarks/start.py [repeats]

Nothing heavy may be imported before it is needed: scikit-learn alone would take longer than both together.
"""

import subprocess
import sys
import time


def seconds(*command: str, repeats: int) -> float:
    """Return the time of the fastest of several runs of Python."""
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
        print(f"{name:16} {seconds(*command, repeats=repeats):.3f} s")
