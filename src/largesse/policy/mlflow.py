"""An MLflow `pyfunc` flavour: a dataframe of customers in, a dataframe of decisions out.

What is saved is `policy.largesse`, the sealed archive that `Policy.save` writes: nothing is pickled.

    import largesse.policy.mlflow as flavour

    flavour.save_model(policy, "model")
    mlflow.pyfunc.load_model("model").predict(customers)
"""

from __future__ import annotations

import inspect
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largesse.errors import Problem, fail, repr_short, require_part
from largesse.policy.policy import Policy
from largesse.version import __version__

if TYPE_CHECKING:
    import pandas as pd

FILE = "policy.largesse"


def save_model(policy: Policy, path: str | Path, **settings: Any) -> None:
    """Write a policy to a new folder as an MLflow model; `settings` are those of `mlflow.pyfunc.save_model`."""
    mlflow = _mlflow()
    if Path(path).exists() and any(Path(path).iterdir() if Path(path).is_dir() else [path]):
        fail("mlflow", Problem(f"{path} already exists", "name a new folder"))
    with tempfile.TemporaryDirectory() as folder, _without_advice():
        mlflow.pyfunc.save_model(path=str(path), **_describe(policy, folder), **settings)


def save_mlflow(policy: Policy, path: str | Path) -> None:
    """Write a policy to a new folder as an MLflow model; see `save_model`."""
    save_model(policy, path)


def log_model(policy: Policy, name: str = "policy", **settings: Any) -> Any:
    """Log a policy to the current MLflow run; `settings` are those of `mlflow.pyfunc.log_model`."""
    mlflow = _mlflow()
    known = inspect.signature(mlflow.pyfunc.log_model).parameters
    place = {"name" if "name" in known else "artifact_path": name}
    with tempfile.TemporaryDirectory() as folder, _without_advice():
        return mlflow.pyfunc.log_model(**place, **_describe(policy, folder), **settings)


@contextmanager
def _without_advice() -> Iterator[None]:
    """Keep back the advice to give an example of customers: the signature says what they have."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*input example was not provided")
        yield


def _describe(policy: Any, folder: str) -> dict[str, Any]:
    """Return what MLflow is told of a policy, which is saved to a folder."""
    if not isinstance(policy, Policy):
        fail(
            "mlflow",
            Problem(f"{repr_short(policy)} is not a policy", "give a Policy: Policy.load('run/policy.largesse')"),
        )
    policy.save(Path(folder) / FILE)
    return {
        "loader_module": __name__,
        "data_path": str(Path(folder) / FILE),
        "signature": make_signature(policy),
        "pip_requirements": [f"largesse=={__version__}", "pandas"],
        "metadata": {
            "largesse": {"price": policy.price, "levels": list(policy.levels.labels), "kinds": _list_kinds(policy)}
        },
    }


def make_signature(policy: Policy) -> Any:
    """Return which columns a table of customers has, none of them required, and which come back.

    Columns are of any type: MLflow would refuse whole numbers where it was told of others, and text as categories. What the
    policy cannot read, it refuses itself, with what to do. The kinds are among the metadata.
    """
    _mlflow()
    from mlflow.models import ModelSignature
    from mlflow.types.schema import AnyType, ColSpec, Schema

    inputs = [ColSpec(AnyType(), name, required=False) for name in _list_kinds(policy)]
    outputs = {"level": "string", "level_number": "long", "expected_response": "double", "expected_cost": "double"}
    return ModelSignature(Schema(inputs), Schema([ColSpec(kind, name) for name, kind in outputs.items()]))


def _list_kinds(policy: Policy) -> dict[str, str]:
    """Return what every column of a table of customers holds: number, text or date."""
    return {**policy.model.encoder_.kinds, **dict.fromkeys(policy.levels.cost_columns or (), "number")}


class Decider:
    """What MLflow calls: a policy that takes and gives dataframes."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def predict(self, model_input: Any, params: Any = None) -> pd.DataFrame:  # noqa: ARG002 -- MLflow's signature
        """Return level, its number, expected response and cost of every customer, in the order of the table."""
        import pandas as pd

        told = self.policy.explain(model_input.reset_index(drop=True) if hasattr(model_input, "iloc") else model_input)
        rows = np.arange(len(told))
        found = {
            "level": [told.labels[level] for level in told.levels],
            "level_number": told.levels,
            "expected_response": told.curves[rows, told.levels],
            "expected_cost": told.costs[rows, told.levels],
        }
        return pd.DataFrame(found, index=getattr(model_input, "index", None))


def _load_pyfunc(data_path: str) -> Decider:
    """Return the policy that MLflow saved."""
    path = Path(data_path)
    return Decider(Policy.load(path / FILE if path.is_dir() else path))


def _mlflow() -> Any:
    require_part("mlflow.pyfunc", "", "mlflow", hint="pip install mlflow-skinny pandas")
    return require_part("mlflow", "", "mlflow")
