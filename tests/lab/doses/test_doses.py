"""Continuous doses: SIRE on knots, the best doses under a budget, and their evaluation on a log."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import largesse as lg
from largesse.allocation import allocate
from largesse.errors import BudgetError, InputError, NotFittedError
from largesse.records import Array
from largesse_lab.doses.dose_allocation import best_doses
from largesse_lab.doses.dose_evaluation import (
    DoseLog,
    DoseScoreTerms,
    _compute_kernel_weights,
    compute_dose_scores,
    evaluate_doses,
)
from largesse_lab.doses.dose_model import DoseSIRE, compute_knot_weights
from support.models import flat

# -- SIRE on knots -----------------------------------------------------------------------------------------------------

GRID = np.linspace(-1.0, 11.0, 400)
SMALL = {"shrinkage": 0.0, "width": 8, "depth": 1, "epochs": 5, "folds": 2, "rate": 0.01, "decay": 0.1}


def small(**settings: object) -> DoseSIRE:
    """A small model with four knots: all of one head and kind of response share one compiled program."""
    return flat(DoseSIRE, **{"knots": 4, **SMALL, **settings})


def true_curves(X: Array, doses: Array) -> Array:
    """A smooth curve (n, m) that rises fast and then levels off."""
    return 10 * X[:, :1] + 20 * (1 - np.exp(-0.4 * doses))


def draw_doses(n: int = 300, seed: int = 0, *, binary: bool = False) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X, dose = rng.normal(size=(n, 2)), rng.uniform(0, 10, n)
    if binary:
        chance = 1 / (1 + np.exp(1 - X[:, 0] - 0.2 * dose))
        return X, dose, (rng.random(n) < chance).astype(float)
    return X, dose, true_curves(X, dose[:, None])[:, 0] + rng.normal(size=n)


@pytest.mark.parametrize(
    ("head", "binary"),
    [
        ("shrunk", True),
        ("increments", False),
        *(
            pytest.param(head, binary, marks=pytest.mark.slow)
            for head, binary in (("shrunk", False), ("increments", True))
        ),
    ],
)
def test_curves_never_fall_in_the_dose_and_end_at_the_logged_ones(head: str, binary: bool) -> None:
    X, dose, response = draw_doses(binary=binary)
    model = small(head=head).fit(X, dose, response)
    curves = model.predict(5 * np.random.default_rng(3).normal(size=(50, 2)), GRID)
    assert curves.shape == (50, 400)
    assert np.isfinite(curves).all()
    assert (np.diff(curves, axis=1) >= 0).all()
    if binary:
        assert 0 <= curves.min() <= curves.max() <= 1
    assert np.array_equal(model.predict(X, [-100.0, 1e9]), model.predict(X, [dose.min(), dose.max()]))
    np.testing.assert_allclose(model.predict(X, model.knots_), model.predict(X), rtol=1e-9)


def test_it_keeps_the_contract_and_knots_are_quantiles_with_both_ends_and_none_twice() -> None:
    X, dose, response = draw_doses()
    model = small(seed=3)
    with pytest.raises(NotFittedError, match="not been fitted"):
        model.predict(X, [1.0])
    before = repr(model)
    one, other = model.fit(X, dose, response), clone(model).fit(X, dose, response)
    assert repr(model) == before
    assert np.array_equal(one.predict(X, GRID), other.predict(X, GRID))
    assert model.knots_ == pytest.approx(np.quantile(dose, [0, 1 / 3, 2 / 3, 1]))
    with pytest.raises(InputError, match="cannot be saved"):
        model.state()
    with_ties = small(knots=6).fit(X, np.where(dose < 5, 0.0, dose), response)
    assert (with_ties.knots_[0], len(with_ties.knots_)) == (0, 4)


def test_a_smooth_curve_is_found_better_than_from_bins() -> None:
    X, dose, response = draw_doses(600)
    settings = {**SMALL, "kappa": 0.0, "epochs": 100, "rate": 0.02, "shrinkage": np.inf}
    smooth = flat(DoseSIRE, knots=6, **settings).fit(X, dose, response)
    edges = np.quantile(dose, np.linspace(0, 1, 7))[1:-1]
    bins = flat(lg.SIRE, head="shrunk", **settings).fit(X, np.searchsorted(edges, dose), response)
    doses = np.linspace(0.1, 9.9, 50)
    new = np.random.default_rng(9).normal(size=(300, 2))
    expected = true_curves(new, doses)
    smooth_error = np.sqrt(((smooth.predict(new, doses) - expected) ** 2).mean())
    bins_error = np.sqrt(((bins.predict(new)[:, np.searchsorted(edges, doses)] - expected) ** 2).mean())
    assert smooth_error < 0.8 * bins_error


INVALID_FITS = [
    pytest.param({}, "dose", np.where(np.arange(300) == 4, np.nan, 1.0), "1 doses are missing", id="missing"),
    pytest.param({}, "dose", np.ones(300), "not two different doses", id="one dose"),
    pytest.param({}, "dose", np.ones(299), r"299 doses, and responses of shape \(300,\)", id="too few doses"),
    pytest.param({}, "dose", ["much"] * 300, "not a list of numbers", id="words"),
    pytest.param({}, "X", np.zeros((299, 2)), "shape", id="too few rows"),
    pytest.param({"knots": 1}, "", None, "knots", id="one knot"),
    pytest.param({"head": "cdf"}, "", None, "head", id="head"),
    pytest.param({"kappa": "dr"}, "", None, "kappa", id="kappa"),
]


@pytest.mark.parametrize(("settings", "argument", "value", "message"), INVALID_FITS)
def test_an_invalid_fit_is_refused(settings: dict[str, Any], argument: str, value: Any, message: str) -> None:
    arguments = dict(zip(("X", "dose", "response"), draw_doses(), strict=True))
    with pytest.raises(InputError, match=message):
        small(**settings).fit(**(arguments | ({argument: value} if argument else {})))


def test_weights_of_knots_give_the_dose_back() -> None:
    knots, doses = np.array([0.0, 1.0, 4.0, 10.0]), np.random.default_rng(0).uniform(0, 10, 100)
    weights = compute_knot_weights(doses, knots)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(weights @ knots, doses, rtol=1e-5)
    assert ((weights > 0).sum(axis=1) <= 2).all()


# -- the best doses ----------------------------------------------------------------------------------------------------


def test_doses_of_concave_curves_reach_the_bound() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        n, knots = int(rng.integers(1, 30)), np.cumsum(rng.random(5) + 0.1)
        rises = -np.sort(-rng.random((n, 5)) / np.diff(knots, prepend=0.0), axis=1) * np.diff(knots, prepend=0.0)
        budget = knots[0] + rng.random() * (knots[-1] - knots[0])
        curves = np.cumsum(rises, axis=1)
        slopes = np.diff(curves, axis=1) / np.diff(knots)
        plan = best_doses(curves, knots, budget)
        value = np.mean([np.interp(d, knots, c) for d, c in zip(plan.doses, curves, strict=True)])
        assert plan.value == pytest.approx(value, abs=1e-12)
        assert plan.doses.mean() <= budget * (1 + 1e-12)
        if (np.diff(slopes, axis=1) <= 1e-12).all():
            assert plan.gap < 1e-9


def test_doses_beat_every_grid_of_levels_pass_over_the_hull_and_round_down() -> None:
    rng = np.random.default_rng(1)
    knots, curves = np.array([0.0, 1.0, 2.0, 4.0]), np.sort(rng.random((6, 4)), axis=1)
    plan = best_doses(curves, knots, 1.7)
    fine = np.unique(np.concatenate([np.linspace(a, b, 5) for a, b in pairwise(knots)]))
    grid = np.array([np.interp(fine, knots, c) for c in curves])
    assert plan.value >= allocate(grid, fine, 1.7, exact=True).value - plan.gap - 1e-12
    assert plan.value <= plan.bound + 1e-12
    skipping = best_doses([[0.0, 0.1, 1.0]], [0, 1, 2], 1.5)  # the hull runs from 0 to 2, above the knot at 1
    assert skipping.doses.tolist() == [1.5]
    assert (skipping.value, skipping.bound) == (pytest.approx(0.55), pytest.approx(0.75))
    rounded = best_doses([[0.0, 1.0]], [0, 10], 3.37, step=0.25)
    assert rounded.doses.tolist() == [3.25]
    assert 0 < rounded.gap <= 0.025


def test_invalid_curves_knots_steps_and_budgets_are_refused() -> None:
    with pytest.raises(InputError, match="knots"):
        best_doses([[0.0, 1.0]], [1, 0], 1)
    with pytest.raises(InputError, match="step is -1"):
        best_doses([[0.0, 1.0]], [0, 1], 1, step=-1)
    for knots in (["a", "b"], [[0], [1, 2]]):
        with pytest.raises(InputError, match="tables"):
            best_doses([[0.0, 1.0]], knots, 1)
    with pytest.raises(BudgetError, match="cheapest plan"):
        best_doses([[0.0, 1.0]], [1, 2], 0.5)


# -- the evaluation ----------------------------------------------------------------------------------------------------


def true_mean(x: Array, t: Array | float) -> Array:
    return 1 / (1 + np.exp(-(x[:, 0] + 2 * np.sqrt(t) - 1)))


def draw_log(seed: int, n: int = 2000) -> tuple[Array, Array, Array, Array]:
    """Customers of high x get high doses; the response is a logistic curve, bent in the dose."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    tilt = 0.8 * np.tanh(x[:, 0])  # density 1 + tilt (2t − 1) on (0, 1)
    u = rng.random(n)
    with np.errstate(invalid="ignore"):
        t = np.where(np.abs(tilt) < 1e-9, u, (tilt - 1 + np.sqrt((1 - tilt) ** 2 + 4 * tilt * u)) / (2 * tilt))
    return x, t, (rng.random(n) < true_mean(x, t)).astype(float), 1 + tilt * (2 * t - 1)


FRESH = np.random.default_rng(10**6).normal(size=(200_000, 3))


@pytest.mark.parametrize("known", [True, False], ids=["density given", "density estimated"])
def test_intervals_contain_the_truth(known: bool) -> None:
    hits, errors = [], []
    true = true_mean(FRESH, 0.4).mean()
    for seed in range(30):
        x, t, response, density = draw_log(seed)
        result = evaluate_doses(DoseLog(x, t, response, density if known else None), 0.4, seed=seed)
        hits.append(result.value_interval[0] <= true <= result.value_interval[1])
        errors.append(result.value - true)
    assert np.mean(hits) >= 0.8
    assert abs(np.mean(errors)) < 0.6 * np.std(errors)


def test_confounding_is_removed() -> None:
    x, t, response, _ = draw_log(0, n=20_000)
    near = np.abs(t - 0.9) < 0.05
    true = true_mean(FRESH, 0.9).mean()
    assert abs(response[near].mean() - true) > 0.04  # those who got high doses respond anyway
    assert abs(evaluate_doses(DoseLog(x, t, response), 0.9).value - true) < 0.02


def test_every_customer_may_get_another_dose_and_costs_may_be_paid_on_redemption() -> None:
    x, t, response, density = draw_log(1, n=5000)
    wanted = np.clip(0.5 + 0.2 * x[:, 1], 0.1, 0.9)
    result = evaluate_doses(DoseLog(x, t, response, density), wanted)
    assert abs(result.value - true_mean(x, wanted).mean()) < 3.5 * result.value_se
    assert result.spend == pytest.approx(wanted.mean())
    redeemed = evaluate_doses(DoseLog(x, t, response, density), wanted, on_redemption=True)
    assert abs(redeemed.spend - (wanted * true_mean(x, wanted)).mean()) < 3.5 * redeemed.spend_se


def test_the_kernel_has_mass_one_inside_the_range_of_doses() -> None:
    dose = np.linspace(0, 1, 20_001)
    zero, one = np.zeros(len(dose)), np.ones(len(dose))
    for wanted in (0.0, 0.03, 0.5, 1.0):
        rows = DoseScoreTerms(dose, np.full(len(dose), wanted), zero, zero, one)
        assert _compute_kernel_weights(rows, 0.1).mean() == pytest.approx(1, abs=1e-3)
        assert (compute_dose_scores(rows, 0.1) == 0).all()


def test_clusters_and_weights_count_and_doses_outside_the_log_are_warned_of() -> None:
    x, t, response, density = draw_log(2, n=1000)
    village = np.arange(1000) // 20
    plain, clustered = (evaluate_doses(DoseLog(x, t, response, density, cluster=c), 0.5) for c in (None, village))
    assert plain.rows == clustered.rows == 1000
    assert plain.value_se != clustered.value_se
    assert plain.warnings == ()
    weighted = evaluate_doses(DoseLog(x, t, response, density, weight=np.where(x[:, 0] > 0, 5.0, 1.0)), 0.5)
    assert weighted.value > plain.value + 0.05
    assert evaluate_doses(DoseLog(x, t, response, density), 1.5).warnings[0].answer == "no"


class ConstantModel:
    """The mean response at every dose."""

    def get_params(self, **_: object) -> dict[str, object]:
        return {}

    def fit(self, _X: Array, _dose: Array, response: Array) -> "ConstantModel":
        self.mean = float(response.mean())
        return self

    def predict(self, X: Array, doses: Array) -> Array:
        return np.full((len(X), len(doses)), self.mean)


def test_a_model_of_doses_may_be_given() -> None:
    result = evaluate_doses(DoseLog(*draw_log(3, n=4000)), 0.3, model=ConstantModel())
    assert abs(result.value - true_mean(FRESH, 0.3).mean()) < 4 * result.value_se


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dose": np.repeat([0.0, 1.0], 50)}, "the very same dose"),
        ({"response": np.zeros(3)}, r"response has shape \(3,\)"),
        ({"wanted": np.nan}, "wanted doses holds missing"),
        ({"density": np.zeros(100)}, "density is zero"),
    ],
)
def test_invalid_doses_are_refused(change: dict[str, object], message: str) -> None:
    rng = np.random.default_rng(5)
    arguments: dict[str, object] = {"dose": rng.random(100), "response": rng.random(100), **change}
    wanted = arguments.pop("wanted", 0.5)
    with pytest.raises(InputError, match=message):
        evaluate_doses(DoseLog(rng.random((100, 2)), **arguments), wanted)  # type: ignore[arg-type]
