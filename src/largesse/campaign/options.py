"""Groups of options of the command line; those that describe a campaign are read back into one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from largesse.campaign.file import Campaign, campaign_from
from largesse.errors import Problem, fail
from largesse.policy import DIALECTS
from largesse.records import ROLES

MONEY = ("unit", "response_unit", "response_value")  # options of levels that stand at the top of a campaign file
MOST = "The most that each level may cost, cheapest first, where no list says it: 0,20,50."
PROMISES = (
    "kept (default): every promise can be redeemed. while_it_lasts: redemptions are refused once the budget is spent."
)


def with_options(name: str, options: Mapping[str, inspect.Parameter]) -> Callable[[Callable[..., None]], Any]:
    """Replace a command's parameter by options; the command gets a dict of those that are given.

    Required options stand right after the arguments, the others where the parameter stood.
    """

    def decorate(command: Callable[..., None]) -> Any:
        signature = inspect.signature(command, eval_str=True)

        @functools.wraps(command)
        def call(**given: Any) -> None:
            own = {option: given.pop(option) for option in options}
            command(**given, **{name: {option: value for option, value in own.items() if value is not None}})

        first, *rest = signature.parameters.values()
        required = [option for option in options.values() if option.default is option.empty]
        optional = [option for option in options.values() if option.default is not option.empty]
        after = [part for kept in rest for part in (optional if kept.name == name else [kept])]
        parameters = [part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in (first, *required, *after)]
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return call

    return decorate


def _option(name: str, help_text: str, kind: Any = str, *, required: bool = False) -> inspect.Parameter:
    import typer

    option, default = typer.Option(help=help_text), inspect.Parameter.empty if required else None
    annotation: Any = Annotated[kind, option] if required else Annotated[kind | None, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def column_options(*required: str) -> dict[str, inspect.Parameter]:
    """Return one option for each role that a column can have."""
    texts = {role: f"Column with {content}." for role, content in ROLES.items()}
    texts["features"] = f"Comma-separated: {ROLES['features']}."
    return {role: _option(role, text, required=role in required) for role, text in texts.items()}


def level_options() -> dict[str, inspect.Parameter]:
    """Return the options that describe the levels, and what money they and responses are counted in."""
    import typer

    paid = "Costs are face values, paid only to customers who respond: cost × response."
    on_redemption = inspect.Parameter(
        "on_redemption",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option("--on-redemption", help=paid)],
    )
    worth = "What one unit of response is worth, in the unit of costs: a margin, or the worth of a yes."
    return {
        "costs": _option(
            "costs", "Cost of each level, cheapest first: 0,5,10; or K column names; none with --cost-column."
        ),
        "names": _option("names", "How the log writes the levels, in order: none,small,big."),
        "doses": _option("doses", "The amounts behind the levels, in order: 0,5,10."),
        "propensities": _option("propensities", "The levels' probabilities, the same for all customers: 0.2,0.2,0.6."),
        "on_redemption": on_redemption,
        "unit": _option("unit", "The unit of costs, for the report: €, USD."),
        "response_unit": _option("response_unit", "The unit of the response, where it is an amount: €, USD."),
        "response_value": _option("response_value", worth, float),
    }


def engine_options() -> dict[str, inspect.Parameter]:
    """Return the options that say on which machines a command works."""
    master = "Where Spark runs, like local[4], spark://host:7077 or sc://host; default: as it is installed, or here."
    return {
        "engine": _option("engine", "local (default), or spark for tables that one machine cannot hold."),
        "master": _option("master", master),
    }


def ledger_options() -> dict[str, inspect.Parameter]:
    """Return the options that name a ledger, and say what it is begun with."""
    return {
        "ledger": _option("ledger", "Book decisions here: sqlite:///spring.db, or postgresql://… for many machines."),
        "total": _option("total", "The budget that a new ledger begins with."),
        "since": _option("since", "When its period begins: 2027-01-01; default: now."),
        "until": _option("until", "When it ends: 2027-01-31, the last day, or a time."),
        "customers": _option(
            "customers", "How many customers will come in it; default: as many as the plan's budget pays for.", float
        ),
        "valid_days": _option("valid_days", "How many days a promise stands; default: until it is redeemed.", float),
        "most": _option("most", MOST),
        "promises": _option("promises", PROMISES),
        "late": _option("late", "What becomes of a redemption after that: refuse (default), accept."),
    }


def pace_options() -> dict[str, inspect.Parameter]:
    """Return the options that say how customers come."""
    stands = "Days that a promise stands, where costs are paid later; default: a quarter of the period."
    return {
        "time": _option("time", "Column of the table that says when each customer came; default: rows come evenly."),
        "streams": _option("streams", "Number of simulated streams; default: 20.", int),
        "customers": _option("customers", "Customers foreseen in the period; default: as many as the run has.", int),
        "days": _option("days", "Length of the period; default: 30.", int),
        "valid_days": _option("valid_days", stands, float),
        "promises": _option("promises", PROMISES),
        "most": _option("most", MOST),
        "seed": _option("seed", "Same seed, same streams.", int),
    }


def power_options() -> dict[str, inspect.Parameter]:
    """Return the options that say what a test is to show, and how surely."""
    texts = {
        "gain": "Gain per customer to be shown; default: the log's.",
        "power": "Probability that a gain that is there is shown; default: 0.8.",
        "coverage": "Probability that none is shown where there is none; default: 0.95.",
        "per_day": "Customers who come by in a day: says how long it takes.",
        "share": "Share of the customers in the plan's arm; default: 0.5.",
    }
    return {name: _option(name, text, float) for name, text in texts.items()}


def read_list(text: str, name: str) -> tuple[float, ...]:
    """Return numbers that an option lists.

    >>> read_list("0,20,50", "--most")
    (0.0, 20.0, 50.0)
    """
    numbers = _numbers_or_words(text)
    if not numbers or not all(isinstance(number, float) for number in numbers):
        fail("options", Problem(f"{name} is {text!r}", "give numbers, the cheapest level's first: 0,20,50"))
    return tuple(numbers)


def export_options() -> dict[str, inspect.Parameter]:
    """Return the options that say what a policy is written as."""
    return {
        "to": _option("to", "sql, onnx, card (a score card: .html, .txt or .sql) or mlflow (a folder).", required=True),
        "dialect": _option("dialect", f"Of SQL: {', '.join(DIALECTS)}. Default: duckdb."),
        "table": _option("table", "Table of customers that the query reads. Default: customers."),
        "customer": _option("customer", "Its column that says who a row is. Default: the campaign's."),
        "depth": _option("depth", "Of a score card: conditions in a row, 1 to 4. Default: 3."),
    }


def campaign_from_options(log: str, columns: dict[str, Any], levels: Mapping[str, Any], **more: Any) -> Campaign:
    """Return the campaign that options describe; without costs, the levels cost 0, 1, 2 and so on."""
    read: dict[str, Callable[[str], Any]] = {"costs": _numbers_or_words, "doses": _numbers_or_words, "names": _split}
    read["propensities"] = _numbers_or_words
    levels, more = {**levels}, {**{word: levels[word] for word in MONEY if word in levels}, **more}
    for word in MONEY:
        levels.pop(word, None)
    section = {word: read[word](given) if isinstance(given, str) else given for word, given in levels.items()}
    if "costs" not in section and "cost_column" not in columns:
        if "names" not in section:
            fail("levels", Problem("the levels are not given", "add --costs 0,5,10 or --names none,small,big"))
        section["costs"] = [float(k) for k in range(len(section["names"]))]
    named = columns | ({"features": _split(columns["features"])} if isinstance(columns.get("features"), str) else {})
    return campaign_from({"log": log, "title": Path(log).name, "columns": named, "levels": section, **more})


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers_or_words(text: str) -> list[Any]:
    """Return numbers where they are numbers: among words, which name columns, a number is a slip that is named."""
    parts: list[Any] = []
    for part in _split(text):
        try:
            parts.append(float(part))
        except ValueError:
            parts.append(part)
    return parts
