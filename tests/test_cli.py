"""The command line as a person meets it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer

from largesse import cli
from largesse.campaign import write_guessed_campaign
from largesse.cli.result_output import exit_by_severity
from largesse.evaluation import ESTIMATORS
from largesse.records import ROLES
from largesse.response import list_models
from support.commands import Call

ROOT = Path(__file__).parents[1]
COMMANDS = (
    *("demo", "init", "run", "fit", "plan", "evaluate", "report", "export", "doctor"),
    *("check", "pace", "power", "log", "ledger", "studio", "serve"),
)
FIT = ("fit", "log.parquet", "--level", "coupon", "--response", "bought", "--out", "spring")


def test_help_lists_every_command_whole_and_every_command_has_its_own(call: Call) -> None:
    shown = call("-h").out
    assert "..." not in shown.replace("[ARGS]...", "")
    assert "…" not in shown
    assert "--install-completion" in shown
    for command in (*COMMANDS, "experiment"):
        assert re.search(rf"^  {command} +\S", shown, re.MULTILINE)
    for command in COMMANDS:
        assert "-q, --quiet" in call(command, "-h").out


def test_options_of_the_command_line_keep_their_names(call: Call) -> None:
    found = {
        command: sorted(set(re.findall(r"(?<!\S)--([a-z-]+)", call(command, "--help").out)) - {"help", "quiet"})
        for command in COMMANDS
    }
    assert found["run"] == ["budget", "confidence", "engine", "json", "master", "out", "plan-to", "strict", "total"]
    assert found["power"] == ["coverage", "gain", "incumbent", "json", "per-day", "power", "share"]
    roles = {role.replace("_", "-") for role in ROLES}
    assert roles <= {*found["fit"]} & {*found["doctor"]}
    ledger = {"customers", "late", "ledger", "most", "promises", "since", "total", "until", "valid-days"}
    assert ledger <= {*found["serve"]}
    for command in ("fit", "doctor"):
        shown = " ".join(call(command, "--help").out.split())
        assert all(content in shown for content in ROLES.values())


def test_help_and_documentation_know_every_model_and_estimator(shop: Path, call: Call) -> None:
    names = ", ".join(list_models())
    assert f"Response model: {names}." in " ".join(call("fit", "--help").out.split())
    assert f"# one of {names}\n" in write_guessed_campaign(shop / "log.parquet")
    chapter = (ROOT / "docs" / "choose.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \| `\w+` \|", chapter, re.MULTILINE)) == set(list_models())
    assert f"Estimator: {', '.join(ESTIMATORS)}." in " ".join(call("evaluate", "--help").out.split())
    assert all(f"| `{name}` |" in chapter for name in ESTIMATORS)


def test_quiet_commands_print_warnings_alone(run_copy: Path, call: Call) -> None:
    for command in ("plan", "report"):
        assert call(command, str(run_copy), "-q") == (0, "", "")
    done = call("evaluate", str(run_copy), "-q")
    assert (done.code, done.out) == (0, "")
    assert "careful: " in done.err
    assert "learning" not in done.err
    assert "wrote" in call("report", str(run_copy)).out


def test_the_first_page_alone_and_slides_go_to_files_of_their_own(run_copy: Path, call: Call) -> None:
    pages = run_copy.parent / f"{run_copy.name}-short.html", run_copy / "report.html"
    assert call("report", str(run_copy), "--short").code == 0
    assert 0 < 2 * pages[0].stat().st_size < pages[1].stat().st_size
    assert call("report", str(run_copy), "--slides", str(run_copy.parent / "slides")).code == 0
    assert {path.suffix for path in (run_copy.parent / "slides").iterdir()} == {".png"}
    assert call("report", str(run_copy), "--slides", str(run_copy.parent / "slides"), "--short").code == 2
    assert call("report", str(run_copy), "--short", "--out", str(run_copy / "plan.parquet")).code == 2


def test_plan_and_evaluate_speak_in_units_and_names(run_copy: Path, call: Call) -> None:
    campaign = run_copy / "campaign.toml"
    campaign.write_text(re.sub(r"^unit = .*", 'unit = "€"', campaign.read_text(), flags=re.MULTILINE))
    shown = call("plan", str(run_copy)).out
    made = json.loads((run_copy / "plan.json").read_text())
    assert re.search(r"planned [\d,]+ customers at €[\d.]+ each, within a budget of €", shown)
    assert all(row["name"] in shown for row in made["money"]["levels"])
    shown = call("evaluate", str(run_copy)).out
    assert "\u202fpp (" in shown
    urgent = [
        warning["text"].split(". ")[0]
        for warning in json.loads((run_copy / "evaluation.json").read_text())["warnings"]
        if warning["answer"] in ("no", "careful")
    ]
    assert urgent
    assert all(text in " ".join(shown.split()) for text in urgent)


def test_the_steps_run_as_the_readme_shows_them(shop: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.chdir(shop)
    for more, subject in (((), "costs"), (("--cost-column", "payd"), "'payd'")):  # costs must be known
        done = call(*FIT, "--doses", "0,5,10", *more)
        assert done.code == 2
        assert subject in done.err
    assert call(*FIT, "--costs", "0,5,10", "--customer", "id", "--model", "linear").code == 0
    assert call("plan", "spring", "customers.parquet", "--budget", "1.7", "--out", "plan.parquet").code == 0
    assert call("evaluate", "spring", "--budget", "1.7").code == 0
    assert call("report", "spring").code == 0
    assert Path("plan.parquet").exists()
    assert Path("spring/report.html").exists()
    shown = json.loads(call("run", "campaign.toml", "--out", "run", "--budget", "1", "--json").out)
    assert shown["budget"]["average"] == 1.0
    assert shown["value"]["low"] < shown["value"]["estimate"] < shown["value"]["high"]


def test_the_estimator_can_be_named(run_copy: Path, call: Call) -> None:
    before = json.loads((run_copy / "evaluation.json").read_text())
    found = json.loads(call("evaluate", str(run_copy), "--estimator", "snips", "--json").out)
    ways = {way["name"]: way["estimate"] for way in found["method"]["estimates"]}
    assert (before["estimator"], found["estimator"]) == ("dr", "snips")
    assert before["value"]["estimate"] != found["value"]["estimate"] == pytest.approx(ways["snips"])
    done = call("evaluate", str(run_copy), "--estimator", "snip")
    assert done.code == 2
    assert "did you mean 'snips'?" in done.err


def test_a_campaign_of_init_runs_once_costs_and_budget_are_filled_in(
    shop: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.chdir(shop)
    file = Path("campaign.toml")
    file.unlink()
    assert call("init", "log.parquet").code == 0
    assert call("init", "log.parquet").code == 2  # never over one that is there
    done = call("run", "campaign.toml")
    assert done.code == 2
    assert all(name in done.err for name in ("levels.costs", "costs = [0, 5, 10]", "plan.budget"))
    assert call("doctor", "campaign.toml").code in (0, 10)  # which needs neither costs nor budget
    assert not Path("campaign-run").exists()
    filled = file.read_text().replace("costs = []", "costs = [0, 5, 10]").replace('name = "auto"', 'name = "linear"')
    file.write_text(filled)
    assert call("run", "campaign.toml").code == 2
    assert call("run", "campaign.toml", "--budget", "2").code in (0, 10)
    file.write_text(filled.replace('budget = ""', "budget = 2"))
    done = call("run", "campaign.toml")
    assert done.code in (0, 10)
    assert "campaign-run/report.html" in done.out.replace("\n", "")


def test_a_log_that_cannot_answer_has_a_code_of_its_own(
    shop: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.chdir(shop)
    table = pq.read_table("log.parquet")
    pq.write_table(table.append_column("receipt", table["bought"]), "log.parquet")  # it gives the response away
    file = Path("campaign.toml")
    file.write_text(file.read_text().replace('customers = "customers.parquet"\n', ""))
    assert call("doctor", "campaign.toml").code == 20
    assert call("run", "campaign.toml", "--strict").code == 2
    assert not Path("campaign-run").exists()
    assert call("run", "campaign.toml").code == 20
    assert Path("campaign-run", "report.html").exists()


def test_a_verdict_that_cannot_say_has_that_code_too() -> None:
    fine = [{"answer": "fine"}, {"answer": "note"}]
    exit_by_severity(fine, {"recommended": "mix"})
    with pytest.raises(typer.Exit) as stopped:
        exit_by_severity([{"answer": "careful"}], {"recommended": "mix"})
    assert stopped.value.exit_code == 10
    with pytest.raises(typer.Exit) as stopped:
        exit_by_severity(fine, {"recommended": None})
    assert stopped.value.exit_code == 20


@pytest.mark.slow
def test_the_demo_says_what_it_found(tmp_path: Path, call: Call) -> None:
    shown = json.loads(call("demo", "--out", str(tmp_path / "demo"), "--json").out)
    assert shown["customers"] == 2825
    assert 0.7 < shown["value"]["estimate"] < 0.95


def test_missing_parts_are_named_with_the_way_to_get_them(monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.setitem(sys.modules, "largesse_lab.experiment_options", None)
    done = call("experiment")
    assert done.code == 2
    assert "pip install" in done.err


def test_a_package_that_cannot_be_loaded_is_named(shop: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    done = call("doctor", str(shop / "campaign.toml"))
    assert done.code == 2
    assert "'pyarrow'" in done.err
    assert "Traceback" not in done.err


def test_doctor_examines_a_campaign_a_named_table_and_a_bare_one(shop: Path, call: Call) -> None:
    page, log = shop / "checkup.html", str(shop / "log.parquet")
    shown = call("doctor", str(shop / "campaign.toml"), "--out", str(page)).out
    assert "randomisation" in shown
    assert "<h1>" in page.read_text(encoding="utf-8")
    assert call("doctor", log, "--level", "coupon", "--response", "bought", "--costs", "0,5,10").code in (0, 10)
    guessed = json.loads(call("doctor", log, "--json").out)
    assert guessed["answer"] in ("fine", "careful", "no")
    assert "'coupon'" in guessed["notes"][0]


def test_doctor_says_what_it_needs_of_a_bare_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{i % 60},{i % 3},{('mail', 'call', 'visit')[i % 3]},{i % 2}" for i in range(120)]
    Path("log.csv").write_text("\n".join(["age,x,channel,z", *rows]))
    for columns, subjects in (
        ((), ("level", "--response COLUMN, one of 'z'")),
        (("channel",), ("--names mail,call,visit",)),
        (("chanel",), ("did you mean 'channel'?",)),
    ):
        done = call("doctor", "log.csv", *(("--level", *columns, "--response", "z") if columns else ()))
        assert done.code == 2
        assert all(subject in done.err for subject in subjects)
    ordered = ("--level", "channel", "--response", "z", "--names", "mail,call,visit")
    assert call("doctor", "log.csv", *ordered).code == 20  # the one feature gives the response away


def test_a_new_plan_says_that_the_report_of_the_last_one_is_gone(run_copy: Path, call: Call) -> None:
    assert (run_copy / "report.html").exists()
    shown = " ".join(call("plan", str(run_copy), "--budget", "0.7").out.split())
    assert f"largesse evaluate {run_copy}, then largesse report {run_copy}" in shown
    assert "was removed" not in call("plan", str(run_copy), "--budget", "0.8").out


def test_the_table_of_power_is_cut_nowhere(run_copy: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert "…" not in call("power", str(run_copy), "--per-day", "100").out
    done = call("power", str(run_copy), "--incumbent", "nobody")
    assert done.code == 2
    assert "'nobody'" in done.err
    assert "reading" not in done.err


def test_unfinished_objects_show_no_traceback_when_a_command_is_terminated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    with pytest.raises(SystemExit) as stopped:
        cli.exit_on_signal()
    assert stopped.value.code == 143

    class Unfinished:
        def __del__(self) -> None:
            raise AttributeError("it has no parts yet")

    del (objects := [Unfinished()])[0]
    assert objects == []
    assert capsys.readouterr().err == ""


def test_the_package_itself_is_the_command() -> None:
    command = [sys.executable, "-m", "largesse", "--version"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert found.stdout.startswith("largesse ")
