"""Prometheus metrics of one process."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
GAUGES = {
    "policy_reloads": "How often the policy was loaded again.",
    "policy_outdated": "1 while a newer policy could not be loaded.",
    "price": "The price of one more unit of budget: of the policy, or that a ledger last decided at.",
    "ledger_up": "1 while the ledger answers; 0: the budget is not known.",
    "budget_total": "The budget of the ledger.",
    "budget_spent": "Spent so far.",
    "budget_promised": "Promised and not yet redeemed.",
    "budget_held": "Reserved for promises: all of it, or what will probably be redeemed.",
    "budget_room": "May still be given.",
}
disable_created_metrics()


class Metrics:
    """Requests, decisions and their latency."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        about = "Requests by path and status."
        self._requests = Counter("largesse_requests", about, ["path", "status"], registry=self._registry)
        about = "Customers by the level that they got."
        self._decisions = Counter("largesse_decisions", about, ["level"], registry=self._registry)
        about = "Seconds from the request to the answer of /v1/decide."
        self._seconds = Histogram("largesse_decide_seconds", about, buckets=SECONDS, registry=self._registry)

    def count_answer(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(path, str(status)).inc()
        if path == "/v1/decide":
            self._seconds.observe(seconds)

    def count_decisions(self, levels: Iterable[str]) -> None:
        """Count customers by the level that they got."""
        for level, n in Tally(levels).items():
            self._decisions.labels(level).inc(n)

    def write(self, gauges: Mapping[str, float], version: str) -> bytes:
        """Return all metrics as Prometheus text, with gauges of the moment."""
        moment = CollectorRegistry()
        info = InfoMetricFamily("largesse_policy", "The version of the policy that decides.", {"version": version})
        families = [
            info,
            *(GaugeMetricFamily(f"largesse_{name}", GAUGES[name], value) for name, value in gauges.items()),
        ]
        moment.register(_Families(families))
        return generate_latest(self._registry) + generate_latest(moment)


class _Families:
    """A collector of given metric families."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families
