import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from largesse import cli
from largesse.campaign import read_campaign
from largesse.errors import InputError
from largesse.pipeline import export, fit
from largesse.policy import Policy
from support.exports import run_duckdb


def test_sql_of_a_run_decides_like_its_policy(ran: Path, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    shown = export(ran, tmp_path / "policy.sql", to="sql", table="people", customer="id")
    customers = pq.read_table(ran.parent / "customers.parquet")
    found = run_duckdb((tmp_path / "policy.sql").read_text(encoding="utf-8"), customers, "people").sort_by("id")
    levels = Policy.load(ran / "policy.largesse").decide(customers.sort_by("id").drop_columns(["id"]))
    assert np.array_equal(np.asarray(found["level_number"]), levels)
    assert "duckdb" in shown["text"]


def test_a_policy_tree_is_a_text_or_a_query(ran: Path, tmp_path: Path) -> None:
    for name, to in (("tree.txt", "tree"), ("tree.sql", "card")):
        export(ran, tmp_path / name, to=to, dialect="spark", depth=2)
    assert "of customers)" in (tmp_path / "tree.txt").read_text(encoding="utf-8")
    assert "`customers`" in (tmp_path / "tree.sql").read_text(encoding="utf-8")


def test_the_command_writes_a_file_and_says_so(
    ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "policy.sql"
    words = ["largesse", "export", str(ran), "--to", "sql", "--dialect", "postgresql", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", words)
    cli.app(standalone_mode=False)
    assert "one SELECT for postgresql" in capsys.readouterr().out
    assert 'AS "id"' in out.read_text(encoding="utf-8")  # the campaign's customer column


def test_what_cannot_be_exported_leaves_no_file(ran: Path, shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for wrong, settings in {
        "there is no export to 'excel'": {"to": "excel"},
        "dialect 'oracle' is not known": {"to": "sql", "dialect": "oracle"},
        "names no form of a policy tree": {"to": "tree"},
        "--depth is 'deep'": {"to": "tree", "depth": "deep"},
    }.items():
        with pytest.raises(InputError, match=wrong):
            export(ran, out, **settings)
    with pytest.raises(InputError, match="part of"):
        export(ran, ran / "policy.largesse", to="sql")
    with pytest.raises(InputError, match="run folder"):
        export(tmp_path, out, to="sql")
    fit(read_campaign(shop), shop / "fitted")
    with pytest.raises(InputError, match=r"price(?s:.)*largesse plan"):
        export(shop / "fitted", out, to="sql")
    assert not out.exists()


def test_models_for_other_machines(ran: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    export(ran, tmp_path / "policy.onnx", to="onnx")
    assert (tmp_path / "policy.onnx").read_bytes() == Policy.load(ran / "policy.largesse").to_onnx()


@pytest.mark.parametrize(("to", "name"), [("sql", "policy.sql"), ("onnx", "policy.onnx"), ("tree", "tree.txt")])
def test_a_file_may_lie_in_the_run_folder(ran: Path, tmp_path: Path, to: str, name: str) -> None:
    if to == "onnx":
        pytest.importorskip("onnx", reason="onnx is not installed")
    home = shutil.copytree(ran, tmp_path / "run")
    export(home, home / name, to=to)
    export(home, tmp_path / name, to=to)
    assert (home / name).read_bytes() == (tmp_path / name).read_bytes()
