"""Fill the template: one dict of numbers in, one self-contained HTML page out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from largesse.report import sections
from largesse.report.charts.palette import DARK_LEVELS, LIGHT_LEVELS, level_variables
from largesse.report.formats import THIN, Units, finite, write_count

HERE = Path(__file__).parent


def render(numbers: dict[str, Any]) -> str:
    """Return the report as one HTML page that needs nothing else: no network, no other file, no script.

    Parameters
    ----------
    numbers
        The dict of JSON types that `largesse.report.numbers` makes. Numbers may be None or not a number: they are
        shown as a dash. Strings may hold anything: they are escaped. The same dict gives the same page.
    """
    page = _environment().get_template("template.html").render(_context(clean(numbers)))
    return str(page).strip() + "\n"


def render_checkup(numbers: dict[str, Any]) -> str:
    """Return the page of a log's checkup, from the dict that `largesse.report.checkup` makes."""
    page = _environment().get_template("checkup.html").render(_checkup_context(clean(numbers)))
    return str(page).strip() + "\n"


def _environment() -> Any:
    import jinja2  # only needed here; the room itself imports in no time

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,  # a misspelt name is an error, not a hole in the page
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _checkup_context(numbers: Mapping[str, Any]) -> dict[str, Any]:
    units = Units(numbers["response"]["kind"], numbers["unit"])
    depth = max(len(numbers["levels"]), 1)
    return {
        "n": numbers,
        "units": units,
        "counted": _log_counts(numbers["log"]),
        "light": level_variables(LIGHT_LEVELS, depth),
        "dark": level_variables(DARK_LEVELS, depth),
        "support": sections.support_section(numbers),
        "curve": sections.raw_section(numbers, units),
    }


def _context(numbers: Mapping[str, Any]) -> dict[str, Any]:
    units = Units(numbers["response"]["kind"], numbers["unit"])
    depth = max(len(numbers["levels"]), 1)
    return {
        "n": numbers,
        "units": units,
        "counted": {"customers": write_count(numbers["customers"]), **_log_counts(numbers["log"])},
        "light": level_variables(LIGHT_LEVELS, depth),
        "dark": level_variables(DARK_LEVELS, depth),
        "answer": sections.answer_section(numbers, units),
        "frontier": sections.frontier_section(numbers, units),
        "targeting": sections.targeting_section(numbers, units),
        "curve": sections.curve_section(numbers, units),
        "who": sections.who_section(numbers, units),
        "money": sections.money_section(numbers, units),
        "support": sections.support_section(numbers),
        "method": sections.method_section(numbers),
        "legend": sections.legend(numbers, units),
    }


def _log_counts(log: Mapping[str, Any]) -> dict[str, str]:
    clusters = finite(log["clusters"])
    return {"rows": write_count(log["rows"]), "clusters": "" if clusters is None else write_count(clusters)}


def clean(value: Any) -> Any:
    r"""Return a copy without what a page cannot show: numbers that are none become None, control characters spaces.

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
