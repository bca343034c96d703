"""The report: records of a run in, one HTML page out that needs no other file. Nothing is computed here.

`join_parts` joins the summaries of a run's steps, and `render_report` returns a complete page for offline use, phones, dark
screens and paper. `describe_checkup` and `render_checkup` do the same for the checkup of a log, `describe_check` and
`render_check` for the check of a campaign, `render_pace` for paced streams.

`sections` has one module and one template for each section of the page, `charts` draws, `number_format` formats numbers,
`sentences` writes the verdict and the warnings, `labels` renames columns and levels, `slides` draws pictures for a talk, and
`console` prints on a terminal.
"""

from largesse.report.checkup_pages import describe_check as describe_check
from largesse.report.checkup_pages import describe_checkup as describe_checkup
from largesse.report.console import print_answer as print_answer
from largesse.report.console import print_check as print_check
from largesse.report.console import print_checkup as print_checkup
from largesse.report.console import print_error as print_error
from largesse.report.console import print_judgement as print_judgement
from largesse.report.console import print_pace as print_pace
from largesse.report.console import print_plan as print_plan
from largesse.report.console import print_power as print_power
from largesse.report.console import print_warnings as print_warnings
from largesse.report.labels import apply_labels as apply_labels
from largesse.report.notebook_plots import Drawing as Drawing
from largesse.report.number_format import MISSING_DASH as MISSING_DASH
from largesse.report.number_format import finite as finite
from largesse.report.number_format import name_day as name_day
from largesse.report.page_rendering import Heading as Heading
from largesse.report.page_rendering import join_parts as join_parts
from largesse.report.page_rendering import render_check as render_check
from largesse.report.page_rendering import render_checkup as render_checkup
from largesse.report.page_rendering import render_pace as render_pace
from largesse.report.page_rendering import render_report as render_report
from largesse.report.slides import draw_slides as draw_slides
