"""What all commands share: their list, options that several have, being quiet, and JSON for machines."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from largesse.errors import make_visible


class Verbs(TyperGroup):
    """The commands; their list shows whole sentences."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List every command with the first sentence of its help, on as many lines as it needs."""
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        firsts = {name: (command.help or "").split("\n\n")[0] for name, command in known.items() if command is not None}
        with formatter.section("Commands"):
            formatter.write_dl([(name, " ".join(text.split())) for name, text in firsts.items()])


app = typer.Typer(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Decide who gets which incentive, under a budget, from the logs you already have.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a summary.")]
Budget = Annotated[float | None, typer.Option("--budget", help="Average cost per customer that may be spent.")]
Total = Annotated[float | None, typer.Option("--total", help="Or the cost of all customers together.")]
Confidence = Annotated[
    float | None,
    typer.Option(
        "--confidence",
        help="Probability, from 0.5, that the true cost is within the budget, where it depends on what customers do.",
    ),
]
Explore = Annotated[
    float | None,
    typer.Option("--explore", help="Explore as much as drawing the levels of this share of customers at random."),
]
ExploreFor = Annotated[
    str | None,
    typer.Option(
        "--explore-for", help="What the next log is to tell: evaluation or learning; random: nothing special."
    ),
]
Out = Annotated[Path | None, typer.Option("--out", help="Where to write.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but warnings and errors.")]
Columns = dict[str, Any]  # role → what the option says, for the roles that are given
Where = dict[str, Any]  # the engine and its master, if they are given
DEMO_OUT = Path("largesse-demo")
_quiet = ContextVar("quiet", default=False)


def verb(command: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command that can be quiet."""
    signature = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def call(*, quiet: bool, **given: Any) -> None:
        before = _quiet.set(quiet)
        try:
            command(**given)
        finally:
            _quiet.reset(before)

    option = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)
    given = [part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in signature.parameters.values()]
    call.__signature__ = signature.replace(parameters=[*given, option])  # type: ignore[attr-defined]
    app.command()(call)
    return command


def is_quiet() -> bool:
    """Whether the command is to print nothing but warnings and errors."""
    return _quiet.get()


def echo(content: dict[str, Any], as_json: bool, text: str) -> None:
    """Print the text, or its numbers as JSON; nothing, if the command is quiet."""
    if as_json or not is_quiet():
        typer.echo(to_json(content) if as_json else make_visible(text))


def to_json(content: dict[str, Any]) -> str:
    """Write JSON in letters that a terminal shows; with escapes where a name holds others."""
    text = json.dumps(content, ensure_ascii=False)
    return text if make_visible(text) == text else json.dumps(content)
