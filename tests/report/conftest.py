"""The records of one small run, made once, and numbers made from them."""

import copy
import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse.allocation import allocate, expected_costs
from largesse.data import log_from_arrays
from largesse.evaluation import estimate_at_slider_budgets, make_study, summarise_study
from largesse.io import to_json
from largesse.levels import Levels
from largesse.records import (
    CandidateLoss,
    FitSummary,
    Log,
    PlanSummary,
    SliderSummary,
    Study,
    StudySummary,
    summarise_fit,
)
from largesse.report import CampaignHeading, join_report_numbers
from largesse.response import Linear, describe_model
from support.plans import summarise

NAN = math.nan
CHOICES = (
    CandidateLoss("Linear", loss=0.1903, difference=0.0, se=0.0, chosen=True),
    CandidateLoss("Boosting", loss=0.1921, difference=0.0018, se=0.0011),
    CandidateLoss("0.1", loss=0.1911, difference=0.0, se=0.0, chosen=True, of="strength"),
)


@dataclass(frozen=True)
class SmallRun:
    """A fitted, planned and judged log, and the numbers of its report as they come back from disk."""

    log: Log
    study: Study
    records: tuple[FitSummary, PlanSummary, StudySummary, SliderSummary]
    numbers: dict[str, Any]


def make_run(*, binary: bool) -> SmallRun:
    rng = np.random.default_rng(3)
    n = 240
    age, level = rng.uniform(20, 70, n), rng.integers(0, 3, n)
    rate = 1 / (1 + np.exp(-(0.05 * (age - 45) - 0.8 + 0.9 * level)))
    response = (rng.random(n) < rate) * 1.0 if binary else 20 + 8 * rate + rng.normal(0, 1, n)
    features = pa.table(
        {"age": pa.array(age, mask=rng.random(n) < 0.05), "city": np.array(["Oslo", "Rome"])[rng.integers(0, 2, n)]}
    )
    levels = Levels(costs=[0, 5, 10], names=["none", "small", "big"], on_redemption=binary)
    log = log_from_arrays(features, level, response, levels=levels, cluster=np.arange(n) // 2)
    log = log if binary else replace(log, response_value=1.0)
    model = Linear().fit(log)
    curves = model.predict(features)
    costs = np.broadcast_to(expected_costs(levels, curves), curves.shape)
    plan = allocate(curves, costs, 2.5)
    summary = summarise(plan, log.features, curves, costs, levels.labels)
    study = make_study(log, Linear(), 2.5)
    fit = summarise_fit("Linear", describe_model("Linear"), CHOICES, log)
    judged = summarise_study(study)
    records = (fit, summary, judged, estimate_at_slider_budgets(summary, judged))
    heading = (
        CampaignHeading("Autumn coupons", "€", 0)
        if binary
        else CampaignHeading("Autumn sales", "USD", 0, response_unit="USD")
    )
    numbers = json.loads(json.dumps(join_report_numbers(heading, *map(to_json, records))))
    return SmallRun(log, study, records, numbers)


@pytest.fixture(scope="session")
def binary_run() -> SmallRun:
    return make_run(binary=True)


@pytest.fixture(scope="session")
def amount_run() -> SmallRun:
    return make_run(binary=False)


@pytest.fixture
def binary(binary_run: SmallRun) -> dict[str, Any]:
    """Numbers of a yes-or-no response, paid on redemption: a copy to change."""
    return copy.deepcopy(binary_run.numbers)


@pytest.fixture
def amount(amount_run: SmallRun) -> dict[str, Any]:
    """Numbers of an amount of money, with what is left after costs: a copy to change."""
    return copy.deepcopy(amount_run.numbers)


def set_levels(numbers: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Give the numbers as many levels as there are names, repeating those that are there."""
    for holder, key in (
        (numbers, "levels"),
        (numbers, "uniform"),
        (numbers["curve"], "levels"),
        (numbers["money"], "levels"),
        (numbers["support"], "overlap"),
    ):
        holder[key] = [{**holder[key][k % len(holder[key])], "name": name} for k, name in enumerate(names)]
    for holder, key in (
        (numbers["support"]["propensities"], "counts"),
        *((row, key) for row in numbers["support"]["balance"] for key in ("levels_before", "levels_after")),
    ):
        holder[key] = [holder[key][k % len(holder[key])] for k in range(len(names))]
    changes = numbers["changes"]
    changes["levels"] = [row for row in changes["levels"] if row["level"] < len(names)]
    for feature in numbers["who"]["features"]:
        for group in feature["groups"]:
            group["shares"] = [1 / len(names)] * len(names)
    return numbers


@pytest.fixture
def ugly(binary: dict[str, Any]) -> dict[str, Any]:
    """Twelve levels with long and hostile names, missing numbers, huge amounts, tiny shares, many warnings."""
    names = [f"level {k} <script>alert({k})</script> & a very long description of the voucher" for k in range(12)]
    names[3], names[4], names[5] = "n", "Unterstützungsgutscheinversandkostenerstattungsprogramm", "x" * 120
    set_levels(binary, names)
    binary |= {
        "title": "An <b>ugly</b> campaign with a title that is much longer than any title has a right to be",
        "unit": "",
        "response": {"name": "clicked_on_<the>_promotional_link_within_thirty_days_of_receipt", "kind": "binary"},
        "levels": [{"name": name, "cost": None} for name in names],
        "customers": 1_200_000_000,
        "budget": {"average": NAN, "total": 1.2e9},
        "value": {"estimate": NAN, "low": NAN, "high": 1.0},
        "spend": {"estimate": 1.2e9, "low": 9e8, "high": 1.5e9},
        "promise": None,
        "planned": {"price": NAN, "spend": 1.0, "value": 0.0, "gap": 0.0, "confidence": None},
    }
    binary["log"] |= {"rows": 1_200_000_000, "clusters": None}
    binary["versus"][0] |= {"name": "w" * 80, "difference": {"estimate": 0.1, "low": None, "high": None}}
    for k, row in enumerate(binary["frontier"]["points"]):
        row["value"] = {"estimate": NAN if k == 4 else 1e-4 * k, "low": None if k == 9 else 0.0, "high": 2e-4 * k}
    for k, row in enumerate(binary["curve"]["levels"]):
        row |= {"model": None if k % 2 else 1e-4, "raw": {"estimate": NAN, "low": NAN, "high": NAN}}
    binary["who"]["features"] = [
        {
            "feature": "<img src=x onerror=alert(1)> " * 3,
            "explains": None,
            "groups": [
                {"label": "y" * 90, "customers": 812, "shares": [1 / 12] * 12, "average_cost": NAN, "stop_counts": []},
                {"label": "z", "customers": 3, "shares": [0.00012, 0.99988] + [0.0] * 10, "average_cost": 1.2e9}
                | {"stop_counts": []},
                {"label": "missing", "customers": None, "shares": [None] * 12, "average_cost": None, "stop_counts": []},
            ],
        }
    ]
    for k, row in enumerate(binary["money"]["levels"]):
        row |= {"spend": 1.2e9, "extra": NAN, "cost_per_extra": math.inf if k % 2 else 1234.5}
    for k, row in enumerate(binary["support"]["overlap"]):
        row |= {"effective": None, "smallest": 0.00012, "answer": ["fine", "careful", "no"][k % 3]}
    binary["support"]["propensities"]["counts"][:6] = [[0] * 10] * 6
    binary["support"]["balance"] = [
        {
            **binary["support"]["balance"][0],
            "feature": "f" * 20 * (k + 1),
            "before": 0.2 * k,
            "after": NAN if k % 3 else 1,
        }
        for k in range(12)
    ]
    binary["answer"]["warnings"] = [
        {
            "answer": answer,
            "text": f"Something is <i>wrong</i> with {answer}; " + "and it takes long to say it " * k,
        }
        for k, answer in enumerate(["note", "careful", "no", "careful", "no", "note", "careful"])
    ]
    return binary


@pytest.fixture
def empty(binary: dict[str, Any]) -> dict[str, Any]:
    """Two levels and next to nothing else."""
    set_levels(binary, ["none", "some"])
    binary["frontier"]["points"] = binary["frontier"]["points"][7:8]
    binary["targeting"]["points"] = []
    binary["who"]["features"] = []
    binary["versus"] = []
    binary["answer"]["warnings"] = []
    binary["method"] = {"tried": [], "estimates": []}
    binary["support"] |= {"balance": [], "checks": [], "propensities": {"edges": [], "counts": []}}
    return binary
