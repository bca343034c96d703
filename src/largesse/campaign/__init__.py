"""The campaign file: read, checked, written, and drafted for a table that has none yet."""

from largesse.campaign.draft.file import SHOWN as SHOWN
from largesse.campaign.draft.file import FirstLook as FirstLook
from largesse.campaign.draft.file import Seen as Seen
from largesse.campaign.draft.file import guess_campaign as guess_campaign
from largesse.campaign.draft.file import look_at as look_at
from largesse.campaign.draft.file import order_by_response as order_by_response
from largesse.campaign.draft.file import see as see
from largesse.campaign.draft.file import suggest_budget as suggest_budget
from largesse.campaign.draft.file import suggest_costs as suggest_costs
from largesse.campaign.draft.file import sure_parse as sure_parse
from largesse.campaign.draft.file import tally_levels as tally_levels
from largesse.campaign.draft.file import unknown_columns as unknown_columns
from largesse.campaign.draft.roles import MOST_LEVELS as MOST_LEVELS
from largesse.campaign.draft.roles import Guess as Guess
from largesse.campaign.file import SECTIONS as SECTIONS
from largesse.campaign.file import Campaign as Campaign
from largesse.campaign.file import Spent as Spent
from largesse.campaign.file import campaign_from as campaign_from
from largesse.campaign.file import campaign_from_options as campaign_from_options
from largesse.campaign.file import read_campaign as read_campaign
from largesse.campaign.file import read_list as read_list
from largesse.campaign.plan import Planning as Planning
from largesse.campaign.rules import find_eligible as find_eligible
