"""Rendering of the HTML pages from their numbers, by templates without computation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from largesse.levels import LEADING_SYMBOLS
from largesse.report.charts.palette import DARK_LEVELS, LIGHT_LEVELS, write_level_css_variables
from largesse.report.comparison_rows import view_level_legend
from largesse.report.labels import apply_display_labels
from largesse.report.log_and_campaign_check_pages import view_campaign_check, view_log_checkup
from largesse.report.number_format import THIN_SPACE, Numbers, Units, View, finite_or_none
from largesse.report.pacing_page import view_pacing_page
from largesse.report.sections.budget_frontier import view_frontier
from largesse.report.sections.decision_explanations import view_explanations
from largesse.report.sections.gain_bounds import view_gain_bounds
from largesse.report.sections.level_changes import view_level_changes
from largesse.report.sections.level_responses import view_level_responses
from largesse.report.sections.method_details import view_method_details
from largesse.report.sections.overlap_balance import view_overlap_and_balance
from largesse.report.sections.profit_by_budget import view_profit_by_budget
from largesse.report.sections.protected_groups import view_protected_groups
from largesse.report.sections.qini_curve import view_qini_curve
from largesse.report.sections.segments import view_segments
from largesse.report.sections.summary import view_summary
from largesse.report.sentences import list_spending_warnings, write_verdict_sentences
from largesse.version import __version__

MakeView: TypeAlias = Callable[[Numbers, Units], View | None]
TEMPLATES = Path(__file__).parent
# Sections below the summary, in the order in which people ask: the name of a section's template and anchor; its view, or None to
# leave it out; its title.
REPORT_SECTIONS: tuple[tuple[str, MakeView, str], ...] = (
    ("segments", view_segments, "Who gets what, and at which budget?"),
    ("level_changes", view_level_changes, "What changes for whom?"),
    ("protected_groups", view_protected_groups, "Is it fair? Spend and gain by group"),
    ("budget_frontier", view_frontier, "What would another budget bring?"),
    ("profit_by_budget", view_profit_by_budget, "What is left after costs?"),
    ("gain_bounds", view_gain_bounds, "How sure is the gain?"),
    ("qini_curve", view_qini_curve, "Does choosing pay at other budgets?"),
    ("level_responses", view_level_responses, "What does each level bring?"),
    ("decision_explanations", view_explanations, "Why does a customer get this level?"),
    ("overlap_balance", view_overlap_and_balance, "Can the log answer this?"),
    ("method_details", view_method_details, "How was it done?"),
    ("glossary", lambda _numbers, _units: {}, "What do the words mean?"),
)
LONG_WORD = re.compile(r"[^\s&;]{19,}")  # outside of entities such as &amp;
LONG_WORD_PARTS = re.compile(r"\w{1,15}?_|\S{12}")
SIGNED_CURRENCY = re.compile(f"(?<=[+−])(?=[{re.escape(''.join(sorted(LEADING_SYMBOLS)))}])")


@dataclass(frozen=True)
class CampaignHeading:
    """Title, units, seed and date of a campaign's report."""

    title: str
    unit: str
    seed: int
    made: str = ""  # in words: 16 November 2026
    response_unit: str = ""


def join_report_numbers(
    heading: CampaignHeading,
    fit: Numbers,
    plan: Numbers,
    evaluation: Numbers,
    joint: Numbers,
    labels: Mapping[str, str] | None = None,
) -> View:
    """Join the numbers of all steps of a run into the numbers of the report.

    All are JSON types; the plan's number wins a conflict.

    `joint` holds the numbers of plan and evaluation together; `labels` replace the names of columns and levels.
    """
    joined: View = {**asdict(heading), "version": __version__}
    for result in (evaluation, fit, plan, joint):
        for key, value in result.items():
            both = isinstance(value, dict) and isinstance(joined.get(key), dict)
            joined[key] = {**joined[key], **value} if both else value
    joined = apply_display_labels(joined, labels or {})
    return joined | {"answer": write_verdict_and_warnings(joined)}


def write_verdict_and_warnings(numbers: Numbers) -> View:
    """Return the headline, the verdict and all warnings of a report as text."""
    units = Units.from_numbers(numbers)
    warnings = [*list_spending_warnings(units, numbers), *numbers["warnings"]]
    return {**write_verdict_sentences(units, numbers), "warnings": warnings}


def render_report(numbers: Numbers, *, short: bool = False) -> str:
    """Render the report as one HTML page that needs no other file and no network.

    Parameters
    ----------
    numbers
        The result of `join_report_numbers`. Numbers that are None or not finite are shown as a dash. Strings are escaped. The same
        numbers give the same page.
    short
        Return the summary alone, which is one page of A4.
    """
    numbers = clean_page_value(numbers)
    units = Units.from_numbers(numbers)
    views = () if short else ((name, title, view(numbers, units)) for name, view, title in REPORT_SECTIONS)
    sections = [{"name": name, "title": title, "view": view} for name, title, view in views if view is not None]
    summary = view_summary(numbers, units)
    return _fill_template(
        "report.html", numbers, units, summary=summary, sections=sections, legend=view_level_legend(numbers, units)
    )


def render_log_checkup(numbers: Numbers) -> str:
    """Render the HTML page of a log checkup, from the result of `make_log_checkup_numbers`."""
    return _render_view("checkup.html", numbers, view_log_checkup)


def render_campaign_check(numbers: Numbers) -> str:
    """Render the HTML page of a campaign check, from the result of `make_campaign_check_numbers`."""
    return _render_view("campaign_check.html", numbers, view_campaign_check)


def render_pacing_page(numbers: Numbers) -> str:
    """Render the HTML page of simulated pacing, from the numbers of a simulation."""
    return _render_view("pacing.html", numbers, view_pacing_page)


def _render_view(template: str, numbers: Numbers, view: MakeView) -> str:
    numbers = clean_page_value(numbers)
    units = Units.from_numbers(numbers)
    return _fill_template(template, numbers, units, view=view(numbers, units))


def _fill_template(template: str, numbers: Numbers, units: Units, **context: Any) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,  # a misspelt name is an error, not a hole in the page
        trim_blocks=True,
        lstrip_blocks=True,
    )
    depth = max(len(numbers["levels"]), 1)
    colours = {
        "light": write_level_css_variables(LIGHT_LEVELS, depth),
        "dark": write_level_css_variables(DARK_LEVELS, depth),
    }
    page = environment.get_template(template).render(
        n=numbers, units=units, response=numbers["response"]["name"], **colours, **context
    )
    parts = re.split(r"(<(?:style|script|code)>.*?</(?:style|script|code)>|<[^>]*>)", page.strip(), flags=re.DOTALL)
    return "".join(_mark_line_breaks(part, is_text=k % 2 == 0) for k, part in enumerate(parts)) + "\n"


def _mark_line_breaks(part: str, *, is_text: bool = True) -> str:
    """Insert invisible characters into HTML text that allow or forbid line breaks in long words and amounts.

    In tags, that is where they may not end; style, script and code stay as they are.

    >>> _mark_line_breaks("+€5 clicked_on_the_link").split("\u200b")
    ['+\u2060€5 clicked_', 'on_', 'the_', 'link']
    """
    if is_text:
        part = LONG_WORD.sub(lambda word: LONG_WORD_PARTS.sub("\\g<0>\u200b", word[0]).rstrip("\u200b"), part)
    return part if part.startswith(("<style>", "<script>", "<code>")) else SIGNED_CURRENCY.sub("\u2060", part)


def clean_page_value(value: Any) -> Any:
    r"""Replace non-finite numbers by None and control characters by spaces in a page's values.

    >>> clean_page_value({"a": float("nan"), "b": ["x\ny"]})
    {'a': None, 'b': ['x y']}
    """
    if isinstance(value, Mapping):
        return {key: clean_page_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_page_value(item) for item in value]
    if isinstance(value, str):
        text = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in value)
        return re.sub(r"(?<=\d) %", f"{THIN_SPACE}%", text)  # a number and its percent sign stay on one line
    return finite_or_none(value) if isinstance(value, float) else value
