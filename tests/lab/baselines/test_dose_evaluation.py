import numpy as np
import pytest

from largesse.errors import InputError
from largesse_lab.baselines.doses import DoseLog, JudgedDoses, _kernel, evaluate_doses, score_doses


def world(seed: int, n: int = 2000) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Customers of high x get high doses; the response is a logistic curve, bent in the dose."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    tilt = 0.8 * np.tanh(x[:, 0])  # density 1 + tilt (2t − 1) on (0, 1)
    u = rng.random(n)
    with np.errstate(invalid="ignore"):
        t = np.where(np.abs(tilt) < 1e-9, u, (tilt - 1 + np.sqrt((1 - tilt) ** 2 + 4 * tilt * u)) / (2 * tilt))
    response = (rng.random(n) < truth(x, t)).astype(float)
    return x, t, response, 1 + tilt * (2 * t - 1)


def truth(x: np.ndarray, t: np.ndarray | float) -> np.ndarray:
    return 1 / (1 + np.exp(-(x[:, 0] + 2 * np.sqrt(t) - 1)))


FRESH = np.random.default_rng(10**6).normal(size=(200_000, 3))


@pytest.mark.parametrize("known", [True, False], ids=["density given", "density estimated"])
def test_intervals_hold_the_truth(known: bool) -> None:
    hits, errors = [], []
    true = truth(FRESH, 0.4).mean()
    for seed in range(30):
        x, t, response, density = world(seed)
        found = evaluate_doses(DoseLog(x, t, response, density if known else None), 0.4, seed=seed)
        hits.append(found.value_interval[0] <= true <= found.value_interval[1])
        errors.append(found.value - true)
    assert np.mean(hits) >= 0.8
    assert abs(np.mean(errors)) < 0.6 * np.std(errors)


def test_confounding_is_taken_out() -> None:
    x, t, response, _ = world(0, n=20_000)
    near = np.abs(t - 0.9) < 0.05
    true = truth(FRESH, 0.9).mean()
    found = evaluate_doses(DoseLog(x, t, response), 0.9)
    assert abs(response[near].mean() - true) > 0.04  # those who got high doses respond anyway
    assert abs(found.value - true) < 0.02


def test_a_policy_may_give_everyone_a_dose_of_their_own() -> None:
    x, t, response, density = world(1, n=5000)
    wanted = np.clip(0.5 + 0.2 * x[:, 1], 0.1, 0.9)
    found = evaluate_doses(DoseLog(x, t, response, density), wanted)
    assert abs(found.value - truth(x, wanted).mean()) < 3.5 * found.value_se
    assert found.spend == pytest.approx(wanted.mean())
    redeemed = evaluate_doses(DoseLog(x, t, response, density), wanted, on_redemption=True)
    assert abs(redeemed.spend - (wanted * truth(x, wanted)).mean()) < 3.5 * redeemed.spend_se


def test_the_kernel_is_whole_inside_the_range_of_doses() -> None:
    dose = np.linspace(0, 1, 20_001)
    for wanted in (0.0, 0.03, 0.5, 1.0):
        rows = JudgedDoses(
            dose, np.full(len(dose), wanted), np.zeros(len(dose)), np.zeros(len(dose)), np.ones(len(dose))
        )
        assert _kernel(rows, 0.1).mean() == pytest.approx(1, abs=1e-3)
        assert (score_doses(rows, 0.1) == 0).all()


def test_clusters_and_weights_are_respected() -> None:
    x, t, response, density = world(2, n=1000)
    village = np.arange(1000) // 20
    one, wide = (evaluate_doses(DoseLog(x, t, response, density, cluster=c), 0.5) for c in (None, village))
    assert one.rows == wide.rows == 1000
    assert one.value_se != wide.value_se
    heavy = evaluate_doses(DoseLog(x, t, response, density, weight=np.where(x[:, 0] > 0, 5.0, 1.0)), 0.5)
    assert heavy.value > one.value + 0.05


def test_a_model_of_doses_may_be_given() -> None:
    class Flat:
        def get_params(self, **_: object) -> dict[str, object]:
            return {}

        def fit(self, _X: np.ndarray, _dose: np.ndarray, response: np.ndarray) -> "Flat":
            self.mean = float(response.mean())
            return self

        def predict(self, X: np.ndarray, doses: np.ndarray) -> np.ndarray:
            return np.full((len(X), len(doses)), self.mean)

    x, t, response, density = world(3, n=4000)
    found = evaluate_doses(DoseLog(x, t, response, density), 0.3, model=Flat())
    assert abs(found.value - truth(FRESH, 0.3).mean()) < 4 * found.value_se


def test_doses_far_from_the_log_are_warned_of() -> None:
    x, t, response, density = world(4, n=500)
    assert "outside the range of logged doses" in str(evaluate_doses(DoseLog(x, t, response, density), 1.5).warnings[0])
    assert evaluate_doses(DoseLog(x, t, response, density), 0.5).warnings == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dose": np.repeat([0.0, 1.0], 50)}, "the very same dose"),
        ({"response": np.zeros(3)}, r"response has shape \(3,\)"),
        ({"wanted": np.nan}, "wanted doses holds missing"),
        ({"density": np.zeros(100)}, "density is zero"),
    ],
)
def test_bad_doses_are_refused(change: dict[str, object], message: str) -> None:
    rng = np.random.default_rng(5)
    given: dict[str, object] = {"dose": rng.random(100), "response": rng.random(100), **change}
    wanted = given.pop("wanted", 0.5)
    with pytest.raises(InputError, match=message):
        evaluate_doses(DoseLog(rng.random((100, 2)), **given), wanted)  # type: ignore[arg-type]
