"""Value and spend of a policy by every estimator, against plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from harness import FINE, Outcome

Array = np.ndarray[Any, Any]
CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Case:
    """A log with curves and propensities, and a policy to judge."""

    scores: Any
    policy: Array
    given: Array  # (n, K) the policy's probabilities
    fields: dict[str, Array]


def attack(seed: int) -> Outcome:
    """Compare all seven estimators, value and spend, with the formulas of the books."""
    from largesse.evaluation import ESTIMATORS, estimate_value

    case = make_case(np.random.default_rng(seed))
    for name in ESTIMATORS:
        found = estimate_value(case.scores, case.policy, name)
        for what, estimate in zip(("value", "spend"), found, strict=True):
            wanted, error = plain(case, name, what)
            if not (same(estimate.estimate, wanted) and same(estimate.se, error)):
                got = f"{estimate.estimate!r} ± {estimate.se!r}"
                return Outcome("wrong", f"{name} {what}: {got}, by hand {wanted!r} ± {error!r}")
            if np.isfinite(estimate.se) and not estimate.low <= estimate.estimate <= estimate.high:
                return Outcome("wrong", f"{name} {what}: {estimate} lies outside its interval")
            if np.isfinite(estimate.se) and estimate.high - estimate.low < 3.9 * estimate.se - CLOSE:
                return Outcome("wrong", f"{name} {what}: an interval of less than 3.9 standard errors: {estimate}")
    return FINE


def same(one: float, other: float) -> bool:
    return bool(np.isclose(one, other, rtol=CLOSE, atol=1e-10, equal_nan=True))


def make_case(rng: np.random.Generator) -> Case:
    """Draw a log, curves, propensities and a policy; rows may have weights, clusters and costs of their own."""
    from largesse.evaluation import score_rows
    from largesse.levels import Levels
    from largesse.records import HeldOut, Log, Propensities

    n, K = int(rng.integers(4, 120)), int(rng.integers(2, 6))
    level = rng.integers(0, K, n)
    response = (rng.random(n) < 0.4).astype(float) if rng.random() < 0.5 else np.round(rng.lognormal(0, 1.5, n), 3)
    redeemed, contact = bool(rng.random() < 0.5), float(rng.choice([0.0, 0.3]))
    levels = Levels(costs=np.sort(rng.uniform(0, 9, K)), on_redemption=redeemed, contact_cost=contact)
    own = np.sort(rng.uniform(0, 9, (n, K)), axis=1) if rng.random() < 0.3 else None
    weight = rng.lognormal(0, 1, n) if rng.random() < 0.5 else None
    cluster = rng.integers(0, max(n // 4, 3), n) if rng.random() < 0.5 else None
    log = Log(None, level, response, levels, weight=weight, cluster=cluster, costs=own)  # type: ignore[arg-type]
    curves = np.maximum.accumulate(rng.random((n, K)) * max(response.max(), 1.0), axis=1)
    shares = rng.dirichlet(np.ones(K), n) * 0.9 + 0.1 / K
    propensity = shares[np.arange(n), level]
    scores = score_rows(log, HeldOut(curves, rng.integers(0, 2, n)), Propensities(propensity, "given"))
    policy, given = make_policy(rng, n, K)
    face = own if own is not None else np.tile(levels.common_costs, (n, 1))  # type: ignore[arg-type]
    fields = {"level": level, "response": response, "curves": curves, "propensity": propensity, "face": face}
    fields |= {"weight": np.ones(n) if weight is None else weight, "extra": np.array([redeemed, contact])}
    return Case(scores, policy, given, fields if cluster is None else {**fields, "cluster": cluster})


def make_policy(rng: np.random.Generator, n: int, K: int) -> tuple[Array, Array]:
    """Draw levels (n,), probabilities (n, K) or common shares (K,); return the policy and its probabilities (n, K)."""
    kind = rng.integers(3)
    if kind == 0:
        levels = rng.integers(0, K, n)
        return levels, np.eye(K)[levels]
    if kind == 1:
        mixed = rng.dirichlet(np.full(K, 0.3), n)
        return mixed, mixed
    shares = rng.dirichlet(np.ones(K))
    return shares, np.tile(shares, (n, 1))


def plain(case: Case, name: str, what: str) -> tuple[float, float]:
    """Return the estimate and its standard error, written as in books: one loop over rows, one over units left out."""
    f = case.fields
    redeemed, contact = bool(f["extra"][0]), float(f["extra"][1])
    n, K = f["curves"].shape
    rows = np.arange(n)
    if what == "value":
        curves, outcome = f["curves"], f["response"]
    else:
        contacts = np.where(np.arange(K) > 0, contact, 0.0)
        curves = f["face"] * (np.maximum(f["curves"], 0) if redeemed else 1.0) + contacts
        outcome = f["face"][rows, f["level"]] * (np.maximum(f["response"], 0) if redeemed else 1.0)
        outcome = outcome + contacts[f["level"]]
    ratio = case.given[rows, f["level"]] / f["propensity"]
    direct = (case.given * curves).sum(axis=1)
    residual = outcome - curves[rows, f["level"]]
    if what == "spend" and not redeemed:  # what a level costs is known
        name = "direct"
    influence = influences(name, direct, ratio, residual, outcome, f["weight"])
    return jackknife(influence, f["weight"], f.get("cluster"))


def influences(name: str, direct: Array, ratio: Array, residual: Array, outcome: Array, weight: Array) -> Array:
    """Return scores whose weighted mean is the estimate."""
    share = weight / weight.sum()
    if name == "direct":
        return direct
    if name == "ips":
        return ratio * outcome
    if name == "dr":
        return direct + ratio * residual
    if name in ("snips", "sndr"):
        top, start = (outcome, 0.0) if name == "snips" else (residual, direct)
        whole = share @ ratio
        if whole == 0:
            return np.full(len(ratio), np.nan)
        mean = share @ (ratio * top) / whole
        return start + mean + ratio * (top - mean) / whole
    return direct + bounded(name, direct, ratio, residual, share) * residual


def bounded(name: str, direct: Array, ratio: Array, residual: Array, share: Array) -> Array:
    """Return the weights of `switch` and `dros` at the constant of the least estimated bias² + variance."""
    used = ratio[ratio > 0]
    if not len(used):
        return ratio
    tops = np.geomspace(max(np.median(used), 1e-12), used.max(), 10)

    def spread(values: Array) -> float:
        return float(share @ (values - share @ values) ** 2)

    n, best, least = len(ratio), ratio, spread(direct + ratio * residual) / len(ratio)
    for top in tops[:-1] if name == "switch" else tops**2:
        kept = np.where(ratio <= top, ratio, 0.0) if name == "switch" else top * ratio / (ratio**2 + top)
        missed = (ratio - kept) * residual
        risk = max((share @ missed) ** 2 - spread(missed) / n, 0.0) + spread(direct + kept * residual) / n
        if risk < least * (1 - 1e-12):
            best, least = kept, risk
    return best


def jackknife(values: Array, weight: Array, cluster: Array | None) -> tuple[float, float]:
    """Return the mean and how far it moves as each row or cluster is left out."""
    units = np.arange(len(values)) if cluster is None else cluster
    names = np.unique(units)
    mean = weight @ values / weight.sum()
    if len(names) < 2:
        return float(mean), float("nan")
    without = np.array([weight[units != u] @ values[units != u] / weight[units != u].sum() for u in names])
    return float(mean), float(np.sqrt((len(names) - 1) / len(names) * ((without - mean) ** 2).sum()))
