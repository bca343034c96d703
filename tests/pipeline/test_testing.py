import json
from contextlib import suppress
from pathlib import Path

import pytest

from largesse import cli
from largesse.pipeline import power


def test_a_run_folder_says_how_many_customers_a_test_needs(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = power(run_copy, "uniform")
    assert 0 < found.switchers <= 1
    assert found.cases[1].name == "value less cost"

    def call(*words: str) -> str:
        monkeypatch.setattr("sys.argv", ["largesse", "power", str(run_copy), *words])
        with suppress(SystemExit):
            cli.main()
        return capsys.readouterr().out

    shown = json.loads(call("--gain", "0.05", "--per-day", "50", "--json"))
    value = shown["cases"][0]
    assert value["expected"]["days"] == pytest.approx(value["expected"]["traffic"] / 50)
    text = call("--incumbent", "0", "--gain", "0.05", "--per-day", "50")
    assert "switchers" in text
    assert "days" in text
