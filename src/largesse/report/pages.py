"""The pages: one dict of numbers in, one self-contained HTML page out. A page computes nothing but layout."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from largesse.levels import SYMBOLS
from largesse.report.campaign_check_page import view_check
from largesse.report.charts.palette import DARK_LEVELS, LIGHT_LEVELS, level_variables
from largesse.report.checkup_page import view_checkup
from largesse.report.figure_rows import view_legend
from largesse.report.number_format import THIN, Units, finite
from largesse.report.pacing_page import view_pace
from largesse.report.section import Numbers, Part, Section
from largesse.report.sections.budget_frontier import SECTION as FRONTIER
from largesse.report.sections.decision_explanations import SECTION as WHY
from largesse.report.sections.gain_bounds import SECTION as BOUNDS
from largesse.report.sections.key_figures import SECTION as ANSWER
from largesse.report.sections.key_figures import write_answer
from largesse.report.sections.level_responses import SECTION as CURVE
from largesse.report.sections.level_transitions import SECTION as TRANSITIONS
from largesse.report.sections.log_checks import SECTION as SUPPORT
from largesse.report.sections.method import SECTION as METHOD
from largesse.report.sections.next_steps import SECTION as NEXT_STEPS
from largesse.report.sections.profit_by_budget import SECTION as PROFIT
from largesse.report.sections.qini_curve import SECTION as TARGETING
from largesse.report.sections.segments import SECTION as WHO
from largesse.report.sections.spend_by_level import SECTION as MONEY
from largesse.version import __version__

HERE = Path(__file__).parent
GLOSSARY = Section("glossary", lambda _numbers, _units: {}, "Glossary")  # its words stand in the template
SECTIONS = (
    *(ANSWER, FRONTIER, PROFIT, TARGETING, BOUNDS, CURVE, WHO, WHY, MONEY, TRANSITIONS, NEXT_STEPS, SUPPORT, METHOD),
    GLOSSARY,
)
SPLIT = re.compile(f"(?<=[+−])(?=[{re.escape(''.join(sorted(SYMBOLS)))}])")


@dataclass(frozen=True)
class Heading:
    """The facts of a campaign that are in no step: its title, the units of costs and response, the seed, and the day."""

    title: str
    unit: str
    seed: int
    made: str = ""  # in words: 16 November 2026
    response_unit: str = ""


def join_parts(heading: Heading, fit: Numbers, plan: Numbers, evaluation: Numbers, joint: Numbers) -> Part:
    """Join the summaries of all steps, as JSON types, into the numbers of the page; of two facts of one name, the plan's stands.

    `joint` holds the numbers of plan and evaluation together.
    """
    joined: Part = {**asdict(heading), "version": __version__}
    for part in (evaluation, fit, plan, joint):
        for key, value in part.items():
            both = isinstance(value, dict) and isinstance(joined.get(key), dict)
            joined[key] = {**joined[key], **value} if both else value
    return joined | {"answer": write_answer(joined)}


def render_report(numbers: Numbers) -> str:
    """Return the report as one HTML page that needs nothing else: it loads no other file and nothing from the network.

    Parameters
    ----------
    numbers
        What `join_parts` returns. Numbers may be None or not finite: they are shown as a dash. Strings may hold anything:
        they are escaped. The same numbers give the same page.
    """
    shown = clean(numbers)
    units = Units.of(shown)
    views = [(section, section.view(shown, units)) for section in SECTIONS]
    sections = [
        {"name": section.name, "title": section.title, "view": view} for section, view in views if view is not None
    ]
    return _fill("report.html", shown, units, sections=sections, legend=view_legend(shown, units))


def render_checkup(numbers: Numbers) -> str:
    """Return the page of a log's checkup, from what `describe_checkup` returns."""
    shown = clean(numbers)
    units = Units.of(shown)
    return _fill("checkup.html", shown, units, view=view_checkup(shown, units))


def render_check(numbers: Numbers) -> str:
    """Return the page of a campaign's check, from what `describe_check` returns."""
    shown = clean(numbers)
    units = Units.of(shown)
    return _fill("campaign_check.html", shown, units, view=view_check(shown, units))


def render_pace(numbers: Numbers) -> str:
    """Return the page of paced streams, from the numbers of a rehearsal."""
    shown = clean(numbers)
    units = Units.of(shown)
    return _fill("pacing.html", shown, units, view=view_pace(shown, units))


def _fill(template: str, numbers: Numbers, units: Units, **context: Any) -> str:
    import jinja2  # only needed here; the room itself imports in no time

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,  # a misspelt name is an error, not a hole in the page
        trim_blocks=True,
        lstrip_blocks=True,
    )
    depth = max(len(numbers["levels"]), 1)
    colours = {"light": level_variables(LIGHT_LEVELS, depth), "dark": level_variables(DARK_LEVELS, depth)}
    page = environment.get_template(template).render(
        n=numbers, units=units, response=numbers["response"]["name"], **colours, **context
    )
    return _hold_together(str(page).strip()) + "\n"


def _hold_together(page: str) -> str:
    """Return a page on which no line ends between a sign and a currency; its style and script stay as they are."""
    parts = re.split(r"(<(?:style|script)>.*?</(?:style|script)>)", page, flags=re.DOTALL)
    return "".join(part if k % 2 else SPLIT.sub("\u2060", part) for k, part in enumerate(parts))


def clean(value: Any) -> Any:
    r"""Return a copy that a page can show: non-finite numbers become None, control characters become spaces.

    >>> clean({"a": float("nan"), "b": ["x\ny"]})
    {'a': None, 'b': ['x y']}
    """
    if isinstance(value, Mapping):
        return {key: clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    if isinstance(value, str):
        shown = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in value)
        return re.sub(r"(?<=\d) %", f"{THIN}%", shown)  # a number and its percent sign stay on one line
    return finite(value) if isinstance(value, float) else value
