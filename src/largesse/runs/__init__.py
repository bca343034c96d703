"""A campaign from file to folder.

`read_campaign` reads the campaign file, `guess_campaign` writes a first one for a table. `run` goes the whole way and
leaves a run folder; `fit`, `plan`, `judge` and `report` are its steps, each reading what the one before it left in the
folder. `examine` checks a log before anything is fitted. An `Engine` touches the rows; `Local` is the one for one machine,
and `spark` runs a campaign on Spark.
"""

from largesse.runs.afterwards import check as check
from largesse.runs.bring import bring_log as bring_log
from largesse.runs.bring import clear_unfinished as clear_unfinished
from largesse.runs.campaign import Campaign as Campaign
from largesse.runs.campaign import Spent as Spent
from largesse.runs.campaign import campaign_from as campaign_from
from largesse.runs.campaign import read_campaign as read_campaign
from largesse.runs.demo import demo_campaign as demo_campaign
from largesse.runs.doctor import examine as examine
from largesse.runs.doctor import find_campaign as find_campaign
from largesse.runs.economy import read_time as read_time
from largesse.runs.exported import export as export
from largesse.runs.folder import CAMPAIGN as CAMPAIGN
from largesse.runs.folder import FILES as FILES
from largesse.runs.folder import LOG as LOG
from largesse.runs.folder import MARKS as MARKS
from largesse.runs.folder import PLAN as PLAN
from largesse.runs.folder import REPORT as REPORT
from largesse.runs.folder import check_file as check_file
from largesse.runs.folder import write_text as write_text
from largesse.runs.guess import FirstLook as FirstLook
from largesse.runs.guess import Seen as Seen
from largesse.runs.guess import guess_campaign as guess_campaign
from largesse.runs.guess import look_at as look_at
from largesse.runs.guess import order_by_response as order_by_response
from largesse.runs.guess import see as see
from largesse.runs.guess import suggest_budget as suggest_budget
from largesse.runs.guess import suggest_costs as suggest_costs
from largesse.runs.guess import sure_parse as sure_parse
from largesse.runs.guess import tally_levels as tally_levels
from largesse.runs.guess import unknown_columns as unknown_columns
from largesse.runs.line import describe_run as describe_run
from largesse.runs.line import fit as fit
from largesse.runs.line import judge as judge
from largesse.runs.line import plan as plan
from largesse.runs.line import read_numbers as read_numbers
from largesse.runs.line import report as report
from largesse.runs.line import run as run
from largesse.runs.notebook import Page as Page
from largesse.runs.notebook import Run as Run
from largesse.runs.notebook import show_report as show_report
from largesse.runs.on_spark import open_engine as open_engine
from largesse.runs.on_spark import spark as spark
from largesse.runs.opened import OpenedPolicy as OpenedPolicy
from largesse.runs.opened import find_policy as find_policy
from largesse.runs.opened import open_policy as open_policy
from largesse.runs.opened import read_population as read_population
from largesse.runs.options import campaign_from_options as campaign_from_options
from largesse.runs.options import column_options as column_options
from largesse.runs.options import engine_options as engine_options
from largesse.runs.options import export_options as export_options
from largesse.runs.options import ledger_options as ledger_options
from largesse.runs.options import level_options as level_options
from largesse.runs.options import read_list as read_list
from largesse.runs.options import with_options as with_options
from largesse.runs.paced import SIMULATED as SIMULATED
from largesse.runs.paced import pace as pace
from largesse.runs.paced import pace_options as pace_options
from largesse.runs.paced import read_streaming as read_streaming
from largesse.runs.roles import MOST_LEVELS as MOST_LEVELS
from largesse.runs.roles import Guess as Guess
from largesse.runs.testing import describe_power as describe_power
from largesse.runs.testing import power as power
from largesse.runs.testing import power_options as power_options
from largesse.runs.trial import change_plan as change_plan
from largesse.runs.trial import keep_plan as keep_plan
from largesse.runs.trial import refuse_existing as refuse_existing
from largesse.runs.trial import try_plan as try_plan
from largesse.runs.trial import write_csv as write_csv
