import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from largesse.data import read_log
from largesse.errors import InputError, MissingPackageError
from largesse.levels import Levels
from largesse.policy import Policy
from largesse.records import Customers
from largesse.response import SIRE, Additive
from largesse.response.ensemble_calibration import ScoreCalibration
from largesse.response.networks.doubly_robust_correction import CurveCorrection
from largesse.response.networks.fitted_networks import FoldNetworkEnsemble, ResponseScale
from largesse.response.networks.network_settings import NetworkShape
from support.exports import (
    MODELS,
    POLICIES,
    assert_same,
    draw_customers,
    draw_log,
    expect,
    fitted,
    make_policy,
    odd_customers,
)

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")


def run_onnx(model: bytes, inputs: dict[str, Any]) -> dict[str, Any]:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, inputs), strict=True))


@pytest.mark.parametrize("kind", POLICIES)
def test_onnx_runtime_decides_like_the_policy(kind: str) -> None:
    policy, table = POLICIES[kind](), odd_customers(3000 if kind in MODELS else 500)
    model = policy.to_onnx()
    onnx.checker.check_model(model)
    assert_same(run_onnx(model, policy.onnx_inputs(table)), policy, table)


def test_a_customer_without_own_costs_gets_no_level() -> None:
    policy = make_policy("linear", levels=Levels(costs=["cost a", 'cost "b"', "order"]))
    own = 5.0 * np.arange(3) + np.random.default_rng(0).uniform(0, 5, (300, 3))
    customers = Customers(draw_customers(300, 5, odd=True).drop_columns(["customer"]), None, own)
    inputs = policy.onnx_inputs(customers)
    assert_same(run_onnx(policy.to_onnx(), inputs), policy, customers)
    inputs["order"][0] = np.nan
    found = run_onnx(policy.to_onnx(), inputs)
    assert (found["level_number"][0], found["level"][0]) == (-1, "")


def random_network(head: str, bounded: bool) -> SIRE:
    """Return a model whose networks have random weights: as good as trained ones to compare two programs."""
    from largesse.response.networks.layers import parameter_shapes

    log, rng = draw_log(), np.random.default_rng(0)
    model = SIRE(head=head)
    model.encoder_, model.levels_, model.binary_, model.amounts_ = fitted("linear").encoder_, 4, True, None
    model.fingerprint_, model.choices_ = log.fingerprint, ()
    shape = NetworkShape(len(model.encoder_.names), 4, head, 8, 2, "elu", True, bounded)
    params = {name: rng.normal(0, 0.3, (4, *size)).astype(np.float32) for name, size in parameter_shapes(shape).items()}
    correction = CurveCorrection("slope", rng.normal(0, 0.02, (2, 4 + 16)), rng.normal(size=(2, 8)), np.ones((2, 8)))
    gate, scale = np.ones(4, dtype=np.float32), ResponseScale(bounded, 0.5, 2.0)
    model.fit_ = FoldNetworkEnsemble(shape, scale, params, gate, 2, 0.0, 0.0, ScoreCalibration(1.2, 0.1), correction)
    return model


@pytest.mark.parametrize(
    ("head", "bounded"),
    [("elastic", True), ("cdf", True), ("free", False)]
    + [
        pytest.param(head, bounded, marks=pytest.mark.slow)
        for head in ("shrunk", "increments", "concave", "minmax")
        for bounded in (True, False)
    ],
)
def test_networks_differ_by_float32_only(head: str, bounded: bool) -> None:
    table = odd_customers()
    model = random_network(head, bounded)
    policy = Policy(model, draw_log().levels).calibrate(table.drop_columns(["customer"]), 6.0)
    with pytest.raises(InputError, match=r"network .*SQL"):
        policy.to_sql()
    found = run_onnx(policy.to_onnx(), policy.onnx_inputs(table))
    levels, response, _ = expect(policy, table)
    same = found["level_number"] == levels
    assert same.mean() > 0.998
    near = np.abs(response) < 1e3  # numbers far outside the log's lead networks anywhere
    np.testing.assert_allclose(found["expected_response"][same & near], response[same & near], rtol=1e-4, atol=1e-5)


def test_a_model_file_says_what_it_wants(tmp_path: Path) -> None:
    policy = make_policy("additive")
    model = policy.to_onnx(tmp_path / "policy.onnx")
    assert (tmp_path / "policy.onnx").read_bytes() == model == policy.to_onnx()
    told = json.loads(onnx.load(tmp_path / "policy.onnx").metadata_props[0].value)
    assert told["missing_text"] == "<missing>"  # the empty text is one of the cities
    assert told["inputs"]["since"] == "seconds"
    assert told["inputs"]["group by"] == "text"
    assert told["levels"] == list(policy.levels.labels)


@pytest.mark.parametrize("name", ["level", ""])
def test_a_feature_may_have_the_name_of_an_output_or_none(name: str) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.normal(size=90), "k": rng.integers(0, 2, 90), "r": rng.random(90)})
    log = read_log(table, level="k", response="r", levels=Levels(costs=[0, 1]), features=[name])
    policy = Policy(Additive(knots=2).fit(log), log.levels, price=0.01)
    found = run_onnx(policy.to_onnx(), policy.onnx_inputs(log))
    assert np.array_equal(found["level_number"], policy.decide(log))


def test_without_onnx_or_a_price_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match="no price"):
        replace(make_policy("linear"), price=None).to_onnx(tmp_path / "policy.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingPackageError, match=r"largesse\[export\]"):
        make_policy("linear").to_onnx(tmp_path / "policy.onnx")
    assert not list(tmp_path.iterdir())


def test_a_word_that_stands_for_missing_text_is_only_a_word_when_a_customer_has_it() -> None:
    policy = make_policy("linear")
    table = draw_customers(40, 5, odd=True)
    words = ["<missing>", None, "", "<missing>'"] * 10
    table = table.set_column(table.column_names.index("group by"), "group by", pa.array(words))
    assert_same(run_onnx(policy.to_onnx(), policy.onnx_inputs(table)), policy, table)
