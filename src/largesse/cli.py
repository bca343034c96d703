"""One command per verb. Errors are one message and exit code 2; what was there before stays as it was."""

from __future__ import annotations

import json
import math
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from largesse.errors import InputError, LargesseError, Problem
from largesse.version import __version__

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Decide who gets which incentive, under a budget, from the logs you already have.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a summary.")]
Budget = Annotated[float | None, typer.Option("--budget", help="Average cost per customer that may be spent.")]
Total = Annotated[float | None, typer.Option("--total", help="Or the cost of all customers together.")]
Out = Annotated[Path | None, typer.Option("--out", help="Where to write.")]
DEMO_OUT = Path("largesse-demo")


def main() -> None:
    """Run the command line; never show a traceback for something a person can mend."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # let half-written folders be cleaned up
    try:
        app()
    except LargesseError as error:
        _complain(str(error))
        sys.exit(2)
    except (KeyboardInterrupt, SystemExit) as stopped:
        if isinstance(stopped, SystemExit) and stopped.code != 130:  # typer turns an interrupt into this
            raise
        _complain("stopped; nothing was left half written")
        sys.exit(130)
    except MemoryError:
        _complain("not enough memory\n   → read fewer columns with features=…, or plan in parts")
        sys.exit(2)


def _complain(text: str) -> None:
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True).print(Text(f"largesse: {text}"), soft_wrap=True)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"largesse {__version__}")
        raise typer.Exit


@app.command()
def demo(out: Annotated[Path, typer.Option("--out", help="Run folder.")] = DEMO_OUT, as_json: AsJson = False) -> None:
    """Plan real cash incentives (Thornton 2008) from a log, judge the plan, and leave a report."""
    from largesse.runs import demo_campaign
    from largesse.runs import run as run_campaign

    campaign, table = demo_campaign()
    with _progress(as_json) as tell:
        shown = run_campaign(campaign, out, tell, table=table)
    _summary(shown, out, as_json)


@app.command()
def init(
    log: Annotated[str, typer.Argument(help="The log: a Parquet, CSV or Arrow file.")],
    out: Annotated[Path, typer.Option("--out", help="The campaign file to write.")] = Path("campaign.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a campaign file that is there already.")] = False,
) -> None:
    """Look at a table and write a first campaign.toml, with its guesses commented."""
    from largesse.files import atomic_file
    from largesse.runs import guess_campaign

    if out.exists() and not force:
        raise InputError("init", [Problem(f"{out} is there already", "give another --out, or --force to replace it")])
    with _progress(False) as tell:
        tell("looking at the table", 0.0)
        text = guess_campaign(log)
    with atomic_file(out) as part:
        part.write_text(text, encoding="utf-8")
    typer.echo(f"wrote {out}. Look through the lines marked CHECK, then: largesse run {out}")


@app.command()
def run(
    campaign: Annotated[Path, typer.Argument(help="The campaign file.")],
    budget: Budget = None,
    total: Total = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Do the whole way: read, learn, plan, judge, report."""
    from largesse.runs import read_campaign
    from largesse.runs import run as run_campaign

    found = read_campaign(campaign)
    if budget is not None or total is not None:
        found = _checked_budget(budget, total, found)
    folder = out or Path(found.out or campaign.with_suffix("").name + "-run")
    with _progress(as_json) as tell:
        shown = run_campaign(found, folder, tell)
    _summary(shown, folder, as_json)


@app.command()
def fit(
    log: Annotated[str, typer.Argument(help="The log: a Parquet, CSV or Arrow file, or a glob in quotes.")],
    level: Annotated[str, typer.Option(help="Column with the level each customer got.")],
    response: Annotated[str, typer.Option(help="Column with what happened.")],
    costs: Annotated[str, typer.Option(help="Cost of each level, cheapest first: 0,5,10; or K column names.")],
    out: Annotated[Path, typer.Option("--out", help="Run folder to write.")],
    names: Annotated[str | None, typer.Option(help="How the log writes the levels, in order: none,small,big.")] = None,
    doses: Annotated[str | None, typer.Option(help="The amounts behind the levels, in order: 0,5,10.")] = None,
    on_redemption: Annotated[
        bool, typer.Option("--on-redemption", help="Costs are face values, paid as far as the customer responds.")
    ] = False,
    propensity: Annotated[str | None, typer.Option(help="Column with the probability of the logged level.")] = None,
    logger: Annotated[str | None, typer.Option(help="Column that names the logging policy.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Column with the household or other group.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column with row weights.")] = None,
    customer: Annotated[str | None, typer.Option(help="Column with customer ids.")] = None,
    features: Annotated[
        str | None, typer.Option(help="Columns to learn from, comma-separated; default: all others.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="auto, linear, additive, boosting, sire, ire, stack, choose, bart, cfrnet or ganite.")
    ] = "auto",
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Learn the response from a log and leave a run folder."""
    from largesse.runs import campaign_from
    from largesse.runs import fit as fit_campaign

    roles = {
        "level": level,
        "response": response,
        "propensity": propensity,
        "logger": logger,
        "cluster": cluster,
        "weight": weight,
        "customer": customer,
    }
    columns: dict[str, Any] = {role: column for role, column in roles.items() if column is not None}
    if features is not None:
        columns["features"] = _split(features)
    levels: dict[str, Any] = {"costs": _numbers_or_words(costs), "on_redemption": on_redemption}
    levels |= {"names": _split(names)} if names is not None else {}
    levels |= {"doses": _numbers_or_words(doses)} if doses is not None else {}
    found = campaign_from(
        {
            "log": log,
            "title": Path(log).name,
            "columns": columns,
            "levels": levels,
            "model": {"name": model, "seed": seed},
        }
    )
    with _progress(as_json) as tell:
        shown = fit_campaign(found, out, tell)
    _say(
        shown,
        as_json,
        f"learnt {shown['model']['name']} from {found.log}; next: largesse plan {out} CUSTOMERS --budget …",
    )


@app.command()
def plan(
    run_folder: Annotated[Path, typer.Argument(help="Run folder made by fit or run.")],
    customers: Annotated[str | None, typer.Argument(help="Table of customers; default: those of the campaign.")] = None,
    budget: Budget = None,
    total: Total = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Plan to write (.parquet, .csv, .feather); default: in the run folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Give every customer a level at a budget."""
    from largesse.runs import plan as plan_customers

    if budget is not None and total is not None:
        raise InputError(
            "plan", [Problem("both --budget and --total were given", "give the average per customer, or the total")]
        )
    with _progress(as_json) as tell:
        made = plan_customers(run_folder, customers, budget=budget, total=total, out=out, tell=tell)
    planned = made["planned"]
    text = (
        f"planned {made['customers']:,} customers: spend {planned['spend']:.6g} each, price {planned['price']:.4g}; "
        f"wrote {out or run_folder / 'plan.parquet'}"
    )
    _say(made, as_json, text)


@app.command()
def evaluate(
    run_folder: Annotated[Path, typer.Argument(help="Run folder made by fit or run.")],
    log: Annotated[str | None, typer.Argument(help="The log to judge by; default: the campaign's.")] = None,
    budget: Budget = None,
    estimator: Annotated[str, typer.Option(help="How to judge: direct, ips, snips, dr, sndr, switch or dros.")] = "dr",
    as_json: AsJson = False,
) -> None:
    """Say what the plan will bring and cost, from the log alone, each with a 95 % interval."""
    from largesse.runs import judge

    with _progress(as_json) as tell:
        found = judge(run_folder, log, budget=budget, estimator=estimator, tell=tell)
    value, spend = found["value"], found["spend"]
    text = (
        f"value {value['estimate']:.4g} ({value['low']:.4g} to {value['high']:.4g}), "
        f"spend {spend['estimate']:.4g} ({spend['low']:.4g} to {spend['high']:.4g}); wrote {run_folder / 'evaluation.json'}"
    )
    _say(found, as_json, text)


@app.command()
def report(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with a plan and an evaluation.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Page to write; default: report.html in the run folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the HTML report of a run folder."""
    from largesse.runs import report as make_report

    shown = make_report(run_folder, out)
    _say(shown, as_json, f"wrote {out or run_folder / 'report.html'}")


@app.command()
def doctor(
    log: Annotated[str, typer.Argument(help="The log: a table, a campaign file or a run folder.")],
    level: Annotated[str | None, typer.Option(help="Column with the level; without it, columns are guessed.")] = None,
    response: Annotated[str | None, typer.Option(help="Column with what happened.")] = None,
    costs: Annotated[str | None, typer.Option(help="Cost of each level, cheapest first; default: 0,1,2 …")] = None,
    names: Annotated[str | None, typer.Option(help="How the log writes the levels, in order: none,small,big.")] = None,
    propensity: Annotated[str | None, typer.Option(help="Column with the probability of the logged level.")] = None,
    logger: Annotated[str | None, typer.Option(help="Column that names the logging policy.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Column with the household or other group.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column with row weights.")] = None,
    features: Annotated[str | None, typer.Option(help="Columns to learn from, comma-separated.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the checkup as an HTML page here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a log can answer the question: overlap, balance, lots, leaks; each fine, careful or no."""
    from largesse.runs import campaign_of, examine

    roles = {"level": level, "response": response, "propensity": propensity, "logger": logger}
    roles |= {"cluster": cluster, "weight": weight}
    given: dict[str, Any] = {role: column for role, column in roles.items() if column is not None}
    if features is not None:
        given["features"] = _split(features)
    guessed = False
    if given or costs is not None or names is not None:
        found = _named_log(log, given, costs, names)
    else:
        found, guessed = campaign_of(log)
    with _progress(as_json) as tell:
        shown = examine(found, guessed=guessed, out=out, tell=tell)
    if as_json:
        typer.echo(json.dumps(shown, ensure_ascii=False))
    else:
        _checkup(shown, out)


@app.command()
def experiment(
    name: Annotated[
        str,
        typer.Argument(
            help="table1, table2, kernels, kappa, rates, rates_n, simulation, coverage, lots, real; or page, which makes one of all"
        ),
    ],
    simulations: Annotated[str | None, typer.Option(help="Which ones, comma-separated.")] = None,
    models: Annotated[str | None, typer.Option("--models", "--rows", help="Which ones, comma-separated.")] = None,
    repeats: Annotated[int | None, typer.Option("--repeats", "--seeds", help="How many repeats, or logs.")] = None,
    part: Annotated[str, typer.Option(help="Which of several parts, as 0/4: for several processes.")] = "0/1",
    chunk: Annotated[int | None, typer.Option(help="How many logs are fitted at once: many on a GPU.")] = None,
    mix: Annotated[float | None, typer.Option(help="coverage: share of the log that drew lots.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Processes that share the repeats of a folder; without a GPU, one for each core."),
    ] = None,
    kept: Annotated[bool, typer.Option("--kept", help="Run nothing: make table and figures of what is there.")] = False,
    machine: Annotated[str | None, typer.Option(help="What it ran on, if not this machine.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for results, table, summary and figures; goes on where they end."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Repeat the paper's experiments, or measure models where the truth is known."""
    from largesse_lab.command import Asked, run

    asked = Asked(
        simulations=None if simulations is None else _split(simulations),
        models=None if models is None else _split(models),
        repeats=repeats,
        part=_part(part),
        chunk=chunk,
        jobs=jobs,
        mix=mix,
        kept=kept,
        machine=machine,
        out=out,
        command=shlex.join(["largesse", *_without_source(sys.argv[1:])]),
    )
    with _progress(as_json) as tell:
        records, text = run(name, asked, tell)
    typer.echo(json.dumps(records, ensure_ascii=False) if as_json else text)


# -- helpers ------------------------------------------------------------------------------------------------------------


def _checked_budget(budget: float | None, total: float | None, campaign: Any) -> Any:
    if budget is not None and total is not None:
        raise InputError(
            "run", [Problem("both --budget and --total were given", "give the average per customer, or the total")]
        )
    from largesse.runs import BUDGET_RULE

    given = total if total is not None else budget
    if given is None or not 0 <= given < math.inf:
        raise InputError("run", [Problem(f"the budget is {given}", BUDGET_RULE)])
    return campaign.spending(budget=budget, total=total)


def _without_source(words: list[str]) -> list[str]:
    """Return a command's words without those that say that it was run elsewhere."""
    spare = {i for i, word in enumerate(words) if word == "--kept" or "--machine" in (word, *words[max(i - 1, 0) : i])}
    return [word for i, word in enumerate(words) if i not in spare and not word.startswith("--machine=")]


def _part(text: str) -> tuple[int, int]:
    """Return the part that is meant by 1/4: the second of four."""
    first, _, second = text.partition("/")
    if not (first.isdigit() and second.isdigit() and int(first) < int(second)):
        raise InputError("experiment", [Problem(f"part {text!r}", "parts of 4 are 0/4, 1/4, 2/4 and 3/4")])
    return int(first), int(second)


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


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """Show a bar on a terminal; say nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _what, _done: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=None)

        def tell(what: str, done: float) -> None:
            # A stage that does not say how far it is shows a moving bar.
            progress.update(task, description=what, total=1.0 if done > 0 else None, completed=done)

        yield tell


def _say(content: dict[str, Any], as_json: bool, text: str) -> None:
    typer.echo(json.dumps(content, ensure_ascii=False) if as_json else text)


def _summary(shown: dict[str, Any], folder: Path, as_json: bool) -> None:
    """Print the answer, what it is compared with, the warnings, and where everything is."""
    if as_json:
        typer.echo(json.dumps({"run": str(folder), **shown}, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from largesse.report import Units, gain_text

    units = Units(shown["response"]["kind"], shown["unit"])
    answer = shown["answer"]
    console = Console()
    console.print(Text(f"\n{shown['title']}\n", style="bold"))
    for text in (answer["headline"], answer["verdict"]):
        console.print(Padding(Text(text), (0, 2, 1, 2)))
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 2))
    for name in ("", "value", "95 % interval", "spend"):
        table.add_column(name, no_wrap=True, justify="right" if name in ("value", "spend") else "left")
    table.add_row("this plan", *_cells(units, answer), style="bold")
    for other in answer["versus"]:
        table.add_row(other["name"], *_cells(units, other))
    console.print(table)
    for other in answer["versus"]:
        console.print(
            Padding(Text(f"against {other['name']}: {gain_text(units, other['difference'])}", style="dim"), (0, 2))
        )
    console.print()
    for warning in shown["warnings"]:
        mark = {"no": "✗ ", "careful": "! ", "note": "· "}[warning["severity"]]
        console.print(
            Padding(Text(mark + warning["text"], style="" if warning["severity"] == "note" else "yellow"), (0, 2))
        )
    console.print(Text(f"\nEverything is in {folder}/  —  open {folder / 'report.html'}\n"), soft_wrap=True)


def _named_log(log: str, columns: dict[str, Any], costs: str | None, names: str | None) -> Any:
    """Return the campaign of a table whose columns are named; without costs, they cost 0, 1, 2 and so on."""
    from largesse.runs import campaign_from

    if costs is None:
        if names is None:
            raise InputError(
                "doctor", [Problem("the levels are not given", "add --costs 0,5,10 or --names none,small,big")]
            )
        costs = ",".join(str(k) for k in range(len(_split(names))))
    levels: dict[str, Any] = {"costs": _numbers_or_words(costs)}
    levels |= {"names": _split(names)} if names is not None else {}
    return campaign_from({"log": log, "title": Path(log).name, "columns": columns, "levels": levels})


def _checkup(shown: dict[str, Any], out: Path | None) -> None:
    """Print the verdicts, what each level brought, and where the page is."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from largesse.report import Units

    units = Units(shown["response"]["kind"], shown["unit"])
    console = Console()
    console.print(Text(f"\n{shown['title']}: {shown['headline']}\n", style="bold"))
    marks, colours = {"no": "✗", "careful": "!", "fine": "✓"}, {"no": "red", "careful": "yellow", "fine": "green"}
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), show_header=False)
    for verdict in shown["doctor"]:
        mark = Text(marks[verdict["answer"]], style=colours[verdict["answer"]])
        table.add_row(mark, Text(verdict["about"]), Text(verdict["text"]))
    console.print(table)
    levels = Table(box=None, pad_edge=False, padding=(0, 3, 0, 2))
    for name in ("level", "rows", "effective", "least ρ", "mean", "95 % interval"):
        levels.add_column(name, justify="left" if name in ("level", "95 % interval") else "right", no_wrap=True)
    for row, seen in zip(shown["curve"], shown["overlap"], strict=True):
        style = units.response([row["value"], row["low"], row["high"]], (row["high"] - row["low"]) / 2 or None)
        levels.add_row(
            row["name"],
            f"{row['rows']:,}",
            f"{seen['effective']:,.0f}",
            f"{seen['smallest']:.3g}",
            style.text(row["value"]),
            style.interval(row),
        )
    console.print()
    console.print(levels)
    for note in shown["notes"]:
        console.print(Padding(Text("· " + note), (1, 2, 0, 2)))
    console.print(
        Text(f"\nWrote {out}\n" if out is not None else "\n--out page.html writes this as a page.\n"), soft_wrap=True
    )


def _cells(units: Any, row: dict[str, Any]) -> tuple[str, str, str]:
    from largesse.report import value_interval, value_text

    return value_text(units, row["value"]), value_interval(units, row["value"]), units.cost(row["spend"]["estimate"])


if __name__ == "__main__":
    main()
