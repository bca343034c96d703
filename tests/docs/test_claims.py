"""Every claim has a command that exists, and every number of the first pages and of the findings is a claim."""

import re
import shlex
from pathlib import Path

import pytest
from claims import NUMBER, PAGE, RESULTS, ROOT, Claim, list_findings, read_claims, read_prose, trace_page, write_page
from typer.main import get_command

from largesse.cli.command_line import app
from largesse_lab.experiments.experiment_catalogue import EXPERIMENTS

TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
VERBS = set(get_command(app).commands)  # type: ignore[attr-defined]
# Words of the first pages with a number that nobody has measured: names, versions, examples, editions.
NO_CLAIMS = {
    "README.md": ["0, 5, 10 or 20 euro", "Python 3.11", "AAAI 2020", "Thornton (2008)", "98(5)"],
    "docs/index.md": [],
    "SUPPORT.md": ["Until 1.0", "**Spark** 4", "Java 17 or 21", "psycopg 3", "98(5), 2008", "causaldata 0.1.5"],
}


def exists(command: str) -> bool:
    """Tell a command that the repository has from one that it does not have."""
    words = shlex.split(command)
    words = words[3:] if words[0] == "taskset" else words
    if words[0] == "make":
        return words[1] in TARGETS
    if words[0] == "python":
        return (ROOT / words[1]).is_file()
    if words[:2] == ["largesse", "experiment"]:
        return words[2] in EXPERIMENTS
    return words[0] == "largesse" and words[1] in VERBS


def numbers(text: str) -> list[str]:
    return [number.rstrip(",") for number in NUMBER.findall(text)]


@pytest.mark.parametrize("claim", read_claims(), ids=lambda claim: claim.text[:40])
def test_every_claim_has_a_command_that_exists(claim: Claim) -> None:
    assert exists(claim.command.strip("`"))
    assert claim.machine


@pytest.mark.parametrize(
    "command", ["make nothing", "python benchmarks/no.py", "largesse experiment no", "largesse no", "ls"]
)
def test_an_unknown_command_is_found(command: str) -> None:
    assert not exists(command)


def test_the_findings_are_those_of_the_results_page() -> None:
    assert write_page() == PAGE.read_text(encoding="utf-8"), "run python docs/tools/claims.py"


def test_every_page_of_results_is_a_finding_or_a_claim() -> None:
    linked = {claim.where for claim in list_findings()}
    assert len(linked) > 15
    for page in (RESULTS.parent / "results").glob("*.md"):
        assert trace_page(page.stem)
        assert any(f"results/{page.name}" in where for where in linked), (
            f"docs/results.md has no finding of {page.name}"
        )


@pytest.mark.parametrize("name", NO_CLAIMS)
def test_every_number_of_the_first_pages_is_a_claim(name: str) -> None:
    text = " ".join(read_prose(ROOT / name).split())
    for words in NO_CLAIMS[name]:
        assert words in text, f"{words!r} is gone from {name}"
        text = text.replace(words, "")
    claimed = {number for claim in read_claims() for number in numbers(claim.text)}
    missing = [number for number in numbers(text) if number not in claimed]
    assert not missing, f"{name}: no row of docs/claims.md has {missing}"


def test_every_number_of_the_findings_is_a_claim() -> None:
    findings = RESULTS.read_text(encoding="utf-8").partition("## Findings")[2].partition("\n## ")[0]
    claimed = {number for claim in read_claims() for number in numbers(claim.text)}
    prose = re.sub(r"\]\([^)]*\)", "]", findings)
    assert not [number for number in numbers(prose) if number not in claimed]


def test_a_number_without_a_row_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("It takes 123 s and `x = 5`.\n```\n77\n```\n[4](results/9.md)\n")
    assert numbers(read_prose(page)) == ["123", "4"]
