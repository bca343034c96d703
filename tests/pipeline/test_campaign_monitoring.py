"""A new log is compared with the plan of a run folder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.campaign import read_campaign
from largesse.errors import InputError
from largesse.pipeline import check, plan, power, run
from largesse.serve import pace, parse_pace_options
from support.commands import Call


def carry_out(folder: Path, shop: Path) -> pa.Table:
    """Return the log of a campaign that gave every customer the planned level."""
    decided, customers = pq.read_table(folder / "plan.parquet"), pq.read_table(shop / "customers.parquet")
    level, response = decided["level_number"].to_numpy(), decided["expected_response"].to_numpy()
    bought = (np.random.default_rng(1).random(len(level)) < response).astype(int)
    log = customers.append_column("coupon", pa.array(np.array([0, 5, 10])[level]))
    return log.append_column("bought", pa.array(bought))


def put(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def test_a_new_log_is_joined_with_the_plan_by_id_in_any_order(run_copy: Path, shop: Path) -> None:
    table = carry_out(run_copy, shop)
    result, shown = check(run_copy, table.take(np.random.default_rng(0).permutation(len(table))))
    assert result.joined == result.rows == len(table)
    assert result.followed == 1
    assert result.spend.difference.estimate == pytest.approx(0, abs=1e-9)
    assert shown["answer"] == result.answer
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    _, sorted_rows = check(run_copy, table)
    shown.pop("fingerprint"), sorted_rows.pop("fingerprint")  # of the rows in their order
    assert shown == sorted_rows


@pytest.mark.parametrize(("strangers", "answers"), [(None, []), (10, ["careful"]), (200, ["note"])])
def test_rows_that_are_not_in_the_plan_are_left_out_and_without_any_the_policy_decides_again(
    run_copy: Path, shop: Path, strangers: int | None, answers: list[str]
) -> None:
    table = carry_out(run_copy, shop)
    ids = [f"x{i}" if i < (strangers or 0) else name for i, name in enumerate(table["id"].to_pylist())]
    result, _ = check(run_copy, table.drop_columns(["id"]) if strangers is None else put(table, "id", ids))
    joined = len(table) - 10 if strangers == 10 else None
    assert (result.joined, result.rows) == (joined, joined or len(table))
    assert result.followed > 0.95
    findings = [one for one in result.findings if "in the plan" in one.text and one.topic == "plan"]
    assert [finding.answer for finding in findings] == answers


def test_inputs_are_not_written_over(run_copy: Path, shop: Path) -> None:
    file = run_copy / "campaign.toml"
    file.write_text(file.read_text().replace(str(Path(read_campaign(run_copy).log).parent), str(shop)))
    with pytest.raises(InputError, match="is what is read"):
        check(run_copy, carry_out(run_copy, shop), out=shop / "customers.parquet")
    with pytest.raises(InputError, match="is what is read"):
        pace(run_copy, parse_pace_options("simulated", {}), lambda *_: None, out=shop / "log.parquet")


def test_the_command_answers_by_its_exit_code(run_copy: Path, shop: Path, call: Call) -> None:
    table, page = carry_out(run_copy, shop), shop / "check.html"
    pq.write_table(table, shop / "good.parquet")
    pq.write_table(put(table, "coupon", np.full(len(table), 10)), shop / "bad.parquet")
    done = call("check", str(run_copy), str(shop / "good.parquet"), "--out", str(page))
    assert done.code == 0
    assert "went as promised" in done.out
    assert "went as promised" in page.read_text()
    bad = ("check", str(run_copy), str(shop / "bad.parquet"))
    done = call(*bad, "--json")
    assert done.code == json.loads(done.out)["code"] == 20
    done = call(*bad, "-q")
    assert (done.code, done.out) == (20, "")
    assert "not followed" in done.err
    assert call("check", str(run_copy), str(shop / "nothing.parquet")).code == 2


def test_without_the_old_log_there_is_no_drift(run_copy: Path, shop: Path) -> None:
    table, file = carry_out(run_copy, shop), run_copy / "campaign.toml"
    file.write_text(file.read_text().replace("log.parquet", "gone.parquet"))
    result, _ = check(run_copy, table)
    assert result.drifts == ()


def test_a_plan_that_explored_is_checked_with_its_propensities(run_copy: Path, shop: Path) -> None:
    plan(run_copy, explore_for="evaluation", explore=0.2)
    propensity = pq.read_table(run_copy / "plan.parquet")["propensity"]
    result, _ = check(run_copy, carry_out(run_copy, shop).append_column("propensity", propensity))
    assert result.followed == 1
    assert {finding.topic: finding.answer for finding in result.findings}["propensities"] == "fine"


def test_a_campaign_without_responses_is_checked(run_copy: Path, shop: Path) -> None:
    table = carry_out(run_copy, shop)
    result, shown = check(run_copy, put(table, "bought", np.zeros(len(table), dtype=int)))
    assert result.code == 20
    assert any("All responses are 0" in finding["text"] for finding in shown["checks"])


def test_a_feature_of_another_type_is_named(run_copy: Path, shop: Path) -> None:
    table = carry_out(run_copy, shop)
    for zone in ("UTC", "Europe/Berlin"):
        zoned = table["since"].cast(pa.timestamp("us")).cast(pa.timestamp("us", zone)).combine_chunks()
        assert check(run_copy, put(table, "since", zoned))[0].joined == len(table)
    for values, message in (
        ([[1]] * len(table), "'since' cannot be used: the new log holds it as list<"),
        (table["since"].cast(pa.string()).combine_chunks(), "'since' holds text; in the log it held dates"),
        (range(len(table)), "'since' holds numbers; in the log it held dates"),
    ):
        with pytest.raises(InputError, match=message):
            check(run_copy, put(table, "since", values))
    with pytest.raises(InputError, match="'since' is not in the table"):
        check(run_copy, table.drop_columns(["since"]))


AMOUNTS = """
unit = "€"
response_unit = "€"
log = "log.parquet"
[columns]
level = "coupon"
response = "spent"
customer = "id"
[levels]
doses = [0, 5]
costs = [0, 5]
[plan]
budget = 2
[model]
name = "linear"
"""


def test_zero_amounts_are_amounts(tmp_path: Path) -> None:
    """Zeros alone look like a response that is yes or no; the plan knows that it is an amount."""
    rng, n = np.random.default_rng(6), 200
    level = np.arange(n) % 2
    spent = np.where(rng.random(n) < 0.4, rng.lognormal(3, 0.5, n), 0.0) + 2.0 * level
    log = pa.table({"id": [f"c{k}" for k in range(n)], "age": rng.normal(size=n), "coupon": 5 * level, "spent": spent})
    pq.write_table(log, tmp_path / "log.parquet")
    (tmp_path / "campaign.toml").write_text(AMOUNTS)
    run(read_campaign(tmp_path / "campaign.toml"), tmp_path / "spring")
    given = pq.read_table(tmp_path / "spring" / "plan.parquet")["level"].combine_chunks()
    result, shown = check(tmp_path / "spring", put(put(log, "coupon", given), "spent", np.zeros(n)))
    assert result.code == 20
    assert any("All responses are 0" in finding["text"] for finding in shown["checks"])
    assert shown["response"]["kind"] == "amount"
    assert not [finding for finding in result.findings if finding.topic == "value" and " pp" in finding.text]


def test_the_size_of_a_test_of_the_plan(run_copy: Path, call: Call) -> None:
    analysis = power(run_copy, "uniform")
    assert 0 < analysis.switchers <= 1
    assert analysis.cases[1].name == "value less cost"
    shown = json.loads(call("power", str(run_copy), "--gain", "0.05", "--per-day", "50", "--json").out)
    value = shown["cases"][0]["expected"]
    assert value["days"] == pytest.approx(value["traffic"] / 50)
    assert "switchers" in call("power", str(run_copy), "--incumbent", "0", "--gain", "0.05").out
