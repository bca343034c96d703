"""Off-policy estimators as textbooks write them."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def estimate(name: str, quantity: str, given: Array, fields: dict[str, Array]) -> tuple[float, float]:
    """Return the estimate of value or spend and its jackknife standard error.

    `given` (n, K) are the probabilities of the policy; `fields` hold level, response, curves (n, K), propensity, face value
    (n, K), weight, cluster (optional) and `extra` = (paid on redemption, contact cost).
    """
    f = fields
    redeemed, contact = bool(f["extra"][0]), float(f["extra"][1])
    n, K = f["curves"].shape
    rows = np.arange(n)
    if quantity == "value":
        curves, outcome = f["curves"], f["response"]
    else:
        contacts = np.where(np.arange(K) > 0, contact, 0.0)
        curves = f["face"] * (np.maximum(f["curves"], 0) if redeemed else 1.0) + contacts
        outcome = f["face"][rows, f["level"]] * (np.maximum(f["response"], 0) if redeemed else 1.0)
        outcome = outcome + contacts[f["level"]]
    ratio = given[rows, f["level"]] / f["propensity"]
    direct = (given * curves).sum(axis=1)
    residual = outcome - curves[rows, f["level"]]
    if quantity == "spend" and not redeemed:  # the cost of a level is known
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
