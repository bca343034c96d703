"""Nested labels as a log of incentives: the log, the value of plans, and the labelled rows."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.records import Array
from largesse_lab.nested_label_logs import (
    generate_labelled_rows,
    has_nested_file,
    make_bandit,
    project_features_to_level_scores,
    read_labelled_rows,
)


def labelled(n: int = 300, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 6)), rng.integers(0, 5, n)


def test_the_finest_label_is_the_cheapest_and_broader_ones_are_right_more_often() -> None:
    X, depth = labelled(500)
    nested = make_bandit(X, depth)
    assert nested.log.levels.labels == ("insect", "arthropod", "invertebrate", "animal")
    assert nested.costs.tolist() == [0, 1, 2, 3]
    expected = {0: [0, 0, 0, 0], 1: [0, 0, 0, 1], 2: [0, 0, 1, 1], 3: [0, 1, 1, 1], 4: [1, 1, 1, 1]}
    assert nested.truth.tolist() == [expected[int(d)] for d in depth[nested.rows[400:]]]
    logged = nested.rows[:400]
    assert nested.log.response.tolist() == (nested.log.level >= 4 - depth[logged]).astype(float).tolist()
    np.testing.assert_allclose(nested.log.features.column(0).to_numpy(), X[logged, 0].astype(np.float32))
    assert (len(nested.log), int(nested.validation.sum()), len(nested)) == (400, 100, 100)
    assert sorted(nested.rows.tolist()) == list(range(500))


def test_a_seed_draws_the_split_and_the_labels_but_not_the_policy() -> None:
    one, same, other = (make_bandit(*labelled(), seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.rows, same.rows)
    assert np.array_equal(one.log.level, same.log.level)
    assert not np.array_equal(one.rows, other.rows)
    by_row = [dict(zip(n.rows.tolist(), n.propensities.tolist(), strict=False)) for n in (one, other)]
    shared = by_row[0].keys() & by_row[1].keys()
    assert len(shared) > 100
    assert all(by_row[0][row] == by_row[1][row] for row in shared)


@pytest.mark.parametrize("projection", ["pca", "random"])
def test_levels_are_given_in_proportion_to_projections_that_fill_zero_to_ten(projection: str) -> None:
    X, depth = labelled(20_000)
    scores = project_features_to_level_scores(X, 4, projection)
    assert scores.min() > 0
    np.testing.assert_allclose(scores.max(axis=0), 10)
    nested = make_bandit(X, depth, projection=projection)
    logged = scores[nested.rows[: len(nested.log)]]
    np.testing.assert_allclose(nested.propensities, logged / logged.sum(axis=1, keepdims=True), rtol=1e-5)
    given = nested.propensities[np.arange(len(nested.log)), nested.log.level]
    np.testing.assert_array_equal(nested.log.propensity, given)
    shares = np.bincount(nested.log.level, minlength=4) / len(nested.log)
    np.testing.assert_allclose(shares, nested.propensities.mean(axis=0), atol=0.01)


def test_own_directions_are_followed_a_mix_keeps_every_level_and_constant_features_are_harmless() -> None:
    X, depth = labelled()
    nested = make_bandit(X, depth, projection=np.eye(6)[:, :4], mix=0.2)
    assert nested.propensities.min() >= 0.05
    assert np.corrcoef(X[nested.rows[: len(nested.log)], 0], nested.propensities[:, 0])[0, 1] > 0.5
    assert make_bandit(np.ones_like(X), depth).propensities == pytest.approx(0.25)


def test_the_oracle_is_the_best_of_all_plans_where_costs_rise_unevenly() -> None:
    nested = make_bandit(*labelled(30, seed=2), costs=(0, 1, 4, 5))
    best = {0.5: 0.0, 1.5: 0.0, 3.0: 0.0}
    for plan in product(range(4), repeat=len(nested)):
        spend, value = nested.costs[list(plan)].mean(), nested.value(np.array(plan))
        best = {budget: max(b, value) if spend <= budget else b for budget, b in best.items()}
    for budget, value in best.items():
        # One customer of six may be split between two levels.
        assert value - 1e-12 <= nested.oracle_value(budget) <= value + 1 / 6


INVALID = [
    pytest.param({"nested_level": np.zeros(3, int)}, "give one depth per row", id="too few depths"),
    pytest.param({"nested_level": np.full(300, 5)}, r"holds \[5\], which are not 0..4", id="too deep"),
    pytest.param({"nested_level": np.full(300, -1)}, r"holds \[-1\]", id="negative depth"),
    pytest.param({"nested_level": np.full(300, 1.5)}, r"holds \[1.5\]", id="fractional depth"),
    pytest.param({"nested_level": np.full(300, "insect")}, "which are not 0..4", id="names"),
    pytest.param({"features": np.zeros((0, 3)), "nested_level": np.zeros(0, int)}, "at least one row", id="empty"),
    pytest.param({"features": np.full((300, 2), np.nan)}, "300 of 300 rows", id="missing features"),
    pytest.param({"features": np.full((300, 2), "text")}, "embed images or text first", id="text"),
    pytest.param({"costs": (3, 2, 1, 0)}, "do not rise", id="falling costs"),
    pytest.param({"labels": ("insect",)}, "1 labels for 4 costs", id="too few labels"),
    pytest.param({"split": (0.5, 0.2, 0.2)}, "sum to one", id="split"),
    pytest.param({"split": (1.0, 0.0, 0.0)}, "leave a part empty", id="empty part"),
    pytest.param({"projection": "pcs"}, "did you mean 'pca'", id="projection"),
    pytest.param({"projection": np.zeros((2, 2))}, r"of shape \(6, 4\)", id="directions"),
    pytest.param({"mix": 2.0}, "between 0 and 1", id="mix"),
    pytest.param({"seed": -1}, "zero or more", id="seed"),
    pytest.param({"costs": (3, 2), "mix": 2.0, "nested_level": np.zeros(300, int)}, "3 things are wrong", id="all"),
]


@pytest.mark.parametrize(("change", "message"), INVALID)
def test_invalid_input_is_refused(change: dict[str, Any], message: str) -> None:
    X, depth = labelled()
    arguments: dict[str, Any] = {"features": X, "nested_level": depth, **change}
    with pytest.raises(InputError, match=message):
        make_bandit(arguments.pop("features"), arguments.pop("nested_level"), **arguments)


# -- labelled rows -----------------------------------------------------------------------------------------------------


def test_files_are_read_and_invalid_ones_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, depth = labelled(50)
    np.savez(tmp_path / "mine.npz", X=X.astype(np.float16), level=depth.astype(np.int8))
    labels = read_labelled_rows(tmp_path / "mine.npz")
    assert labels.nested_level.tolist() == depth.tolist()
    assert labels.features.dtype == np.float32
    np.savez(tmp_path / "half.npz", X=np.eye(3))
    (tmp_path / "broken.npz").write_text("no zip", encoding="utf-8")
    np.savez(tmp_path / "objects.npz", X=np.array([{}], dtype=object), level=np.zeros(1))
    messages = {"half": "does not hold 'level'", "none": "there is no file"}
    for name, message in {**messages, "broken": "cannot be read", "objects": "cannot be read"}.items():
        with pytest.raises(InputError, match=message):
            read_labelled_rows(tmp_path / f"{name}.npz")
    monkeypatch.setenv("LARGESSE_DATA", str(tmp_path / "nowhere"))
    assert not has_nested_file("images")
    with pytest.raises(InputError, match="set LARGESSE_DATA"):
        read_labelled_rows("images")


def test_generated_rows_have_the_shares_of_the_images_and_separate_labels() -> None:
    rows = generate_labelled_rows(4608)
    assert np.bincount(rows.nested_level).tolist() == [4189, 105, 105, 105, 104]
    assert not np.array_equal(
        generate_labelled_rows(100, seed=1).features, generate_labelled_rows(100, seed=2).features
    )
    centres = np.array([rows.features[rows.nested_level == d].mean(axis=0) for d in range(1, 5)])
    assert (np.linalg.norm(np.diff(centres, axis=0), axis=1) > 3).all()
    with pytest.raises(InputError, match="ten or more"):
        generate_labelled_rows(3)


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(("name", "width"), [("images", 1280), ("text", 384)])
def test_the_real_sets_have_the_documented_counts(name: str, width: int) -> None:
    if not has_nested_file(name):
        pytest.skip(f"the {name} data are missing: set LARGESSE_DATA")
    rows = read_labelled_rows(name)
    assert rows.features.shape == (4608, width)
    assert np.bincount(rows.nested_level).tolist() == [4189, 105, 105, 105, 104]
    nested = make_bandit(rows.features, rows.nested_level)
    assert (len(nested.log), len(nested)) == (3686, 922)
    assert nested.oracle_value(1) > nested.uniform_value(1)
