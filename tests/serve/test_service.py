"""Decisions over HTTP are those of the policy, keep to the ledger's budget, and come once for each request."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from largesse.errors import InputError, LargesseError, LedgerError, Problem
from largesse.pipeline import plan
from largesse.policy import Policy
from largesse.records import Array
from largesse.serve import (
    AuthMiddleware,
    LedgerSettings,
    ServiceSettings,
    endpoints,
    open_ledger,
    open_service,
    parse_ledger_options,
)
from largesse.serve.endpoints import Service, load_service, make_service_app
from largesse.serve.served_policy import load_policy
from largesse.serve.service_settings import list_settings_warnings, list_startup_warnings, read_token
from support.services import TOKEN, Ask, connect, knock

Row = dict[str, Any]
BEARER = {"authorization": f"Bearer {TOKEN}"}
JSON = {"content-type": "application/json"}
SOUND = {"age": 1, "city": "Oslo", "since": None}


@contextmanager
def serve(source: Path, **settings: Any) -> Iterator[tuple[Ask, Service]]:
    with load_service(ServiceSettings(source, **settings)) as service:
        yield connect(service), service


def ledger_at(folder: Path, total: str | None = "60", until: str | None = "2999-12-31", **more: Any) -> LedgerSettings:
    return LedgerSettings(f"sqlite:///{folder / 'spring.db'}", total, until, **more)


def change_policy(run: Path, change: Callable[[Policy], Policy]) -> None:
    change(Policy.load(run / "policy.largesse")).save(run / "policy.largesse")


def probabilities(policy: Policy, customers: list[Row]) -> Array:
    return policy.probabilities(as_table(customers))


def as_table(customers: list[Row]) -> pa.Table:
    table = pa.Table.from_pylist(customers)
    since = table.column("since").cast(pa.date32())
    return table.set_column(table.column_names.index("since"), "since", since).drop_columns(["id"])


def count_decisions(metrics: str) -> int:
    lines = [line for line in metrics.splitlines() if line.startswith("largesse_decisions_total{")]
    return sum(round(float(line.split()[-1])) for line in lines)


# -- decisions ---------------------------------------------------------------------------------------------------------


def test_decisions_are_those_of_the_policy(ask: Ask, ran: Path, customers: list[Row]) -> None:
    policy = Policy.load(ran / "policy.largesse")
    answer = ask("/v1/decide", {"request_id": "r1", "customers": customers}).json()
    assert ask("/v1/decide", {"request_id": "r1", "customers": customers}).json() == answer
    made, rows = answer["decisions"], np.arange(len(customers))
    levels = [decision["level_number"] for decision in made]
    propensity = [decision["propensity"] for decision in made]
    assert propensity == probabilities(policy, customers)[rows, levels].tolist()
    assert min(propensity) > 0
    assert len(set(levels)) > 1
    assert [decision["customer"] for decision in made] == [row["id"] for row in customers]
    assert [decision["level"] for decision in made] == [policy.levels.labels[level] for level in levels]
    assert answer["price"] == policy.price
    expected = policy.model.predict(as_table(customers))[rows, levels]
    assert [decision["expected_response"] for decision in made] == pytest.approx(expected, rel=1e-6)


def test_levels_are_drawn_with_the_stated_probabilities(run_copy: Path, customers: list[Row]) -> None:
    change_policy(run_copy, lambda policy: Policy(policy.model, policy.levels, policy.price, exploration_rate=0.6))
    with serve(run_copy) as (ask, _):
        answers = [ask("/v1/decide", {"request_id": f"r{k}", "customers": customers}).json() for k in range(20)]
    drawn = [decision for answer in answers for decision in answer["decisions"]]
    likely = sum(decision["propensity"] > 0.5 for decision in drawn) / len(drawn)
    assert likely == pytest.approx(0.6, abs=0.03)  # the best level: .4 + .6 / 3
    assert {decision["level_number"] for decision in drawn if decision["propensity"] < 0.5} == {0, 1, 2}


def test_exploration_for_evaluation_is_served_alone_and_with_a_ledger(
    ran: Path, run_copy: Path, tmp_path: Path, customers: list[Row]
) -> None:
    before = ledger_at(tmp_path, "600", customers=300)
    load_service(ServiceSettings(run_copy, ledger=before)).close()
    plan(run_copy, explore_for="evaluation", explore=0.3)
    policy, asked = Policy.load(run_copy / "policy.largesse"), {"request_id": "r", "customers": customers}
    with serve(run_copy) as (ask, service):
        assert list_startup_warnings(service.store.current) == []
        first = ask("/v1/decide", asked).json()["decisions"]
        assert ask("/v1/decide", asked).json()["decisions"] == first
        answers = [ask("/v1/decide", asked | {"request_id": f"r{k}"}).json() for k in range(20)]
    drawn = [decision for answer in answers for decision in answer["decisions"]]
    given = probabilities(policy, customers)
    levels = [decision["level_number"] for decision in first]
    assert [decision["propensity"] for decision in first] == pytest.approx(given[range(len(first)), levels])
    planned = pq.read_table(
        run_copy / "plan.parquet"
    )  # of the same customers, drawn by the plan: a few are on its edge
    differences = planned["propensity"].to_numpy() - given[range(len(planned)), planned["level_number"].to_numpy()]
    assert np.quantile(np.abs(differences), 0.9) < 0.03
    counts = np.bincount([decision["level_number"] for decision in drawn], minlength=3) / len(drawn)
    assert counts == pytest.approx(given.mean(axis=0), abs=0.03)
    assert len({round(decision["propensity"], 6) for decision in drawn}) > 20

    # A ledger draws at its current price; one that was begun before the plan explored draws nothing.
    begun = LedgerSettings(f"sqlite:///{tmp_path / 'begun.db'}", "600", "2999-12-31", customers=300)
    with serve(run_copy, ledger=begun) as (ask, service):
        assert service.ledger is not None
        assert list_startup_warnings(service.store.current, service.ledger) == []
        propensity = [one["propensity"] for one in ask("/v1/decide", asked).json()["decisions"]]
        assert service.ledger.standing().spent <= 600_000_000
    assert len({round(share, 6) for share in propensity}) > 100
    assert 0 < min(propensity) < 0.2
    with serve(run_copy, ledger=before.without_terms) as (ask, service):
        assert "--ledger" in str(list_startup_warnings(service.store.current, service.ledger))
        answer = ask("/v1/decide", asked).json()
    assert {decision["propensity"] for decision in answer["decisions"]} == {1.0}


def test_rules_and_exploration_that_a_price_cannot_keep(ran: Path, run_copy: Path) -> None:
    assert list_startup_warnings(load_policy(ran)) == []
    plan(run_copy, explore_for="evaluation")
    change_policy(run_copy, lambda policy: Policy(policy.model, policy.levels, policy.price))  # as earlier versions did
    assert "largesse plan" in str(list_startup_warnings(load_policy(run_copy)))
    with (run_copy / "campaign.toml").open("a") as file:
        file.write('\n[plan.barred.city]\nOslo = ["10"]\n')
    plan(run_copy)
    assert Policy.load(run_copy / "policy.largesse").exploration is None
    assert "rules" in str(list_startup_warnings(load_policy(run_copy)))
    with pytest.raises(InputError, match="barred"):
        load_service(ServiceSettings(run_copy))
    load_service(ServiceSettings(run_copy, without_rules=True)).close()


# -- requests ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "subject"),
    [
        ({}, "customers"),
        ({"customers": []}, "empty"),
        ({"customers": [{}]}, "3 features"),
        ({"customers": [SOUND], "budget": 3}, "'budget'"),
        ({"customers": [SOUND], **{f"k{k}": 1 for k in range(100_000)}}, "k0"),
        ({"customers": [SOUND | {"age": "old"}]}, "'age'"),
        ({"customers": [SOUND], "request_id": 7}, "request_id"),
        ({"customers": [SOUND | {"id": [1]}]}, "[1]"),
        (b'{"customers": [{"age": NaN}]}', "JSON"),
        (b'{"customers": [{"age": 1e999}]}', "too large"),
        (b"[1]", "object"),
        (b"\xff", "JSON"),
        (b'{"a":' * 5000, "deep"),
        (b'{"customers": [{"id": "\\ud800"}]}', "surrogate"),
        (b'{"\\ud83d": 1}', "surrogate"),
        (b'{"\\ud83d\\ude00": 1}', "\U0001f600"),
    ],
    ids=range(16),
)
def test_invalid_requests_are_400(ask: Ask, content: Any, subject: str) -> None:
    answer = ask("/v1/decide", content, headers=BEARER | JSON)
    assert answer.status_code == 400
    assert subject in answer.text
    assert len(answer.content) < 2000


@pytest.mark.parametrize(
    ("status", "path", "headers", "content"),
    [
        *((401, "/v1/decide", headers, b"{}") for headers in ({}, {"authorization": "Bearer wrong"})),
        *((401, "/v1/decide", headers, b"{}") for headers in ({"authorization": TOKEN}, {"cookie": f"token={TOKEN}"})),
        (421, "/v1/decide", BEARER | {"host": "shop.example"}, b"{}"),
        (403, "/v1/decide", BEARER | {"origin": "http://shop.example"}, b"{}"),
        (415, "/v1/decide", BEARER | {"content-type": "text/plain"}, b"{}"),
        (413, "/v1/decide", BEARER | JSON, b" " * (2**24 + 1)),
        (400, "/v1/redeem", BEARER | JSON, b'{"request_id": "r", "customer": "\\uDFFF"}'),
        (404, "/v1/decide/", BEARER | JSON, b"{}"),
        (404, "/v2", BEARER, None),
        (405, "/v1/decide", BEARER, None),
        (409, "/v1/budget", BEARER, None),
        (401, "/v1/budget", {}, None),
        *((200, path, {}, None) for path in ("/", "/docs", "/openapi.json", "/healthz")),
        *((421, path, {"host": "a.example:8000"}, None) for path in ("/", "/docs", "/openapi.json", "/healthz")),
    ],
)
def test_who_may_ask_for_what(ask: Ask, status: int, path: str, headers: dict[str, str], content: Any) -> None:
    answer = ask(path, content, headers=headers)
    assert answer.status_code == status
    assert answer.headers.get("allow") == ("POST" if status == 405 else None)


def test_broken_and_endless_bodies(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    headers = [("Host", "127.0.0.1:8000"), ("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/json")]
    with load_service(ServiceSettings(ran)) as service:
        app = AuthMiddleware(make_service_app(service), ServiceSettings(ran).make_access_policy(TOKEN, 8000))
        send = {"method": "POST", "headers": headers}
        assert knock(app, "/v1/decide", **send, body=[b"x" * (1 << 20)] * 17).status == 413  # type: ignore[arg-type]
        assert knock(app, "/v1/decide", **send, body=[b"{"], breaks_off=True).status in (0, 400)  # type: ignore[arg-type]
    assert "Traceback" not in capsys.readouterr().err
    far = ServiceSettings(Path(), host="0.0.0.0").make_access_policy(
        "x" * 20, 8000
    )  # any host, but only with the token
    assert (far.hosts, far.open_paths) == (None, {"/healthz"})


def test_health_metrics_and_description(ran: Path, customers: list[Row]) -> None:
    with serve(ran) as (ask, _):
        ask("/v1/decide", {"customers": customers[:7]})
        health, metrics = ask("/healthz", headers={}).json(), ask("/metrics").text
        api, page = ask("/openapi.json").json(), ask("/").text
        operation = api["paths"]["/v1/decide"]["post"]
        body = operation["requestBody"]["content"]["application/json"]["example"]
        answer = ask("/v1/decide", body).json()
    assert health["status"] == "ok"
    assert 'largesse_requests_total{path="/v1/decide",status="200"} 1.0' in metrics
    assert f'version="{health["policy"]}"' in metrics
    assert count_decisions(metrics) == 7
    assert set(api["components"]["schemas"]["customer"]["required"]) == {"age", "city", "since"}
    assert all(word in page for word in ("expected_response", *api["paths"]))
    example = operation["responses"]["200"]["content"]["application/json"]["example"]
    assert set(answer) == set(example)
    assert answer["decisions"][0]["level"] == example["decisions"][0]["level"]
    costs = [content["decisions"][0]["expected_cost"] for content in (answer, example)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-3)


FREE_IDS = ("a", "Ä 😀", "x" * 200, 7, -7.0)
LEDGER_IDS = ("", "x" * 201, "a\nb", "a\u202eb", 1.5, True, 2**64, [1])


@pytest.mark.parametrize("with_ledger", [False, True])
def test_the_description_is_that_of_this_service(ran: Path, tmp_path: Path, with_ledger: bool) -> None:
    ledger = ledger_at(tmp_path) if with_ledger else None
    with serve(ran, ledger=ledger, token_file=tmp_path / "token" if with_ledger else None) as (ask, _):
        api = ask("/openapi.json").json()
        body = api["paths"]["/v1/decide"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        customer = api["components"]["schemas"]["customer"]
        key, pattern = customer["properties"]["id"], body["properties"]["request_id"]["pattern"]
        assert body["additionalProperties"] is False
        assert ("security" in api, "/v1/redeem" in api["paths"]) == (with_ledger, with_ledger)
        assert ("request_id" in body["required"], "id" in customer["required"]) == (with_ledger, with_ledger)
        assert ("null" in key["type"]) == (not with_ledger)
        days = ("2026-01-31", "2024-02-29", "2000-02-29", "2026-02-30", "2023-02-29", "1900-02-29", "2026-13-01", "")
        day = customer["properties"]["since"]["pattern"]
        for number, name in enumerate([*FREE_IDS, *LEDGER_IDS]):
            row, valid = SOUND | {"id": name}, name in FREE_IDS and name is not True
            answer = ask("/v1/decide", {"request_id": f"c{number}", "customers": [row]})
            assert (answer.status_code == 200) == (valid or (isinstance(name, str) and not with_ledger))
            if isinstance(name, str):
                assert (re.search(pattern, name) is not None and len(name) <= 200) == valid
                answer = ask("/v1/decide", {"request_id": name, "customers": [SOUND | {"id": str(number)}]})
                assert (answer.status_code == 200) == valid
        for number, text in enumerate(days):
            answer = ask("/v1/decide", {"request_id": f"d{number}", "customers": [SOUND | {"id": 1, "since": text}]})
            assert (answer.status_code == 200) == (re.search(day, text) is not None) == (number < 3)
        odd = {"age": 2**63, "city": None, "since": None, "id": "y"}  # and of several kinds, as one by one
        assert (
            ask("/v1/decide", {"request_id": "m", "customers": [odd, odd | {"age": True, "id": "z"}]}).status_code
            == 200
        )


# -- with a ledger -----------------------------------------------------------------------------------------------------


def test_a_ledger_keeps_the_budget_and_each_request_once(booked: tuple[Ask, Service], customers: list[Row]) -> None:
    ask, service = booked
    first = ask("/v1/decide", {"request_id": "a", "customers": customers[:3]}).json()
    again = ask("/v1/decide", {"request_id": "a", "customers": customers[:3]}).json()
    assert again == {**first, "repeated": True}
    for k, row in enumerate(customers):
        last = ask("/v1/decide", {"request_id": f"single {k}", "customers": [row]})
        assert last.status_code == 200
    budget, metrics = ask("/v1/budget").json(), ask("/metrics").text
    assert budget["decisions"] == count_decisions(metrics) == len(customers) + 3  # repeated requests count once
    assert 50 < budget["spent"] + budget["promised"] <= 60  # the price falls until the money is used
    assert budget["ends"] == "3000-01-01T00:00:00Z"
    assert service.ledger is not None
    assert service.ledger.audit().matches
    assert "largesse_budget_total 60.0" in metrics
    assert f"\nlargesse_price {last.json()['price']!r}\n" in metrics
    described = ask("/openapi.json").json()["paths"]["/v1/budget"]["get"]["responses"]["200"]["content"]
    assert set(budget) == set(described["application/json"]["schema"]["properties"])


@pytest.mark.parametrize(
    ("status", "path", "content"),
    [
        (409, "decide", {"request_id": "a", "customers": [1]}),  # another customer than before
        (400, "decide", {"customers": [0]}),  # a ledger needs an id
        (400, "decide", {"request_id": "b", "customers": [None]}),
        (409, "decide", {"request_id": "c", "customers": [0, 0]}),
        (409, "redeem", {"request_id": "b", "customer": "x"}),
        (400, "redeem", {"request_id": "a", "customer": True}),
        (400, "redeem", {"request_id": "a"}),
    ],
)
def test_requests_that_a_ledger_refuses(
    booked: tuple[Ask, Service], customers: list[Row], status: int, path: str, content: Row
) -> None:
    without_id = {key: value for key, value in customers[0].items() if key != "id"}
    if path == "decide":
        rows = [without_id if at is None else customers[at] for at in content["customers"]]
        content = content | {"customers": rows}
    assert booked[0]("/v1/decide", {"request_id": "a", "customers": customers[:1]}).status_code == 200
    assert booked[0](f"/v1/{path}", content).status_code == status


def test_a_budget_that_does_not_last_is_409(run_copy: Path, customers: list[Row]) -> None:
    change_policy(run_copy, lambda old: replace(old, levels=replace(old.levels, on_redemption=True)))
    options = {"total": "20", "until": "2999-12-31", "valid_days": 14.0, "promises": "while_it_lasts"}
    ledger = parse_ledger_options({"ledger": f"sqlite:///{run_copy.parent / 'lasts.db'}", **options})
    with serve(run_copy, ledger=ledger) as (ask, _):
        decided = ask("/v1/decide", {"request_id": "a", "customers": customers}).json()["decisions"]
        names = [decision["customer"] for decision in decided if decision["level_number"]]
        answers = [ask("/v1/redeem", {"request_id": "a", "customer": name}) for name in names]
        assert {answer.status_code for answer in answers} == {200, 409}
        refused = next(answer for answer in answers if answer.status_code == 409).json()["error"]
        assert refused["problems"][0]["hint"]
        budget = ask("/v1/budget").json()
    assert (budget["promises"], budget["spent"] <= 20) == ("while_it_lasts", True)
    assert budget["promised"] > budget["held"]
    dear = (1.0, 6.0, 11.0)  # not even the cheapest level fits for all
    change_policy(run_copy, lambda old: replace(old, levels=replace(old.levels, costs=dear, on_redemption=False)))
    with serve(run_copy, ledger=ledger_at(run_copy.parent, "3")) as (ask, _):
        assert ask("/v1/decide", {"request_id": "a", "customers": customers[:10]}).status_code == 409


@pytest.mark.parametrize("damaged", [True, False])
def test_a_ledger_that_is_damaged_or_taken_away_is_503_and_no_other_one_begins(
    booked: tuple[Ask, Service], customers: list[Row], tmp_path: Path, damaged: bool
) -> None:
    (ask, service), path = booked, tmp_path / "spring.db"
    assert service.ledger is not None
    assert ask("/v1/decide", {"request_id": "a", "customers": customers[:1]}).status_code == 200
    if damaged:
        service.ledger._timeout = 0.0
        service.ledger.close()
    for name in ("spring.db", "spring.db-wal", "spring.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    if damaged:
        path.write_bytes(b"not a database, but a text of some length " * 100)
    for address, content in (
        ("/v1/decide", {"request_id": "b", "customers": customers[:1]}),
        ("/v1/budget", None),
        ("/v1/redeem", {"request_id": "a", "customer": customers[0]["id"]}),
    ):
        answer = ask(address, content)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert not [word for word in ("Traceback", "sqlite", str(tmp_path)) if word in answer.text]
    assert ask("/healthz", headers={}).status_code == 200
    metrics = ask("/metrics").text
    assert 'largesse_requests_total{path="/v1/decide",status="503"} 1' in metrics
    assert "\nlargesse_ledger_up 0.0\n" in metrics
    assert "largesse_budget" not in metrics
    assert path.exists() == damaged


# -- the start ---------------------------------------------------------------------------------------------------------


def test_what_cannot_be_served_is_refused(run_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "short").write_text("abc")
    calls: list[tuple[str, Callable[[], object]]] = [
        ("token", lambda: open_service(ServiceSettings(run_copy, host="0.0.0.0"))),
        ("policy", lambda: open_service(ServiceSettings(tmp_path, port=0))),
        ("0 workers", lambda: open_service(ServiceSettings(run_copy, workers=0))),
        ("cannot be read", lambda: read_token(tmp_path / "none")),
        ("token", lambda: read_token(tmp_path / "short")),
        ("--ledger", lambda: parse_ledger_options({"total": "5"})),
        ("customers", lambda: load_service(ServiceSettings(run_copy / "policy.largesse", ledger=ledger_at(tmp_path)))),
    ]
    for subject, call in calls:
        with pytest.raises(LargesseError, match=subject):
            call()
    load_service(ServiceSettings(run_copy / "policy.largesse")).close()  # without a ledger, a file is enough


def test_an_existing_ledger_is_opened_with_its_own_terms_and_levels(
    booked: tuple[Ask, Service], ran: Path, tmp_path: Path
) -> None:
    existing = ledger_at(tmp_path, None, None)
    with serve(ran, ledger=existing) as (_, service):
        assert service.ledger is not None
        standing = service.ledger.standing()
    assert standing.as_dict()["total"] == 60
    for subject, settings in (("70", ledger_at(tmp_path, "70")), ("--until", ledger_at(tmp_path, "70", None))):
        with pytest.raises(LargesseError, match=subject):
            load_service(ServiceSettings(ran, ledger=settings))
    with open_ledger(existing.address) as ledger:
        assert ledger.audit().matches
    with sqlite3.connect(tmp_path / "spring.db") as database:
        database.execute("UPDATE ledger SET plan = ?", [json.dumps({**standing.plan, "levels": ["small", "large"]})])
    database.close()
    with pytest.raises(LargesseError, match="small, large"):
        load_service(ServiceSettings(ran, ledger=existing))


def test_a_ledger_that_cannot_be_reached_is_asked_once(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fail(address: str, *_: Any, **__: Any) -> None:
        asked.append(address)
        raise LedgerError("ledger", [Problem("the database is gone")]) from OSError()

    monkeypatch.setattr(endpoints, "open_ledger", fail)
    with pytest.raises(LedgerError, match="gone"):
        load_service(
            ServiceSettings(ran, ledger=LedgerSettings("postgresql://nobody@127.0.0.1:1/x", "5", "2999-01-01"))
        )
    assert len(asked) == 1


def test_a_token_that_others_may_read_gets_a_warning(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("x" * 20)
    for mode, verbs in ((0o600, []), (0o644, ["read"]), (0o666, ["change"])):
        token.chmod(mode)
        warnings = list_settings_warnings(ServiceSettings(tmp_path, token_file=token))
        assert [verb for verb in ("read", "change") if f"may {verb}" in "".join(warnings)] == verbs
        assert len(warnings) == len(verbs)


@pytest.mark.parametrize("quiet", [False, True])
def test_a_quiet_service_logs_nothing_but_warnings(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], quiet: bool
) -> None:
    monkeypatch.setattr("largesse.serve.server_process.run_server", lambda *_, **__: None)
    token = run_copy.parent / "token"
    token.write_text("x" * 20)
    token.chmod(0o644)
    open_service(
        ServiceSettings(run_copy, port=0, token_file=token, ledger=ledger_at(run_copy.parent, "0"), quiet=quiet)
    )
    shown = capsys.readouterr()
    assert ("http://" in shown.out) != quiet
    assert str(token) in shown.err
    assert "the total is 0" in shown.err


@pytest.mark.parametrize(
    ("since", "until", "time"), [("2020-01-01", "2020-01-31", "2020-02-01"), ("2990-01-01", "2999-12-31", "2990-01-01")]
)
def test_outside_the_period_there_is_a_warning(ran: Path, tmp_path: Path, since: str, until: str, time: str) -> None:
    with serve(ran, ledger=ledger_at(tmp_path, until=until, since=since)) as (_, service):
        (warning,) = list_startup_warnings(service.store.current, service.ledger)
    assert time in warning


def test_workers_open_the_ledger_and_never_begin_one(
    ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[ServiceSettings] = []
    monkeypatch.setattr("largesse.serve.server_process.run_workers", lambda settings, *_: passed.append(settings))
    open_service(ServiceSettings(ran, port=0, ledger=ledger_at(tmp_path, promises="while_it_lasts"), workers=2))
    with load_service(passed[0]) as service:
        assert service.ledger is not None
        assert service.ledger.standing().terms.total == 60_000_000
    (tmp_path / "spring.db").unlink()
    with pytest.raises(LedgerError):
        load_service(passed[0])
    assert not (tmp_path / "spring.db").exists()
