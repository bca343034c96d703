"""Logs that do not fit into memory: small limits make small logs large."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from largesse.campaign.file import campaign_from, read_campaign
from largesse.cli import app
from largesse.errors import InputError
from largesse.pipeline import commands
from largesse.pipeline.doctor import examine
from support.shops import CAMPAIGN, shop_table

ROWS, MOST = 900, 300
LARGE = f"\n[data]\nmost_rows = {MOST}\n"


def write_shop(folder: Path, campaign: str = CAMPAIGN + LARGE, **columns: Any) -> Path:
    """Write a shop whose log is a folder of three files, one of them without rows."""
    log = shop_table(ROWS, seed=1)
    for name, values in columns.items():
        log = log.append_column(name, pa.array(values))
    (folder / "logs").mkdir(parents=True)
    for k, part in enumerate((log.slice(0, 500), log.slice(500, 0), log.slice(500))):
        pq.write_table(part, folder / "logs" / f"{k}.parquet", row_group_size=80)
    pq.write_table(shop_table(60, seed=2, log=False), folder / "customers.parquet")
    (folder / "campaign.toml").write_text(campaign.replace("log.parquet", "logs"), encoding="utf-8")
    return folder


@pytest.fixture(scope="module", autouse=True)
def _small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("largesse.data.batches.BATCH_ROWS", 128)
        yield


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a log of 900 rows of which 300 may be in memory, in small batches."""
    shop = write_shop(tmp_path_factory.mktemp("large"))
    commands.run(read_campaign(shop), shop / "run")
    return shop / "run"


def numbers(run: Path, name: str) -> Any:
    return json.loads((run / f"{name}.json").read_text(encoding="utf-8"))


def test_the_fit_sees_a_sample_and_all_rows_judge_it(large: Path) -> None:
    assert numbers(large, "fit")["sample"] == {"rows": MOST, "of": ROWS}
    assert numbers(large, "evaluation")["log"]["rows"] == ROWS
    scores = pq.read_table(large / "scores.parquet")
    assert len(scores) == ROWS
    fold = np.bincount(scores["fold"].to_numpy())
    assert fold[:5].sum() == MOST
    assert fold[5:].sum() == ROWS - MOST
    assert fold.min() >= 50


def test_the_report_says_how_many_rows_were_learnt_from(large: Path) -> None:
    page = (large / "report.html").read_text(encoding="utf-8")
    assert "The model learnt from 300 of the log’s rows, drawn at random. All 900 rows judge it" in page
    assert "Models learn from a random sample of 300 of 900 rows; all rows judge them." in page


def test_a_log_that_fits_says_nothing_of_samples(ran: Path) -> None:
    assert numbers(ran, "fit")["sample"] is None
    assert "rows, drawn at random" not in (ran / "report.html").read_text(encoding="utf-8")
    assert "[data]" not in (ran / "campaign.toml").read_text(encoding="utf-8")


def test_the_same_log_gives_the_same_bytes(large: Path, tmp_path: Path) -> None:
    commands.run(read_campaign(large), tmp_path / "again")
    for name in ("fit.json", "evaluation.json", "plan.json", "plan.parquet", "scores.parquet", "policy.largesse"):
        assert (tmp_path / "again" / name).read_bytes() == (large / name).read_bytes()


def test_another_budget_fits_nothing(large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands.fit(read_campaign(large), tmp_path / "run")
    monkeypatch.setattr(commands, "fit_model", lambda *_: pytest.fail("fitted again"))
    assert commands.judge(tmp_path / "run", budget=1.5)["log"]["rows"] == ROWS


def test_the_limit_that_memory_sets_is_kept_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.data.large_log.memory_limit", lambda: 1_000_000)
    shop = write_shop(tmp_path, CAMPAIGN)
    commands.fit(read_campaign(shop), shop / "run")
    kept = read_campaign(shop / "run").most_rows
    assert isinstance(kept, int)
    assert numbers(shop / "run", "fit")["sample"]["rows"] == pytest.approx(kept, abs=3)


@pytest.mark.parametrize("costs", ["costs = [0, 5, 10]", "costs = [0, 5, 10]\non_redemption = true"])
def test_a_large_log_is_planned_for_itself(costs: str, tmp_path: Path) -> None:
    text = (CAMPAIGN + LARGE).replace('customers = "customers.parquet"\n', "").replace("costs = [0, 5, 10]", costs)
    shop = write_shop(tmp_path, text)
    commands.run(read_campaign(shop), shop / "run")
    plan = pq.read_table(shop / "run" / "plan.parquet")
    assert plan["customer"].to_pylist() == [f"c{i:05d}" for i in range(ROWS)]
    assert 1.5 < np.mean(plan["expected_cost"]) <= 2.5 + 1e-9
    money = numbers(shop / "run", "plan")["money"]["levels"]
    assert sum(level["customers"] for level in money) == ROWS
    before = plan
    commands.plan(shop / "run")
    assert pq.read_table(shop / "run" / "plan.parquet").equals(before)


def test_observed_costs_of_a_large_log(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    text = (CAMPAIGN + LARGE).replace("costs = [0, 5, 10]", "doses = [0, 5, 10]")
    text = text.replace('response = "bought"', 'response = "bought"\ncost_column = "paid"')
    text = text.replace('customers = "customers.parquet"\n', "")
    paid = np.asarray(shop_table(ROWS, seed=1)["coupon"]) * rng.integers(0, 2, ROWS)
    shop = write_shop(tmp_path, text, paid=paid)
    commands.run(read_campaign(shop), shop / "run")
    assert "cost_0" in pq.read_schema(shop / "run" / "scores.parquet").names
    assert numbers(shop / "run", "evaluation")["log"]["rows"] == ROWS


def test_loggers_weights_and_clusters_of_a_large_log(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    text = (CAMPAIGN + LARGE).replace(str(MOST), "600")
    text = text.replace('customer = "id"', 'logger = "who"\nweight = "w"\ncluster = "house"')
    columns = {"who": rng.integers(0, 2, ROWS), "w": rng.uniform(0.5, 2, ROWS), "house": np.arange(ROWS) // 2}
    shop = write_shop(tmp_path, text, **columns)
    commands.run(read_campaign(shop), shop / "run")
    scores = pq.read_table(shop / "run" / "scores.parquet")
    fold = scores["fold"].to_numpy()
    assert (fold[::2] == fold[1::2]).all()
    assert numbers(shop / "run", "evaluation")["log"]["clusters"] == ROWS // 2


def test_the_doctor_examines_a_large_log(tmp_path: Path) -> None:
    shown = examine(read_campaign(write_shop(tmp_path)))
    assert sum(level["rows"] for level in shown["curve"]["levels"]) == ROWS
    assert any("a sample of 300" in check["text"] for check in shown["support"]["checks"])


BAD = {
    "a bad value in the last file": lambda folder: csv_of(folder, "2.csv", bought=["maybe"]),
    "a file that is cut off": lambda folder: (folder / "1.parquet").write_bytes(b"PAR1" + bytes(50)),
    "other columns in one file": lambda folder: csv_of(folder, "1.csv", more=[1]),
}


def csv_of(folder: Path, name: str, **columns: Any) -> None:
    table = shop_table(30, seed=3)
    for column, values in columns.items():
        array = pa.array(values * 30)
        place = table.schema.get_field_index(column)
        table = table.append_column(column, array) if place < 0 else table.set_column(place, column, array)
    (folder / name.replace("csv", "parquet")).unlink()
    csv.write_csv(table, folder / name)


@pytest.mark.parametrize("case", BAD)
def test_bad_files_leave_nothing_behind_and_are_named_as_in_memory(case: str, tmp_path: Path) -> None:
    shop = write_shop(tmp_path / "shop")
    BAD[case](shop / "logs")
    said = []
    for text in (CAMPAIGN + LARGE, CAMPAIGN):
        (shop / "campaign.toml").write_text(text.replace("log.parquet", "logs"), encoding="utf-8")
        with pytest.raises(InputError) as caught:
            commands.run(read_campaign(shop), tmp_path / "out")
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]


def test_a_level_that_one_file_lacks_changes_nothing(tmp_path: Path) -> None:
    shop = write_shop(tmp_path)
    log = pq.read_table(shop / "logs" / "2.parquet")
    pq.write_table(log.filter(pa.compute.equal(log["coupon"], 0)), shop / "logs" / "2.parquet")
    pq.write_table(log.filter(pa.compute.not_equal(log["coupon"], 0)), shop / "logs" / "3.parquet")
    commands.run(read_campaign(shop), shop / "run")
    assert numbers(shop / "run", "evaluation")["log"]["rows"] == ROWS


@pytest.mark.parametrize("given", ["many", 0, 2.5, True])
def test_a_limit_that_is_none_is_refused_with_the_campaign(given: Any) -> None:
    campaign = {"log": "log.csv", "columns": {"level": "a", "response": "b"}, "levels": {"costs": [0, 1]}}
    with pytest.raises(InputError, match=r"data\.most_rows is"):
        campaign_from(campaign | {"data": {"most_rows": given}})


def test_the_command_line_says_how_many_rows_were_learnt_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = write_shop(tmp_path)
    given = ["--level", "coupon", "--response", "bought", "--customer", "id", "--costs", "0,5,10", "--model", "linear"]
    with pytest.raises(SystemExit) as ended:
        app(["fit", str(shop / "logs"), *given, "--most-rows", "300", "--out", str(tmp_path / "run")])
    assert ended.value.code == 0
    assert "(300 of 900 rows)" in capsys.readouterr().out.replace("\n", " ")
