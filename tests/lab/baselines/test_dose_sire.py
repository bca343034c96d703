import numpy as np
import pytest
from sklearn.base import clone

import largesse as lg
from largesse.errors import InputError, NotFittedError
from largesse.records import Array
from largesse_lab.baselines.doses import DoseSIRE, share_between_knots
from support.models import flat

FINE = np.linspace(-1.0, 11.0, 400)


def small(**more: object) -> DoseSIRE:
    return flat(
        DoseSIRE,
        **{"shrinkage": np.inf, "width": 8, "depth": 1, "epochs": 5, "folds": 2, "rate": 0.01, "decay": 0.1, **more},
    )


def truth(X: Array, doses: Array) -> Array:
    """A smooth curve (n, m) that rises fast and then levels off."""
    return 10 * X[:, :1] + 20 * (1 - np.exp(-0.4 * doses))


def data(n: int = 300, seed: int = 0, *, binary: bool = False) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X, dose = rng.normal(size=(n, 2)), rng.uniform(0, 10, n)
    if binary:
        chance = 1 / (1 + np.exp(1 - X[:, 0] - 0.2 * dose))
        return X, dose, (rng.random(n) < chance).astype(float)
    return X, dose, truth(X, dose[:, None])[:, 0] + rng.normal(size=n)


@pytest.mark.parametrize("head", ["shrunk", "increments"])
@pytest.mark.parametrize("binary", [False, True])
def test_curves_never_fall_in_the_dose(head: str, binary: bool) -> None:
    model = small(head=head, shrinkage=0.0).fit(*data(binary=binary))
    curves = model.predict(5 * np.random.default_rng(3).normal(size=(50, 2)), FINE)
    assert curves.shape == (50, 400)
    assert np.isfinite(curves).all()
    assert (np.diff(curves, axis=1) >= 0).all()
    if binary:
        assert 0 <= curves.min() <= curves.max() <= 1


def test_knots_are_quantiles_with_both_ends_and_none_twice() -> None:
    X, dose, response = data()
    model = small(knots=4).fit(X, dose, response)
    assert model.knots_ == pytest.approx(np.quantile(dose, [0, 1 / 3, 2 / 3, 1]))
    model = small(knots=6).fit(X, np.where(dose < 5, 0.0, dose), response)
    assert model.knots_[0] == 0
    assert len(model.knots_) == 4


def test_doses_outside_the_log_get_its_ends() -> None:
    X, dose, response = data()
    model = small().fit(X, dose, response)
    inside = model.predict(X, [dose.min(), dose.max()])
    assert np.array_equal(model.predict(X, [-100.0, 1e9]), inside)
    at_knots = model.predict(X)
    np.testing.assert_allclose(model.predict(X, model.knots_), at_knots, rtol=1e-9)
    assert at_knots.shape == (300, len(model.knots_))


def test_a_smooth_curve_is_found_better_than_from_bins() -> None:
    X, dose, response = data(800)
    settings = {"kappa": 0.0, "width": 8, "epochs": 150, "folds": 2, "rate": 0.02, "decay": 0.1, "shrinkage": np.inf}
    smooth = flat(DoseSIRE, knots=6, **settings).fit(X, dose, response)
    edges = np.quantile(dose, np.linspace(0, 1, 7))[1:-1]
    bins = flat(lg.SIRE, head="shrunk", **settings).fit(X, np.searchsorted(edges, dose), response)
    asked = np.linspace(0.1, 9.9, 50)
    new = np.random.default_rng(9).normal(size=(300, 2))
    expected = truth(new, asked)
    one = np.sqrt(((smooth.predict(new, asked) - expected) ** 2).mean())
    other = np.sqrt(((bins.predict(new)[:, np.searchsorted(edges, asked)] - expected) ** 2).mean())
    assert one < 0.8 * other


def test_it_keeps_the_contract() -> None:
    X, dose, response = data()
    model = small(seed=3)
    with pytest.raises(NotFittedError, match="not been fitted"):
        model.predict(X, [1.0])
    before = repr(model)
    one, other = model.fit(X, dose, response), clone(model).fit(X, dose, response)
    assert repr(model) == before
    assert np.array_equal(one.predict(X, FINE), other.predict(X, FINE))
    with pytest.raises(InputError, match="cannot be saved"):
        model.state()


def test_bad_input_is_refused_in_words() -> None:
    X, dose, response = data()
    gap = np.where(np.arange(300) == 4, np.nan, dose)
    with pytest.raises(InputError, match="1 doses are missing or infinite"):
        small().fit(X, gap, response)
    with pytest.raises(InputError, match="not two different doses"):
        small().fit(X, np.ones(300), response)
    with pytest.raises(InputError, match=r"299 doses, and responses of shape \(300,\)"):
        small().fit(X, dose[1:], response)
    with pytest.raises(InputError, match="shape"):
        small().fit(X[1:], dose, response)
    with pytest.raises(InputError, match="not a list of numbers"):
        small().fit(X, ["much"] * 300, response)
    for wrong in ({"knots": 1}, {"head": "cdf"}, {"kappa": "dr"}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            small(**wrong).fit(X, dose, response)


def test_places_put_a_dose_back_together() -> None:
    rng = np.random.default_rng(0)
    knots, doses = np.array([0.0, 1.0, 4.0, 10.0]), rng.uniform(0, 10, 100)
    place = share_between_knots(doses, knots)
    np.testing.assert_allclose(place.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(place @ knots, doses, rtol=1e-5)
    assert ((place > 0).sum(axis=1) <= 2).all()
