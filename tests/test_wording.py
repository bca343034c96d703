"""First docstring lines, names and commit subjects follow the rules of CONTRIBUTING.md, section "English"."""

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(path for folder in ("src/largesse", "lab/largesse_lab") for path in (ROOT / folder).rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
# Earlier commits were written before the rules.
FIRST_DAY = "2026-11-19T00:00:00Z"
QUESTION_WORD = re.compile(
    r"(What|How|Who|Whoever|Whether|Where|Which|When)\b(?!-)|.*\b[Ww]hat\b(?!-if)|(Return|Say|Tell) (how|who|whether)\b"
)
ARTICLE = re.compile(r"(A|An|The|One|No|Not)\b")
NO_INVALID = re.compile(r".*((?<!there )\b(is|are) none\b|\bthat (is|are) no\b)")
AVOIDED = re.compile(
    r".*\b([Bb]eside|[Aa]new|[Ww]hoever|at hand|alike|for good|in silence|[Nn]obody|in turn|of which|slots?)\b"
)
NO_IMPERATIVE = re.compile(r"(A|An|The|What|Where|How|Who|No|Not)\b")


def broken_line_rule(line: str, is_verb: bool) -> str | None:
    """Return the rule that the first line of a docstring breaks; names in backticks are not read."""
    words = re.sub(r"`[^`]*`", "name", line)
    if QUESTION_WORD.match(words):
        return "rule 1: a noun or a verb phrase without what, how, who or whether as subject or object"
    if is_verb and ARTICLE.match(words):
        return "rule 1: a verb phrase for a function"
    if NO_INVALID.match(words):
        return "rule 3: invalid is 'invalid', missing is 'missing'"
    if avoided := AVOIDED.match(words):
        return f"rule 2: a plain word instead of '{avoided[1]}'"
    return None


def broken_subject_rule(subject: str) -> str | None:
    """Return the rule that a commit subject breaks."""
    if len(subject) > 72:
        return "rule 6: a subject of at most 60 characters, never more than 72"
    return "rule 6: an imperative" if NO_IMPERATIVE.match(subject) else None


def repeated(names: Iterator[tuple[str, Path]]) -> dict[str, list[str]]:
    """Return the names that several files define, each with the files."""
    places = defaultdict(set)
    for name, path in names:
        places[name].add(path.relative_to(ROOT).as_posix())
    return {name: sorted(paths) for name, paths in places.items() if len(paths) > 1}


def is_property(node: ast.AST) -> bool:
    return any("property" in ast.unparse(mark) for mark in getattr(node, "decorator_list", []))


def first_lines() -> Iterator[tuple[str, str, bool]]:
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                is_verb = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property(node)
                if text := ast.get_docstring(node):
                    line = text.partition("\n")[0]
                    yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {line}", line, is_verb


def test_first_docstring_lines_are_noun_or_verb_phrases() -> None:
    broken = [f"{where}\n    {rule}" for where, line, verb in first_lines() if (rule := broken_line_rule(line, verb))]
    assert not broken, "CONTRIBUTING.md, English:\n" + "\n".join(broken)


def test_a_name_exists_once() -> None:
    nodes = [(node, path) for path, tree in TREES.items() for node in tree.body]
    classes = ((node.name, path) for node, path in nodes if isinstance(node, ast.ClassDef))
    constants = (
        (target.id, path)
        for node, path in nodes
        for target in (getattr(node, "targets", None) or [getattr(node, "target", None)])
        if isinstance(target, ast.Name) and target.id.isupper()
    )
    modules = ((path.stem, path) for path in FILES if not path.stem.startswith("__"))
    again = repeated(constants) | repeated(classes) | repeated(modules)
    assert not again, f"CONTRIBUTING.md, English, rule 5: a name exists once in the tree: {again}"


def test_commit_subjects_are_short_imperatives() -> None:
    command = f"git log --no-merges --since={FIRST_DAY} --format=%s -- .".split()
    try:
        log = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no git history here")
    broken = [f"{line}\n    {rule}" for line in log.stdout.splitlines() if (rule := broken_subject_rule(line))]
    assert not broken, "CONTRIBUTING.md, English:\n" + "\n".join(broken)


@pytest.mark.parametrize(
    ("line", "is_verb", "rule"),
    [
        ("Estimate the propensity of each level.", True, None),
        ("Cache of out-of-fold predictions; `what` names it.", False, None),
        ("What-if plans; the old plan where there is none.", False, None),
        ("What a run keeps.", False, "rule 1"),
        ("Return what the plan costs.", True, "rule 1"),
        ("Return whether the plan is valid.", True, "rule 1"),
        ("The price of a plan.", True, "rule 1"),
        ("Return a rate that is none, or 0 for a rate that is none.", True, "rule 3"),
        ("Fit the model anew.", True, "rule 2"),
        ("Lock the file, in turn.", True, "rule 2"),
    ],
)
def test_the_lint_of_first_lines_finds_each_rule(line: str, is_verb: bool, rule: str | None) -> None:
    broken = broken_line_rule(line, is_verb)
    assert broken is None if rule is None else broken is not None and broken.startswith(rule)


def test_the_lint_of_subjects_finds_long_ones_and_nouns() -> None:
    good, bad = ["Name two sections"], ["A request is told so", "No cell", "Write " + "long " * 14]
    assert [line for line in good + bad if broken_subject_rule(line)] == bad
    assert repeated(iter([("A", ROOT / "a"), ("A", ROOT / "b"), ("B", ROOT / "b")])) == {"A": ["a", "b"]}
