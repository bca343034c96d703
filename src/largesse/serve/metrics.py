"""What a service counts, as Prometheus reads it."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping

BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)  # seconds


class Metrics:
    """Requests, decisions and how long they took, of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: Counter[tuple[str, int]] = Counter()
        self._decisions: Counter[str] = Counter()
        self._slots = [0] * (len(BOUNDS) + 1)
        self._seconds = 0.0

    def count_answer(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        with self._lock:
            self._answers[path, status] += 1
            if path == "/v1/decide":
                self._slots[bisect_left(BOUNDS, seconds)] += 1
                self._seconds += seconds

    def count_decisions(self, levels: Iterable[str]) -> None:
        """Count customers by the level that they got."""
        with self._lock:
            self._decisions.update(levels)

    def write(self, gauges: Mapping[str, float], version: str) -> str:
        """Return everything as text, with gauges of the moment."""
        with self._lock:
            lines = _head("largesse_requests_total", "counter", "Requests by path and status.")
            lines += [
                _line("largesse_requests_total", {"path": path, "status": str(status)}, many)
                for (path, status), many in sorted(self._answers.items())
            ]
            lines += _head("largesse_decisions_total", "counter", "Customers by the level that they got.")
            lines += [
                _line("largesse_decisions_total", {"level": name}, many)
                for name, many in sorted(self._decisions.items())
            ]
            lines += self._histogram()
        lines += _head("largesse_policy_info", "gauge", "The version of the policy that decides.")
        lines.append(_line("largesse_policy_info", {"version": version}, 1))
        for name, value in gauges.items():
            lines += [*_head(f"largesse_{name}", "gauge", HELP[name]), _line(f"largesse_{name}", {}, value)]
        return "\n".join(lines) + "\n"

    def _histogram(self) -> list[str]:
        name, total = "largesse_decide_seconds", 0
        lines = _head(name, "histogram", "Seconds from the request to the answer of /v1/decide.")
        for bound, many in zip((*map(str, BOUNDS), "+Inf"), self._slots, strict=True):
            total += many
            lines.append(_line(f"{name}_bucket", {"le": bound}, total))
        return [*lines, _line(f"{name}_sum", {}, self._seconds), _line(f"{name}_count", {}, total)]


HELP = {
    "policy_reloads": "How often the policy was loaded again.",
    "policy_outdated": "1 while a newer policy could not be loaded.",
    "price": "The price of one more unit of budget: of the policy, or that a ledger last decided at.",
    "ledger_up": "1 while the ledger answers; 0: the budget is not known.",
    "budget_total": "The budget of the ledger.",
    "budget_spent": "What is spent of it.",
    "budget_promised": "What is promised and not yet redeemed.",
    "budget_held": "What is kept back for that: all of it, or what will probably be redeemed.",
    "budget_room": "What may still be given.",
}


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    """Return a sample.

    >>> _line("requests", {"level": "small"}, 2)
    'requests{level="small"} 2'
    """
    shown = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {value!r}" if shown else f"{name} {value!r}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
