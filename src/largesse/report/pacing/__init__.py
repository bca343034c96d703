"""The page of paced streams: price, spend and value as customers came, beside the offline optimum."""

from largesse.report.pacing.console import print_pace as print_pace
from largesse.report.pacing.view import view_pace as view_pace
