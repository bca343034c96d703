"""Results on worlds drawn at random, in all and by regime: tables, figures and sentences from a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from largesse.errors import percent
from largesse_lab.page.figures import Caption, Look, draw_dots, draw_lines
from largesse_lab.page.sections import Result, Section
from largesse_lab.page.tables import DASH, write_mean, write_number, write_table

Size = Mapping[str, Any]  # the summary of logs of one number of rows
MEASURES = {  # by regime: field, title, how a cell is written
    "skill": ("Mean skill", "{:.2f}"),
    "error": ("Mean relative RMSE", "{:.2f}"),
    "bad": ("Share of worlds with skill below −0.1", "{:.0%}"),
    "median seconds": ("Median seconds to fit", "{:.2f}"),
}


# -- tables ------------------------------------------------------------------------------------------------------------


def tabulate_worlds(summary: Mapping[str, Any]) -> str:
    """Return all tables as Markdown."""
    parts = []
    for size in summary["sizes"]:
        parts += [f"## {_describe_size(size)}", tabulate_whole(size), describe_lead(size)]
        for field, (title, _) in MEASURES.items():
            parts += [f"### {title}, by regime", tabulate_regimes(size, field)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _describe_size(size: Size) -> str:
    first, last = size["seeds"]
    return f"{size['worlds']} worlds (seeds {first}–{last}), logs of {size['rows']:,} rows"


def tabulate_whole(size: Size) -> str:
    """Return one row for each model: skill, errors, harm, time, worst regime, and the first model's lead."""
    body = []
    for name, mine in size["models"].items():
        worst, gap = mine["worst"], size["against"].get(name)
        numbers = [
            write_mean(mine["skill"], mine["se"], 3),
            *(write_number(mine[key], 3) for key in ("error", "effects")),
        ]
        times = [f"{mine['median seconds']:.2f}", f"{mine['mean seconds']:.2f}"]
        place = DASH if worst is None else f"{write_number(worst['skill'], 2)} ({_name_group(worst)})"
        lead = DASH if gap is None else _write_lead(gap)
        body.append([name, *numbers, f"{mine['bad']:.1%}", *times, place, lead])
    head = ["model", "skill ± se", "relative RMSE", "effects", "below −0.1", "median s", "mean s", "worst regime"]
    return write_table([*head, f"{size['first']} minus it ± se"], body)


def _write_lead(gap: Mapping[str, Any]) -> str:
    return f"{gap['difference']:+.3f} ± {gap['se']:.3f}".replace("-", "−")


def _name_group(group: Mapping[str, Any]) -> str:
    return f"{group['trait']}: {group['group']}, n = {group['worlds']}"


def describe_lead(size: Size) -> str:
    """Return how the first model stands against the best peer; nothing where there is none."""
    first, best = size["first"], size["best peer"]
    gap = size["against"].get(best)
    if gap is None:
        return ""
    where = f"{gap['worlds']} worlds of {size['rows']:,} rows"
    interval = f"{gap['low']:+.3f} to {gap['high']:+.3f}".replace("-", "−")
    return (
        f"{first} minus the best peer, {best}: mean skill {_write_lead(gap)} (95 % interval {interval}) over {where}; "
        f"ahead in {percent(gap['ahead'])} of them, behind in {percent(gap['behind'])}."
    )


def tabulate_regimes(size: Size, field: str = "skill") -> str:
    """Return one measure of all models in each group of worlds."""
    names, style = list(size["models"]), MEASURES[field][1]
    body = []
    for group in size["regimes"]:
        found = [group["models"][name].get(field) for name in names]
        cells = [DASH if number is None else style.format(number).replace("-", "−") for number in found]
        body.append([f"{group['trait']}: {group['group']}", str(group["worlds"]), *cells])
    return write_table(["regime", "worlds", *names], body)


# -- the page ----------------------------------------------------------------------------------------------------------


def fill_worlds(section: Section, result: Result, _notes: Sequence[str]) -> None:
    """Add tables and figures for each number of rows."""
    for size in result.summary.get("sizes", []):
        stem = f"{PurePath(result.file).stem}-{size['rows']}"
        section.say(f"### {_describe_size(size)}", tabulate_whole(size), describe_lead(size))
        _draw_distribution(section, size, stem)
        _draw_regimes(section, size, stem)
        section.say("#### Mean skill, by regime", tabulate_regimes(size))
        section.say("#### Share of worlds with skill below −0.1, by regime", tabulate_regimes(size, "bad"))


def _draw_distribution(section: Section, size: Size, stem: str) -> None:
    grid = size["distribution"]["skill"]
    series = [
        {"panel": "", "label": name, "x": grid, "mean": share, "sd": [None] * len(grid)}
        for name, share in size["distribution"]["share"].items()
        if name != "oracle"  # a step at 1
    ]
    title = f"Distribution of skill, logs of {size['rows']:,} rows"
    note = (
        f"Share of {size['worlds']} worlds with at most this skill, averaged over both budgets. Lower lines are better."
    )
    words = Caption(title, "skill (−1 and less at the left end)", "share of worlds", note)
    section.show(f"{stem}-distribution.svg", draw_lines(series, words, Look(references=("uniform",))), title)


def _draw_regimes(section: Section, size: Size, stem: str) -> None:
    """Draw mean skill by regime of the first model and of the best peer, and their difference."""
    first, best = size["first"], size["best peer"]
    if best is None:
        return
    rows = []
    for group, gap in zip(size["regimes"], size["by regime"], strict=True):
        label = f"{group['trait']}: {group['group']} ({group['worlds']})"
        for name in (first, best):
            mine = group["models"][name]
            ends = {"estimate": mine.get("skill"), "low": mine.get("low"), "high": mine.get("high")}
            rows.append({"panel": name, "label": label, **ends})
        ends = {"estimate": gap.get("difference"), "low": gap.get("low"), "high": gap.get("high")}
        rows.append({"panel": "difference", "label": label, **ends})
    title = f"Mean skill by regime, logs of {size['rows']:,} rows"
    note = f"{first}, the best peer ({best}), and {first} minus {best} on the same worlds, with 95 % intervals."
    section.show(f"{stem}-regimes.svg", draw_dots(rows, Caption(title, "mean skill", note=note)), title)
