from pathlib import Path

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.worlds.simulation import simulate
from largesse_lab.experiments.rates_n import rates_n, series, summary, table


def test_more_rows_mean_less_error_and_the_slope_says_how_fast(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    records = rates_n(["averaged"], ["level means", "linear"], rows=[250, 1000, 4000], seeds=2, out=out)
    found = summary(records)
    errors = [cell["mean"] for cell in found["cells"]["averaged"]["linear"].values()]
    assert errors[0] > errors[1] > errors[2]
    assert -0.8 < found["slopes"]["averaged"]["linear"]["mean"] < -0.25
    assert found["slopes"]["averaged"]["level means"]["mean"] > -0.1  # nothing of the customers to learn
    assert "| linear | 0." in table(records)
    assert series(records)[1]["x"] == [250, 1000, 4000]
    again = rates_n(["averaged"], ["linear"], rows=[250], seeds=2, out=out)
    assert again == [r for r in records if r["model"] == "linear" and r["rows"] == 250]
    assert len(out.read_text().splitlines()) == len(records)


def test_level_means_are_the_means_of_the_log() -> None:
    record = rates_n(["confounded"], ["level means"], rows=[500], seeds=1)[0]
    sim = simulate("confounded", n=500, seed=0)
    means = np.array([sim.log.response[sim.log.level == k].mean() for k in range(5)])
    error = means - sim.draw(10_000, seed=99).truth
    assert record["rmse"] == pytest.approx(np.sqrt((error**2).mean()))


def test_one_size_has_no_slope() -> None:
    found = summary(rates_n(["unit"], ["level means"], rows=[250], seeds=1))
    assert found["slopes"]["unit"]["level means"] == {"mean": None, "sd": None, "se": None, "n": 0}


def test_unknown_names_are_refused_together() -> None:
    with pytest.raises(InputError, match="2 things are wrong") as refused:
        rates_n(["avraged"], ["liner"])
    assert "did you mean 'linear'?" in str(refused.value)


@pytest.mark.slow
def test_networks_learn_too() -> None:
    records = {r["model"]: r["rmse"] for r in rates_n(["averaged"], rows=[2000], seeds=1)}
    assert max(records[name] for name in ("sire", "sire common", "ire", "linear")) < records["level means"]
