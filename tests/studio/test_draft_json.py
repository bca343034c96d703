"""What a page has filled in becomes the campaign that a file would give; what is wrong with it is named."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.campaign import TableProfile, make_campaign_from_options, profile_table
from largesse.errors import InputError
from largesse.studio.draft_json import assign_roles, convert_draft_to_campaign, describe_inspected_table
from largesse.studio.worker_process import inspect_file
from support.shops import shop_table

ROLES = {"level": "coupon", "response": "bought", "customer": "id", "features": ["age", "city"]}
LEVELS = {"costs": [0, 5, 10]}
DRAFT = {"table": "t", "roles": ROLES, "levels": LEVELS, "budget": 2.5}


@pytest.fixture(scope="module")
def shop_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("draft") / "log.parquet"
    pq.write_table(shop_table(120, seed=1), path)
    return path


@pytest.fixture(scope="module")
def profile(shop_log: Path) -> TableProfile:
    return profile_table(shop_log)


def made_of(tmp_path: Path, **columns: Any) -> TableProfile:
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    return profile_table(tmp_path / "log.parquet")


def test_a_draft_is_what_options_of_the_command_line_give(profile: TableProfile) -> None:
    made = convert_draft_to_campaign(DRAFT, profile, "/log.parquet")
    levels = {"doses": [0, 5, 10], "costs": [0, 5, 10]}
    same = make_campaign_from_options("/log.parquet", dict(ROLES), levels, plan={"budget": 2.5}, title="Campaign")
    assert made == same


def test_all_that_a_draft_can_say_is_in_the_campaign(profile: TableProfile) -> None:
    more = {
        "title": "Spring",
        "unit": "€",
        "model": "linear",
        "seed": 3,
        "plan": {"caps": {"10": 5}, "fixed": {"c1": "5"}},
    }
    levels = {**LEVELS, "names": ["0", "5", "10"], "on_redemption": True, "contact_cost": 0.5}
    made = convert_draft_to_campaign(
        {**DRAFT, **more, "levels": levels, "budget": None, "total": 50}, profile, "/log.parquet"
    )
    assert (made.title, made.unit, made.model, made.seed) == ("Spring", "€", "linear", 3)
    assert (made.planning.total, made.planning.budget, made.planning.fixed) == (50, None, {"c1": 1})
    assert (made.levels.on_redemption, made.levels.contact_cost) == (True, 0.5)


def test_columns_can_be_protected_labelled_and_customers_come_from_another_table(profile: TableProfile) -> None:
    roles = {**ROLES, "features": ["age", "city"], "protected": ["city"]}
    labels, customers = {"age": "Age in years", "5": "Voucher"}, "/customers.parquet"
    made = convert_draft_to_campaign(
        {**DRAFT, "roles": roles, "labels": labels, "customers": customers}, profile, "/log.parquet"
    )
    assert (made.roles["features"], made.roles["protected"]) == (["age"], ["city"])
    assert (made.labels, made.customers) == (labels, customers)
    inspection = describe_inspected_table(*assign_roles(profile, roles), roles["protected"])
    assert {column["name"]: column["role"] for column in inspection["columns"]}["city"] == "protected"
    for wrong in (
        {"roles": {**roles, "protected": "city"}},
        {"roles": {**roles, "protected": ["town"]}},
        {"labels": []},
    ):
        with pytest.raises(InputError):
            convert_draft_to_campaign({**DRAFT, **wrong}, profile, "/log.parquet")


def test_a_checkup_needs_neither_costs_nor_a_budget(profile: TableProfile) -> None:
    made = convert_draft_to_campaign({"table": "t", "roles": ROLES}, profile, "/log.parquet", checkup=True)
    assert made.levels.costs == (0, 1, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": None}, "no budget is set"),
        ({"budget": "much"}, "plan.budget is 'much'"),
        ({"total": 5}, "both budget and total"),
        ({"levels": {}}, "costs is left blank"),
        ({"levels": {"costs": [0, 5]}}, "2 costs but 3 doses"),
        ({"levels": {"costs": [0, 5, 10], "names": ["0", "5", "11"]}}, "the log has no level '11'"),
        ({"levels": {"costs": [0, 5, 10], "names": "0"}}, "levels.names is '0'"),
        ({"levels": {"cost": [0]}}, "levels.cost is not a setting"),
        ({"levels": 3}, "levels is 3"),
        ({"roles": {**ROLES, "level": "cupon"}}, "'cupon' is not in the table"),
        ({"roles": {**ROLES, "level": 3}}, "the role level is 3"),
        ({"roles": {**ROLES, "features": ["agee"]}}, "'agee' is not in the table"),
        ({"roles": {**ROLES, "features": "age"}}, "features is 'age'"),
        ({"roles": {**ROLES, "thing": "age"}}, "'thing' is not a role"),
        ({"roles": {"level": "coupon"}}, "does not name the response column"),
        ({"plan": {"caps": {"11": 1}}}, "names the level '11'"),
        ({"plan": []}, r"plan is \[\]"),
        ({"modle": "auto"}, "did you mean 'model'"),
        ({"seed": -1}, "model.seed is -1"),
        ({"parse": {"age": "sideways"}}, "sideways"),
    ],
)
def test_what_is_wrong_is_named(profile: TableProfile, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        convert_draft_to_campaign({**DRAFT, **change}, profile, "/log.parquet")


def test_the_order_of_names_is_the_users_unless_they_state_it(tmp_path: Path) -> None:
    profile = made_of(tmp_path, offer=["call", "mail", "none"] * 20, bought=[0, 1] * 30, age=list(range(60)))
    inspection, features = assign_roles(profile, {"level": "offer", "response": "bought", "features": ["age"]})
    shown = describe_inspected_table(inspection, features)
    assert (shown["levels"][0]["name"], shown["order_known"]) == ("none", False)
    roles = {"level": "offer", "response": "bought", "features": ["age"]}
    with pytest.raises(InputError, match="names is left blank"):
        convert_draft_to_campaign(
            {"table": "t", "roles": roles, "levels": {"costs": [0, 1, 2]}, "budget": 1}, profile, "/l.parquet"
        )
    names = ["none", "mail", "call"]
    levels = {"names": names, "costs": [0, 1, 2]}
    made = convert_draft_to_campaign(
        {"table": "t", "roles": roles, "levels": levels, "budget": 1}, profile, "/l.parquet"
    )
    assert made.levels.names == ("none", "mail", "call")


def test_text_that_holds_numbers_is_read_as_the_first_campaign_file_would(tmp_path: Path) -> None:
    profile = made_of(
        tmp_path,
        coupon=[0, 5] * 20,
        bought=["yes", "no", "yes", "yes"] * 10,
        spent=["1,50", "2,75"] * 20,
        either=["1,234", "5,678"] * 20,
    )
    roles = {"level": "coupon", "response": "bought", "features": ["spent", "either"]}
    inspection, features = assign_roles(profile, roles)
    assert [one["column"] for one in describe_inspected_table(inspection, features)["parse"]] == ["either"]
    draft = {"table": "t", "roles": roles, "levels": {"costs": [0, 5]}, "budget": 1}
    made = convert_draft_to_campaign(draft, profile, "/l.parquet")
    assert made.roles["parse"] == {"bought": {"no": 0, "yes": 1}, "spent": "decimal comma"}
    made = convert_draft_to_campaign({**draft, "parse": {"either": "decimal point"}}, profile, "/l.parquet")
    assert made.roles["parse"]["either"] == "decimal point"


def test_observed_costs_need_no_list(tmp_path: Path) -> None:
    profile = made_of(
        tmp_path, coupon=[0, 5] * 20, bought=[0, 1, 1, 1] * 10, paid=[0.0, 5.0, 0.0, 2.5] * 10, age=range(40)
    )
    roles = {"level": "coupon", "response": "bought", "cost_column": "paid", "features": ["age"]}
    made = convert_draft_to_campaign(
        {"table": "t", "roles": roles, "levels": {"costs": []}, "budget": 1}, profile, "/l.parquet"
    )
    assert made.levels.observed


def test_roles_are_not_guessed_again_and_a_column_of_many_values_is_not_a_level(shop_log: Path) -> None:
    guessed = inspect_file(str(shop_log))
    assert guessed["roles"]["customer"] == "id"
    again = inspect_file(str(shop_log), {**guessed["roles"], "customer": None})
    assert again["roles"]["customer"] is None
    assert {column["name"]: column["role"] for column in again["columns"]}["id"] == "ignore"
    many = inspect_file(str(shop_log), {"level": "age", "response": "bought", "features": ["city"]})
    assert many["levels"] is None
    assert "distinct values" in many["problems"][0]["what"]
