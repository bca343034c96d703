"""Requests that are no JSON, too large or not for us: each is refused in words."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from knocks import knock
from services import TOKEN

from largesse.serve import Guard, Settings
from largesse.serve.app import make_app
from largesse.serve.service import Service
from largesse.serve.settings import make_door, open_parts

SOUND = (("Host", "127.0.0.1:8000"), ("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/json"))


@pytest.fixture(scope="module")
def app(ran: Path) -> Any:
    with ExitStack() as stack:
        watched, _ = open_parts(Settings(ran), stack)
        return Guard(make_app(Service(watched)), make_door(TOKEN, "127.0.0.1", 8000))


@pytest.mark.parametrize(
    ("status", "path", "body", "said"),
    [
        (413, "/v1/decide", [b"x" * (1 << 20)] * 17, "larger than"),
        (404, "/v1/decide/", [b"{}"], "there is no"),
        (400, "/v1/decide", [b'{"customers": [{"id": "\\ud800"}]}'], "half of a letter"),
        (400, "/v1/redeem", [b'{"request_id": "r", "customer": "\\uDFFF"}'], "half of a letter"),
        (400, "/v1/decide", [b'{"\\ud83d": 1}'], "half of a letter"),
        (400, "/v1/redeem", [b'{"request_id": "r", "customer": "c", "amount": 1, "amount": 9}'], "'amount' twice"),
        (400, "/v1/decide", [b'{"customers": [], "customers": [{"age": 1' + b"0" * 300 + b"}]}"], "'customers' twice"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_words(
    app: Any, status: int, path: str, body: list[bytes], said: str
) -> None:
    answer = knock(app, path, method="POST", headers=SOUND, body=body)
    assert answer.status == status
    assert said in answer.json["error"]["message"]


def test_a_letter_of_two_escapes_is_whole(app: Any) -> None:
    answer = knock(app, "/v1/decide", method="POST", headers=SOUND, body=[b'{"\\ud83d\\ude00": 1}'])
    assert "not a part of this request" in answer.json["error"]["message"]


def test_a_request_that_breaks_off_is_no_mistake_of_ours(app: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answer = knock(app, "/v1/decide", method="POST", headers=SOUND, body=[b"{"], breaks_off=True)
    assert answer.status in (0, 400)
    assert "Traceback" not in capsys.readouterr().err


def test_the_name_of_a_part_may_come_again_as_a_value_or_further_in(app: Any) -> None:
    body = (
        b'{"request_id": "customers", "customers": [{"id": "request_id", "customers": 1, "city": null, "since": null, "age": 1'
        + b"0" * 300
        + b"}]}"
    )
    answer = knock(app, "/v1/decide", method="POST", headers=SOUND, body=[body])
    assert "twice" not in str(answer.json)
    assert answer.status == 200
