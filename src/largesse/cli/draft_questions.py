"""Interactive questions of `largesse init`, with previews of the columns and the guessed roles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

from largesse.campaign import CampaignDraft, DraftAnswers, TableProfile, find_protected_columns, split_comma_list
from largesse.data import list_example_values
from largesse.errors import join_some, make_visible, plural
from largesse.records import ROLES

if TYPE_CHECKING:
    from rich.console import Console

MAX_CANDIDATES = 12  # columns in a preview
MAX_FEATURES_LISTED = 40


def print_draft(draft: CampaignDraft, console: Console | None = None) -> None:
    """Print the guessed role of every column, with the reason."""
    from rich.console import Console
    from rich.text import Text

    console = console or Console()
    rows = [
        (
            role,
            repr(column),
            _format_examples(draft, column),
            draft.guess.reasons.get(role, "levels are constant within its values"),
        )
        for role in ROLES
        if (column := draft.guess.roles.get(role)) is not None
    ]
    rows += [(role, "not found", "", "") for role in ("level", "response") if role not in draft.guess.roles]
    rows += [("a feature?", repr(name), _format_examples(draft, name), why) for name, why in draft.guess.doubts.items()]
    rows += [
        ("protected?", repr(name), _format_examples(draft, name), "by its name")
        for name in find_protected_columns(draft)
    ]
    rows += [("left out", repr(name), _format_examples(draft, name), why) for name, why in draft.guess.left_out.items()]
    _print_table(console, ("", "column", "values", "why"), rows)
    listed = join_some(draft.features, MAX_FEATURES_LISTED) or "none"
    console.print(Text(make_visible(f"Features ({len(draft.features)}): {listed}\n")))


def ask_draft_questions(
    profile: TableProfile,
    answers: DraftAnswers,
    *,
    console: Console | None = None,
    stream: TextIO | None = None,
) -> DraftAnswers:
    """Ask the user for the settings of a new campaign that cannot be guessed."""
    from rich.console import Console

    questions = _DraftQuestions(console or Console(), stream)
    for role, question in (
        ("level", "Which column holds the level that each customer got?"),
        ("response", "Which column holds the response, the outcome that you want more of?"),
        ("customer", "Which column holds the customer's id?"),
    ):
        if role not in answers.roles:
            column = questions.ask_column(role, question, answers.make_draft(profile))
            if column:
                answers = replace(answers, roles={**answers.roles, role: column})
    answers = questions.ask_levels(answers, answers.make_draft(profile))
    answers = questions.ask_features(answers, answers.make_draft(profile))
    return questions.ask_money(answers, answers.make_draft(profile))


class _DraftQuestions:
    """Questions to the user on a terminal."""

    def __init__(self, console: Console, stream: TextIO | None) -> None:
        self.console, self.stream = console, stream

    def ask(self, question: str, default: str, check: Callable[[str], Any]) -> Any:
        """Ask a question until the answer passes a check."""
        from rich.prompt import Prompt
        from rich.text import Text

        text = Text(make_visible(question))
        while True:
            answer = Prompt.ask(
                text, console=self.console, default=default, show_default=bool(default), stream=self.stream
            )
            try:
                return check(answer.strip() or default)
            except ValueError as error:
                self.console.print(Text(make_visible(str(error)), style="yellow"))

    def ask_column(self, role: str, question: str, draft: CampaignDraft) -> str:
        """Ask for the column of a role, by name or by number; return an empty text for none."""
        guess, names = draft.guess.roles.get(role, ""), [*draft.columns]
        likely = [name for name in (guess, *draft.guess.others.get(role, ())) if name][:MAX_CANDIDATES]
        likely = likely or names[:MAX_CANDIDATES]
        rows = [
            (str(place), name, f"{draft.columns[name].distinct:,}", _format_examples(draft, name))
            for place, name in enumerate(likely, 1)
        ]
        _print_table(self.console, ("", "column", "distinct", "values"), rows)

        def check(answer: str) -> str:
            if answer.isdigit() and answer not in names and 1 <= int(answer) <= len(likely):
                return likely[int(answer) - 1]
            if answer and answer not in names:
                raise ValueError(f"There is no column {answer!r}. Columns: {join_some(names, MAX_FEATURES_LISTED)}")
            return answer

        return str(self.ask(f"{question} A name or a number; Enter for none" if not guess else question, guess, check))

    def ask_levels(self, answers: DraftAnswers, draft: CampaignDraft) -> DraftAnswers:
        """Ask for the order and the costs of the levels."""
        if draft.level is None:
            return answers
        if draft.doses is None and draft.order is None and not answers.names:
            order = draft.measure_mean_responses()
            listed = ", ".join(order or draft.level.words)
            how = "by mean response, which is no proof" if order else "in no order"
            question = f"Levels, the cheapest first ({how})"
            answers = replace(answers, names=self.ask(question, listed, lambda text: _parse_level_names(text, draft)))
        names = list(answers.names) or [f"{dose:g}" for dose in draft.doses or ()]
        names = names or [*(draft.order.names if draft.order is not None else draft.level.words)]
        if not answers.costs and "cost_column" not in answers.roles:
            suggested = ", ".join(f"{cost:g}" for cost in draft.suggest_costs() or ())
            question = f"Costs of {', '.join(names)}" + ("" if suggested else " (Enter to fill them in later)")
            answers = replace(
                answers, costs=self.ask(question, suggested, lambda text: _parse_level_costs(text, len(names)))
            )
        return answers

    def ask_features(self, answers: DraftAnswers, draft: CampaignDraft) -> DraftAnswers:
        """Ask for columns to exclude as features, to keep, or to protect."""
        print_draft(draft, self.console)
        names = draft.features

        def check(text: str, known: Sequence[str]) -> tuple[str, ...]:
            chosen = tuple(split_comma_list(text))
            if unknown := [name for name in chosen if name not in known]:
                raise ValueError(f"Not among them: {join_some(unknown)}")
            return chosen

        question = "Which features became known only after the level was given? Names with commas; Enter for none"
        after = self.ask(question, "", lambda text: check(text, names))
        answers = replace(answers, exclude=(*answers.exclude, *after))
        left = [name for name, why in draft.guess.left_out.items() if why.endswith("?")]
        if left:
            question = f"Which of {', '.join(left)} were known before? Names with commas; Enter for none"
            before = self.ask(question, "", lambda text: check(text, left))
            answers = replace(answers, known_before=(*answers.known_before, *before))
        protected = [name for name in find_protected_columns(draft) if name not in after]
        if protected and not answers.protected:
            question = "Which columns must a plan not follow? Names with commas; - for none"
            text = ", ".join(protected)
            answers = replace(
                answers,
                protected=self.ask(question, text, lambda answer: () if answer == "-" else check(answer, names)),
            )
        return answers

    def ask_money(self, answers: DraftAnswers, draft: CampaignDraft) -> DraftAnswers:
        """Ask for the currency, the value of a response and the budget."""
        unit = answers.unit or self.ask("Currency of the costs, such as € or USD (Enter for none)", "", str)
        answers = replace(answers, unit=unit)
        if answers.response_value is None:
            question = (
                "Value of one unit of the response in that currency: a margin, or the value of a yes (Enter if unknown)"
            )
            answers = replace(answers, response_value=self.ask(question, "", _parse_optional_number))
        if answers.budget is None and answers.total is None:
            spent = draft.suggest_budget() if [*answers.costs] == (draft.suggest_costs() or []) else None
            question = "Budget: average cost per customer" + ("" if spent else " (Enter to fill it in later)")
            answers = replace(
                answers, budget=self.ask(question, "" if spent is None else f"{spent:g}", _parse_optional_number)
            )
        return answers


def _parse_level_names(text: str, draft: CampaignDraft) -> tuple[str, ...]:
    assert draft.level is not None
    names, known = tuple(split_comma_list(text)), draft.level.words
    if names and sorted(names) != sorted(known):
        raise ValueError(f"List each of these once: {', '.join(known)}")
    return names


def _parse_level_costs(text: str, levels: int) -> tuple[float, ...]:
    costs = tuple(float(word) for word in split_comma_list(text))
    if costs and len(costs) != levels:
        raise ValueError(f"Give {plural(levels, 'number')}, the cheapest level's first.")
    return costs


def _parse_optional_number(text: str) -> float | None:
    return float(text) if text else None


def _format_examples(draft: CampaignDraft, column: str) -> str:
    return ", ".join(list_example_values(draft.table.column(column)))


def _print_table(console: Console, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=any(titles))
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(make_visible(cell)) for cell in row))
    console.print(table)
