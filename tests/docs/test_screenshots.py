"""The pictures of the documentation show today's report and studio."""

import json
from typing import Any

import pytest
from screenshots import PICTURES, TEXTS


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_not_stale(name: str, browser: Any) -> None:
    words, _ = PICTURES[name](browser)
    assert words == json.loads(TEXTS.read_text(encoding="utf-8"))[name], "run make docs"
