"""Sections of the page of results: each kind of summary in, paragraphs of Markdown and figures out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from largesse.report import DASH, Caption, Look, draw_dots, draw_lines
from largesse_lab.experiments import rates, rates_n
from largesse_lab.page.by_budget import budget_series, budget_tables, families
from largesse_lab.page.compared import Compared, compared, higher_is_better, plain, titled
from largesse_lab.page.markdown import row_of, signed
from largesse_lab.page.orderings import Ordering, count_verdicts, everywhere, orderings_of
from largesse_lab.page.ours import ahead_told, best_table
from largesse_lab.page.prose import TABLE, prose
from largesse_lab.page.summaries import programme_told

DRAWN = ("rmse", "pehe", "reward", "skill")  # columns whose differences are drawn
SHOWN = (*DRAWN, "increments", "spend", "seconds")  # columns in their order; others are in the file alone
SIMPLE = ("levelmean", "perlevelmean", "uniform")  # rows that need no model


@dataclass
class Section:
    """A section as it grows: its paragraphs, and its figures by the name of their file in the folder `where`."""

    where: str
    parts: list[str] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)

    def say(self, *paragraphs: str) -> None:
        """Add paragraphs; empty ones are left out."""
        self.parts += [paragraph.strip() for paragraph in paragraphs if paragraph.strip()]

    def show(self, name: str, svg: str, title: str) -> None:
        """Add a figure."""
        self.figures[name] = svg
        self.say(f"![{title}]({self.where}/{name})")


def section(result: Mapping[str, Any], where: str) -> Section:
    """Return the section of one file of results."""
    made, words = Section(where), prose(result["experiment"])
    made.say(f"## {words.title}", words.run)
    before = len(made.parts)
    KINDS.get(result["experiment"], _any)(made, result)
    if len(made.parts) == before:
        made.say(f"The numbers are in [`{result['file']}`]({where}/{result['file']}).")
    made.say(f"**What differs, and why.** {words.differs}" if words.differs else "")
    return made


def _any(made: Section, result: Mapping[str, Any]) -> None:
    """Fill a section by what its summary holds."""
    summary = result["summary"]
    found = compared(summary)
    if found is not None:
        _methods(made, result["experiment"], found)
    if summary.get("programme"):
        made.say("### The dynamic programme", programme_told(summary["programme"]))
    _lines(made, result["experiment"], summary)


# -- methods -----------------------------------------------------------------------------------------------------------


def _methods(made: Section, experiment: str, found: Compared) -> None:
    several = families(found.columns)
    apart = [column for column in found.columns if not any(column in mine for mine in several.values())]
    for column in sorted(filter(_rank, apart), key=_rank):
        made.say(f"### {titled(column)}", metric_table(found, column))
        if plain(column).startswith(DRAWN):
            _differences(made, experiment, found, column)
    for measure, columns in sorted(several.items(), key=lambda item: _rank(item[0])):
        _by_budget(made, experiment, found, measure, columns)
    if not made.figures and not any(map(_rank, found.columns)):
        return
    made.say("\n".join(f"- {note}" for note in found.notes) or (TABLE if found.paper else ""))
    made.say(_nearest(found), _simple(found))
    duels = best_table(found)
    if duels:
        made.say("### Ours against the paper's best", ahead_told(found), duels)
    judged = orderings_of(found)
    if judged:
        made.say("### The paper's orderings", f"{count_verdicts(judged)} {everywhere(judged)}")
        made.say(orderings_table(found, judged))


def _by_budget(made: Section, experiment: str, found: Compared, measure: str, columns: Sequence[str]) -> None:
    title = f"{measure.capitalize()}, by budget"
    made.say(f"### {title}", *budget_tables(found, columns))
    series = budget_series(found, columns)
    if series:
        words = Caption(
            title, "budget m: mean cost per customer", measure, "Means over repeats; spreads are in the tables."
        )
        look = Look(log_across=True, shared=True)
        made.show(f"{experiment}-{measure}.svg", draw_lines(series, words, look), title)


def _rank(column: str) -> int:
    """Return a column's place on the page, from 1; 0 is none."""
    return next((place for place, name in enumerate(SHOWN, 1) if plain(column).startswith(name)), 0)


def metric_table(found: Compared, column: str) -> str:
    """Return mean ± sd of one column as Markdown: a row per method, the paper's number first, then each simulation's."""
    rows = [row for row in found.rows if any((name, row, column) in found.cells for name in found.simulations)]
    names = [name for name in found.simulations if any((name, row, column) in found.cells for row in rows)]
    beside = any(found.printed(row, column) for row in rows)
    head = ["method", *(["paper"] if beside else []), *names]
    lines = [row_of(head), "|---|" + "---:|" * (len(head) - 1)]
    digits = 1 if plain(column) == "seconds" else 4
    most = max((cell.n for cell in found.cells.values()), default=0)
    for row in rows:
        cells = [found.cells.get((name, row, column)) for name in names]
        ours = [DASH if cell is None else _shown(cell.mean, cell.sd, digits) for cell in cells]
        pair = found.printed(row, column)
        paper = [DASH if pair is None else _shown(*pair, digits)] if beside else []
        lines.append(row_of([_counted(row, [cell.n for cell in cells if cell is not None], most), *paper, *ours]))
    return "\n".join(lines)


def _counted(row: str, repeats: Sequence[int], most: int) -> str:
    """Return a row's name, with its number of repeats where it has fewer than others."""
    return row if min(repeats) == most else f"{row} ({min(repeats)} repeats)"


def _shown(mean: float, sd: float | None, digits: int = 4) -> str:
    return (f"{mean:.{digits}f}" + ("" if sd is None else f" ± {sd:.{digits}f}")).replace("-", "−")


def _differences(made: Section, experiment: str, found: Compared, column: str) -> None:
    rows = [
        {"panel": simulation, "label": row, "estimate": gap.estimate, "low": gap.low, "high": gap.high}
        for (simulation, row, name), gap in found.differences.items()
        # that the truth has no error is no news, and would squeeze all else
        if name == column and row != found.base and (plain(row) != "oracle" or higher_is_better(column))
    ]
    if not rows:
        return
    name, worse = titled(column), "left" if higher_is_better(column) else "right"
    note = f"95 % intervals of paired differences; {worse} of the dashed line is worse. Full dots: the interval does not hold 0."
    words = Caption(
        f"{name}: difference to {found.base} on the same logs", f"{name} minus that of {found.base}", note=note
    )
    made.show(f"{experiment}-{_slug(column)}.svg", draw_dots(rows, words), words.title)


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def _nearest(found: Compared) -> str:
    """Say on which simulation the paper's methods have errors of the size it printed: by the mean factor between the two."""
    logs: dict[str, list[float]] = {}
    for (simulation, row, column), cell in found.cells.items():
        pair = found.printed(row, column)
        if pair is not None and plain(column) == "rmse" and cell.mean > 0:
            logs.setdefault(simulation, []).append(abs(math.log(cell.mean / pair[0])))
    if len(logs) < 2:
        return ""
    factors = {name: math.exp(sum(mine) / len(mine)) for name, mine in logs.items()}
    told = ", ".join(f"{name} {factors[name]:.1f}" for name in sorted(factors, key=lambda name: factors[name]))
    return f"Mean factor between our RMSE and the paper's, over its methods, nearest first: {told}."


def _simple(found: Compared) -> str:
    """Say where rows that need no model do better than the best number the paper printed."""
    told: dict[tuple[str, str], list[tuple[bool, str]]] = {}
    for (simulation, row, column), cell in found.cells.items():
        best, high = found.best_printed(column), higher_is_better(column)
        if best is not None and plain(row).startswith(SIMPLE) and plain(row).startswith("uniform") == high:
            better = cell.mean > best if high else cell.mean < best
            told.setdefault((row, column), []).append((better, f"{simulation} ({cell.mean:.4f})"))
    return "\n".join(_simple_line(found, *key, places) for key, places in told.items())


def _simple_line(found: Compared, row: str, column: str, places: Sequence[tuple[bool, str]]) -> str:
    yes, no = (", ".join(name for is_better, name in places if is_better == better) for better in (True, False))
    told = "; ".join([*([f"better on {yes}"] if yes else []), *([f"not better on {no}"] if no else [])])
    best = f"the paper's best {titled(column)}, {found.best_printed(column):.4f}"
    return f"- Without any model, {row} against {best}: {told}."


def orderings_table(found: Compared, judged: Sequence[Ordering]) -> str:
    """Return the orderings as Markdown: the paper's numbers, and on every simulation whether and by how much they hold."""
    simulations = dict.fromkeys(one.simulation for one in judged)
    lines = [row_of(["better than", "column", "paper", *simulations]), "|---|---|---|" + "---|" * len(simulations)]
    for first, second, column in dict.fromkeys((one.first, one.second, one.column) for one in judged):
        mine = {o.simulation: o for o in judged if (o.first, o.second, o.column) == (first, second, column)}
        sign = ">" if higher_is_better(column) else "<"
        ends = [pair[0] for row in (first, second) if (pair := found.printed(row, column))]
        paper = f" {sign} ".join(f"{end:.4f}" for end in ends)
        told = [_told(mine.get(name)) for name in simulations]
        lines.append(row_of([f"{first} {sign} {second}", titled(column), paper, *told]))
    marked = "\n\n\\* from the two spreads, not paired." if any(not one.paired for one in judged) else ""
    return "\n".join(lines) + marked


def _told(one: Ordering | None) -> str:
    if one is None:
        return DASH
    gain, low, high = (signed(n) for n in (one.gain.estimate, one.gain.low, one.gain.high))
    return f"{one.verdict}: {gain} ({low} to {high})" + ("" if one.paired else " \\*")


# -- lines -------------------------------------------------------------------------------------------------------------


def _lines(made: Section, experiment: str, summary: Mapping[str, Any]) -> None:
    """Draw the summary's series, one figure for each quantity: a panel is named “problem: quantity”."""
    halves = [(row, *_halves(row["panel"])) for row in summary.get("series", [])]
    series = [{**row, "panel": problem, "column": column} for row, problem, column in halves]
    title = prose(experiment).title
    for column in dict.fromkeys(row["column"] for row in series):
        name = titled(column) if column else "mean"
        mine = [row for row in series if row["column"] == column]
        words = Caption(f"{title}, {name}" if column else title, "κ", name, f"Bands: ± 1 sd over {_repeats(mine)}.")
        file = f"{experiment}{'-' + _slug(column) if column else ''}.svg"
        made.show(file, draw_lines(mine, words, Look(log_across=True)), words.title)
    made.say(against_table(summary.get("against", [])))


def _repeats(series: Sequence[Mapping[str, Any]]) -> str:
    """Return over how many repeats series are means, and of which problems over fewer.

    >>> _repeats([{"panel": "a", "n": [50, 50]}, {"panel": "b", "n": [10, 10]}, {"panel": "c"}])
    '50 repeats; b: 10'
    """
    counts: dict[str, int] = {}
    for row in series:
        found = [n for n in row.get("n", []) if n]
        if found:
            counts[row["panel"]] = min([*found, counts.get(row["panel"], found[0])])
    if not counts:
        return "repeats"
    most = max(counts.values())
    fewer = {n: [panel for panel, m in counts.items() if m == n] for n in sorted(set(counts.values()) - {most})}
    return "; ".join([f"{most} repeats", *(f"{', '.join(panels)}: {n}" for n, panels in fewer.items())])


def _halves(panel: str) -> tuple[str, str]:
    """Return problem and quantity of a panel; of one without a colon, no quantity.

    >>> _halves("averaged, binary: error"), _halves("averaged")
    (('averaged, binary', 'error'), ('averaged', ''))
    """
    problem, _, column = panel.rpartition(": ")
    return (problem, column) if problem else (panel, "")


def against_table(against: Sequence[Mapping[str, Any]]) -> str:
    """Return as Markdown at which κ a row is surely better than without balance, and at which worse."""
    if not against:
        return ""
    lines = ["| problem | row | better than κ = 0 at | worse at | not told apart at |", "|---|---|---|---|---|"]
    for panel, label in dict.fromkeys((row["panel"], row["label"]) for row in against):
        mine = [row for row in against if (row["panel"], row["label"]) == (panel, label)]
        places = [[f"{row['kappa']:g}" for row in mine if _side(row) == side] for side in (1, -1, 0)]
        lines.append(row_of([panel, label, *(", ".join(some) or DASH for some in places)]))
    return "\n".join(lines) + "\n\nBy 95 % intervals of paired differences."


def _side(row: Mapping[str, Any]) -> int:
    """Return 1 where a difference is surely for the better, −1 for the worse, 0 where its interval holds zero."""
    sign = 1 if higher_is_better(_halves(row["panel"])[1]) else -1
    return sign * ((row["low"] > 0) - (row["high"] < 0))


# -- rates -------------------------------------------------------------------------------------------------------------


def _rates(made: Section, result: Mapping[str, Any]) -> None:
    summary = result["summary"]
    words = Caption(
        "What monotonicity is worth, by the number of levels",
        "number of levels K",
        "mean squared error / (σ²/n)",
        "s = σ/√n, the standard error of a level’s mean. Bands: ± 1 sd over repeats.",
    )
    look = Look(log_across=True, log_up=True, shared=True, references=("promised",))
    made.show("rates.svg", draw_lines(rates.summary_series(summary), words, look), words.title)
    made.say("Error of the monotone estimate ± standard error (and how many times what was promised):")
    made.say(rates.summary_table(summary), _promise(summary["cells"]))


def _promise(cells: Mapping[str, Any]) -> str:
    """Say where the promise is kept and where it is broken most, at the largest number of levels."""
    most = max((K for row in cells.values() for K in row), key=int)
    times = {t: row[most]["monotone"]["mean"] / row[most]["promised"] for t, row in cells.items() if most in row}
    near, far = min(times, key=lambda t: times[t]), max(times, key=lambda t: times[t])
    over = [f"{row[most]['monotone']['mean']:.3f}" for row in (cells[near], cells[far])]
    return (
        f"With {most} levels the monotone estimate of the truth “{near}” has {over[0]} of the free one's expected error, "
        f"{times[near]:.1f} times what was promised; that of “{far}” has {over[1]}, {times[far]:.1f} times."
    )


def _rates_n(made: Section, result: Mapping[str, Any]) -> None:
    summary = result["summary"]
    words = Caption("Error by rows of the log", "rows n", "RMSE of curves", "Bands: ± 1 sd over worlds.")
    look = Look(log_across=True, log_up=True)
    made.show("rates-n.svg", draw_lines(rates_n.summary_series(summary), words, look), words.title)
    made.say("RMSE ± standard error:", rates_n.summary_table(summary))


KINDS: dict[str, Callable[[Section, Mapping[str, Any]], None]] = {"rates": _rates, "rates_n": _rates_n}
