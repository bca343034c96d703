"""Results on the loop from one campaign to the next: exploring, checking, testing. Tables, figures and sentences from summaries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from largesse.errors import percent
from largesse_lab.page.figures import Caption, Look, draw_dots, draw_lines
from largesse_lab.page.sections import Result, Section
from largesse_lab.page.tables import DASH, write_table

Summary = Mapping[str, Any]
Z = 1.96
LEAK = "a column knows the response"  # too long for a label


def find_interval(share: float, many: int) -> tuple[float, float]:
    """Return the 95 % interval of a share that was counted among many, by Wilson.

    >>> tuple(round(end, 3) for end in find_interval(0.0, 100))
    (0.0, 0.037)
    """
    under = 1 + Z**2 / many
    middle = (share + Z**2 / (2 * many)) / under
    reach = Z * math.sqrt(share * (1 - share) / many + Z**2 / (4 * many**2)) / under
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


def write_share(share: float | None, many: int) -> str:
    """Return a share that was counted among many in per cent, with its 95 % interval.

    >>> write_share(0.9, 100), write_share(1.0, 28), write_share(None, 0)
    ('90.0 % (82.6 to 94.5)', '100.0 % (87.9 to 100.0)', '–')
    """
    if share is None:
        return DASH
    low, high = find_interval(share, many)
    return f"{100 * share:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def _draw_shares(
    section: Section, result: Result, series: Sequence[Mapping[str, Any]], words: Caption, reference: str
) -> None:
    """Draw how many worlds have at most some value; `series` has labels, x and shares, one of them to compare with."""
    drawn = [
        {"panel": "", "label": one["label"], "x": one["x"], "mean": one["share"], "sd": [None] * len(one["x"])}
        for one in series
    ]
    section.show(
        f"{PurePath(result.file).stem}.svg", draw_lines(drawn, words, Look(references=(reference,))), words.title
    )


# -- the next log ------------------------------------------------------------------------------------------------------


def tabulate_next_log(summary: Summary) -> str:
    """Return widths relative to levels at random, coverage, and what exploring gave up."""
    body = []
    for row in summary["rows"]:
        shape = [f"{row['mean']:.2f}", f"{row['median']:.2f}", percent(row["half"]), percent(row["wider"])]
        body.append(
            [row["interval"], row["way"], str(row["worlds"]), *shape, write_share(row["inside"], row["judged"])]
        )
    shape = ["width (geometric mean)", "median", "at most half", "wider"]
    head = ["interval of", "levels drawn", "worlds", *shape, "contains the truth (95 % interval)"]
    lost = ", ".join(f"{way} {percent(share, 1)}" for way, share in summary["given_up"].items())
    told = f"Truly given up, as a share of the plan's gain over the mix, in all worlds together: {lost}."
    told += f" {summary['refused']} worlds left no room to explore." if summary["refused"] else ""
    told += (
        f" In {summary['equal']} worlds the plan is the mix itself: there is no gain to miss."
        if summary["equal"]
        else ""
    )
    return f"Widths of 95 % intervals are relative to those of levels at random.\n\n{write_table(head, body, words=2)}\n\n{told}\n"


def fill_next_log(section: Section, result: Result, _notes: Sequence[str]) -> None:
    """Add the table and the distribution of widths."""
    section.say(tabulate_next_log(result.summary))
    title = "How wide is the next log's interval of the gain?"
    note = "Share of worlds whose interval is at most this wide. Higher lines are better."
    words = Caption(title, "width, relative to that of levels at random", "share of worlds", note)
    series = [{"label": way, **drawn} for way, drawn in result.summary["widths"].items()]
    steps = {"label": "random", "x": [0.0, 1.0, 1.0, series[0]["x"][-1]], "share": [0.0, 0.0, 1.0, 1.0]}
    _draw_shares(section, result, [*series, steps], words, "random")


# -- checks of a campaign ----------------------------------------------------------------------------------------------


def tabulate_checks(summary: Summary) -> str:
    """Return for each case how often an alarm was raised, and how often by the check that is meant to find it."""
    body = []
    for case in summary["cases"]:
        told = ", ".join(f"{topic} {many}" for topic, many in case["checks"].items())
        found = DASH if case["found"] is None else percent(case["found"])
        body.append([case["case"], told, str(case["campaigns"]), percent(case["alarms"]), found])
    head = ["planted", "checks that were not fine", "campaigns", "not fine", "found by its check"]
    return write_table(head, body, words=2) + "\n"


def fill_checks(section: Section, result: Result, _notes: Sequence[str]) -> None:
    """Add the table and a figure of what is found."""
    section.say(tabulate_checks(result.summary))
    rows = []
    for case in result.summary["cases"]:
        share, many = case["alarms"] if case["found"] is None else case["found"], case["campaigns"]
        low, high = find_interval(share, many)
        label = "nothing wrong: false alarms" if case["found"] is None else case["case"].replace(LEAK, "a leak")
        rows.append({"panel": "", "label": label, "estimate": share, "low": low, "high": high})
    note = "By the check that is meant to find it, with 95 % intervals (Wilson)."
    words = Caption("Share of campaigns in which what was planted is found", "share of campaigns", note=note)
    section.show(f"{PurePath(result.file).stem}.svg", draw_dots(rows, words), words.title)


# -- tests of the stated size ------------------------------------------------------------------------------------------


def tabulate_power(summary: Summary) -> str:
    """Return how often tests of the stated size show the gain."""
    body = [
        [
            kind["responses"],
            str(kind["worlds"]),
            _write_power(kind),
            *(percent(kind[q], 1) for q in ("low", "median", "high")),
        ]
        for kind in summary["kinds"]
    ]
    told = ", ".join(f"{why} ({many})" for why, many in summary["left"].items()) or "none"
    head = ["responses", "worlds", "tests that show the gain ± se", "10 %", "median", "90 %"]
    return f"Stated power: {percent(summary['power'])}.\n\n{write_table(head, body)}\n\nWorlds left out: {told}.\n"


def _write_power(kind: Mapping[str, Any]) -> str:
    return f"{100 * kind['mean']:.1f} %" + ("" if kind["se"] is None else f" ± {100 * kind['se']:.1f}")


def fill_power(section: Section, result: Result, _notes: Sequence[str]) -> None:
    """Add the table and the distribution over worlds."""
    summary = result.summary
    section.say(tabulate_power(summary))
    if not summary["shown"]:
        return
    shown = summary["shown"]
    grid = [round(0.02 * place, 2) for place in range(int(min(shown) / 0.02), 51)]
    share = [sum(power <= at + 1e-9 for power in shown) / len(shown) for at in grid]
    stated = {"label": "stated", "x": [summary["power"]] * 2, "share": [0.0, 1.0]}
    note = "Share of worlds in which at most this share of tests shows the gain."
    words = Caption("Power of tests of the stated size", "share of tests that show the gain", "share of worlds", note)
    series = [{"label": "simulated", "x": grid, "share": share}, stated]
    _draw_shares(section, result, series, words, "stated")
