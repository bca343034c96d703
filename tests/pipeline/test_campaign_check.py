"""A new log is compared with the plan of a run folder."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.campaign import read_campaign
from largesse.errors import InputError
from largesse.pipeline import check, power, run
from largesse.serve import pace, read_streaming
from support.commands import Call


def _carry_out(folder: Path, shop: Path, seed: int = 1) -> pa.Table:
    """Return the log of a campaign that gave every customer what was planned."""
    plan, customers = pq.read_table(folder / "plan.parquet"), pq.read_table(shop / "customers.parquet")
    level = plan["level_number"].to_numpy()
    chance = plan["expected_response"].to_numpy()
    came = (np.random.default_rng(seed).random(len(level)) < chance).astype(int)
    return customers.append_column("coupon", pa.array(np.array([0, 5, 10])[level])).append_column(
        "bought", pa.array(came)
    )


def test_a_new_log_is_joined_with_the_plan_by_id(run_copy: Path, shop: Path) -> None:
    table = _carry_out(run_copy, shop)
    found, shown = check(run_copy, table.take(np.random.default_rng(0).permutation(len(table))))
    assert found.joined == found.rows == len(table)
    assert found.followed == 1
    assert found.spend.difference.estimate == pytest.approx(0, abs=1e-9)
    assert shown["answer"] == found.answer
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def test_the_order_of_rows_says_nothing(run_copy: Path, shop: Path) -> None:
    table = _carry_out(run_copy, shop)
    _, shown = check(run_copy, table)
    _, turned = check(run_copy, table.take(np.random.default_rng(3).permutation(len(table))))
    shown.pop("fingerprint"), turned.pop("fingerprint")  # of the rows as they came
    assert shown == turned


@pytest.mark.parametrize("strangers", [None, 10, 200])
def test_rows_that_are_not_in_the_plan_are_left_out_and_without_any_the_policy_decides_again(
    run_copy: Path, shop: Path, strangers: int | None
) -> None:
    table = _carry_out(run_copy, shop)
    ids = [f"x{i}" if i < (strangers or 0) else one for i, one in enumerate(table["id"].to_pylist())]
    table = table.drop_columns(["id"]) if strangers is None else table.set_column(0, "id", pa.array(ids))
    found, _ = check(run_copy, table)
    joined = strangers == 10
    assert found.joined == (len(table) - 10 if joined else None)
    assert found.rows == len(table) - (10 if joined else 0)
    assert found.followed > 0.95
    told = [finding.answer for finding in found.findings if "in the plan" in finding.text and finding.topic == "plan"]
    assert told == {None: [], 10: ["careful"], 200: ["note"]}[strangers]


def test_what_the_run_reads_is_not_written_over(run_copy: Path, shop: Path) -> None:
    file = run_copy / "campaign.toml"
    file.write_text(file.read_text().replace(str(Path(read_campaign(run_copy).log).parent), str(shop)))
    with pytest.raises(InputError, match="is what is read"):
        check(run_copy, _carry_out(run_copy, shop), out=shop / "customers.parquet")
    with pytest.raises(InputError, match="is what is read"):
        pace(run_copy, read_streaming("simulated", {}), lambda *_: None, out=shop / "log.parquet")


def test_the_command_answers_by_its_exit_code(run_copy: Path, shop: Path, call: Call) -> None:
    table = _carry_out(run_copy, shop)
    wrong = table.set_column(table.column_names.index("coupon"), "coupon", pa.array(np.full(len(table), 10)))
    good, bad, page = shop / "good.parquet", shop / "bad.parquet", shop / "check.html"
    pq.write_table(table, good)
    pq.write_table(wrong, bad)
    done = call("check", str(run_copy), str(good), "--out", str(page))
    assert done.code == 0
    assert "went as promised" in done.out
    assert "The campaign went as promised." in page.read_text()
    done = call("check", str(run_copy), str(bad), "--json")
    assert done.code == json.loads(done.out)["code"] == 20
    done = call("check", str(run_copy), str(bad), "-q")
    assert (done.code, done.out) == (20, "")
    assert "not followed" in done.err
    assert call("check", str(run_copy), str(shop / "nothing.parquet")).code == 2


def test_without_the_old_log_what_can_be_compared_is(run_copy: Path, shop: Path) -> None:
    table = _carry_out(run_copy, shop)
    text = (run_copy / "campaign.toml").read_text()
    (run_copy / "campaign.toml").write_text(text.replace("log.parquet", "gone.parquet"))
    found, _ = check(run_copy, table)
    assert found.drifts == ()
    assert any("is not there" in finding.text for finding in found.findings)


def test_a_plan_that_explored_is_checked_with_its_propensities(run_copy: Path, shop: Path) -> None:
    from largesse.pipeline import plan as make_plan

    make_plan(run_copy, explore_for="evaluation", explore=0.2)
    table = _carry_out(run_copy, shop)
    own = pq.read_table(run_copy / "plan.parquet")["propensity"]
    found, _ = check(run_copy, table.append_column("propensity", own))
    assert found.followed == 1
    topics = {finding.topic: finding.answer for finding in found.findings}
    assert topics["propensities"] == "fine"


def test_a_campaign_to_which_nobody_responds_is_told_and_not_refused(run_copy: Path, shop: Path) -> None:
    table = _carry_out(run_copy, shop)
    at = table.column_names.index("bought")
    found, shown = check(run_copy, table.set_column(at, "bought", pa.array(np.zeros(len(table), dtype=int))))
    assert found.code == 20
    assert any("All responses are 0" in one["text"] for one in shown["checks"])


def test_a_feature_that_is_written_in_another_way_is_named(run_copy: Path, shop: Path) -> None:
    table = _carry_out(run_copy, shop)
    at = table.column_names.index("since")
    for zone in ("UTC", "Europe/Berlin"):
        zoned = table.set_column(at, "since", table["since"].cast(pa.timestamp("us")).cast(pa.timestamp("us", zone)))
        assert check(run_copy, zoned)[0].joined == len(table)
    with pytest.raises(InputError, match="'since' cannot be used: the new log holds it as list<"):
        check(run_copy, table.set_column(at, "since", pa.array([[1]] * len(table))))
    with pytest.raises(InputError, match="'since' holds text; in the log it held dates"):
        check(run_copy, table.set_column(at, "since", table["since"].cast(pa.string())))
    with pytest.raises(InputError, match="'since' holds numbers; in the log it held dates"):
        check(run_copy, table.set_column(at, "since", pa.array(range(len(table)))))
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


def test_amounts_of_which_none_came_are_told_in_money(tmp_path: Path) -> None:
    """Zeros alone look like a response that is yes or no; the promise says that it is an amount."""
    rng, n = np.random.default_rng(6), 200
    level = np.arange(n) % 2
    spent = np.where(rng.random(n) < 0.4, rng.lognormal(3, 0.5, n), 0.0) + 2.0 * level
    log = pa.table({"id": [f"c{k}" for k in range(n)], "age": rng.normal(size=n), "coupon": 5 * level, "spent": spent})
    pq.write_table(log, tmp_path / "log.parquet")
    (tmp_path / "campaign.toml").write_text(AMOUNTS)
    run(read_campaign(tmp_path / "campaign.toml"), tmp_path / "spring")
    given = pq.read_table(tmp_path / "spring" / "plan.parquet")["level"]
    new = log.set_column(2, "coupon", given).set_column(3, "spent", pa.array(np.zeros(n)))
    found, shown = check(tmp_path / "spring", new)
    assert found.code == 20
    assert any("All responses are 0" in one["text"] for one in shown["checks"])
    assert shown["response"]["kind"] == "amount"
    assert not [finding for finding in found.findings if finding.topic == "value" and " pp" in finding.text]


def test_the_size_of_a_test_of_the_plan(run_copy: Path, call: Call) -> None:
    found = power(run_copy, "uniform")
    assert 0 < found.switchers <= 1
    assert found.cases[1].name == "value less cost"
    shown = json.loads(call("power", str(run_copy), "--gain", "0.05", "--per-day", "50", "--json").out)
    value = shown["cases"][0]["expected"]
    assert value["days"] == pytest.approx(value["traffic"] / 50)
    assert "switchers" in call("power", str(run_copy), "--incumbent", "0", "--gain", "0.05").out
