from pathlib import Path

import numpy as np
import pytest

from largesse.errors import InputError
from largesse_lab.nested.bandit import make_bandit
from largesse_lab.nested.labelled import generate_nested, has_nested, read_nested


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, depth = rng.normal(size=(50, 6)), rng.integers(0, 5, 50)
    np.savez(tmp_path / "mine.npz", X=X.astype(np.float16), level=depth.astype(np.int8))
    found = read_nested(tmp_path / "mine.npz")
    assert found.nested_level.tolist() == depth.tolist()
    assert found.features.dtype == np.float32


def test_files_that_are_missing_incomplete_or_broken_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "half.npz", X=np.eye(3))
    (tmp_path / "broken.npz").write_text("no zip", encoding="utf-8")
    np.savez(tmp_path / "objects.npz", X=np.array([{}], dtype=object), level=np.zeros(1))
    for name, said in {
        "half.npz": "does not hold 'level'",
        "none.npz": "there is no file",
        "broken.npz": "cannot be read",
        "objects.npz": "cannot be read",
    }.items():
        with pytest.raises(InputError, match=said):
            read_nested(tmp_path / name)
    monkeypatch.setenv("LARGESSE_DATA", str(tmp_path / "nowhere"))
    assert not has_nested("images")
    with pytest.raises(InputError, match="set LARGESSE_DATA"):
        read_nested("images")


def test_generated_rows_have_the_shares_of_the_images_and_can_be_told_apart() -> None:
    made = generate_nested(4608)
    assert np.bincount(made.nested_level).tolist() == [4189, 105, 105, 105, 104]
    assert not np.array_equal(generate_nested(100, seed=1).features, generate_nested(100, seed=2).features)
    centres = np.array([made.features[made.nested_level == d].mean(axis=0) for d in range(1, 5)])
    assert (np.linalg.norm(np.diff(centres, axis=0), axis=1) > 3).all()
    with pytest.raises(InputError, match="ten or more"):
        generate_nested(3)


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(("name", "width"), [("images", 1280), ("text", 384)])
def test_the_real_sets_have_the_counts_that_are_documented(name: str, width: int) -> None:
    if not has_nested(name):
        pytest.skip(f"the {name} data are not here: set LARGESSE_DATA")
    found = read_nested(name)
    assert found.features.shape == (4608, width)
    assert np.bincount(found.nested_level).tolist() == [4189, 105, 105, 105, 104]
    made = make_bandit(found.features, found.nested_level)
    assert (len(made.log), len(made)) == (3686, 922)
    assert made.oracle_value(1) > made.uniform_value(1)
