"""Fill the templates: one dict of numbers in, one self-contained HTML page out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from largesse.levels import SYMBOLS
from largesse.report.charts.palette import DARK_LEVELS, LIGHT_LEVELS, level_variables
from largesse.report.checkup import view_checkup
from largesse.report.formats import THIN, Units, finite
from largesse.report.pacing import view_pace
from largesse.report.realised import view_check
from largesse.report.rows import view_legend
from largesse.report.section import Numbers
from largesse.report.sections import SECTIONS

HERE = Path(__file__).parent
SPLIT = re.compile(f"(?<=[+−])(?=[{re.escape(''.join(sorted(SYMBOLS)))}])")


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
    return _fill("checkup/page.html", shown, units, view=view_checkup(shown, units))


def render_check(numbers: Numbers) -> str:
    """Return the page of a campaign's check, from what `describe_check` returns."""
    shown = clean(numbers)
    units = Units.of(shown)
    return _fill("realised/page.html", shown, units, view=view_check(shown, units))


def render_pace(numbers: Numbers) -> str:
    """Return the page of paced streams, from the numbers of a rehearsal."""
    shown = clean(numbers)
    units = Units.of(shown)
    return _fill("pacing/page.html", shown, units, view=view_pace(shown, units))


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
