"""The command line as a person meets it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from largesse import cli
from largesse.campaign import guess_campaign
from largesse.evaluation import ESTIMATORS
from largesse.records import ROLES
from largesse.response import list_models

ROOT = Path(__file__).parents[1]
LARGESSE = [sys.executable, "-m", "largesse.cli"]


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["largesse", *words])
    try:
        cli.main()
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


def test_help_names_every_verb(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "--help") == 0
    shown = capsys.readouterr().out
    for verb in ("demo", "init", "run", "fit", "plan", "evaluate", "report", "doctor", "export", "studio"):
        assert verb in shown


def test_the_list_of_commands_is_cut_nowhere_and_every_command_has_a_short_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "-h") == 0
    shown = capsys.readouterr().out
    assert "..." not in shown.replace("[ARGS]...", "")
    assert "…" not in shown
    assert "--install-completion" in shown
    for verb in ("init", "run", "fit", "plan", "evaluate", "report", "doctor", "export", "studio", "serve"):
        assert call(monkeypatch, verb, "-h") == 0
        assert "-q, --quiet" in capsys.readouterr().out


def test_quiet_commands_print_warnings_alone(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "plan", str(run_copy), "--quiet") == 0
    assert call(monkeypatch, "report", str(run_copy), "-q") == 0
    assert capsys.readouterr() == ("", "")
    assert call(monkeypatch, "evaluate", str(run_copy), "-q") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "careful: " in said.err
    assert "learning" not in said.err
    assert call(monkeypatch, "report", str(run_copy)) == 0
    assert "wrote" in capsys.readouterr().out


def test_plan_and_evaluate_speak_in_units_and_names(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = run_copy / "campaign.toml"
    campaign.write_text(re.sub(r"^unit = .*", 'unit = "€"', campaign.read_text(), flags=re.MULTILINE))
    assert call(monkeypatch, "plan", str(run_copy)) == 0
    shown = capsys.readouterr().out
    made = json.loads((run_copy / "plan.json").read_text())
    assert re.search(r"planned [\d,]+ customers at €[\d.]+ each, within a budget of €", shown)
    assert all(row["name"] in shown for row in made["money"]["levels"])
    assert "€1 more would buy" in shown
    assert call(monkeypatch, "evaluate", str(run_copy)) == 0
    shown = capsys.readouterr().out
    assert "against what was done before: " in shown
    assert "\u202fpp (" in shown
    assert "treating everyone alike" in shown


def test_json_is_one_object_with_the_numbers_of_the_report(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        call(monkeypatch, "run", str(shop / "campaign.toml"), "--out", str(shop / "run"), "--budget", "1", "--json")
        == 0
    )
    shown = json.loads(capsys.readouterr().out)
    assert shown["budget"]["average"] == 1.0
    assert shown["value"]["low"] < shown["value"]["estimate"] < shown["value"]["high"]


def test_the_steps_run_as_the_readme_shows_them(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop)
    fit = ["fit", "log.parquet", "--level", "coupon", "--response", "bought", "--costs", "0,5,10", "--out", "spring"]
    assert call(monkeypatch, *fit, "--customer", "id", "--model", "linear") == 0
    assert call(monkeypatch, "plan", "spring", "customers.parquet", "--budget", "1.7", "--out", "plan.parquet") == 0
    assert Path("plan.parquet").exists()
    assert call(monkeypatch, "evaluate", "spring", "--budget", "1.7") == 0
    assert call(monkeypatch, "report", "spring") == 0
    assert Path("spring/report.html").exists()


def test_a_log_is_not_learnt_from_unless_something_says_what_levels_cost(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shop)
    fit = ["fit", "log.parquet", "--level", "coupon", "--response", "bought", "--doses", "0,5,10", "--out", "spring"]
    assert call(monkeypatch, *fit) == 2
    assert "nothing says what levels cost" in capsys.readouterr().err
    assert call(monkeypatch, *fit, "--cost-column", "payd") == 2
    assert "the cost column 'payd' is not in the table" in capsys.readouterr().err


def test_evaluate_prints_what_the_doctor_warns_of(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "evaluate", str(run_copy)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    found = json.loads((run_copy / "evaluation.json").read_text())
    urgent = [warning for warning in found["warnings"] if warning["answer"] in ("no", "careful")]
    assert urgent
    for warning in urgent:
        assert f"{warning['answer']}: {warning['text'].split('. ')[0]}" in shown


def test_the_estimator_can_be_named(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = json.loads((run_copy / "evaluation.json").read_text())
    assert before["estimator"] == "dr"
    assert call(monkeypatch, "evaluate", str(run_copy), "--estimator", "snips", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    ways = {way["name"]: way["estimate"] for way in found["method"]["estimates"]}
    assert found["estimator"] == "snips"
    assert found["value"]["estimate"] == pytest.approx(ways["snips"])
    assert found["value"]["estimate"] != before["value"]["estimate"]
    assert call(monkeypatch, "evaluate", str(run_copy), "--estimator", "snip") == 2
    assert "did you mean 'snips'?" in capsys.readouterr().err


def test_init_writes_a_campaign_and_run_prints_the_answer_and_where_the_report_is(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(shop)
    Path("campaign.toml").unlink()
    assert call(monkeypatch, "init", "log.parquet") == 0
    assert call(monkeypatch, "init", "log.parquet") == 2  # never over one that is there
    text = Path("campaign.toml").read_text()
    assert 'level = "coupon"' in text
    assert 'response = "bought"' in text
    capsys.readouterr()
    for asked in (("run", "campaign.toml"), ("doctor", "campaign.toml")):
        assert call(monkeypatch, *asked) == 2
        message = capsys.readouterr().err
        assert "levels.costs is left blank" in message
        assert "costs = [0, 5, 10]" in message
        assert "plan.budget is left blank" in message
    assert not Path("campaign-run").exists()
    filled = text.replace("costs = []", "costs = [0, 5, 10]").replace('name = "auto"', 'name = "linear"')
    Path("campaign.toml").write_text(filled)
    assert call(monkeypatch, "run", "campaign.toml") == 2
    assert "plan.budget is left blank" in capsys.readouterr().err
    assert call(monkeypatch, "doctor", "campaign.toml") == 0  # which needs no budget
    assert call(monkeypatch, "run", "campaign.toml", "--budget", "2") == 0
    capsys.readouterr()
    Path("campaign.toml").write_text(filled.replace('budget = ""', "budget = 2"))
    assert call(monkeypatch, "run", "campaign.toml") == 0
    shown = capsys.readouterr().out
    assert "against what was done before" in shown
    assert "campaign-run/report.html" in shown.replace("\n", "")


@pytest.mark.slow
def test_the_demo_says_what_it_found(tmp_path: Path) -> None:
    done = subprocess.run(
        [*LARGESSE, "demo", "--out", str(tmp_path / "demo"), "--json"], capture_output=True, text=True, check=True
    )
    shown = json.loads(done.stdout)
    assert shown["customers"] == 2825
    assert 0.7 < shown["value"]["estimate"] < 0.95


def test_without_its_data_the_demo_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from largesse.worlds import thornton

    monkeypatch.setitem(sys.modules, "causaldata", None)
    thornton._people.cache_clear()
    assert call(monkeypatch, "demo") == 2
    assert "pip install 'largesse[demo]'" in capsys.readouterr().err


def test_help_readme_and_first_campaign_know_every_model_of_the_catalogue(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "fit", "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"Response model: {', '.join(list_models())}." in shown
    assert f"# one of {', '.join(list_models())}\n" in guess_campaign(shop / "log.parquet")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = readme[readme.index('name = "auto"') : readme.index("see docs/choose.md")]
    assert set(re.findall(r"[a-z_]+", listed)) - {"name", "or"} == set(list_models())
    chapter = (ROOT / "docs" / "choose.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \| `\w+` \|", chapter, re.MULTILINE)) == set(list_models())


def test_help_and_documentation_know_every_estimator(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "evaluate", "--help") == 0
    assert f"How to judge: {', '.join(ESTIMATORS)}." in " ".join(capsys.readouterr().out.split())
    chapter = (ROOT / "docs" / "choose.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in chapter for name in ESTIMATORS)


def test_every_column_role_is_an_option_with_its_one_description(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("fit", "doctor"):
        assert call(monkeypatch, command, "--help") == 0
        shown = " ".join(capsys.readouterr().out.split())
        for role, content in ROLES.items():
            assert f"--{role.replace('_', '-')} <str>" in shown
            assert content in shown


def test_doctor_examines_a_campaign_a_named_table_and_a_bare_one(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = shop / "checkup.html"
    assert call(monkeypatch, "doctor", str(shop / "campaign.toml"), "--out", str(page)) == 0
    shown = capsys.readouterr().out
    assert "randomisation" in shown
    assert "suspicious features" in shown
    assert "<h1>" in page.read_text(encoding="utf-8")
    log = str(shop / "log.parquet")
    assert call(monkeypatch, "doctor", log, "--level", "coupon", "--response", "bought", "--costs", "0,5,10") == 0
    assert "randomisation" in capsys.readouterr().out
    assert call(monkeypatch, "doctor", log, "--json") == 0
    guessed = json.loads(capsys.readouterr().out)
    assert guessed["answer"] in ("fine", "careful", "no")
    assert "Columns were guessed" in guessed["notes"][0]


def test_doctor_says_what_it_needs_of_a_bare_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{i % 60},{i % 3},{('mail', 'call', 'visit')[i % 3]},{i % 2}" for i in range(120)]
    Path("log.csv").write_text("\n".join(["age,x,channel,z", *rows]))
    assert call(monkeypatch, "doctor", "log.csv") == 2
    message = capsys.readouterr().err
    assert "no column looks like the level" in message
    assert "--response COLUMN, one of 'z'" in message
    assert call(monkeypatch, "doctor", "log.csv", "--level", "channel", "--response", "z") == 2
    message = capsys.readouterr().err
    assert "do not state their order" in message
    assert "by mean response only, they are --names mail,call,visit" in message
    assert call(monkeypatch, "doctor", "log.csv", "--level", "chanel", "--response", "z") == 2
    assert "did you mean 'channel'?" in capsys.readouterr().err
    ordered = ("--names", "mail,call,visit")
    assert call(monkeypatch, "doctor", "log.csv", "--level", "channel", "--response", "z", *ordered) == 0


def test_what_is_half_made_when_a_command_is_terminated_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    with pytest.raises(SystemExit) as stopped:
        cli.terminate()
    assert stopped.value.code == 143

    class HalfMade:
        def __del__(self) -> None:
            raise AttributeError("it has no parts yet")

    del (half := [HalfMade()])[0]
    assert half == []
    assert capsys.readouterr().err == ""


def test_a_new_plan_says_that_the_report_of_the_last_one_is_gone(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (run_copy / "report.html").exists()
    assert call(monkeypatch, "plan", str(run_copy), "--budget", "0.7") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"largesse evaluate {run_copy}, then largesse report {run_copy}" in told
    assert call(monkeypatch, "plan", str(run_copy), "--budget", "0.8") == 0
    assert "was removed" not in capsys.readouterr().out


def test_the_table_of_power_is_cut_nowhere(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert call(monkeypatch, "power", str(run_copy), "--per-day", "100") == 0
    assert "…" not in capsys.readouterr().out
    assert call(monkeypatch, "power", str(run_copy), "--incumbent", "nobody") == 2
    shown = capsys.readouterr().err
    assert "the incumbent is 'nobody'" in shown
    assert "reading" not in shown


def test_the_package_itself_is_the_command() -> None:
    command = [sys.executable, "-m", "largesse", "--version"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert found.stdout.startswith("largesse ")
