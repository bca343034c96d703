"""Campaign file: reading, checks, writing, and drafts for new tables."""

from largesse.campaign.campaign_draft import CampaignDraft as CampaignDraft
from largesse.campaign.campaign_draft import TableProfile as TableProfile
from largesse.campaign.campaign_draft import find_unknown_columns as find_unknown_columns
from largesse.campaign.campaign_draft import profile_table as profile_table
from largesse.campaign.campaign_file import BUDGET_KEYS as BUDGET_KEYS
from largesse.campaign.campaign_file import CAMPAIGN_SECTIONS as CAMPAIGN_SECTIONS
from largesse.campaign.campaign_file import CHECKUP_KEYS as CHECKUP_KEYS
from largesse.campaign.campaign_file import Campaign as Campaign
from largesse.campaign.campaign_file import SpendingOverrides as SpendingOverrides
from largesse.campaign.campaign_file import make_campaign_from_options as make_campaign_from_options
from largesse.campaign.campaign_file import parse_campaign as parse_campaign
from largesse.campaign.campaign_file import parse_number_list as parse_number_list
from largesse.campaign.campaign_file import read_campaign as read_campaign
from largesse.campaign.campaign_file import split_comma_list as split_comma_list
from largesse.campaign.draft_text import MAX_LISTED as MAX_LISTED
from largesse.campaign.draft_text import DraftAnswers as DraftAnswers
from largesse.campaign.draft_text import find_protected_columns as find_protected_columns
from largesse.campaign.draft_text import write_campaign_text as write_campaign_text
from largesse.campaign.draft_text import write_guessed_campaign as write_guessed_campaign
from largesse.campaign.plan_settings import PlanSettings as PlanSettings
from largesse.campaign.plan_settings import find_eligible_levels as find_eligible_levels
from largesse.campaign.role_detection import MAX_LEVELS as MAX_LEVELS
from largesse.campaign.role_detection import RoleGuesses as RoleGuesses
