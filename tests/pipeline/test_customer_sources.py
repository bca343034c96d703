"""Tables of customers larger than memory: the same plan, the same numbers and the same messages as of small ones."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from largesse.campaign import read_campaign
from largesse.errors import InputError, LargesseError, OutputError
from largesse.io import ScratchFile
from largesse.pipeline import commands
from largesse.pipeline.customer_sources import CustomerStream
from largesse.pipeline.local_engine import LocalEngine, choose_sample_rows, hash_row_numbers
from largesse.policy import Policy
from largesse.records import Array
from support.folders import everything_in
from support.shops import CAMPAIGN, shop_table, write_shop


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.data.table_batches.READ_BATCH_ROWS", 64)
    monkeypatch.setattr("largesse.pipeline.local_engine.SCORING_BATCH_ROWS", 50)
    monkeypatch.setattr("largesse.pipeline.table_writer.GROUP_ROWS", 70)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a shop with a run folder that was fitted, made once for each campaign; a copy, which a test may change."""
    made: dict[Any, Path] = {}

    def fit(folder: Path, *changes: tuple[str, str], change_log: Callable[[pa.Table], pa.Table] | None = None) -> Path:
        if changes not in made:
            shop = write_shop(tmp_path_factory.mktemp("shop"), rows=300, customers=200)
            if change_log is not None:
                for name in ("log", "customers"):
                    table = change_log(pq.read_table(shop / f"{name}.parquet"))
                    pq.write_table(table, shop / f"{name}.parquet")
            text = CAMPAIGN
            for old, new in changes:
                assert old in text
                text = text.replace(old, new)
            (shop / "campaign.toml").write_text(text, encoding="utf-8")
            commands.fit(read_campaign(shop), shop / "run")
            made[changes] = shop
        return shutil.copytree(made[changes], folder / "shop")

    return fit


def assert_alike(first: Any, second: Any) -> None:
    """Check that numbers are the same: sums over batches are rounded, the rest is equal."""
    if isinstance(first, dict | list):
        assert len(first) == len(second)
        for key in first if isinstance(first, dict) else range(len(first)):
            assert_alike(first[key], second[key])
    else:
        assert first == (pytest.approx(second, rel=1e-9, abs=1e-12) if isinstance(first, float) else second)


def plan_both(shop: Path, customers: Path | str | None = None, **asked: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plan from memory and in batches; the two folders must be alike. Return the numbers."""
    source = str(customers or shop / "customers.parquet")
    shutil.copytree(shop / "run", shop / "other")
    whole = commands.plan(shop / "run", source, engine=LocalEngine(), **asked)
    parts = commands.plan(shop / "other", source, engine=LocalEngine(rows=10), **asked)
    for name in ("policy.largesse", "campaign.toml"):
        assert (shop / "run" / name).read_bytes() == (shop / "other" / name).read_bytes()
    assert_alike(whole, parts)
    one, other = (pq.read_table(shop / name / "plan.parquet") for name in ("run", "other"))
    assert one.equals(other)
    if "propensity" not in one.column_names:  # else the numbers are expected ones
        assert whole["planned"]["value"] == pytest.approx(np.mean(one["expected_response"]))
        assert whole["planned"]["spend"] == pytest.approx(np.mean(one["expected_cost"]))
    assert not [path.name for path in shop.iterdir() if path.name.startswith(".")]
    return whole, parts


# ---------------------------------------------------------------------------------------------- the same plan


def add_costs(table: pa.Table) -> pa.Table:
    base = np.random.default_rng(5).uniform(1, 3, len(table))
    for k, factor in enumerate((0, 1, 2.5)):
        table = table.append_column(f"c{k}", pa.array(factor * base))
    return table


def add_paid(table: pa.Table) -> pa.Table:
    if "coupon" not in table.column_names:
        return table
    return table.append_column("paid", pc.multiply(table["coupon"], table["bought"]))


COSTS, BUDGET = "costs = [0, 5, 10]", "budget = 2.5"
CASES: dict[str, tuple[Any, ...]] = {
    "known costs": ((),),
    "a total": (((BUDGET, "total = 300"),),),
    "no budget": (((BUDGET, "budget = 0"),),),
    "on redemption": (((COSTS, f"{COSTS}\non_redemption = true"),),),
    "sure": (((COSTS, f"{COSTS}\non_redemption = true"), (BUDGET, "budget = 2\nbudget_confidence = 0.9")),),
    "exploring": (((BUDGET, f"{BUDGET}\nexplore = 0.2"),),),
    "own costs": (((COSTS, 'costs = ["c0", "c1", "c2"]\ndoses = [0, 5, 10]'),), add_costs),
    "observed": (
        (('customer = "id"', 'customer = "id"\ncost_column = "paid"'), (COSTS, "doses = [0, 5, 10]")),
        add_paid,
    ),
    "constraints": (((BUDGET, f'{BUDGET}\nsegment = "city"\n[plan.segment_budgets]\nOslo = 50'),),),
    "proven": (((BUDGET, f"{BUDGET}\nexact = true"),),),
}


@pytest.mark.parametrize("case", CASES)
def test_plans_in_batches_are_those_from_memory(case: str, fitted: Callable[..., Path], tmp_path: Path) -> None:
    changes, *change = CASES[case]
    shop = fitted(tmp_path, *changes, change_log=change[0] if change else None)
    _, shown = plan_both(shop)
    assert shown["customers"] == 200
    stops = shown["frontier"]["stops"]
    others = [stop for stop in stops if not stop.get("own")]
    assert len(others) > 4
    explores = (
        case == "exploring"
    )  # it is drawn again until it keeps its budget, with a reserve; the slider shows one draw
    for place in (1, len(others) // 2, len(others) - 1):
        stop = others[place]
        made = commands.plan(shop / "run", str(shop / "customers.parquet"), budget=stop["budget"])
        counts = [level["customers"] for level in made["money"]["levels"]]
        assert counts == pytest.approx(stop["counts"], abs=20 if explores else 0)
        for word in ("spend", "value"):
            assert made["planned"][word] == pytest.approx(stop[word], rel=0.02 if explores else 1e-9)
        known = {(one["feature"], group["label"]): group for one in shown["who"]["features"] for group in one["groups"]}
        for feature in made["who"]["features"]:
            for group in feature["groups"]:
                if (feature["feature"], group["label"]) in known and not explores:
                    found = known[feature["feature"], group["label"]]
                    assert group["average_cost"] == pytest.approx(found["stop_costs"][stops.index(stop)], rel=1e-6)
    assert sum(level["customers"] for level in shown["money"]["levels"]) == 200


@pytest.mark.parametrize("line_", ["", "exact = true\n"])
def test_without_plans_at_other_budgets_it_says_why(
    line_: str, fitted: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("largesse.pipeline.scored_customer_plan.MAX_CELLS_OF_OTHER_PLANS", 10)
    new = f'budget = 2.5\n{line_}segment = "city"\n[plan.segment_budgets]\nOslo = 50'
    shop = fitted(tmp_path, ("budget = 2.5", new))
    shown = commands.plan(shop / "run", str(shop / "customers.parquet"))
    assert shown["frontier"]["stops"] == []
    assert ("take too long" if line_ else "too many customers") in shown["frontier"]["excuse"]


@pytest.mark.parametrize(
    "form",
    ["one.csv", "one.csv.gz", "folder", "*.parquet", "one.feather", "no ids", "no rows in one", "numbers as text"],
)
def test_every_form_of_table_is_planned_in_batches(form: str, fitted: Callable[..., Path], tmp_path: Path) -> None:
    shop, table = fitted(tmp_path), shop_table(200, seed=2, log=False)
    new = shop / "new"
    new.mkdir()
    if form == "one.csv":
        csv.write_csv(table, new / form)
    elif form == "one.csv.gz":
        csv.write_csv(table, new / "plain.csv")
        (new / form).write_bytes(gzip.compress((new / "plain.csv").read_bytes()))
    elif form == "one.feather":
        feather.write_feather(table, new / form)
    elif form == "no ids":
        pq.write_table(table.drop_columns("id"), new / "one.parquet")
    elif form == "numbers as text":  # all of it is read to find the notation
        ages = [None if age is None else f"{age:.2f}".replace(".", ",") for age in table["age"].to_pylist()]
        pq.write_table(table.set_column(1, "age", pa.array(ages)), new / "one.parquet")
    else:
        cuts = [(0, 30), (30, 0), (30, 170)] if form == "no rows in one" else [(0, 30), (30, 170)]
        for k, (start, count) in enumerate(cuts):
            pq.write_table(table.slice(start, count), new / f"{k}.parquet")
    source = {"folder": new, "no rows in one": new}
    source |= dict.fromkeys(("no ids", "numbers as text"), new / "one.parquet")
    plan_both(shop, source.get(form, new / form))
    ids = pq.read_table(shop / "other" / "plan.parquet")["customer"].to_pylist()
    assert ids == (list(range(200)) if form == "no ids" else table["id"].to_pylist())


@pytest.mark.parametrize("ending", ["csv", "feather", "pq"])
def test_a_second_table_has_the_same_rows(ending: str, fitted: Callable[..., Path], tmp_path: Path) -> None:
    shop = fitted(tmp_path)
    table = shop_table(200, seed=2, log=False)
    ids = pa.array([f"=c{k}" for k in range(200)])
    pq.write_table(table.set_column(0, "id", ids), shop / "customers.parquet")
    plan_both(shop, out=shop / f"plan.{ending}")
    plan = pq.read_table(shop / "other" / "plan.parquet")
    readers: dict[str, Any] = {"csv": csv.read_csv, "feather": feather.read_table, "pq": pq.read_table}
    copy = readers[ending](shop / f"plan.{ending}")
    assert copy["level_number"].to_pylist() == plan["level_number"].to_pylist()
    mark = "'" if ending == "csv" else ""
    assert copy["customer"].to_pylist() == [f"{mark}{name}" for name in ids.to_pylist()]


def test_a_run_plans_large_tables_in_batches(tmp_path: Path) -> None:
    shop = write_shop(tmp_path, rows=120, customers=150)
    commands.run(read_campaign(shop), shop / "run", engine=LocalEngine())
    commands.run(read_campaign(shop), shop / "other", engine=LocalEngine(rows=10))
    one, other = (pq.read_table(shop / name / "plan.parquet") for name in ("run", "other"))
    assert one.equals(other)
    assert_alike(*(json.loads((shop / name / "plan.json").read_text()) for name in ("run", "other")))


# ---------------------------------------------------------------------------------------------- bad input


def refuse_both(shop: Path, source: str, kind: type[LargesseError] = InputError) -> str:
    """Let both ways of reading refuse a table; the words and the folder must stay the same."""
    before, words = everything_in(shop / "run"), []
    for engine in (LocalEngine(), LocalEngine(rows=10)):
        with pytest.raises(kind) as caught:
            commands.plan(shop / "run", source, out=shop / "copy.parquet", engine=engine)
        words.append(str(caught.value))
    assert words[0] == words[1]
    assert everything_in(shop / "run") == before
    assert not (shop / "copy.parquet").exists()
    assert not [path.name for path in shop.iterdir() if path.name.startswith(".")]
    return words[0]


def change_rows(table: pa.Table, name: str, **at: Any) -> pa.Table:
    values = table[name].to_pylist()
    for row, value in at.items():
        values[int(row[1:])] = value
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values, table.schema.field(name).type))


WRONG: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "missing ids": (lambda t: change_rows(t, "id", r3=None, r190=None), "missing in 2 rows"),
    "ids twice": (lambda t: change_rows(t, "id", r199="c00001", r150="c00007"), "repeats 2 customers: c00001, c00007"),
    "both": (lambda t: change_rows(t, "id", r199="c00001", r70=None), "repeats 1 customer"),
    "a feature is missing": (lambda t: t.drop_columns("age"), "the feature 'age' is not in the table"),
    "a misspelt id": (lambda t: t.rename_columns(["idd", *t.column_names[1:]]), "did you mean 'idd'"),
    "another kind": (lambda t: t.set_column(2, "city", pa.array(range(200))), "the feature 'city' holds numbers"),
    "text for dates": (lambda t: t.set_column(3, "since", pa.array(["x"] * 200)), "the feature 'since' holds text"),
    "a name twice": (lambda t: t.append_column("age", t["age"]), "two columns have the same name: age"),
    "no rows": (lambda t: t.slice(0, 0), "no rows"),
    "costs": (lambda t: change_rows(t, "c1", r5=-1.0, r120=None), "negative, missing or infinite in 2 rows of c1"),
    "falling costs": (lambda t: change_rows(t, "c2", r5=0.0, r199=0.1), "costs fall as levels rise in 2 rows"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_tables_are_refused_in_the_same_words(case: str, fitted: Callable[..., Path], tmp_path: Path) -> None:
    change, words = WRONG[case]
    changes, change_log = CASES["own costs"] if "costs" in case else ((), None)
    shop = fitted(tmp_path, *changes, change_log=change_log)
    pq.write_table(change(pq.read_table(shop / "customers.parquet")), shop / "new.parquet")
    assert words in refuse_both(shop, str(shop / "new.parquet"))


@pytest.mark.parametrize("damage", ["cut", "empty", "other columns", "other types", "no table"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_bad_file_among_many_stops_everything(
    damage: str, ending: str, fitted: Callable[..., Path], tmp_path: Path
) -> None:
    shop, table = fitted(tmp_path), shop_table(300, seed=2, log=False)
    new = shop / "new"
    new.mkdir()
    write: Callable[[pa.Table, Path], None] = pq.write_table if ending == "parquet" else csv.write_csv
    for k in range(3):
        part = table.slice(100 * k, 100)
        if k == 1 and damage == "other columns":
            part = part.rename_columns(["id", "agee", "city", "since"])
        if k == 1 and damage == "other types":
            part = part.set_column(1, "age", pa.array(["old"] * 100))
        write(part, new / f"{k}.{ending}")
    bad = new / f"1.{ending}"
    if damage == "cut":
        bad.write_bytes(bad.read_bytes()[: bad.stat().st_size * 2 // 3] if ending == "parquet" else b"id,age\nx\n")
    elif damage == "empty":
        bad.write_bytes(b"")
    elif damage == "no table":
        bad.write_bytes(b"\x00\xff\xfe" * 100)
    refuse_both(shop, str(new / f"*.{ending}"))


def test_a_table_that_changes_while_it_is_read_is_refused(
    fitted: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, real = fitted(tmp_path), CustomerStream.read
    before = everything_in(shop / "run")

    def changed(self: CustomerStream, features: Any) -> Any:
        pq.write_table(shop_table(200, seed=3, log=False), shop / "customers.parquet")
        return real(self, features)

    monkeypatch.setattr(CustomerStream, "read", changed)
    with pytest.raises(InputError, match="changed"):
        commands.plan(shop / "run", str(shop / "customers.parquet"), engine=LocalEngine(rows=10))
    assert everything_in(shop / "run") == before


def test_a_full_disk_leaves_nothing_behind(
    fitted: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = fitted(tmp_path)
    before = everything_in(shop)

    class Full:
        def write(self, _content: Any) -> None:
            raise OSError(28, "No space left on device")

    real = ScratchFile.append
    monkeypatch.setattr(ScratchFile, "append", lambda self, content: real(ScratchFile(Full(), self.near), content))  # type: ignore[arg-type]
    with pytest.raises(OutputError, match="disk"):
        commands.plan(shop / "run", str(shop / "customers.parquet"), engine=LocalEngine(rows=10))
    assert everything_in(shop) == before


def test_a_model_that_predicts_nonsense_is_refused(
    fitted: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = fitted(tmp_path)
    model = type(Policy.load(shop / "run" / "policy.largesse").model)
    real = model._curves

    def sometimes(self: Any, X: Array) -> Array:
        curves = real(self, X)
        return np.where(X[:, :1] > 1.5, np.nan, curves) if len(X) > 1 else curves

    monkeypatch.setattr(model, "_curves", sometimes)
    assert "curves hold missing or infinite numbers" in refuse_both(shop, str(shop / "customers.parquet"))


# ---------------------------------------------------------------------------------------------- samples


def test_a_sample_has_the_least_random_keys_which_are_spread_evenly() -> None:
    rows = np.arange(5000) + 7
    assert np.array_equal(choose_sample_rows(rows, 300), np.sort(np.argsort(hash_row_numbers(rows))[:300]))
    assert np.array_equal(choose_sample_rows(rows[:300], 300), np.arange(300))
    keys = hash_row_numbers(np.arange(100_000)) / 2.0**64
    assert np.histogram(keys, bins=10, range=(0, 1))[0].min() > 9_700
    assert abs(np.corrcoef(keys[:-1], keys[1:])[0, 1]) < 0.01
