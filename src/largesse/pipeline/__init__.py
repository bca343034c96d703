"""Commands of a campaign: read, fit, plan, evaluate and report, each on a run folder.

`run` goes the whole way; `fit`, `plan`, `judge` and `report` are its steps, each reading the files of the steps before it.
`examine` checks a log before anything is fitted. Rows are touched only through an `Engine`: `LocalEngine` is that of
one machine, and `run_on_spark` runs a campaign on Spark.
"""

from largesse.pipeline.campaign_monitoring import check as check
from largesse.pipeline.campaign_monitoring import power as power
from largesse.pipeline.commands import LOCAL_ENGINE as LOCAL_ENGINE
from largesse.pipeline.commands import describe_run_folder as describe_run_folder
from largesse.pipeline.commands import fit as fit
from largesse.pipeline.commands import judge as judge
from largesse.pipeline.commands import plan as plan
from largesse.pipeline.commands import read_report_numbers as read_report_numbers
from largesse.pipeline.commands import report as report
from largesse.pipeline.commands import run as run
from largesse.pipeline.commands import write_slides as write_slides
from largesse.pipeline.log_checkup import examine as examine
from largesse.pipeline.log_checkup import find_or_guess_campaign as find_or_guess_campaign
from largesse.pipeline.next_log import write_next_log as write_next_log
from largesse.pipeline.policy_export import export as export
from largesse.pipeline.python_api import Page as Page
from largesse.pipeline.python_api import Run as Run
from largesse.pipeline.python_api import demo_campaign as demo_campaign
from largesse.pipeline.python_api import show_report as show_report
from largesse.pipeline.run_folder import CAMPAIGN_FILE as CAMPAIGN_FILE
from largesse.pipeline.run_folder import LOG_FILE as LOG_FILE
from largesse.pipeline.run_folder import PLAN_FILE as PLAN_FILE
from largesse.pipeline.run_folder import POLICY_FILE as POLICY_FILE
from largesse.pipeline.run_folder import RUN_FILES as RUN_FILES
from largesse.pipeline.run_folder import RUN_FOLDER_MARKS as RUN_FOLDER_MARKS
from largesse.pipeline.run_folder import check_output_file as check_output_file
from largesse.pipeline.run_folder import check_table_path as check_table_path
from largesse.pipeline.run_folder import convert_log_to_parquet as convert_log_to_parquet
from largesse.pipeline.run_folder import read_run_folder as read_run_folder
from largesse.pipeline.run_folder import write_text as write_text
from largesse.pipeline.spark import open_engine as open_engine
from largesse.pipeline.spark import run_on_spark as run_on_spark
from largesse.pipeline.table_writer import convert_plan_to_csv as convert_plan_to_csv
from largesse.pipeline.table_writer import write_table as write_table
from largesse.pipeline.what_if import refuse_existing_path as refuse_existing_path
from largesse.pipeline.what_if import save_tried_plan as save_tried_plan
from largesse.pipeline.what_if import try_plan as try_plan
