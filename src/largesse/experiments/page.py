"""The page of results: summaries in, one Markdown page with its figures out. Words from `prose`, numbers from files alone.

A file of results is JSON with ``experiment``, ``made`` (command, machine, date, repeats, versions) and ``summary``. A summary
of methods has ``cells`` {simulation: {row: {column: {mean, sd, n}}}} and ``differences`` {simulation: {row: {column:
{estimate, low, high}}}}, the row minus CCPOvSIRE; one of lines has ``series``, rows with panel, label, x, mean and sd, and
where the panels show several quantities a ``column`` each. The page has a section for every file there is.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from largesse.data.write import atomic_file
from largesse.errors import Problem, refuse
from largesse.experiments import rates, rates_n
from largesse.experiments.figures import Look, Words, dot_figure, line_figure
from largesse.experiments.orderings import BASE, Ordering, count_verdicts, everywhere, higher_is_better, orderings
from largesse.experiments.prose import OPENING, PROSE, TABLE, prose
from largesse.experiments.published import PRINTED, plain, printed, titled
from largesse.report.formats import DASH, finite

DRAWN = ("rmse", "pehe", "reward", "skill")  # columns whose differences are drawn
SHOWN = (*DRAWN, "increments", "spend", "seconds")  # columns in their order; others are in the file alone
NEEDED = ("experiment", "made", "summary")


@dataclass
class Section:
    """A section as it grows: paragraphs, and figures by the name of their file."""

    parts: list[str] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)

    def say(self, *paragraphs: str) -> None:
        """Add paragraphs; empty ones are left out."""
        self.parts += [paragraph.strip() for paragraph in paragraphs if paragraph.strip()]


def page(folder: Path, out: Path) -> None:
    """Write the page `out` from the results in `folder`, and its figures beside the results."""
    found = read_results(folder)
    where = Path(os.path.relpath(folder, Path(out).parent)).as_posix()
    sections = [_section(result, where) for result in found]
    for section in sections:
        for name, svg in section.figures.items():
            with atomic_file(Path(folder) / name) as part:
                part.write_text(svg + "\n", encoding="utf-8")
    text = "\n\n".join([OPENING.format(folder=where).strip(), _runs(found), *("\n\n".join(s.parts) for s in sections)])
    with atomic_file(out) as part:
        part.write_text(text + "\n", encoding="utf-8")


def read_results(folder: Path) -> list[dict[str, Any]]:
    """Return the results of a folder, the paper's tables first; refuse files that are none."""
    results, problems = [], []
    for path in sorted(Path(folder).glob("*.json")):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            problems.append(Problem(f"{path.name} is not JSON: {error}", "run its experiment again, or move it away"))
            continue
        missing = [key for key in NEEDED if not isinstance(found, dict) or key not in found]
        if missing:
            problems.append(Problem(f"{path.name} has no {' and no '.join(missing)}", "move it out of the folder"))
        else:
            results.append({**found, "file": path.name})
    if not results and not problems:
        problems.append(
            Problem(f"{folder} has no results", "run an experiment first, such as largesse experiment rates")
        )
    refuse("results", problems)
    order = list(PROSE)
    return sorted(results, key=lambda r: (order.index(r["experiment"]) if r["experiment"] in order else 99, r["file"]))


# -- what was run ------------------------------------------------------------------------------------------------------


def _runs(results: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| what | made by | repeats | on | when | with |", "|---|---|---:|---|---|---|"]
    for result in results:
        made = result["made"]
        versions = made.get("versions") or {}
        told = (
            ", ".join(f"{name} {version}" for name, version in versions.items()) if isinstance(versions, dict) else ""
        )
        command = f"`{made['command']}`" if made.get("command") else DASH
        cells = [str(made.get(key) or DASH) for key in ("repeats", "machine", "date")]
        lines.append(
            _row([f"[{prose(result['experiment']).title}](#{_anchor(result)})", command, *cells, told or DASH])
        )
    return "\n".join(lines)


def _anchor(result: Mapping[str, Any]) -> str:
    """Return the name under which a page shown by GitHub finds a section."""
    return re.sub(r"[^\w\- ]", "", prose(result["experiment"]).title.lower()).replace(" ", "-")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


# -- sections ----------------------------------------------------------------------------------------------------------


def _section(result: Mapping[str, Any], where: str) -> Section:
    section, words = Section(), prose(result["experiment"])
    section.say(f"## {words.title}", words.run)
    summary = result["summary"]
    if result["experiment"] in SPECIAL:
        SPECIAL[result["experiment"]](section, summary, where)
    else:
        if _is_table(summary.get("cells")):
            _methods(section, result, where)
        _lines(section, result, where)
    if len(section.parts) == 1 + bool(words.run):
        section.say(f"The numbers are in [`{result['file']}`]({where}/{result['file']}).")
    section.say(f"**What differs, and why.** {words.differs}" if words.differs else "")
    return section


def _is_table(cells: Any) -> bool:
    """Return whether these are {simulation: {row: {column: {mean}}}}."""
    try:
        return all("mean" in c for rows in cells.values() for columns in rows.values() for c in columns.values())
    except (AttributeError, TypeError):
        return False


def _methods(section: Section, result: Mapping[str, Any], where: str) -> None:
    experiment, summary = result["experiment"], result["summary"]
    columns = dict.fromkeys(c for rows in summary["cells"].values() for row in rows.values() for c in row)
    for column in sorted(filter(_rank, columns), key=_rank):
        section.say(f"### {titled(column)}", metric_table(experiment, summary["cells"], column))
        if plain(column).startswith(DRAWN):
            _differences(section, result, column, where)
    section.say(TABLE if experiment in PRINTED else "")
    section.say(_nearest(experiment, summary["cells"]), _simple(experiment, summary["cells"]))
    found = orderings(summary, experiment)
    if found:
        section.say(
            "### The paper's orderings",
            f"{count_verdicts(found)} {everywhere(found)}",
            orderings_table(experiment, found),
        )


def _rank(column: str) -> int:
    """Return a column's place on the page, from 1; 0 is none."""
    return next((place for place, name in enumerate(SHOWN, 1) if plain(column).startswith(name)), 0)


def metric_table(experiment: str, cells: Mapping[str, Any], column: str) -> str:
    """Return mean ± sd of one column as Markdown: a row per method, the paper's number first, then each simulation's."""
    rows = [r for r in dict.fromkeys(r for rows in cells.values() for r in rows) if _has(cells, r, column)]
    beside = experiment in PRINTED and any(printed(experiment, row, column) for row in rows)
    simulations = [name for name, mine in cells.items() if any(column in mine.get(row, {}) for row in rows)]
    head = ["method", *(["paper"] if beside else []), *simulations]
    lines = [_row(head), "|---|" + "---:|" * (len(head) - 1)]
    for row in rows:
        ours = [_cell(cells[name].get(row, {}).get(column), 1 if column == "seconds" else 4) for name in simulations]
        lines.append(_row([row, *([_printed(printed(experiment, row, column))] if beside else []), *ours]))
    return "\n".join(lines)


def _has(cells: Mapping[str, Any], row: str, column: str) -> bool:
    return any(finite(rows.get(row, {}).get(column, {}).get("mean")) is not None for rows in cells.values())


def _printed(cell: tuple[float, float] | None) -> str:
    return DASH if cell is None else f"{cell[0]:.4f} ± {cell[1]:.4f}"


def _cell(cell: Mapping[str, Any] | None, digits: int) -> str:
    mean, sd = (finite((cell or {}).get(key)) for key in ("mean", "sd"))
    if mean is None:
        return DASH
    shown = f"{mean:.{digits}f}" if sd is None else f"{mean:.{digits}f} ± {sd:.{digits}f}"
    return shown.replace("-", "−")


def _differences(section: Section, result: Mapping[str, Any], column: str, where: str) -> None:
    rows = [
        {"panel": simulation, "label": row, **columns[column]}
        for simulation, by_row in result["summary"].get("differences", {}).items()
        for row, columns in by_row.items()
        if _drawn(row, column) and finite(columns.get(column, {}).get("estimate")) is not None
    ]
    if not rows:
        return
    worse = "left" if higher_is_better(column) else "right"
    note = f"95 % intervals of paired differences; {worse} of the dashed line is worse. Full dots: the interval does not hold 0."
    name = titled(column)
    words = Words(f"{name}: difference to {BASE} on the same logs", f"{name} minus that of {BASE}", note=note)
    _figure(section, f"{result['experiment']}-{_slug(column)}.svg", dot_figure(rows, words), words.title, where)


def _drawn(row: str, column: str) -> bool:
    """Return whether a row's difference is news: that to the base itself is none, nor that the truth has no error."""
    return plain(row) != plain(BASE) and (plain(row) != "oracle" or higher_is_better(column))


def _figure(section: Section, name: str, svg: str, title: str, where: str) -> None:
    section.figures[name] = svg
    section.say(f"![{title}]({where}/{name})")


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def _simple(experiment: str, cells: Mapping[str, Any]) -> str:
    """Say where rows that need no model do better than the best number the paper printed."""
    told: dict[tuple[str, str], list[tuple[bool, str]]] = {}
    for simulation, rows in cells.items():
        for row, columns in rows.items():
            for column, cell in columns.items():
                wanted = "uniform" if higher_is_better(column) else "levelmeans"
                best, mean = _best(experiment, column), finite(cell.get("mean"))
                if best is not None and mean is not None and plain(row).startswith(wanted):
                    better = mean > best if higher_is_better(column) else mean < best
                    told.setdefault((row, column), []).append((better, f"{simulation} ({mean:.4f})"))
    return "\n".join(_simple_line(experiment, *key, found) for key, found in told.items())


def _simple_line(experiment: str, row: str, column: str, found: Sequence[tuple[bool, str]]) -> str:
    yes, no = (", ".join(name for is_better, name in found if is_better == better) for better in (True, False))
    told = "; ".join([*([f"better on {yes}"] if yes else []), *([f"not better on {no}"] if no else [])])
    return f"- Without any model, {row} against the paper's best {titled(column)}, {_best(experiment, column):.4f}: {told}."


def _best(experiment: str, column: str) -> float | None:
    """Return the best number the paper printed in a column."""
    found = [cell[0] for row in PRINTED.get(experiment, {}) if (cell := printed(experiment, row, column))]
    return (max if higher_is_better(column) else min)(found, default=None)


def _nearest(experiment: str, cells: Mapping[str, Any]) -> str:
    """Say on which simulation the paper's methods have errors of the size it printed: by the mean factor between the two."""
    factors = {}
    for simulation, rows in cells.items():
        logs = [
            abs(math.log(mean / cell[0]))
            for row, columns in rows.items()
            for column, found in columns.items()
            if (cell := printed(experiment, row, column))
            and plain(column) == "rmse"
            and (mean := finite(found.get("mean")))
        ]
        if logs:
            factors[simulation] = math.exp(sum(logs) / len(logs))
    if len(factors) < 2:
        return ""
    told = ", ".join(f"{name} {factors[name]:.1f}" for name in sorted(factors, key=lambda name: factors[name]))
    return f"Mean factor between our RMSE and the paper's, over its methods, nearest first: {told}."


def orderings_table(experiment: str, found: Sequence[Ordering]) -> str:
    """Return the orderings as Markdown: the paper's numbers, and on every simulation whether and by how much they hold."""
    simulations = dict.fromkeys(one.simulation for one in found)
    lines = [_row(["better than", "column", "paper", *simulations]), "|---|---|---|" + "---|" * len(simulations)]
    for first, second, column in dict.fromkeys((one.first, one.second, one.column) for one in found):
        mine = {o.simulation: o for o in found if (o.first, o.second, o.column) == (first, second, column)}
        ends = [printed(experiment, row, column) for row in (first, second)]
        sign = ">" if higher_is_better(column) else "<"
        paper = f" {sign} ".join(f"{end[0]:.4f}" for end in ends if end)
        told = [_told(mine.get(name)) for name in simulations]
        lines.append(_row([f"{first} {sign} {second}", titled(column), paper, *told]))
    marked = "\n\n\\* from the two spreads, not paired." if any(not one.paired for one in found) else ""
    return "\n".join(lines) + marked


def _told(one: Ordering | None) -> str:
    if one is None:
        return DASH
    gain, low, high = (f"{number:+.4f}".replace("-", "−") for number in (one.gain, one.low, one.high))
    return f"{one.verdict}: {gain} ({low} to {high})" + ("" if one.paired else " \\*")


# -- sections of lines -------------------------------------------------------------------------------------------------


def _lines(section: Section, result: Mapping[str, Any], where: str) -> None:
    """Draw the summary's series, one figure for each quantity."""
    series = result["summary"].get("series") or result.get("series") or []
    title = prose(result["experiment"]).title
    for column in dict.fromkeys(row.get("column", "") for row in series):
        mine = [row for row in series if row.get("column", "") == column]
        name = titled(column) if column else ""
        words = Words(f"{title}: {name}" if name else title, "κ", name or "mean", "Bands: ± 1 sd over repeats.")
        file = f"{result['experiment']}{'-' + _slug(column) if column else ''}.svg"
        _figure(section, file, line_figure(mine, words, Look(log_across=True)), words.title, where)


def _rates(section: Section, summary: Mapping[str, Any], where: str) -> None:
    words = Words(
        "What monotonicity is worth, by the number of levels",
        "number of levels K",
        "mean squared error / (σ²/n)",
        "s = σ/√n, the standard error of a level’s mean. Bands: ± 1 sd over repeats.",
    )
    look = Look(log_across=True, log_up=True, shared=True, references=("promised",))
    _figure(section, "rates.svg", line_figure(rates.summary_series(dict(summary)), words, look), words.title, where)
    section.say("Error of the monotone estimate ± standard error (and how many times what was promised):")
    section.say(rates.summary_table(dict(summary)), _promise(summary["cells"]))


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


def _rates_n(section: Section, summary: Mapping[str, Any], where: str) -> None:
    words = Words("Error by rows of the log", "rows n", "RMSE of curves", "Bands: ± 1 sd over worlds.")
    look = Look(log_across=True, log_up=True)
    _figure(section, "rates-n.svg", line_figure(rates_n.summary_series(dict(summary)), words, look), words.title, where)
    section.say("RMSE ± standard error:", rates_n.summary_table(dict(summary)))


SPECIAL: dict[str, Callable[[Section, Mapping[str, Any], str], None]] = {"rates": _rates, "rates_n": _rates_n}
