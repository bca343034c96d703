"""The checks of a log: levels, randomisation, balance, weights, order, leaks and clusters."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse.data.log_reader import log_from_arrays, read_log
from largesse.evaluation.log_checks import check_log, doctor, find_leaks, measure_explained_share
from largesse.evaluation.overlap_and_balance import grade_level_overlap, measure_overlap
from largesse.evaluation.policy_evaluation import evaluate
from largesse.evaluation.randomisation_check import run_independence_test
from largesse.levels import Levels
from largesse.propensity.propensity_estimation import encode_propensity_features
from largesse.records import Array, Checkup, Log, Overlap, Propensities
from largesse.worlds.paper_simulations import simulate

N = 1000
RNG = np.random.default_rng(0)
LEVEL, RESPONSE = np.arange(N) % 3, RNG.integers(0, 2, N).astype(float)
NOISE = RNG.normal(size=N)


def randomised(n: int = 1200, seed: int = 0) -> Log:
    log = simulate("averaged", n=n, seed=seed, mix=1.0).log
    return replace(log, propensity=None, features=log.features.select([f"x{j}" for j in range(8)]))


@pytest.fixture(scope="module")
def plain() -> Log:
    return randomised()


@pytest.fixture(scope="module")
def confounded() -> tuple[Log, Checkup]:
    log = replace(simulate("confounded", n=1200, seed=1, mix=0.2).log, propensity=None)
    return log, doctor(log)


def answers(found: Checkup) -> dict[str, str]:
    """The answer to every topic, the most serious where there are several."""
    return {finding.topic: finding.answer for finding in reversed(found.findings)}


def text(found: Checkup, topic: str) -> str:
    return next(finding.text for finding in found.findings if finding.topic == topic)


def test_a_randomised_log_with_known_propensities_is_fine_throughout(plain: Log) -> None:
    found = doctor(replace(plain, propensity=np.full(len(plain), 0.2)))
    assert found.randomised
    assert set(answers(found).values()) == {"fine"}
    assert found.warnings == ()
    assert "Checkup(1,200 rows, fine" in repr(found)


def test_estimated_propensities_are_a_note_and_the_log_stays_fine(plain: Log) -> None:
    found = doctor(plain)
    assert found.answer == "fine"
    (note,) = found.warnings
    assert (note.topic, note.answer) == ("propensities", "note")
    assert "were estimated from the features" in note.text


def test_an_evaluation_warns_of_missing_overlap_and_leaves_the_rest_to_the_checkup(plain: Log) -> None:
    short = replace(plain.take(np.arange(150)), notes=("a note",))
    warned = evaluate(short, np.zeros(150, dtype=int)).warnings
    assert {finding.topic for finding in warned} == {"rows of each level", "propensities"}
    assert set(warned) < set(doctor(short).warnings)


def test_a_confounded_log_is_not_randomised(confounded: tuple[Log, Checkup]) -> None:
    _, found = confounded
    assert not found.randomised
    assert answers(found)["randomisation"] == "careful"
    assert "not randomised" in text(found, "randomisation")
    assert found.overlap.before.max() > 2 * found.overlap.after.max()


def test_given_propensities_that_explain_the_levels_are_fine() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(4000, 2))
    high = np.where(x[:, 0] > 0, 0.7, 0.3)
    level = (rng.random(4000) < high).astype(int)
    given = np.where(level == 1, high, 1 - high)
    log = log_from_arrays(x, level, rng.integers(0, 2, 4000), propensity=given)
    found = doctor(log)
    assert answers(found)["randomisation"] == "fine"
    assert "account for it" in text(found, "randomisation")
    wrong = doctor(replace(log, propensity=np.full(4000, 0.5)))
    assert answers(wrong)["randomisation"] == "careful"


def test_a_level_with_five_rows_is_a_no(plain: Log) -> None:
    keep = np.ones(len(plain), dtype=bool)
    keep[np.flatnonzero(plain.level == 3)[5:]] = False
    found = doctor(plain.take(keep))
    assert found.findings[0].topic == "rows of each level"
    assert found.answer == "no"
    assert "'level 3' (5 rows" in found.findings[0].text
    assert "too little data" in found.findings[0].text


def test_a_planted_leak_is_a_no(plain: Log) -> None:
    after = plain.response + np.random.default_rng(0).normal(scale=0.1, size=len(plain))
    found = doctor(replace(plain, features=plain.features.append_column("after", [after])))
    assert answers(found)["suspicious features"] == "no"
    assert "'after' explains" in text(found, "suspicious features")


def test_a_suspicious_feature_that_was_known_before_is_answered(plain: Log) -> None:
    rng = np.random.default_rng(0)
    features = plain.features.append_column("after", [plain.response + rng.normal(scale=0.1, size=len(plain))])
    log = replace(plain, features=features, known_before=("after",))
    found = doctor(log)
    assert answers(found)["suspicious features"] == "fine"
    assert "'after' explains" in text(found, "suspicious features")
    both = replace(log, features=features.append_column("later", [plain.response]))
    assert answers(doctor(both))["suspicious features"] == "no"
    assert "'after'" not in text(doctor(both), "suspicious features")


def check_rates(rates: list[float], n: int, seed: int = 3, **more: Any) -> Checkup:
    """Check a randomised log whose levels have these rates of response."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, len(rates), n)
    response = rng.random(n) < np.array(rates)[level]
    known = Propensities(np.full(n, 1 / len(rates)), "given")
    return check_log(log_from_arrays(rng.normal(size=(n, 2)), level, response, **more), known)


def test_a_clear_fall_is_a_no_that_doubts_the_order() -> None:
    found = check_rates([0.5, 0.3, 0.5], 3000)
    assert found.findings[0].topic == "order of levels"
    assert answers(found)["order of levels"] == "no"
    assert "from 'level 0' to 'level 1'" in text(found, "order of levels")
    assert "The levels may be in the wrong order" in text(found, "order of levels")


def test_a_fall_that_may_still_be_chance_asks_for_care() -> None:
    found = check_rates([0.5, 0.43, 0.5], 3000)
    assert answers(found)["order of levels"] == "careful"
    assert "wrong order" not in text(found, "order of levels")


def test_a_slow_fall_over_many_levels_is_seen() -> None:
    assert answers(check_rates(list(np.linspace(0.6, 0.4, 9)), 6000))["order of levels"] == "no"


def test_a_flat_curve_is_hardly_ever_called_falling() -> None:
    flat = [answers(check_rates([0.4] * 5, 300, seed))["order of levels"] for seed in range(40)]
    assert flat.count("fine") >= 37
    assert "no" not in flat


def test_a_fall_is_judged_after_weighting_by_propensities() -> None:
    rng = np.random.default_rng(0)
    risky = rng.integers(0, 2, 6000)
    chance = np.where(risky == 1, 0.9, 0.1)
    level = (rng.random(6000) < chance).astype(int)
    response = rng.random(6000) < 0.6 - 0.4 * risky + 0.05 * level  # those who buy less get more
    own = Propensities(np.where(level == 1, chance, 1 - chance), "given")
    log = log_from_arrays(risky[:, None].astype(float), level, response)
    assert log.response[log.level == 1].mean() < log.response[log.level == 0].mean() - 0.2
    assert answers(check_log(log, own))["order of levels"] == "fine"


def test_a_level_of_three_rows_says_nothing_about_falling_and_is_no_certain_zero() -> None:
    level = np.repeat([0, 1, 2], [500, 497, 3])
    response = np.where(level == 2, 0, np.arange(N) % 2)
    found = checked(two_levels(level=level, response=response))
    assert answers(found)["order of levels"] == "fine"
    for mean in (found.raw[2], found.weighted[2]):
        assert (mean.estimate, mean.low) == (0.0, 0.0)
        assert mean.high == pytest.approx(0.7076, abs=1e-3)  # 1 − 0.025^(1/3)


def test_rows_of_one_cluster_that_agree_count_once() -> None:
    level = np.repeat([0, 1], [900, 100])
    log = two_levels(level=level, response=level, cluster=np.repeat([1, 2, 3, 4], [300, 300, 300, 100]))
    assert checked(log).raw[1].low == pytest.approx(0.025)
    assert checked(log).raw[0].high == pytest.approx(0.7076, abs=1e-3)


def test_an_amount_that_never_varies_has_no_interval() -> None:
    level = np.repeat([0, 1], [900, 100])
    found = checked(two_levels(level=level, response=np.where(level == 1, 2.5, np.arange(N) % 7)))
    assert found.raw[1].estimate == 2.5
    assert np.isnan([found.raw[1].low, found.raw[1].high, found.weighted[1].low]).all()
    assert np.isfinite([found.raw[0].low, found.weighted[0].low]).all()


def test_what_was_measured_on_a_sample_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = checked(two_levels())
    assert "sample" not in " ".join(finding.text for finding in whole.findings)
    limits = {
        "log_checks.MAX_BALANCE_ROWS": 400,
        "randomisation_check.MAX_TEST_ROWS": 300,
        "log_checks.MAX_LEAK_ROWS": 200,
    }
    for name, rows in limits.items():
        monkeypatch.setattr(f"largesse.evaluation.{name}", rows)
    found = checked(two_levels())
    assert "in a sample of 400 rows" in text(found, "balance")
    assert "on a sample of 300 rows" in text(found, "randomisation")
    assert "on a sample of 200 rows" in text(found, "suspicious features")
    np.testing.assert_array_equal(found.overlap.rows, whole.overlap.rows)
    np.testing.assert_array_equal(found.overlap.counts, whole.overlap.counts)
    assert (found.raw, found.weighted) == (whole.raw, whole.weighted)


def test_raw_means_and_intervals_are_those_of_the_rows(plain: Log) -> None:
    found = doctor(plain)
    for k in range(5):
        own = plain.response[plain.level == k]
        assert found.raw[k].estimate == pytest.approx(own.mean())
        assert found.raw[k].se == pytest.approx(own.std(ddof=1) / np.sqrt(len(own)))
        assert abs(found.weighted[k].estimate - own.mean()) < 2 * found.raw[k].se


def test_balance_is_measured_for_every_feature_and_level(confounded: tuple[Log, Checkup]) -> None:
    log, found = confounded
    seen = found.overlap
    assert seen.by_level.shape == (2, len(seen.features), 5)
    np.testing.assert_allclose(np.abs(seen.by_level[0]).max(axis=1), seen.before)
    column = np.asarray(log.features.column(seen.features[0]))
    own = column[log.level == 4].mean() - column.mean()
    assert seen.by_level[0, 0, 4] == pytest.approx(own / column.std(), abs=1e-3)


def two_levels(**more: Any) -> Log:
    """A randomised log of two levels, with a feature that says nothing."""
    rng = np.random.default_rng(5)
    given: dict[str, Any] = {"level": np.arange(N) % 2, "response": rng.integers(0, 2, N), **more}
    return log_from_arrays(rng.normal(size=(N, 1)), **given)


def checked(log: Log, propensity: Array | None = None, **more: Any) -> Checkup:
    own = np.full(len(log), 0.5) if propensity is None else propensity
    return check_log(log, Propensities(own, "given", **more))


def test_few_effective_rows_ask_for_care() -> None:
    propensity = np.full(N, 0.5)
    propensity[1:9:2] = 0.015
    found = checked(two_levels(), propensity)
    assert answers(found)["rows of each level"] == "careful"
    assert "'level 1' (500 rows, worth" in text(found, "rows of each level")


def test_a_very_small_propensity_asks_for_care() -> None:
    propensity = np.full(N, 0.5)
    propensity[0] = 0.009
    found = checked(two_levels(), propensity)
    assert answers(found)["rows of each level"] == "careful"
    assert "'level 0' (500 rows" in text(found, "rows of each level")
    assert "smallest propensity 0.009" in text(found, "rows of each level")
    assert "'level 1'" not in text(found, "rows of each level")


def test_levels_with_too_few_and_with_few_rows_are_named_apart() -> None:
    level = np.repeat([0, 1, 2], [900, 60, 12])
    log = log_from_arrays(np.random.default_rng(0).normal(size=(972, 1)), level, np.arange(972) % 2)
    rows = [f for f in checked(log).findings if f.topic == "rows of each level"]
    assert [(finding.answer, "'level 1'" in finding.text, "'level 2'" in finding.text) for finding in rows] == [
        ("no", False, True),
        ("careful", True, False),
    ]


def test_weight_on_few_rows_asks_for_care() -> None:
    heavy, mild = np.full(N, 0.5), np.full(N, 0.5)
    heavy[:10], mild[:10] = 0.025, 0.1
    found = checked(two_levels(), heavy)
    assert answers(found)["weights"] == "careful"
    assert "the 1 % of rows with the largest weights have 17 % of the weight" in text(found, "weights")
    assert answers(checked(two_levels(), mild))["weights"] == "fine"


def test_row_weights_count_too() -> None:
    weight = np.ones(N)
    weight[:10] = 50.0
    assert answers(checked(two_levels(weight=weight)))["weights"] == "careful"


def test_a_row_of_large_weight_is_named() -> None:
    given = np.full(N, 0.5)
    given[7] = 0.001
    found = checked(two_levels(), given)
    assert found.heavy[0].row == 7
    assert answers(found)["weights"] == "careful"
    assert "row 7 alone carries" in text(found, "weights")


def test_clipped_rows_are_a_note_when_few_and_ask_for_care_when_many() -> None:
    few, many = (checked(two_levels(), clipped=clipped) for clipped in (10, 11))
    assert (answers(few)["weights"], answers(many)["weights"]) == ("note", "careful")
    assert "10 rows had an estimated propensity below 1 %" in text(few, "weights")


@pytest.mark.parametrize(("clusters", "answer"), [(29, "careful"), (30, "fine")])
def test_few_clusters_ask_for_care(clusters: int, answer: str) -> None:
    found = checked(two_levels(cluster=7 * (np.arange(N) % clusters)))
    assert answers(found)["clusters"] == answer
    assert f"{clusters} clusters" in text(found, "clusters")


def test_imbalance_that_remains_after_weighting_asks_for_care() -> None:
    rng = np.random.default_rng(1)
    level = np.arange(N) % 2
    shifts = np.array([0.5, 0.0, 0.5, 0.5, 0.5])
    log = log_from_arrays(rng.normal(size=(N, 5)) + shifts * level[:, None], level, rng.integers(0, 2, N))
    found = checked(log)
    assert answers(found)["balance"] == "careful"
    assert "and others" in text(found, "balance")
    assert "'x1'" not in text(found, "balance")
    assert "has to stay" not in text(found, "balance")
    found = checked(log_from_arrays(rng.normal(size=(N, 1)) + 4.0 * level[:, None], level, rng.integers(0, 2, N)))
    assert "known before the level was chosen has to stay" in text(found, "balance")


def test_notes_of_the_reader_are_findings_too() -> None:
    found = checked(replace(two_levels(), notes=("3 rows left out",)))
    (note,) = found.warnings
    assert (note.answer, str(note)) == ("note", "3 rows left out.")


def test_the_most_serious_comes_first() -> None:
    level = np.repeat([0, 1], [N - 3, 3])
    log = replace(two_levels(level=level, cluster=np.arange(N) % 9), notes=("a note",))
    order = [finding.answer for finding in checked(log).findings]
    assert order == sorted(order, key=["no", "careful", "note", "fine"].index)
    assert {"no", "careful", "note", "fine"} <= set(order)


def test_a_face_value_times_an_amount_asks_for_care_unless_every_unit_is_paid_for(plain: Log) -> None:
    """A coupon of 2 that was redeemed with an order of 40 costs 80."""

    def costs_of(response: Array, on_redemption: bool | str) -> list[str]:
        levels = replace(plain.levels, on_redemption=on_redemption)
        found = doctor(replace(plain, response=response, levels=levels))
        return [finding.text for finding in found.findings if (finding.topic, finding.answer) == ("costs", "careful")]

    orders = 40.0 * plain.response
    paid = np.asarray(plain.levels.costs, dtype=float)[plain.level] * orders
    (warning,) = costs_of(orders, True)
    assert f"{paid.mean():,.4g} on average and up to {paid.max():,.4g}" in warning
    assert not costs_of(orders, "per unit")
    assert not costs_of(orders, False)
    assert not costs_of(plain.response, True)


def measured(log: Log, propensity: Array) -> Overlap:
    return measure_overlap(log, propensity, encode_propensity_features(log))


@pytest.mark.parametrize(
    ("rows", "effective", "smallest", "answer"),
    [
        (29, 29, 0.5, "no"),
        (500, 29, 0.5, "no"),
        (30, 30, 0.5, "careful"),
        (500, 99, 0.5, "careful"),
        (500, 400, 0.009, "careful"),
        (500, 100, 0.01, "fine"),
    ],
)
def test_whether_the_effect_of_a_level_can_be_estimated(
    rows: int, effective: float, smallest: float, answer: str
) -> None:
    assert grade_level_overlap(rows, effective, smallest) == answer


def test_rows_effective_rows_and_smallest_propensities_follow_their_formulas() -> None:
    rng = np.random.default_rng(0)
    level, given, weight = rng.integers(0, 3, 200), rng.uniform(0.05, 1, 200), rng.uniform(0.5, 2, 200)
    log = log_from_arrays(rng.normal(size=(200, 2)), level, rng.integers(0, 2, 200), weight=weight)
    seen = measured(log, given)
    for k in range(3):
        inverse = (weight / given)[level == k]
        assert seen.rows[k] == (level == k).sum()
        assert seen.effective[k] == pytest.approx(inverse.sum() ** 2 / (inverse**2).sum())
        assert seen.smallest[k] == given[level == k].min()
    assert (seen.effective <= seen.rows).all()
    assert seen.counts.sum() == 200
    assert seen.counts.shape == (3, len(seen.edges) - 1)


def test_equal_propensities_lose_no_rows() -> None:
    log = log_from_arrays(np.random.default_rng(1).normal(size=(90, 1)), np.arange(90) % 3, np.arange(90) % 2)
    np.testing.assert_allclose(measured(log, np.full(90, 1 / 3)).effective, 30)


def test_balance_is_the_largest_standardised_difference() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 2)) * [1, 50]
    level = (x[:, 0] + rng.normal(size=300) > 0).astype(int)
    log = log_from_arrays(x, level, rng.integers(0, 2, 300))
    seen = measured(log, np.full(300, 0.5))
    assert seen.features[0] == "x0"
    means = [x[level == k, 0].mean() for k in (0, 1)]
    expected = max(abs(mean - x[:, 0].mean()) for mean in means) / x[:, 0].std()
    assert seen.before[0] == pytest.approx(expected, rel=1e-4)
    assert seen.after == pytest.approx(seen.before)  # constant weights change nothing


def test_true_propensities_restore_the_balance() -> None:
    sim = simulate("instrument", n=20_000, seed=1, mix=0.3)
    seen = measured(sim.log, sim.propensity)
    assert len(seen.features) == 12
    assert seen.before.max() > 0.2
    assert seen.after.max() < 0.1


def test_a_text_feature_counts_once_by_its_worst_word() -> None:
    import pyarrow as pa

    city = np.array(["Oslo", "Rome", "Bonn"])[np.arange(300) % 3]
    level = (city == "Rome").astype(int)
    table = pa.table({"city": city, "age": np.arange(300.0)})
    seen = measured(log_from_arrays(table, level, np.arange(300) % 2), np.full(300, 0.5))
    assert seen.features == ("city", "age")
    assert seen.before[0] == pytest.approx(np.sqrt(0.5))  # a third of all at one level is none at the other


def test_constant_features_leave_an_empty_table() -> None:
    log = log_from_arrays(np.ones((20, 1)), np.arange(20) % 2, np.arange(20) // 2 % 2)
    seen = measured(log, np.full(20, 0.5))
    assert (seen.features, len(seen.before), len(seen.after)) == ((), 0, 0)


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)), rng


def test_the_test_errs_as_seldom_as_it_says() -> None:
    found = []
    for seed in range(200):
        X, rng = drawn(150, seed)
        found.append(run_independence_test(X, rng.integers(0, 3, 150), permutations=99, seed=seed).p)
    assert 0.02 <= np.mean(np.array(found) <= 0.05) <= 0.09
    assert 0.4 < np.mean(found) < 0.6


def test_shifted_means_are_seen() -> None:
    X, rng = drawn(600, 0)
    level = (X[:, 0] + 1.5 * rng.normal(size=600) > 0).astype(int)
    assert run_independence_test(X, level).p <= 0.002 < 0.01


def test_dependence_without_shifted_means_is_seen() -> None:
    X, rng = drawn(2000, 1)
    level = (np.abs(X[:, 0]) + 0.3 * rng.normal(size=2000) > 0.7).astype(int)
    X = X[:, :2]
    assert run_independence_test(X, level).p < 0.01


def test_levels_given_to_whole_clusters_are_permuted_by_cluster() -> None:
    """Villages were randomised: their people are alike and got the same level, which over rows would look like dependence."""
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        village = np.repeat(np.arange(40), 15)
        X = rng.normal(size=(40, 3))[village] + 0.3 * rng.normal(size=(600, 3))
        found.append(run_independence_test(X, rng.integers(0, 2, 40)[village], village, permutations=99, seed=seed))
    assert np.mean([d.p <= 0.05 for d in found]) <= 0.13
    assert found[0].units == 40


@pytest.mark.parametrize("X", [np.zeros((50, 0)), np.ones((50, 2))])
def test_features_that_say_nothing_follow_nothing(X: np.ndarray) -> None:
    assert run_independence_test(X, np.arange(50) % 2).p == 1.0


def test_one_level_alone_follows_nothing() -> None:
    assert run_independence_test(np.random.default_rng(0).normal(size=(50, 2)), np.zeros(50, dtype=int)).p == 1.0


def log_with(**columns: Any) -> Log:
    return log_from_arrays(pa.table({"noise": NOISE, **columns}), LEVEL, RESPONSE)


@pytest.mark.parametrize(
    "after",
    [
        RESPONSE + 0.05 * RNG.normal(size=N),
        np.where(RNG.random(N) < 0.02, 1 - RESPONSE, RESPONSE),
        np.where(RESPONSE > 0, "paid", "open"),
        pa.array([None if r else 3.5 for r in RESPONSE]),
        pa.array(np.where(RESPONSE > 0, 20_000, 10_000).astype("datetime64[D]")),
    ],
    ids=["noisy", "flipped", "text", "missing where bought", "date"],
)
def test_a_feature_that_nearly_equals_the_response_is_named(after: Any) -> None:
    (leak,) = find_leaks(log_with(after=after))
    assert (leak.feature, leak.of) == ("after", "response")
    assert leak.explained > 0.8


def test_a_feature_that_gives_away_the_level_is_named() -> None:
    (leak,) = find_leaks(log_with(code=np.array(["A", "B", "C"])[LEVEL]))
    assert (leak.feature, leak.of, leak.explained) == ("code", "level", pytest.approx(1))


def test_honest_features_are_not_named() -> None:
    words = RNG.integers(0, 400, N).astype(str)
    assert find_leaks(log_with(word=words, helpful=RESPONSE + 1.5 * RNG.normal(size=N), same=np.zeros(N))) == ()


def slowly_explained(code: np.ndarray, target: np.ndarray, half: np.ndarray) -> float:
    left = whole = 0.0
    for held in (0, 1):
        train, test = half != held, half == held
        for t in target.T:
            mean = t[train].mean()
            guess = np.array(
                [t[train & (code == c)].mean() if (train & (code == c)).any() else mean for c in code[test]]
            )
            left += ((t[test] - guess) ** 2).sum()
            whole += ((t[test] - mean) ** 2).sum()
    return max(1 - left / whole, 0.0)


def test_sums_over_groups_give_what_rows_give() -> None:
    rng = np.random.default_rng(4)
    code, half = rng.integers(0, 6, 80), rng.integers(0, 2, 80)
    target = 1000 + rng.normal(size=(80, 2)) + code[:, None]
    assert measure_explained_share(code, target, half) == pytest.approx(slowly_explained(code, target, half))


def test_customers_who_never_got_a_level_are_named() -> None:
    rng = np.random.default_rng(3)
    x, level = rng.integers(0, 3, (N, 1)), rng.integers(0, 3, N)
    assert answers(checked(log_from_arrays(x, level, rng.integers(0, 2, N))))["support"] == "fine"
    level[(x[:, 0] == 1) & (level == 2)] = 0
    found = checked(log_from_arrays(x, level, rng.integers(0, 2, N)))
    assert answers(found)["support"] == "careful"
    assert "'x0' is 1" in text(found, "support")
    assert found.unsupported.share == pytest.approx((x == 1).mean())


def test_a_rule_that_chose_the_levels_answers_no() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(N, 2))
    for score in (x[:, 0], x[:, 0] + x[:, 1]):  # a column, and a rule that no single column shows
        found = checked(log_from_arrays(x, np.searchsorted([-0.5, 0.5], score), rng.integers(0, 2, N)))
        assert answers(found)["support"] == "no"


def make_trial(villages: int = 80, rows: int = 2000, seed: int = 0, **roles: Any) -> Log:
    """A trial by village, whose people resemble each other in six features and the response."""
    rng = np.random.default_rng(seed)
    village = rng.integers(0, villages, rows)
    level = rng.permutation(np.arange(villages) % 4)[village]
    features = {f"x{j}": rng.normal(size=villages)[village] + 0.3 * rng.normal(size=rows) for j in range(6)}
    response = rng.random(rows) < 0.3 + 0.2 * (rng.normal(size=villages)[village] > 0)
    table = {**features, "village": village + 100, "level": level, "bought": response.astype(int)}
    levels = Levels(costs=[0, 1, 2, 3])
    return read_log(table, level="level", response="bought", levels=levels, features=list(features), **roles)


def test_a_trial_by_village_asks_for_its_cluster() -> None:
    found = doctor(make_trial())
    assert answers(found)["clusters"] == "careful"
    assert 'cluster = "village"' in text(found, "clusters")
    named = doctor(make_trial(cluster="village"))
    assert answers(named)["clusters"] == "fine"
    assert named.answer == "fine"
    assert (named.dependence.units, found.dependence.units) == (80, 2000)  # it is not assumed before it is named


def test_the_balance_of_a_trial_by_village_allows_for_its_few_villages() -> None:
    trials = [doctor(make_trial(60, seed=seed, cluster="village", propensity=[0.25] * 4)) for seed in range(20)]
    assert {answers(found)["balance"] for found in trials} == {"fine"}
    assert max(found.overlap.after.max() for found in trials) > 0.4  # by chance
    assert max(found.overlap.beyond_chance.max() for found in trials) == 0


def test_levels_that_look_randomised_are_offered_their_shares(plain: Log) -> None:
    shares = np.bincount(plain.level) / len(plain)
    assert f"propensities = [{shares[0]:.4g}, {shares[1]:.4g}" in text(doctor(plain), "randomisation")
    given = doctor(replace(plain, propensity=np.full(len(plain), 0.2)))
    assert "propensities =" not in text(given, "randomisation")


def test_levels_drawn_within_strata_are_offered_the_strata() -> None:
    rng = np.random.default_rng(7)
    region = rng.integers(0, 4, 4000)
    features = pa.table({"region": np.array(["N", "E", "S", "W"])[region], "x": rng.normal(size=4000) + 0.3 * region})
    level = (rng.random(4000) < np.array([0.2, 0.4, 0.6, 0.8])[region]).astype(int)
    found = doctor(log_from_arrays(features, level, rng.integers(0, 2, 4000)))
    assert not found.randomised
    assert 'propensity_strata = "region"' in text(found, "randomisation")
    by_x = (rng.random(4000) < 0.2 + 0.3 * region / 3 + 0.3 * (features["x"].to_numpy() > 0)).astype(int)
    assert "strata" not in text(doctor(log_from_arrays(features, by_x, rng.integers(0, 2, 4000))), "randomisation")
