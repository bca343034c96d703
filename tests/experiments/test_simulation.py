from pathlib import Path

import pytest

from largesse.errors import InputError
from largesse.experiments.simulation import simulation, table


def test_every_table_has_the_simple_rows_and_the_oracle_is_perfect() -> None:
    records = simulation(["averaged"], ["linear"], seeds=2)
    assert [r["model"] for r in records[:4]] == ["level means", "uniform", "oracle", "linear"]
    by = {(r["model"], r["seed"]): r for r in records}
    assert by["oracle", 0]["rmse"] == 0.0
    assert by["oracle", 0]["skill 1.5"] == pytest.approx(1.0, abs=1e-3)
    assert by["uniform", 1]["skill 3"] == 0.0
    assert by["linear", 0]["rmse"] < by["level means", 0]["rmse"]
    assert by["linear", 0]["rmse"] != by["linear", 1]["rmse"]
    shown = table(records)
    assert "### averaged" in shown
    assert "| linear | 0.0" in shown


def test_a_run_that_was_killed_while_writing_goes_on_where_it_was(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    first = simulation(["unit"], ["linear"], seeds=1, out=out)
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:-1]) + lines[-1][:20])
    again = simulation(["unit"], ["linear"], seeds=1, out=out)
    assert [r["rmse"] for r in again] == [r["rmse"] for r in first]
    assert again[0]["seconds"] == first[0]["seconds"]  # kept, not measured again
    assert len(out.read_text().splitlines()) == 4


def test_unknown_names_are_refused_together() -> None:
    with pytest.raises(InputError, match="2 things are wrong") as refused:
        simulation(["avraged"], ["liner"])
    assert "did you mean 'averaged'?" in str(refused.value)
    assert "did you mean 'linear'?" in str(refused.value)
