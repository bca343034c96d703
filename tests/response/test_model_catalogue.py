"""One list of models feeds campaign files, help texts and saved policies."""

from pathlib import Path
from typing import Annotated, final

import numpy as np
import pytest

import largesse as lg
from largesse.campaign import read_campaign
from largesse.errors import InputError
from largesse.io import ArraySpec
from largesse.pipeline import run
from largesse.records import Array, Log
from largesse.response.model_catalogue import MODEL_CATALOGUE, CatalogueEntry, check_model_name, list_models, make_model
from largesse.response.response_model import ResponseModel
from largesse.response.stacking import Stack


@final
class LevelMeans(ResponseModel):
    """The mean response of every level, the same for everybody."""

    means_: Annotated[Array, ArraySpec("K")]

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def _learn(self, _: Array, log: Log) -> None:
        levels = range(len(log.levels))
        self.means_ = np.array([log.response[log.level == k].mean() for k in levels])

    def _curves(self, X: Array) -> Array:
        return np.tile(self.means_, (len(X), 1))


def test_a_new_model_costs_a_class_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODEL_CATALOGUE, "means", CatalogueEntry(LevelMeans, "the mean response of every level"))
    sim = lg.simulate("averaged", n=400)
    model = make_model("means", seed=2).fit(sim.log)
    lg.Policy(model, sim.log.levels, price=0.05).save(tmp_path / "policy")
    again = lg.Policy.load(tmp_path / "policy")
    assert np.array_equal(again.model.predict(sim.features), model.predict(sim.features))
    assert again.model.get_params() == {"seed": 2}


def test_a_campaign_runs_with_a_new_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    import pyarrow.csv as pc

    monkeypatch.setitem(MODEL_CATALOGUE, "means", CatalogueEntry(LevelMeans, "the mean response of every level"))
    sim = lg.simulate("averaged", n=300)
    columns = {f"x{j}": sim.features[:, j] for j in range(3)}
    pc.write_csv(pa.table({**columns, "coupon": sim.level, "bought": sim.response}), tmp_path / "log.csv")
    (tmp_path / "campaign.toml").write_text(
        'log = "log.csv"\n[columns]\nlevel = "coupon"\nresponse = "bought"\n[levels]\ncosts = [0, 1, 2, 3, 4]\n'
        '[plan]\nbudget = 1.7\n[model]\nname = "means"\n',
        encoding="utf-8",
    )
    shown = run(read_campaign(tmp_path / "campaign.toml"), tmp_path / "run")
    assert shown["model"]["name"] == "LevelMeans"
    assert isinstance(lg.Policy.load(tmp_path / "run" / "policy.largesse").model, LevelMeans)


def test_every_model_is_made_with_the_seed_also_inside() -> None:
    for name, entry in list_models().items():
        model = make_model(name, seed=7)
        assert type(model) is entry.kind
        assert {value for key, value in model.get_params().items() if key.split("__")[-1] == "seed"} == {7}
    assert isinstance(make_model("auto"), Stack)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    for name, hint in (
        ("linaer", "'linear'"),
        ("stack", "'auto'"),
        ("two_part", "'hurdle'"),
        ("cfrnet", "largesse experiment"),
    ):
        with pytest.raises(InputError, match=hint):
            check_model_name(name)


def test_sentences_are_sentences() -> None:
    for entry in MODEL_CATALOGUE.values():
        assert entry.about == entry.about.strip()
        assert not entry.about.endswith(".")
        assert issubclass(entry.kind, ResponseModel)
