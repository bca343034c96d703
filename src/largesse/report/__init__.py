"""Report of a run: one HTML page made from the records of the run, without further computation.

`join_report_numbers` joins the summaries of a run's steps, and `render_report` returns a complete page for offline use, phones, dark
screens and paper. `make_log_checkup_numbers` and `render_log_checkup` do the same for the checkup of a log,
`make_campaign_check_numbers` and `render_campaign_check` for the check of a campaign, `render_pacing_page` for paced streams.

`sections` has one module and one template for each section of the page, `charts` draws, `number_format` formats numbers,
`sentences` writes the verdict and the warnings, `labels` renames columns and levels, `slides` draws pictures for a talk, and
`console` prints on a terminal.
"""

from largesse.report.console import print_campaign_check as print_campaign_check
from largesse.report.console import print_error as print_error
from largesse.report.console import print_log_checkup as print_log_checkup
from largesse.report.console import print_pacing_results as print_pacing_results
from largesse.report.console import print_plan as print_plan
from largesse.report.console import print_plan_evaluation as print_plan_evaluation
from largesse.report.console import print_run_result as print_run_result
from largesse.report.console import print_test_sizes as print_test_sizes
from largesse.report.console import print_warnings as print_warnings
from largesse.report.labels import apply_display_labels as apply_display_labels
from largesse.report.log_and_campaign_check_pages import make_campaign_check_numbers as make_campaign_check_numbers
from largesse.report.log_and_campaign_check_pages import make_log_checkup_numbers as make_log_checkup_numbers
from largesse.report.notebook_plots import Drawing as Drawing
from largesse.report.number_format import MISSING_DASH as MISSING_DASH
from largesse.report.number_format import finite_or_none as finite_or_none
from largesse.report.number_format import write_report_date as write_report_date
from largesse.report.page_rendering import CampaignHeading as CampaignHeading
from largesse.report.page_rendering import join_report_numbers as join_report_numbers
from largesse.report.page_rendering import render_campaign_check as render_campaign_check
from largesse.report.page_rendering import render_log_checkup as render_log_checkup
from largesse.report.page_rendering import render_pacing_page as render_pacing_page
from largesse.report.page_rendering import render_report as render_report
from largesse.report.slides import draw_slides as draw_slides
