from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from largesse.data.log import log_from_arrays
from largesse.io import Reader, pack
from largesse.levels import Levels
from largesse.records import Array, Log
from largesse.response.level_effects import Link
from largesse.response.stacking import (
    NONE,
    SHRUNK,
    Blend,
    Members,
    blend_held_out,
    choose_blend,
    deviation_precision,
    unlink,
)
from largesse.stats.folds import assign_folds
from largesse.stats.links import sigmoid

LADDER = np.array([0.0, 0.5, 0.7, 1.0])
LEVELS = Levels(costs=[0, 1, 2, 3])


def log_of(scores: Array, *, amounts: bool = False, seed: int = 0, **more: Any) -> Log:
    """A log of levels drawn at random, with responses by their scores (n, K)."""
    rng = np.random.default_rng([seed, 1])
    n = len(scores)
    level = rng.integers(0, scores.shape[1], n)
    own = scores[np.arange(n), level]
    response = own + rng.normal(size=n) if amounts else (rng.random(n) < sigmoid(own)).astype(float)
    return log_from_arrays(np.zeros((n, 1)), level, response, levels=LEVELS, **more)


def blend_of(held: Array, log: Log, precision: float | None = None) -> Blend:
    fold = assign_folds(log, 5)
    return choose_blend(Members(held, [NONE if precision is None else precision] * len(held)), log, fold)[0]


def curves_of(base: Array, effects: Array = LADDER) -> Array:
    return base[:, None] + effects


def made(**changes: Any) -> Blend:
    """A blend of two members and three levels."""
    rng = np.random.default_rng(0)
    common, lift = np.array([-0.2, 0.1, 0.3]), np.array([-0.2, 0.0, 0.2])
    centres = np.sort(rng.normal(size=(2, 3)), axis=1)
    whole = Blend(Link(True), np.array([0.6, 0.5]), common, np.array([0.3, 0.0]), centres, 0.4, -0.1, 0.8, lift)
    return replace(whole, **changes)


# ---------------------------------------------------------------------------------------------- what a blend says


def test_the_whole_share_and_its_own_mean_reproduce_a_member() -> None:
    member = np.sort(np.random.default_rng(3).normal(size=(50, 4)), axis=1)
    centre = (member - member.mean(axis=1, keepdims=True)).mean(axis=0)
    whole = Blend(Link(True), np.ones(1), centre, np.ones(1), centre[None], 0.0, 0.0, 0.0, np.zeros(4))
    np.testing.assert_allclose(whole.scores(member[None]), member)


def test_scores_agree_with_a_slow_loop() -> None:
    blend, held = made(shares=np.array([0.3, 0.2])), np.random.default_rng(1).normal(size=(2, 30, 3)) * 3
    found = blend.scores(held)
    for i in range(30):
        base = sum(blend.weights[m] * held[m, i].mean() for m in range(2))
        z = min(max((base - blend.middle) / blend.spread, -2.5), 2.5)
        for k in range(3):
            own = sum(blend.shares[m] * (held[m, i, k] - held[m, i].mean() - blend.centres[m, k]) for m in range(2))
            assert found[i, k] == pytest.approx(base + blend.common[k] + blend.tilt * z * blend.lift[k] + own)


def test_the_score_of_a_row_does_not_depend_on_which_rows_come_with_it() -> None:
    held = np.random.default_rng(1).normal(size=(2, 101, 3))
    together = made().scores(held)
    for rows in ([0], [100], [3, 50], list(range(7, 90))):
        assert made().scores(held[:, rows]).tobytes() == together[rows].tobytes()


@pytest.mark.parametrize("link", [Link(True), Link(False, 20.0)])
def test_responses_never_fall_in_the_level(link: Link) -> None:
    held = np.random.default_rng(2).normal(size=(2, 200, 3)) * 2
    scores = made(tilt=-1.0, shares=np.array([1.0, 1.0])).scores(held)
    assert (np.diff(scores, axis=1) < 0).any()
    assert (np.diff(unlink(scores, link), axis=1) >= 0).all()


def test_members_without_weight_and_share_are_not_used() -> None:
    assert made().used == [0, 1]
    assert made(weights=np.array([0.0, 0.5])).used == [0, 1]
    assert made(weights=np.array([0.6, 0.0])).used == [0]


# ---------------------------------------------------------------------------------------------- base and common increments


@pytest.mark.parametrize("amounts", [False, True])
def test_weights_are_near_those_of_the_truth(amounts: bool) -> None:
    rng = np.random.default_rng(0)
    bases = rng.normal(size=(3, 60_000))
    log = log_of(curves_of(1.0 * bases[0] + 0.3 * bases[1]), amounts=amounts)
    blend = blend_of(np.array([curves_of(base) for base in bases]), log)
    weights = blend.weights * (blend.link.unit if amounts else 1.0)
    np.testing.assert_allclose(weights, [1.0, 0.3, 0.0], atol=0.05)
    common = (blend.common - blend.common[0]) * (blend.link.unit if amounts else 1.0)
    np.testing.assert_allclose(common, LADDER, atol=0.08)


def test_members_count_alike_where_rows_are_few() -> None:
    rng = np.random.default_rng(1)
    base = rng.normal(size=60)
    held = np.array([curves_of(base + 0.1 * rng.normal(size=60)) for _ in range(2)])
    weights = blend_of(held, log_of(curves_of(base))).weights
    assert weights.min() > 0.6 * weights.max()


def test_common_increments_do_not_follow_those_of_members() -> None:
    base = np.random.default_rng(0).normal(size=20_000)
    blend = blend_of(curves_of(base, 5 * LADDER)[None], log_of(curves_of(base)))
    np.testing.assert_allclose(blend.common - blend.common[0], LADDER, atol=0.15)
    mean = sigmoid(blend.scores(curves_of(base, 5 * LADDER)[None])).mean(axis=0)
    np.testing.assert_allclose(mean, sigmoid(curves_of(base)).mean(axis=0), atol=0.02)


def test_bases_that_are_the_same_for_all_are_harmless() -> None:
    log = log_of(curves_of(np.zeros(2000)))
    blend = blend_of(curves_of(np.zeros(2000))[None], log)
    assert blend.tilt == 0
    assert blend.spread < 1e-9
    assert np.isfinite(blend.scores(curves_of(np.zeros(10))[None])).all()
    blend.check(1)


# ---------------------------------------------------------------------------------------------- the tilt


def tilted(n: int, tilt: float, seed: int = 0, amounts: bool = False) -> tuple[Array, Log]:
    base = np.random.default_rng(seed).normal(size=n)
    scores = base[:, None] + LADDER + tilt * base[:, None] * (LADDER - LADDER.mean())
    return curves_of(base)[None], log_of(scores, amounts=amounts, seed=seed)


@pytest.mark.parametrize("tilt", [0.6, -0.5])
def test_a_known_tilt_is_recovered_from_many_rows(tilt: float) -> None:
    held, log = tilted(150_000, tilt)
    blend = blend_of(held, log)
    assert blend.tilt == pytest.approx(tilt, abs=0.12)
    assert blend.lift @ np.ones(4) == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("n", [500, 5000, 100_000])
def test_without_a_tilt_next_to_none_is_found(n: int) -> None:
    found = [blend_of(*tilted(n, 0.0, seed)).tilt for seed in range(4)]
    assert max(map(abs, found)) < 0.12
    assert np.mean(np.abs(found)) < (0.1 if n < 1000 else 0.05)


def test_few_rows_are_not_believed_about_a_tilt() -> None:
    found = [blend_of(*tilted(400, 0.5, seed)).tilt for seed in range(5)]
    assert np.median(np.abs(found)) < 0.2


def test_amounts_have_no_tilt() -> None:
    assert blend_of(*tilted(5000, 0.6, amounts=True)).tilt == 0


# ---------------------------------------------------------------------------------------------- deviations


def deviating(n: int, real: float, seed: int = 0) -> tuple[Array, Log]:
    """Held-out scores of a member that says customers deviate, and a log in which `real` of it is so."""
    rng = np.random.default_rng(seed)
    base, own = rng.normal(size=n), rng.normal(size=n)[:, None] * (LADDER - LADDER.mean())
    return (curves_of(base) + own)[None], log_of(curves_of(base) + real * own, seed=seed)


def test_deviations_that_are_real_are_used_with_many_rows() -> None:
    held, log = deviating(40_000, real=1.0)
    assert blend_of(held, log).shares[0] == pytest.approx(1, abs=0.15)
    held, log = deviating(40_000, real=0.5)
    assert blend_of(held, log).shares[0] == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("n", [500, 40_000])
def test_deviations_that_are_noise_are_hardly_used(n: int) -> None:
    shares = [blend_of(*deviating(n, real=0.0, seed=seed)).shares[0] for seed in range(4)]
    assert max(shares) < 0.25
    assert np.mean(shares) < 0.1


def test_few_rows_leave_real_deviations_shrunk_and_those_of_members_that_shrink_themselves_less() -> None:
    held, log = deviating(400, real=1.0)
    firm, loose, never = (blend_of(held, log, precision).shares[0] for precision in (NONE, SHRUNK, np.inf))
    assert never == 0 < firm < loose < 1.3
    assert firm < 0.7


def test_how_firmly_deviations_are_held_depends_on_the_member() -> None:
    assert deviation_precision(shrinks=False, only_base=False) == NONE > SHRUNK
    assert deviation_precision(shrinks=True, only_base=False) == SHRUNK
    assert deviation_precision(shrinks=True, only_base=True) == np.inf


def test_that_folds_disagree_about_levels_says_nothing_about_customers() -> None:
    base = np.random.default_rng(0).normal(size=4000)
    log = log_of(curves_of(base))
    fold = assign_folds(log, 5)
    ladders = np.random.default_rng(1).normal(size=(5, 4))[fold]
    blend, choices = choose_blend(Members((base[:, None] + ladders)[None], [NONE]), log, fold)
    assert blend.shares.tolist() == [0.0]
    assert choices[0].name == "common increments"


# ---------------------------------------------------------------------------------------------- what was tried, and keeping


def test_choices_tell_what_was_tried() -> None:
    held, log = deviating(20_000, real=1.0)
    _, choices = choose_blend(Members(held, [NONE]), log, assign_folds(log, 5))
    assert [(choice.name, choice.chosen) for choice in choices] == [
        ("common increments", False),
        ("individual increments", True),
    ]
    assert choices[1].loss < choices[0].loss


def test_clusters_count_in_the_choice() -> None:
    held, log = deviating(300, real=1.0)
    copies, again = np.repeat(np.arange(300), 20), [log.level, log.response]
    again = [np.repeat(part, 20) for part in again]

    def fitted(**more: Any) -> tuple[float, float]:
        many = log_from_arrays(np.zeros((6000, 1)), *again, levels=LEVELS, **more)
        blend, choices = choose_blend(Members(held[:, copies], [NONE]), many, assign_folds(many, 5))
        return blend.shares[0], max(choice.se for choice in choices)

    (alone, sure), (together, unsure) = fitted(), fitted(cluster=copies)
    assert together < 0.8 * alone
    assert unsure > 2 * sure * together / alone


def test_rows_beyond_the_most_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    held, log = deviating(4000, real=1.0)
    whole = blend_of(held, log)
    monkeypatch.setattr("largesse.response.stacking.ROWS", 2000)
    some = blend_of(held, log)
    assert some.weights[0] == pytest.approx(whole.weights[0], abs=0.2)
    assert some.weights[0] != whole.weights[0]


def test_a_kept_blend_is_the_same() -> None:
    arrays: dict[str, Array] = {}
    state = pack(made(), Blend, "blend", arrays)
    kept = Reader(arrays, {}, None).unpack(state, Blend, "blend", {"K": 3})
    held = np.random.default_rng(0).normal(size=(2, 9, 3))
    assert kept.scores(held).tobytes() == made().scores(held).tobytes()
    kept.check(2)
    arrays["blend/common"] = np.array([0.0, np.nan, 1.0])
    with pytest.raises(ValueError, match="missing or infinite"):
        Reader(arrays, {}, None).unpack(state, Blend, "blend", {"K": 3})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": np.array([0.5, -0.1])}, "negative weights or shares"),
        ({"shares": np.array([-0.1, 0.0])}, "negative weights or shares"),
        ({"tilt": float("nan")}, "a tilt of nan"),
        ({"tilt": float("inf")}, "a tilt of inf"),
        ({"middle": float("-inf")}, "around -inf"),
        ({"spread": float("nan")}, "± nan"),
        ({"spread": -1.0}, "± -1.0"),
        ({"spread": 0.0}, "the same for all"),
        ({"spread": 1e-300}, "the same for all"),
        ({"link": Link(False, 0.0)}, "units of 0.0"),
        ({"link": Link(False, float("nan"))}, "units of nan"),
        ({"link": Link(False, float("inf"))}, "units of inf"),
    ],
)
def test_a_blend_that_no_fit_can_have_found_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**changes).check(2)
    made(tilt=0.0, spread=0.0).check(2)
    with pytest.raises(ValueError, match="2 members, of 3"):
        made().check(3)


def test_the_curves_of_a_fold_do_not_depend_on_its_responses_once_members_are_fitted() -> None:
    rng = np.random.default_rng(5)
    n, K = 400, 3
    held = rng.normal(size=(2, n, 1)) + np.cumsum(rng.random((2, n, K)), axis=2)
    level = rng.integers(0, K, n)
    log = log_from_arrays(
        np.zeros((n, 1)), level, (rng.random(n) < sigmoid(held[0, np.arange(n), level])).astype(float)
    )
    fold, members = assign_folds(log, 5), Members(held, [NONE, NONE])
    turned = replace(log, response=np.where(fold == 2, 1 - log.response, log.response))
    curves, others = (blend_held_out(members, one, fold)[0] for one in (log, turned))
    assert np.array_equal(curves[fold == 2], others[fold == 2])
    assert not np.allclose(curves[fold == 1], others[fold == 1])
    assert (np.diff(curves, axis=1) >= 0).all()
    # The blend of all rows says nearly the same of them.
    whole = unlink(choose_blend(members, log, fold)[0].scores(held), Link(True))
    assert np.abs(curves - whole).max() < 0.15
