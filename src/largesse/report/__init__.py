"""Show a person who decides what a plan brings, in one HTML file that needs nothing else.

A report is made in two steps: records → numbers, numbers → page. `describe_fit`, `describe_plan` and `describe_study` turn the
records of a run's steps into dicts of JSON types, `join_parts` joins them, and `render_report` returns a complete page that works
offline, on a phone, in the dark and on paper. The second step computes nothing but layout, so every figure on the page can be
traced to a number in the dict. `describe_checkup` and `render_checkup` do the same for a log that has only been examined.

Inside, `sections` has one folder for each section of the page, `charts` is the drawing kit (the lab's results page uses it too),
`figures` draws records for notebooks,
`formats` writes numbers, `words` writes sentences, `page` fills the templates, `console` prints the answer on a
terminal, and `live` shows how far the work is until then.
"""

from largesse.report.charts.dots import draw_dots as draw_dots
from largesse.report.charts.lines import Look as Look
from largesse.report.charts.lines import draw_lines as draw_lines
from largesse.report.charts.sheet import Caption as Caption
from largesse.report.checkup import describe_checkup as describe_checkup
from largesse.report.console import print_answer as print_answer
from largesse.report.console import print_check as print_check
from largesse.report.console import print_checkup as print_checkup
from largesse.report.console import print_error as print_error
from largesse.report.console import print_judgement as print_judgement
from largesse.report.console import print_plan as print_plan
from largesse.report.console import print_power as print_power
from largesse.report.console import print_warnings as print_warnings
from largesse.report.drawing import Drawing as Drawing
from largesse.report.figures import draw_explanation as draw_explanation
from largesse.report.figures import draw_study as draw_study
from largesse.report.formats import DASH as DASH
from largesse.report.formats import finite as finite
from largesse.report.formats import name_day as name_day
from largesse.report.pacing import print_pace as print_pace
from largesse.report.page import render_check as render_check
from largesse.report.page import render_checkup as render_checkup
from largesse.report.page import render_pace as render_pace
from largesse.report.page import render_report as render_report
from largesse.report.parts import Heading as Heading
from largesse.report.parts import describe_fit as describe_fit
from largesse.report.parts import describe_plan as describe_plan
from largesse.report.parts import describe_study as describe_study
from largesse.report.parts import join_parts as join_parts
from largesse.report.realised import describe_check as describe_check
from largesse.report.section import FitStep as FitStep
from largesse.report.section import PlanFacts as PlanFacts
from largesse.report.section import PlanStep as PlanStep
from largesse.report.shapes import FitNumbers as FitNumbers
from largesse.report.shapes import PlanNumbers as PlanNumbers
from largesse.report.shapes import StudyNumbers as StudyNumbers
from largesse.report.tally import SAMPLE as SAMPLE
from largesse.report.tally import PlanTally as PlanTally
from largesse.report.tally import Shown as Shown
from largesse.report.tally import choose_shown as choose_shown
from largesse.report.tally import code_groups as code_groups
from largesse.report.tally import group_features as group_features
from largesse.report.tally import keep_telling as keep_telling
from largesse.report.tally import measure_explained as measure_explained
from largesse.report.tally import number_groups as number_groups
from largesse.report.tally import tally_codes as tally_codes
from largesse.report.tally import tally_plan as tally_plan
