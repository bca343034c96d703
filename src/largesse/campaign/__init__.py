"""The campaign file: reader, checks, writer, and drafts for undescribed tables."""

from largesse.campaign.column_roles import MAX_LEVELS as MAX_LEVELS
from largesse.campaign.column_roles import Guess as Guess
from largesse.campaign.draft import MAX_LISTED as MAX_LISTED
from largesse.campaign.draft import CampaignDraft as CampaignDraft
from largesse.campaign.draft import TableProfile as TableProfile
from largesse.campaign.draft import guess_campaign as guess_campaign
from largesse.campaign.draft import inspect_table as inspect_table
from largesse.campaign.draft import unknown_columns as unknown_columns
from largesse.campaign.file import CAMPAIGN_SECTIONS as CAMPAIGN_SECTIONS
from largesse.campaign.file import Campaign as Campaign
from largesse.campaign.file import Spent as Spent
from largesse.campaign.file import campaign_from as campaign_from
from largesse.campaign.file import campaign_from_options as campaign_from_options
from largesse.campaign.file import read_campaign as read_campaign
from largesse.campaign.file import read_list as read_list
from largesse.campaign.planning import Planning as Planning
from largesse.campaign.planning import find_eligible as find_eligible
