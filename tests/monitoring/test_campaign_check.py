from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from largesse.levels import Levels
from largesse.monitoring import PlanPrediction, TrainingLogResiduals, check_campaign
from largesse.monitoring.campaign_check import _find_residual_leaks, measure_linear_r2
from largesse.records import Estimate, Log

N = 3000
LEVELS = Levels(costs=[0, 1, 2])


def _log(X: np.ndarray, level: np.ndarray, response: np.ndarray) -> Log:
    return Log(pa.table({"age": X[:, 0], "visits": X[:, 1]}), level, response, LEVELS)


def _draw(seed: int = 0) -> tuple[Log, PlanPrediction, TrainingLogResiduals]:
    """Return a campaign in which nothing is wrong, and the log before it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * N, 2))
    base = 1 / (1 + np.exp(1 - X[:, 0]))
    curves = base[:, None] * np.array([0.6, 0.8, 0.9])
    level = np.where(X[:, 1] > 0, 1, 0)
    response = (rng.random(2 * N) < curves[np.arange(2 * N), level]).astype(float)
    log = _log(X[:N], level[:N], response[:N])
    rows = np.arange(N)
    expected = curves[rows, level[:N]]
    promise = PlanPrediction(
        level[:N], expected, level[:N].astype(float), curves[:N], honest=Estimate(0.0, 0.01, -0.02, 0.02), joined=N
    )
    old = _log(X[N:], level[N:], response[N:])
    return (
        log,
        promise,
        TrainingLogResiduals(old.features, response[N:] - curves[np.arange(N, 2 * N), level[N:]], None, True),
    )


def _topics(found: object) -> dict[str, str]:
    return {finding.topic: finding.answer for finding in reversed(found.findings)}  # type: ignore[attr-defined]


def test_a_campaign_that_went_as_promised_is_fine() -> None:
    found = check_campaign(*_draw())
    assert found.answer == "fine"
    assert found.code == 0
    assert found.followed == 1
    assert len(found.tenths) == 10
    assert abs(found.value.difference.estimate) < 3 * found.value.difference.se
    assert found.spend.p == 1
    assert "fine" in repr(found)
    assert "promised" in found._repr_html_()
    assert found.to_arrow().num_rows == 10


def test_the_test_of_the_value_allows_for_the_error_of_the_promise() -> None:
    log, promise, before = _draw()
    fewer = replace(log, response=log.response * (np.random.default_rng(1).random(N) > 0.25))
    assert _topics(check_campaign(fewer, promise, before))["value"] == "no"
    unsure = replace(promise, honest=Estimate(0.0, 0.1, -0.2, 0.2))
    assert _topics(check_campaign(fewer, unsure, before))["value"] == "fine"
    more = replace(log, response=np.maximum(log.response, np.random.default_rng(1).random(N) < 0.1))
    assert _topics(check_campaign(more, promise, before))["value"] == "careful"


def test_intervals_of_the_difference_cover_when_the_promise_is_uncertain() -> None:
    rng, inside = np.random.default_rng(0), 0
    log, promise, _ = _draw()
    for _ in range(60):
        again = replace(log, response=(rng.random(N) < promise.expected).astype(float))
        off = rng.normal(scale=0.01)  # how far the promise was off
        told = replace(promise, honest=Estimate(off, 0.01, off - 0.0196, off + 0.0196))
        found = check_campaign(again, told).value.difference
        inside += found.low <= 0 <= found.high
    assert 52 <= inside <= 60


@pytest.mark.parametrize(("share", "answer"), [(0.005, "fine"), (0.05, "careful"), (0.2, "no")])
def test_levels_that_were_not_given_as_planned_are_counted(share: float, answer: str) -> None:
    log, promise, before = _draw()
    off = np.random.default_rng(2).random(N) < share
    found = check_campaign(replace(log, level=np.where(off, 2 - log.level, log.level)), promise, before)
    assert _topics(found)["plan"] == answer
    assert found.levels[0].followed == pytest.approx(1 - share, abs=0.03)
    assert np.isnan(found.levels[2].followed)


def test_levels_drawn_at_random_by_the_policy_are_no_mistake() -> None:
    log, promise, before = _draw()
    rng = np.random.default_rng(3)
    drawn = np.where(rng.random(N) < 0.1, 2 - log.level, log.level)
    likely = replace(promise, likely=np.full(N, 0.9), joined=None)
    assert _topics(check_campaign(replace(log, level=drawn), likely, before))["plan"] == "fine"
    assert _topics(check_campaign(replace(log, level=drawn), replace(likely, likely=None), before))["plan"] != "fine"


@pytest.mark.parametrize("new", [False, True])
def test_a_column_that_knows_the_response_is_named(new: bool) -> None:
    log, promise, before = _draw()
    rng = np.random.default_rng(4)
    told = log.response / log.response.std() + rng.normal(size=N)
    names = log.features.column_names
    features = (
        log.features.append_column("afterwards", pa.array(told))
        if new
        else log.features.set_column(1, names[1], pa.array(told))
    )
    found = check_campaign(replace(log, features=features), promise, before)
    assert _topics(found)["leaks"] != "fine"
    assert found.leaks[0].feature == ("afterwards" if new else names[1])


def test_a_changed_price_and_a_changed_column_are_said() -> None:
    log, promise, before = _draw()
    priced = replace(promise, price=0.1, price_now=Estimate(0.15, 0.01, 0.13, 0.17))
    assert _topics(check_campaign(log, priced, before))["price"] == "careful"
    near = replace(promise, price=0.1, price_now=Estimate(0.105, 0.001, 0.103, 0.107))
    assert _topics(check_campaign(log, near, before))["price"] == "fine"
    moved = log.features.set_column(0, log.features.column_names[0], pa.array(log.features[0].to_numpy() + 1.0))
    assert _topics(check_campaign(replace(log, features=moved), promise, before))["features"] == "no"


def test_spend_propensities_and_odd_responses_are_checked() -> None:
    log, promise, before = _draw()
    dear = replace(promise, costs=promise.costs * 0.8)
    assert _topics(check_campaign(log, dear, before))["spend"] == "no"
    own = np.where(log.level == 0, 0.9, 0.2)
    drawn = replace(promise, propensity=own)
    assert _topics(check_campaign(log, drawn, before))["propensities"] == "note"
    wrong = replace(log, propensity=np.full(N, 0.01))
    assert _topics(check_campaign(wrong, drawn, before))["propensities"] == "no"
    assert _topics(check_campaign(replace(log, response=log.response * 5), promise, before))["response"] == "no"
    assert _topics(check_campaign(replace(log, response=np.zeros(N)), promise, before))["response"] == "no"
    some = replace(promise, outside=1000)
    assert _topics(check_campaign(log, some, before))["plan"] == "no"


def test_the_order_of_columns_says_nothing_about_which_of_them_know_too_much() -> None:
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        table = pa.table({f"x{k}": rng.normal(size=20) for k in range(20)})
        log = Log(table, np.zeros(20, dtype=np.int64), rng.normal(size=20), LEVELS)
        before = TrainingLogResiduals(table, rng.normal(size=20), None, False)
        turned = replace(log, features=table.select(table.column_names[::-1]))
        one, other = (_find_residual_leaks(each, each.response, before, seed) for each in (log, turned))
        assert one == other
        found += one
    assert found  # some column of so few rows seems to know something


def test_parts_of_the_customers_in_which_promises_were_not_kept_are_named_not_counted() -> None:
    """The tenth of ten parts is one part, not all of them."""
    log, promise, before = _draw()
    gain = promise.curves[np.arange(N), promise.levels] - promise.curves[:, 0]
    last = np.argsort(gain, kind="stable")[-N // 10 :]
    response = log.response.copy()
    response[last] = 0.0
    found = check_campaign(replace(log, response=response), promise, before)
    (told,) = (finding.text for finding in found.findings if finding.topic == "tenths")
    assert told.endswith("clearly differ in part 10.")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-310, 1e-160, 1.0, 1e160, 1e300])
def test_a_line_explains_the_same_in_whatever_unit(scale: float) -> None:
    rng = np.random.default_rng(1)
    values, target = rng.normal(size=(2, 50))
    plain = np.corrcoef(values, target)[0, 1] ** 2
    assert measure_linear_r2(values * scale, target) == pytest.approx(plain, rel=1e-9)
    assert measure_linear_r2(target, values * scale) == pytest.approx(plain, rel=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, 0.1, 5e-324, 1.7e308, -3.0])
def test_a_constant_explains_nothing(value: float) -> None:
    assert (
        measure_linear_r2(np.full(50, value), np.arange(50.0))
        == measure_linear_r2(np.arange(50.0), np.full(50, value))
        == 0
    )
