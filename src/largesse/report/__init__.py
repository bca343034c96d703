"""Show a person who decides what a plan brings, in one HTML file that needs nothing else.

A report is made in two steps: numbers → dict, dict → page. `render` is the second step: it takes a plain dict of JSON
types and returns a complete page that works offline, on a phone, in the dark and on paper. It computes nothing but
layout, so every figure on the page can be traced to a number in the dict. Inside, `formats` writes numbers, `scales` and
`palette` choose axes and colours, `figures` draws the frontier, `strips` draws everything that stands in rows,
`sections` arranges each section, and `page` fills the template. `checkup` and `render_checkup` do the same for a log
that has only been examined.
"""

from largesse.report.charts.dots import draw_dots as draw_dots
from largesse.report.charts.lines import Look as Look
from largesse.report.charts.lines import draw_lines as draw_lines
from largesse.report.charts.sheet import Caption as Caption
from largesse.report.checkup import checkup_numbers as checkup_numbers
from largesse.report.console import print_answer as print_answer
from largesse.report.console import print_checkup as print_checkup
from largesse.report.console import print_error as print_error
from largesse.report.console import show_progress as show_progress
from largesse.report.formats import DASH as DASH
from largesse.report.formats import Units as Units
from largesse.report.formats import finite as finite
from largesse.report.numbers import Heading as Heading
from largesse.report.numbers import evaluation_part as evaluation_part
from largesse.report.numbers import fit_part as fit_part
from largesse.report.numbers import numbers as numbers
from largesse.report.numbers import plan_part as plan_part
from largesse.report.page import render as render
from largesse.report.page import render_checkup as render_checkup
from largesse.report.who import who_gets_what as who_gets_what
from largesse.report.words import gain_text as gain_text
from largesse.report.words import value_interval as value_interval
from largesse.report.words import value_text as value_text
