"""Logs that do not fit into memory: small limits make small logs large."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from largesse.campaign import parse_campaign, read_campaign
from largesse.errors import InputError
from largesse.pipeline import commands
from largesse.pipeline.log_checkup import examine
from largesse.policy import Policy
from support.commands import Call
from support.shops import CAMPAIGN, shop_table

N, MAX_ROWS = 900, 300
LARGE = CAMPAIGN + f"\n[data]\nmost_rows = {MAX_ROWS}\n"
OWN = LARGE.replace('customers = "customers.parquet"\n', "")  # planned for the log's own customers
COSTS = "costs = [0, 5, 10]"


def write_shop(folder: Path, campaign: str = LARGE, **columns: Any) -> Path:
    """Write a shop whose log is a folder of three files, one of them without rows."""
    log = shop_table(N, seed=1)
    for name, values in columns.items():
        log = log.append_column(name, pa.array(values))
    (folder / "logs").mkdir(parents=True)
    for k, part in enumerate((log.slice(0, 500), log.slice(500, 0), log.slice(500))):
        pq.write_table(part, folder / "logs" / f"{k}.parquet", row_group_size=80)
    pq.write_table(shop_table(60, seed=2, log=False), folder / "customers.parquet")
    (folder / "campaign.toml").write_text(campaign.replace("log.parquet", "logs"), encoding="utf-8")
    return folder


def run(shop: Path) -> Path:
    commands.run(read_campaign(shop), shop / "run")
    return shop / "run"


@pytest.fixture(scope="module", autouse=True)
def _small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("largesse.data.table_batches.READ_BATCH_ROWS", 128)
        yield


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a log of 900 rows of which 300 may be in memory, in small batches."""
    return run(write_shop(tmp_path_factory.mktemp("large")))


def numbers(run: Path, name: str) -> Any:
    return json.loads((run / f"{name}.json").read_text(encoding="utf-8"))


def test_a_sample_is_learnt_from_and_all_rows_judge_it(large: Path, ran: Path) -> None:
    assert numbers(large, "fit")["sample"] == {"rows": MAX_ROWS, "of": N}
    assert numbers(large, "evaluation")["log"]["rows"] == MAX_ROWS  # weighted to other customers
    fold = np.bincount(pq.read_table(large / "scores.parquet")["fold"].to_numpy())
    assert (fold[:5].sum(), fold[5:].sum()) == (MAX_ROWS, N - MAX_ROWS)
    assert fold.min() >= 50
    # The report states it; that of a log that fits does not.
    assert numbers(ran, "fit")["sample"] is None
    pages = [(folder / "report.html").read_text(encoding="utf-8") for folder in (large, ran)]
    assert ["300 of 900 rows" in page for page in pages] == [True, False]
    assert "[data]" not in (ran / "campaign.toml").read_text(encoding="utf-8")


def test_the_same_log_gives_the_same_bytes_and_another_budget_fits_nothing(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = tmp_path / "again"
    commands.run(read_campaign(large), again)
    for name in ("fit.json", "evaluation.json", "plan.json", "plan.parquet", "scores.parquet", "policy.largesse"):
        assert (again / name).read_bytes() == (large / name).read_bytes()
    monkeypatch.setattr(commands, "fit_model", lambda *_: pytest.fail("fitted again"))
    commands.plan(again, budget=1.5)
    assert commands.judge(again)["log"]["rows"] == MAX_ROWS


def test_the_limit_that_memory_sets_is_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.data.large_log_reader.read_memory_limit", lambda: 1_000_000)
    shop = write_shop(tmp_path, CAMPAIGN)
    commands.fit(read_campaign(shop), shop / "run")
    limit = read_campaign(shop / "run").most_rows
    assert isinstance(limit, int)
    assert numbers(shop / "run", "fit")["sample"]["rows"] == pytest.approx(limit, abs=3)


@pytest.mark.parametrize("costs", [COSTS, f"{COSTS}\non_redemption = true"])
def test_a_large_log_is_planned_for_itself(costs: str, tmp_path: Path) -> None:
    home = run(write_shop(tmp_path, OWN.replace(COSTS, costs)))
    plan = pq.read_table(home / "plan.parquet")
    assert plan["customer"].to_pylist() == [f"c{i:05d}" for i in range(N)]
    assert 1.5 < np.mean(plan["expected_cost"]) <= 2.5 + 1e-9
    assert numbers(home, "evaluation")["log"]["rows"] == N
    assert sum(level["customers"] for level in numbers(home, "plan")["money"]["levels"]) == N
    commands.plan(home)
    assert pq.read_table(home / "plan.parquet").equals(plan)


@pytest.mark.parametrize("costs", [COSTS, f"{COSTS}\non_redemption = true"])
@pytest.mark.parametrize("most_rows", [MAX_ROWS, N])
def test_customers_with_several_rows_are_planned_once_by_the_last(most_rows: int, costs: str, tmp_path: Path) -> None:
    ids = [f"c{i % 500}" for i in range(N)]
    text = OWN.replace(COSTS, costs).replace('"id"', '"who"').replace(str(MAX_ROWS), str(most_rows))
    home = run(write_shop(tmp_path, text.replace("budget = 2.5", "total = 1000"), who=ids))
    plan, log = pq.read_table(home / "plan.parquet"), shop_table(N, seed=1)
    assert plan["customer"].to_pylist() == ids[400:]  # in the order of their last rows
    summary, facts = numbers(home, "plan"), numbers(home, "evaluation")["log"]
    assert (summary["customers"], summary["budget"]["average"]) == (500, 2.0)
    assert (facts["rows"], facts["customers"], facts["clusters"]) == (N, 500, 500)
    expected = plan["expected_response"].to_numpy()
    if costs == COSTS and most_rows == N:
        policy = Policy.load(home / "policy.largesse")
        curves = policy.expect(log.slice(400)).responses
        np.testing.assert_allclose(expected, curves[np.arange(500), plan["level_number"].to_numpy()])
    commands.plan(home)
    assert pq.read_table(home / "plan.parquet").equals(plan)


def test_observed_costs_of_a_large_log(tmp_path: Path) -> None:
    text = OWN.replace(COSTS, "doses = [0, 5, 10]")
    text = text.replace('response = "bought"', 'response = "bought"\ncost_column = "paid"')
    paid = np.asarray(shop_table(N, seed=1)["coupon"]) * np.random.default_rng(0).integers(0, 2, N)
    home = run(write_shop(tmp_path, text, paid=paid))
    assert "cost_0" in pq.read_schema(home / "scores.parquet").names
    assert numbers(home, "evaluation")["log"]["rows"] == N


def test_loggers_weights_and_clusters_of_a_large_log(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    text = LARGE.replace(str(MAX_ROWS), "600")
    text = text.replace('customer = "id"', 'logger = "who"\nweight = "w"\ncluster = "house"')
    columns = {"who": rng.integers(0, 2, N), "w": rng.uniform(0.5, 2, N), "house": np.arange(N) // 2}
    home = run(write_shop(tmp_path, text, **columns))
    fold = pq.read_table(home / "scores.parquet")["fold"].to_numpy()
    assert (fold[::2] == fold[1::2]).all()
    assert numbers(home, "evaluation")["log"]["clusters"] < N // 2


def test_the_doctor_examines_a_large_log(tmp_path: Path) -> None:
    shown = examine(read_campaign(write_shop(tmp_path)))
    assert sum(level["rows"] for level in shown["curve"]["levels"]) == N
    assert any("a sample of 300" in check["text"] for check in shown["support"]["checks"])


def test_a_level_that_one_file_lacks_changes_nothing(tmp_path: Path) -> None:
    shop = write_shop(tmp_path)
    log = pq.read_table(shop / "logs" / "2.parquet")
    pq.write_table(log.filter(pc.equal(log["coupon"], 0)), shop / "logs" / "2.parquet")
    pq.write_table(log.filter(pc.not_equal(log["coupon"], 0)), shop / "logs" / "3.parquet")
    assert numbers(run(shop), "fit")["sample"] == {"rows": MAX_ROWS, "of": N}


def put_csv(folder: Path, k: int, **columns: Any) -> None:
    """Replace a file of the log by a CSV with other columns."""
    table = shop_table(30, seed=3)
    for column, value in columns.items():
        place, array = table.schema.get_field_index(column), pa.array([value] * 30)
        table = table.append_column(column, array) if place < 0 else table.set_column(place, column, array)
    (folder / f"{k}.parquet").unlink()
    csv.write_csv(table, folder / f"{k}.csv")


BAD = {
    "a bad value in the last file": lambda folder: put_csv(folder, 2, bought="maybe"),
    "a file that is cut off": lambda folder: (folder / "1.parquet").write_bytes(b"PAR1" + bytes(50)),
    "other columns in one file": lambda folder: put_csv(folder, 1, more=1),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_leave_nothing_behind_and_are_named_as_in_memory(case: str, tmp_path: Path) -> None:
    shop = write_shop(tmp_path / "shop")
    BAD[case](shop / "logs")
    messages = set()
    for text in (LARGE, CAMPAIGN):
        (shop / "campaign.toml").write_text(text.replace("log.parquet", "logs"), encoding="utf-8")
        with pytest.raises(InputError) as caught:
            commands.run(read_campaign(shop), tmp_path / "out")
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]


@pytest.mark.parametrize("limit", ["many", 0, 2.5, True])
def test_an_invalid_limit_is_refused_with_the_campaign(limit: Any) -> None:
    campaign = {"log": "log.csv", "columns": {"level": "a", "response": "b"}, "levels": {"costs": [0, 1]}}
    with pytest.raises(InputError, match=r"data\.most_rows is"):
        parse_campaign(campaign | {"data": {"most_rows": limit}})


def test_the_command_line_limits_rows_too(tmp_path: Path, call: Call) -> None:
    roles = ["--level", "coupon", "--response", "bought", "--customer", "id", "--costs", "0,5,10", "--model", "linear"]
    logs = write_shop(tmp_path) / "logs"
    done = call("fit", str(logs), *roles, "--most-rows", "300", "--out", str(tmp_path / "run"))
    assert done.code == 0
    assert "(300 of 900 rows)" in done.out.replace("\n", " ")
