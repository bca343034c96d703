"""The whole way, where the data is.

`local` runs it on one machine: from a campaign file to a run folder, in one go (`run`) or step by step (`fit`, `plan`,
`judge`, `report`), each step reading what the one before it left in the folder.
"""

from largesse.runs.campaign import BUDGET_RULE as BUDGET_RULE
from largesse.runs.campaign import Campaign as Campaign
from largesse.runs.campaign import campaign_from as campaign_from
from largesse.runs.campaign import read_campaign as read_campaign
from largesse.runs.checkup import campaign_of as campaign_of
from largesse.runs.checkup import examine as examine
from largesse.runs.demo import demo_campaign as demo_campaign
from largesse.runs.guess import guess_campaign as guess_campaign
from largesse.runs.local import fit as fit
from largesse.runs.local import judge as judge
from largesse.runs.local import plan as plan
from largesse.runs.local import report as report
from largesse.runs.local import run as run
