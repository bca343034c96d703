"""Decisions over HTTP are those of the policy, keep to the ledger's budget, and come once for each request."""

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from knocks import knock
from services import TOKEN, Ask, connect

from largesse.errors import InputError, LargesseError, LedgerError, Problem
from largesse.pipeline import plan
from largesse.policy import Policy
from largesse.serve import (
    AuthMiddleware,
    LedgerSettings,
    Settings,
    load_policy,
    open_ledger,
    open_service,
    parse_ledger_options,
)
from largesse.serve import ledger_context as ledgers
from largesse.serve.app import load_service, make_app
from largesse.serve.service import Service
from largesse.serve.settings import read_token, settings_warnings, startup_warnings

Row = dict[str, Any]


def test_decisions_are_those_of_the_policy(ask: Ask, ran: Path, customers: list[Row]) -> None:
    policy = Policy.load(ran / "policy.largesse")
    answer = ask("/v1/decide", {"request_id": "r1", "customers": customers}).json()
    table = pa.Table.from_pylist(customers)
    table = table.set_column(table.column_names.index("since"), "since", table.column("since").cast(pa.date32()))
    probabilities = policy.probabilities(table.drop_columns(["id"]))
    found = answer["decisions"]
    levels = [one["level_number"] for one in found]
    assert [one["propensity"] for one in found] == probabilities[range(len(found)), levels].tolist()
    assert min(one["propensity"] for one in found) > 0
    assert len(set(levels)) > 1
    assert [one["customer"] for one in found] == [row["id"] for row in customers]
    assert {one["level"] for one in found} <= set(policy.levels.labels)
    assert answer["price"] == policy.price
    curves = policy.model.predict(table.drop_columns(["id"]))
    for at, one in enumerate(found):
        assert one["expected_response"] == pytest.approx(curves[at, one["level_number"]], rel=1e-6)


def test_the_same_request_gets_the_same_answer(ask: Ask, customers: list[Row]) -> None:
    asked = {"request_id": "twice", "customers": customers[:5]}
    assert ask("/v1/decide", asked).json() == ask("/v1/decide", asked).json()


def test_exploring_draws_levels_with_the_stated_probabilities(ran: Path, tmp_path: Path, customers: list[Row]) -> None:
    folder = shutil.copytree(ran, tmp_path / "run")
    policy = Policy.load(folder / "policy.largesse")
    Policy(policy.model, policy.levels, policy.price, exploration_rate=0.6).save(folder / "policy.largesse")
    with load_service(Settings(folder)) as service:
        ask = connect(service)
        drawn = [
            one
            for k in range(20)
            for one in ask("/v1/decide", {"request_id": f"r{k}", "customers": customers}).json()["decisions"]
        ]
    likely = sum(one["propensity"] > 0.5 for one in drawn) / len(drawn)
    assert likely == pytest.approx(0.6, abs=0.03)  # the best level: .4 + .6 / 3
    assert {one["level_number"] for one in drawn if one["propensity"] < 0.5} == {0, 1, 2}


def test_a_plan_that_explores_for_evaluation_is_served_so(ran: Path, tmp_path: Path, customers: list[Row]) -> None:
    folder = shutil.copytree(ran, tmp_path / "run")
    plan(folder, explore_for="evaluation", explore=0.3)
    policy = Policy.load(folder / "policy.largesse")
    asked = {"request_id": "r", "customers": customers}
    with load_service(Settings(folder)) as service:
        assert startup_warnings(service.store.current) == []
        ask = connect(service)
        found = ask("/v1/decide", asked).json()["decisions"]
        assert ask("/v1/decide", asked).json()["decisions"] == found
        again = [ask("/v1/decide", asked | {"request_id": f"r{k}"}).json()["decisions"] for k in range(20)]
        many = [one for decisions in again for one in decisions]
    table = pa.Table.from_pylist(customers)
    table = table.set_column(table.column_names.index("since"), "since", table.column("since").cast(pa.date32()))
    given = policy.probabilities(table.drop_columns(["id"]))
    levels = [one["level_number"] for one in found]
    assert [one["propensity"] for one in found] == pytest.approx(given[range(len(found)), levels])
    own = pq.read_table(folder / "plan.parquet")  # of the same customers, drawn by the plan: a few are on its edge
    planned = own["propensity"].to_numpy(), given[range(len(own)), own["level_number"].to_numpy()]
    assert np.quantile(np.abs(planned[0] - planned[1]), 0.9) < 0.03
    counts = np.bincount([one["level_number"] for one in many], minlength=3) / len(many)
    assert counts == pytest.approx(given.mean(axis=0), abs=0.03)
    assert len({round(one["propensity"], 6) for one in many}) > 20


def test_with_a_ledger_it_draws_at_the_price_of_the_moment(ran: Path, tmp_path: Path, customers: list[Row]) -> None:
    folder = shutil.copytree(ran, tmp_path / "run")
    before = LedgerSettings(f"sqlite:///{tmp_path / 'before.db'}", "600", "2999-12-31", customers=300)
    load_service(Settings(folder, ledger=before)).close()
    plan(folder, explore_for="evaluation", explore=0.3)
    begun = LedgerSettings(f"sqlite:///{tmp_path / 'begun.db'}", "600", "2999-12-31", customers=300)
    with load_service(Settings(folder, ledger=begun)) as service:
        assert startup_warnings(service.store.current, service.ledger) == []
        answer = connect(service)("/v1/decide", {"request_id": "r", "customers": customers}).json()
        assert service.ledger.standing().spent <= 600_000_000
    shares = [one["propensity"] for one in answer["decisions"]]
    assert len({round(share, 6) for share in shares}) > 100
    assert 0 < min(shares) < 0.2
    # A ledger that was begun before the plan explored.
    with load_service(Settings(folder, ledger=LedgerSettings(before.address))) as service:
        assert "begin another one" in str(startup_warnings(service.store.current, service.ledger))
        answer = connect(service)("/v1/decide", {"request_id": "r", "customers": customers}).json()
    assert {one["propensity"] for one in answer["decisions"]} == {1.0}


def test_who_may_not_get_a_level_is_no_rule_that_a_service_could_keep(ran: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(ran, tmp_path / "run")
    with (folder / "campaign.toml").open("a") as file:
        file.write('\n[plan.barred.city]\nOslo = ["10"]\n')
    with pytest.raises(InputError, match="cannot keep the plan's rules: barred"):
        load_service(Settings(folder))
    load_service(Settings(folder, without_rules=True)).close()


def test_what_a_service_does_not_draw_is_said(ran: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(ran, tmp_path / "run")
    plan(folder, explore_for="evaluation")
    policy = Policy.load(folder / "policy.largesse")
    Policy(policy.model, policy.levels, policy.price).save(folder / "policy.largesse")  # as earlier versions wrote it
    words = startup_warnings(load_policy(folder))
    assert "draws nothing" in str(words)
    assert "largesse plan" in str(words)
    with (folder / "campaign.toml").open("a") as file:
        file.write('\n[plan.barred.city]\nOslo = ["10"]\n')
    plan(folder)
    assert Policy.load(folder / "policy.largesse").exploration is None
    assert "its own customers only" in str(startup_warnings(load_policy(folder)))
    assert startup_warnings(load_policy(ran)) == []


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        ({}, 400, "customers is None"),
        ({"customers": []}, 400, "an empty list"),
        ({"customers": [{}]}, 400, "the customer lacks 3 features"),
        ({"customers": [{"age": 1, "city": "Oslo", "since": None}], "budget": 3}, 400, "'budget' is not a part"),
        ({"customers": [{"age": "old", "city": "Oslo", "since": None}]}, 400, "'age' holds text"),
        ({"customers": [{"age": 1, "city": "Oslo", "since": None}], "request_id": 7}, 400, "request_id is 7"),
        ({"customers": [{"age": 1, "city": "Oslo", "since": None, "id": [1]}]}, 400, "has the id [1]"),
        (b'{"customers": [{"age": NaN}]}', 400, "not JSON"),
        (b'{"customers": [{"age": 1e999}]}', 400, "too large a number"),
        (b"[1]", 400, "not an object"),
        (b"\xff", 400, "not JSON"),
        (b'{"a":' * 5000, 400, "too deeply"),
    ],
)
def test_bad_requests_are_refused_in_words(ask: Ask, content: Any, status: int, words: str) -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    found = ask("/v1/decide", content, headers=headers)
    assert found.status_code == status
    assert words in found.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": TOKEN}, 401),
        ({"cookie": f"token={TOKEN}"}, 401),
        ({"authorization": f"Bearer {TOKEN}", "host": "shop.example"}, 421),
        ({"authorization": f"Bearer {TOKEN}", "origin": "http://shop.example"}, 403),
        ({"authorization": f"Bearer {TOKEN}", "content-type": "text/plain"}, 415),
    ],
)
def test_strangers_are_refused(ask: Ask, headers: dict[str, str], status: int, customers: list[Row]) -> None:
    content = b'{"customers": []}'
    assert ask("/v1/decide", content, headers=headers).status_code == status
    wrong = "host" in headers
    host = {"host": headers.get("host", "127.0.0.1:8000")}
    assert ask("/healthz", headers=host).status_code == (421 if wrong else 200)


def test_bodies_have_an_end(ask: Ask) -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    assert ask("/v1/decide", b" " * (2**24 + 1), headers=headers).status_code == 413


def test_other_addresses_and_methods_are_named(ask: Ask) -> None:
    assert "there is no /v2" in ask("/v2").text
    other = ask("/v1/decide", method="GET")
    assert (other.status_code, other.headers["allow"]) == (405, "POST")
    assert ask("/v1/budget").status_code == 409
    assert "--ledger" in ask("/v1/budget").text


def test_health_metrics_and_description(ask: Ask, customers: list[Row]) -> None:
    ask("/v1/decide", {"customers": customers[:7]})
    health = ask("/healthz", headers={}).json()
    assert health["status"] == "ok"
    text = ask("/metrics").text
    assert 'largesse_requests_total{path="/v1/decide",status="200"} 1.0' in text
    assert _count_decisions(text) == 7
    assert f'version="{health["policy"]}"' in text
    customer = ask("/openapi.json").json()["components"]["schemas"]["customer"]
    assert set(customer["required"]) == {"age", "city", "since"}
    assert "/v1/decide" in ask("/").text


def _count_decisions(text: str) -> int:
    return sum(
        round(float(line.split()[-1])) for line in text.splitlines() if line.startswith("largesse_decisions_total{")
    )


def _describe_answer(ask: Ask, path: str) -> Row:
    """Return the parts of an answer as OpenAPI has them."""
    content = ask("/openapi.json").json()["paths"][path]["get"]["responses"]["200"]["content"]
    return dict(content["application/json"]["schema"]["properties"])


def test_a_ledger_keeps_the_budget_and_each_request_once(booked: tuple[Ask, Service], customers: list[Row]) -> None:
    ask, service = booked
    first = ask("/v1/decide", {"request_id": "a", "customers": customers[:3]}).json()
    again = ask("/v1/decide", {"request_id": "a", "customers": customers[:3]}).json()
    assert again == {**first, "repeated": True}
    for k, row in enumerate(customers):
        assert ask("/v1/decide", {"request_id": f"one {k}", "customers": [row]}).status_code == 200
    found = ask("/v1/budget").json()
    assert found["decisions"] == len(customers) + 3
    assert found["spent"] + found["promised"] <= 60
    assert found["spent"] + found["promised"] > 50  # the price falls until the money is used
    assert service.ledger is not None
    assert service.ledger.audit().fine
    other = ask("/v1/decide", {"request_id": "a", "customers": customers[3:6]})
    assert other.status_code == 409
    assert ask("/v1/decide", {"customers": customers[:1]}).status_code == 400  # a ledger needs an id
    nobody = {key: value for key, value in customers[0].items() if key != "id"}
    assert "has the id None" in ask("/v1/decide", {"request_id": "b", "customers": [nobody]}).text
    twice = ask("/v1/decide", {"request_id": "c", "customers": [customers[0], customers[0]]})
    assert "comes twice" in twice.text
    told = ask("/metrics").text
    assert "largesse_budget_total 60.0" in told
    assert _count_decisions(told) == found["decisions"]  # those that were asked for again count once
    last = ask("/v1/decide", {"request_id": f"one {len(customers) - 1}", "customers": [customers[-1]]}).json()
    assert f"\nlargesse_price {last['price']!r}\n" in told
    assert set(found) == set(_describe_answer(ask, "/v1/budget"))


def test_redemptions_are_refused_where_nothing_was_promised(booked: tuple[Ask, Service], customers: list[Row]) -> None:
    ask, _ = booked
    ask("/v1/decide", {"request_id": "a", "customers": customers[:1]})
    assert ask("/v1/redeem", {"request_id": "b", "customer": "x"}).status_code == 409
    assert ask("/v1/redeem", {"request_id": "a", "customer": True}).status_code == 400
    assert ask("/v1/redeem", {"request_id": "a"}).status_code == 400


def test_a_redemption_that_the_budget_no_longer_pays_for_is_409(
    ran: Path, tmp_path: Path, customers: list[Row]
) -> None:
    folder = shutil.copytree(ran, tmp_path / "run")
    policy = Policy.load(folder / "policy.largesse")
    replace(policy, levels=replace(policy.levels, on_redemption=True)).save(folder / "policy.largesse")
    options = {"total": "20", "until": "2999-12-31", "valid_days": 14.0, "promises": "while_it_lasts"}
    book = parse_ledger_options({"ledger": f"sqlite:///{tmp_path / 'lasts.db'}", **options})
    with load_service(Settings(folder, ledger=book)) as service:
        ask = connect(service)
        decided = ask("/v1/decide", {"request_id": "a", "customers": customers}).json()["decisions"]
        given = [one["customer"] for one in decided if one["level_number"]]
        answers = [ask("/v1/redeem", {"request_id": "a", "customer": name}) for name in given]
        assert {answer.status_code for answer in answers} == {200, 409}
        refused = next(answer for answer in answers if answer.status_code == 409).json()["error"]
        assert re.search(r"the budget does not last: \d+\.\d\d is left", refused["message"])
        assert "or less, or raise the total" in refused["problems"][0]["hint"]
        found = ask("/v1/budget").json()
        assert (found["promises"], found["spent"] <= 20) == ("while_it_lasts", True)
        assert found["promised"] > found["held"]


def test_a_budget_that_is_spent_to_the_last_cent_is_409(ran: Path, tmp_path: Path, customers: list[Row]) -> None:
    folder = shutil.copytree(ran, tmp_path / "run")
    policy = Policy.load(folder / "policy.largesse")
    assert policy.levels.costs is not None
    dear = replace(policy.levels, costs=tuple(1.0 + cost for cost in policy.levels.costs))
    replace(policy, levels=dear).save(folder / "policy.largesse")
    ledger = LedgerSettings(f"sqlite:///{tmp_path / 'dear.db'}", "3", "2999-12-31")
    with load_service(Settings(folder, ledger=ledger)) as service:
        found = connect(service)("/v1/decide", {"request_id": "a", "customers": customers[:10]})
    assert (found.status_code, "not even the cheapest level fits" in found.text) == (409, True)


def test_a_ledger_that_cannot_be_reached_is_503(
    booked: tuple[Ask, Service], customers: list[Row], tmp_path: Path
) -> None:
    ask, service = booked
    assert service.ledger is not None
    path = tmp_path / "spring.db"
    service.ledger._timeout = 0.0
    service.ledger.close()
    path.write_bytes(b"not a database, but a text of some length " * 100)
    for extra in ("-wal", "-shm"):
        Path(f"{path}{extra}").unlink(missing_ok=True)
    found = ask("/v1/decide", {"request_id": "a", "customers": customers[:1]})
    assert found.status_code == 503
    assert found.headers["retry-after"] == "1"
    assert "Traceback" not in found.text
    assert ask("/healthz", headers={}).status_code == 200
    told = ask("/metrics").text
    assert 'largesse_requests_total{path="/v1/decide",status="503"} 1' in told
    assert "\nlargesse_ledger_up 0.0\n" in told
    assert "largesse_budget" not in told


def test_what_cannot_be_served_is_refused_in_words(run_copy: Path, tmp_path: Path) -> None:
    with pytest.raises(LargesseError, match="without a token"):
        open_service(Settings(run_copy, host="0.0.0.0"))
    with pytest.raises(LargesseError, match="there is no policy"):
        open_service(Settings(tmp_path, port=0))
    with pytest.raises(LargesseError, match="0 workers"):
        open_service(Settings(run_copy, workers=0))
    with pytest.raises(InputError, match="cannot be read"):
        read_token(tmp_path / "none")
    (tmp_path / "short").write_text("abc")
    with pytest.raises(InputError, match="no valid token"):
        read_token(tmp_path / "short")
    with pytest.raises(LargesseError, match="--total without --ledger"):
        parse_ledger_options({"total": "5"})


def test_a_policy_file_is_served_by_itself(run_copy: Path, customers: list[Row]) -> None:
    with load_service(Settings(run_copy / "policy.largesse")) as service:
        assert connect(service)("/v1/decide", {"customers": customers[:2]}).status_code == 200
    ledger = LedgerSettings(f"sqlite:///{run_copy.parent / 'x.db'}", "5", "2999-01-01")
    with pytest.raises(LargesseError, match="what customers to expect"):
        load_service(Settings(run_copy / "policy.largesse", ledger=ledger)).close()


def test_a_ledger_that_is_there_is_opened_as_it_is(booked: tuple[Ask, Service], ran: Path, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'spring.db'}"
    with load_service(Settings(ran, ledger=LedgerSettings(address))) as service:
        assert service.ledger.standing().as_dict()["total"] == 60
    with pytest.raises(LargesseError, match="the total is 70"):
        load_service(Settings(ran, ledger=LedgerSettings(address, "70", "2999-12-31"))).close()
    with pytest.raises(LargesseError, match="--until is not given"):
        load_service(Settings(ran, ledger=LedgerSettings(address, "70"))).close()
    with open_ledger(address) as ledger:
        assert ledger.audit().fine


def test_elsewhere_any_host_is_answered_but_only_with_the_token() -> None:
    far = Settings(Path(), host="0.0.0.0").access("x" * 20, 8000)
    assert (far.hosts, far.open_paths) == (None, {"/healthz"})
    assert Settings(Path()).access(None, 8000).hosts == {"127.0.0.1:8000", "localhost:8000"}


def test_a_browser_reads_what_to_send_on_this_machine_alone(ask: Ask) -> None:
    for path in ("/", "/docs", "/openapi.json"):
        assert ask(path, headers={}).status_code == 200
        assert ask(path, headers={"host": "other.example:8000"}).status_code == 421
    assert ask("/v1/budget", headers={}).status_code == 401


def test_the_described_answer_is_that_of_the_service(ask: Ask) -> None:
    api = ask("/openapi.json").json()
    decide = api["paths"]["/v1/decide"]["post"]
    body = decide["requestBody"]["content"]["application/json"]["example"]
    told = decide["responses"]["200"]["content"]["application/json"]["example"]
    answer = ask("/v1/decide", body).json()
    assert set(answer) == set(told)
    assert answer["decisions"][0]["level"] == told["decisions"][0]["level"]
    assert answer["decisions"][0]["expected_cost"] == pytest.approx(told["decisions"][0]["expected_cost"], rel=1e-3)
    for words in ("expected_response", "What a customer has", *api["paths"]):
        assert words in ask("/").text


def test_the_budget_says_times_as_people_write_them(booked: tuple[Ask, Service]) -> None:
    assert booked[0]("/v1/budget").json()["ends"] == "3000-01-01T00:00:00Z"


def test_a_ledger_of_another_campaign_is_refused(booked: tuple[Ask, Service], ran: Path) -> None:
    service = booked[1]
    assert service.ledger is not None
    plan = json.dumps({**service.ledger.standing().plan, "levels": ["small", "large"]})
    with sqlite3.connect(service.ledger.shown.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE ledger SET plan = ?", [plan])
    database.close()
    found = LedgerSettings(service.ledger.shown)
    with pytest.raises(LargesseError, match="another campaign: its levels are small, large"):
        load_service(Settings(ran, ledger=found)).close()


def test_a_ledger_that_cannot_be_reached_is_asked_once(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def gone(address: str, *_: Any, **__: Any) -> None:
        asked.append(address)
        raise LedgerError("ledger", [Problem("the database is gone")]) from OSError()

    monkeypatch.setattr(ledgers, "open_ledger", gone)
    wanted = LedgerSettings("postgresql://nobody@127.0.0.1:1/x", "5", "2999-01-01")
    with pytest.raises(LedgerError, match="gone"):
        load_service(Settings(ran, ledger=wanted)).close()
    assert len(asked) == 1


def test_a_token_that_others_may_read_gets_a_warning(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("x" * 20)
    for mode, words in ((0o600, ""), (0o644, "may read"), (0o666, "may change")):
        token.chmod(mode)
        warnings = settings_warnings(Settings(tmp_path, token_file=token))
        assert len(warnings) == bool(words)
        assert words in "".join(warnings)


@pytest.mark.parametrize("quiet", [False, True])
def test_a_quiet_service_logs_nothing_but_warnings(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], quiet: bool
) -> None:
    monkeypatch.setattr("largesse.serve.server.run_server", lambda *_, **__: None)
    (run_copy.parent / "token").write_text("x" * 20)
    (run_copy.parent / "token").chmod(0o644)
    ledger = LedgerSettings(f"sqlite:///{run_copy.parent}/x.db", "0", "2999-01-01")
    open_service(Settings(run_copy, port=0, token_file=run_copy.parent / "token", ledger=ledger, quiet=quiet))
    shown = capsys.readouterr()
    assert ("Decisions at http://" in shown.out) != quiet
    assert "others on this machine may read" in shown.err
    assert "everyone gets the cheapest level" in shown.err


@pytest.mark.parametrize(
    ("since", "until", "words"),
    [("2020-01-01", "2020-01-31", "ended at 2020-02-01"), ("2990-01-01", "2999-12-31", "begins at 2990-01-01")],
)
def test_outside_the_period_there_is_a_warning(ran: Path, tmp_path: Path, since: str, until: str, words: str) -> None:
    ledger = LedgerSettings(f"sqlite:///{tmp_path / 'spring.db'}", "60", until, since)
    with load_service(Settings(ran, ledger=ledger)) as service:
        (warning,) = startup_warnings(service.store.current, service.ledger)
    assert words in warning
    assert "everyone gets the cheapest level" in warning


def test_a_ledger_that_is_taken_away_is_503_and_no_other_one_begins(
    booked: tuple[Ask, Service], tmp_path: Path, customers: list[Row]
) -> None:
    ask = booked[0]
    assert ask("/v1/decide", {"request_id": "a", "customers": customers[:1]}).status_code == 200
    for name in ("spring.db", "spring.db-wal", "spring.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    asks = (("/v1/decide", {"request_id": "b", "customers": customers[:1]}), ("/v1/budget", None))
    for path, content in (*asks, ("/v1/redeem", {"request_id": "a", "customer": customers[0]["id"]})):
        found = ask(path, content)
        assert found.status_code == 503
        assert "was taken away or replaced while it was open" in found.json()["error"]["message"]
    assert ask("/healthz", headers={}).status_code == 200
    assert "largesse_ledger_up 0" in ask("/metrics").text
    assert not (tmp_path / "spring.db").exists()


def test_workers_open_the_ledger_and_never_begin_one(
    run_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Settings] = []
    monkeypatch.setattr("largesse.serve.server.run_workers", lambda settings, *_: given.append(settings))
    ledger = LedgerSettings(f"sqlite:///{tmp_path / 'spring.db'}", "60", "2999-12-31", promises="while_it_lasts")
    open_service(Settings(run_copy, port=0, ledger=ledger, workers=2))
    with load_service(given[0]) as service:
        assert service.ledger is not None
        assert service.ledger.standing().terms.total == 60_000_000
    (tmp_path / "spring.db").unlink()
    with pytest.raises(LedgerError, match="there is no ledger"):
        load_service(given[0])
    assert not (tmp_path / "spring.db").exists()


# -- hostile requests --------------------------------------------------------------------------------------------------

SOUND = (("Host", "127.0.0.1:8000"), ("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/json"))


@pytest.fixture(scope="module")
def app(ran: Path) -> Iterator[Any]:
    with load_service(Settings(ran)) as service:
        yield AuthMiddleware(make_app(service), Settings(ran).access(TOKEN, 8000))


@pytest.mark.parametrize(
    ("status", "path", "body", "said"),
    [
        (413, "/v1/decide", [b"x" * (1 << 20)] * 17, "larger than"),
        (404, "/v1/decide/", [b"{}"], "there is no"),
        (400, "/v1/decide", [b'{"customers": [{"id": "\\ud800"}]}'], "surrogate"),
        (400, "/v1/redeem", [b'{"request_id": "r", "customer": "\\uDFFF"}'], "surrogate"),
        (400, "/v1/decide", [b'{"\\ud83d": 1}'], "surrogate"),
        (400, "/v1/decide", [b'{"\\ud83d\\ude00": 1}'], "not a part of this request"),
    ],
)
def test_hostile_requests_are_refused_in_words(app: Any, status: int, path: str, body: list[bytes], said: str) -> None:
    answer = knock(app, path, method="POST", headers=SOUND, body=body)
    assert answer.status == status
    assert said in answer.json["error"]["message"]


def test_a_request_that_breaks_off_is_not_logged(app: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answer = knock(app, "/v1/decide", method="POST", headers=SOUND, body=[b"{"], breaks_off=True)
    assert answer.status in (0, 400)
    assert "Traceback" not in capsys.readouterr().err
