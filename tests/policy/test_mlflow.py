import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.exports import draw_log, expect, make_policy, odd_customers

from largesse.errors import InputError, MissingPartError
from largesse.levels import Levels

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
flavour = pytest.importorskip("largesse.policy.mlflow")
pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow warns of itself when it is imported


def test_a_saved_policy_decides_as_before(tmp_path: Path) -> None:
    policy, table = make_policy("linear"), odd_customers(300)
    flavour.save_model(policy, tmp_path / "model")
    assert (tmp_path / "model" / "policy.largesse").exists() or (
        tmp_path / "model" / "data" / "policy.largesse"
    ).exists()
    assert not list((tmp_path / "model").rglob("*.pkl"))
    frame = table.to_pandas().drop(columns="customer")
    frame.index = frame.index + 1000
    found = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(frame)
    levels, response, cost = expect(policy, table)
    assert list(found.columns) == ["level", "level_number", "expected_response", "expected_cost"]
    assert np.array_equal(found["level_number"], levels)
    assert np.array_equal(found.index, frame.index)
    np.testing.assert_allclose(found["expected_response"], response)
    np.testing.assert_allclose(found["expected_cost"], cost)


def test_the_signature_names_features_and_costs(tmp_path: Path) -> None:
    levels = Levels(costs=["cost a", 'cost "b"', "order"])
    policy = make_policy("linear", levels=levels)
    flavour.save_model(policy, tmp_path / "model")
    told = mlflow.models.get_model_info(str(tmp_path / "model")).signature
    assert told.inputs.input_names() == [*policy.model.encoder_.features, *(levels.cost_columns or ())]
    log = draw_log("yes or no", levels)
    frame = log.features.to_pandas().assign(
        **dict(zip(levels.cost_columns or (), np.asarray(log.costs).T, strict=True))
    )
    found = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(frame)
    assert np.array_equal(found["level_number"], policy.decide(log))


def test_what_cannot_be_saved_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="is not a policy"):
        flavour.save_model("policy", tmp_path / "model")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("kept")
    with pytest.raises(InputError, match="already exists"):
        flavour.save_model(make_policy("linear"), tmp_path / "full")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setitem(sys.modules, "mlflow.pyfunc", None)
    with pytest.raises(MissingPartError, match="pip install mlflow-skinny"):
        flavour.save_model(make_policy("linear"), tmp_path / "model")


def test_warnings_of_mlflow_about_itself_stop_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mlflow").mkdir()
    (tmp_path / "mlflow" / "__init__.py").write_text("import warnings\nwarnings.warn('of itself')")
    (tmp_path / "mlflow" / "pyfunc.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "mlflow"]:
        monkeypatch.delitem(sys.modules, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert flavour._mlflow().__file__ == str(tmp_path / "mlflow" / "__init__.py")
