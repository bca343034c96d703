"""The campaign file: reader, checks, writer, and drafts for undescribed tables."""

from largesse.campaign.campaign_draft import CampaignDraft as CampaignDraft
from largesse.campaign.campaign_draft import TableProfile as TableProfile
from largesse.campaign.campaign_draft import inspect_table as inspect_table
from largesse.campaign.campaign_draft import unknown_columns as unknown_columns
from largesse.campaign.campaign_file import BUDGET_KEYS as BUDGET_KEYS
from largesse.campaign.campaign_file import CAMPAIGN_SECTIONS as CAMPAIGN_SECTIONS
from largesse.campaign.campaign_file import CHECKUP_KEYS as CHECKUP_KEYS
from largesse.campaign.campaign_file import Campaign as Campaign
from largesse.campaign.campaign_file import SpendingOverrides as SpendingOverrides
from largesse.campaign.campaign_file import campaign_from_options as campaign_from_options
from largesse.campaign.campaign_file import parse_campaign as parse_campaign
from largesse.campaign.campaign_file import read_campaign as read_campaign
from largesse.campaign.campaign_file import read_list as read_list
from largesse.campaign.campaign_file import split_list as split_list
from largesse.campaign.draft_text import MAX_LISTED as MAX_LISTED
from largesse.campaign.draft_text import DraftAnswers as DraftAnswers
from largesse.campaign.draft_text import find_protected as find_protected
from largesse.campaign.draft_text import guess_campaign as guess_campaign
from largesse.campaign.draft_text import write_draft as write_draft
from largesse.campaign.plan_settings import Planning as Planning
from largesse.campaign.plan_settings import find_eligible as find_eligible
from largesse.campaign.role_detection import MAX_LEVELS as MAX_LEVELS
from largesse.campaign.role_detection import RoleGuesses as RoleGuesses
